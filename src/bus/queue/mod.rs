//! The queue of alerts: publishing, claiming, answering a delivery, whether the queue works, the position in it,
//! its messages for people, and requeuing lost alerts.

pub(crate) mod publish;
pub(crate) mod claims;
pub(crate) mod delivery;
pub(crate) mod monitor;
pub(crate) mod position;
pub(crate) mod queued;
pub(crate) mod requeue;
