//! The stream of an answer: its events, and the mending of what readers of JSON refuse.

pub mod events;
pub mod repair;
