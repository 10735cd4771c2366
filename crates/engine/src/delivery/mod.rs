//! From a delivered message to its acknowledgement: which session the alert belongs to, and when all of it is
//! published.

pub mod dispatch;
mod inherit;
mod admit;
mod attempt;
mod heartbeat;
pub mod redelivery;
pub mod acknowledgement;
pub mod settler;
pub mod settle;
#[cfg(test)]
mod tests;
