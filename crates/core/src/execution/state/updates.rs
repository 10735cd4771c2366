//! The updates of the alert that an execution knows.

use super::State;

/// The updates that an execution knows, by the number of the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Updates {
    pub(super) known: u32,
    /// The model has answered since.
    pub(super) answered: u32,
}

impl State {
    /// Number of the last update of the alert in the journal; 0 for none.
    pub fn known_updates(&self) -> u32 {
        self.updates.known
    }

    /// The number of the last update that the model has answered.
    pub fn answered_updates(&self) -> u32 {
        self.updates.answered
    }
}
