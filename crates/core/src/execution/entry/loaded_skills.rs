//! `LoadedSkills`: the texts of skills when results are blanked.

use serde::{Deserialize, Serialize};

/// The texts of skills when the other results are blanked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadedSkills {
    /// They are blanked like any result, as in older journals.
    #[default]
    Blanked,
    /// They stay: a model that has lost them works on without them.
    Kept,
}

impl LoadedSkills {
    /// serde passes a reference.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature is that of `skip_serializing_if`"
    )]
    pub(super) fn are_blanked(&self) -> bool {
        *self == Self::Blanked
    }
}
