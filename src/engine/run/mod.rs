//! The run of one leased session, from its claim to its end.

pub mod registry;
mod holder;
pub mod control;
pub mod session;
mod execution;
mod tool_calls;
mod native;
pub mod masked;
pub(crate) mod recovery;
pub(crate) mod instruments;
#[cfg(test)]
mod tests;
