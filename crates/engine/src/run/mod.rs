//! The run of one leased session, from its claim to its end.
//!
//! `session` runs the chain, `session_end` commits its end, `early_end` one before it, `review` reads what a review
//! gets, `execution` is the loop of one agent, `model_retry` the delays between its model calls, `deltas` the pieces of
//! an answer, `tool_calls` its batches (`performed` has their results);
//! `masked` and `recovery` guard what comes in; `registry` and `control` let the worker watch and stop its runs;
//! `numbers` are those of the session that grow meanwhile.

pub mod registry;
pub mod control;
mod numbers;
pub mod session;
pub mod session_end;
pub mod early_end;
mod review;
mod execution;
mod model_retry;
mod deltas;
mod tool_calls;
mod performed;
pub mod progress;
mod native;
pub mod masked;
pub mod recovery;
pub(crate) mod instruments;
#[cfg(test)]
mod tests;
