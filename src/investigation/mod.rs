//! The core: alerts, plans, and the fold that decides the next step of an execution. Pure: no async, no I/O, no clock,
//! no randomness.
//!
//! In the order of an alert's way: `intake` and `mask` make an [`alert`]; `plan`, `prompt` and `follow_up` freeze how
//! it is investigated; `execution` folds the journal of an agent and decides, with `react` and `native` for the
//! answers; `chain` folds the stages; `timeline` and `summary` are what people read.

pub mod ids;
pub mod intake;
pub mod mask;
pub mod alert;
pub mod plan;
pub mod prompt;
mod tool_descriptions;
pub mod runbook;
pub mod follow_up;
pub mod execution;
pub mod react;
pub mod native;
mod code;
pub mod chain;
pub mod timeline;
pub mod summary;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
