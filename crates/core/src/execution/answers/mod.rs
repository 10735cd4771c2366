//! Decides whether a model's answer counts: by its finish reason, by a call in its text, and by its content.

pub mod verdict;
pub mod check;
mod figures;
pub mod proof;
pub(super) mod cut;
