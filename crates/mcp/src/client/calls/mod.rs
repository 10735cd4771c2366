//! Calls of tools: the check of the arguments before a call is sent, and the wait for its answer.

pub(super) mod arguments;
pub(super) mod pending;
