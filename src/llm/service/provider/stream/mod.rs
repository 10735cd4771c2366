//! The stream of an answer: its events, and the mending of what readers of JSON refuse.

pub(crate) mod events;
pub(crate) mod repair;
