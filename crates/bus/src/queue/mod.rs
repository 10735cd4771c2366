//! The queue of alerts: publishing, claiming, answering a delivery, whether the queue works, the position in it,
//! its messages for people, and requeuing lost alerts.

pub mod publish;
pub mod claims;
pub mod delivery;
pub mod monitor;
pub mod position;
pub mod queued;
pub mod requeue;
