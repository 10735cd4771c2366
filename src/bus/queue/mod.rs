//! The queue of alerts: publishing, claiming, answering a delivery, the position in the queue, and requeuing lost
//! alerts.

pub(crate) mod publish;
pub(crate) mod claims;
pub(crate) mod delivery;
pub(crate) mod position;
pub(crate) mod requeue;
