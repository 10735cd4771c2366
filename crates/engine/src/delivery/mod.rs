//! Processes a delivered message until its acknowledgement: admits the alert to a session, runs the session, and
//! settles it.

pub mod dispatcher;
mod dispatch;
mod inherit;
mod admit;
mod attempt;
mod holder;
mod heartbeat;
pub mod redelivery;
pub mod acknowledgement;
pub mod outage;
pub mod timeline;
mod turns;
pub mod settler;
pub mod parked;
pub mod settle;
#[cfg(test)]
mod tests;
