//! The core: what an investigation is and what it does next. Pure: no async, no I/O, no clock, no randomness.
//!
//! An execution is a fold over its entries ([`entry`]); the rest of the crate brings entries in and decisions out.

pub mod alert;
pub mod chain;
mod code;
pub mod execution;
pub mod follow_up;
pub mod ids;
pub mod intake;
pub mod mask;
pub mod native;
pub mod plan;
pub mod prompt;
pub mod react;
pub mod runbook;
pub mod summary;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod timeline;
mod tool_descriptions;
