//! HTTP in and out: what every listener and every request to another server share.

pub mod listener;
pub mod outgoing;
