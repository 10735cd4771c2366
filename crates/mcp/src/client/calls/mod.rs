//! One call: its arguments before it is sent, and the wait for its answer.

pub(super) mod arguments;
pub(super) mod pending;
