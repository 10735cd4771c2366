//! Whether a model's answer counts: by its end, by a call that it has in its text, and by what it says.

pub mod verdict;
pub mod check;
pub mod proof;
pub(super) mod cut;
