//! The queue of alerts: publishing, claiming, acknowledging, and publishing again what was lost.

pub(crate) mod publish;
pub(crate) mod claims;
pub(crate) mod pull;
pub(crate) mod delivery;
pub(crate) mod position;
pub(crate) mod requeue;
