//! The stream of an answer: its events, and the repair of JSON that parsers refuse.

pub(crate) mod events;
pub(crate) mod repair;
