//! The stream of an answer: its events, and the repair of JSON that parsers refuse.

pub mod events;
pub mod repair;
