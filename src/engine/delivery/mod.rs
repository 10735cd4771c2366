//! From a delivered message to its acknowledgement: which session the alert belongs to, and when all of it is published.

pub mod dispatch;
mod admit;
mod heartbeat;
pub mod redelivery;
pub(crate) mod settle;
pub mod settler;
#[cfg(test)]
mod tests;
