//! The background tasks of a worker, and the state that they share with the dispatcher.

pub mod shared;
pub mod background;
pub mod renewal;
pub mod cancel;
pub mod sweeper;
pub mod probes;
pub mod outage;
pub mod timeline_probe;
pub mod presence;
pub mod notifications;
