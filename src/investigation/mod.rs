//! The core: what an investigation is and what it does next. Pure: no async, no I/O, no clock, no randomness.
//!
//! An execution is a fold over its entries ([`entry`]); the rest of the crate brings entries in and decisions out.

pub mod absorb;
pub mod alert;
pub mod chain;
mod code;
pub mod conversation;
pub mod decide;
pub mod entry;
#[cfg(test)]
mod flows;
pub mod follow_up;
pub mod ids;
pub mod intake;
pub mod mask;
pub mod narrate;
pub mod native;
pub mod numbers;
pub mod plan;
pub mod prompt;
#[cfg(test)]
mod quoting;
pub mod react;
pub mod recovery;
mod repeats;
pub mod results;
pub mod runbook;
mod sources;
pub mod state;
pub mod summary;
#[cfg(test)]
mod survival;
#[cfg(test)]
mod testing;
pub mod timeline;
mod toolbook;
pub mod unmasked;
pub mod window;
