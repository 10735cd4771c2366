//! A status that reports read leniently: an unknown word of a later version is accepted.

use tarsy_engine::ports::RunStatus;

/// A status in a report: one row with a word of a later version hides no other row.
#[derive(Clone, Copy, Debug)]
pub struct ShownStatus(pub RunStatus);

impl From<ShownStatus> for RunStatus {
    fn from(shown: ShownStatus) -> Self {
        shown.0
    }
}
