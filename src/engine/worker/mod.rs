//! The tasks that a worker runs beside its sessions.

pub mod background;
pub mod renewal;
pub mod cancel;
pub mod sweeper;
pub mod probes;
pub mod timeline_probe;
pub mod outage;
pub mod presence;
