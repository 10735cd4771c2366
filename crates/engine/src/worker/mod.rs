//! The background tasks of a worker. They watch and repair what its dispatcher does.

pub mod background;
pub mod renewal;
pub mod cancel;
pub mod sweeper;
pub mod probes;
pub mod timeline_probe;
pub mod presence;
pub mod notifications;
pub mod decisions;
