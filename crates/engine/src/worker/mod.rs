//! The background tasks of a worker, and the state that they share with the dispatcher.

#[path = "../delivery/dispatcher.rs"]
pub mod shared;
pub mod background;
pub mod renewal;
pub mod cancel;
pub mod sweeper;
pub mod probes;
#[path = "../delivery/outage.rs"]
pub mod outage;
pub mod timeline_probe;
pub mod presence;
pub mod notifications;
