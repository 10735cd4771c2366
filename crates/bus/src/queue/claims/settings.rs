//! The settings of the claim loop, and the switch that pauses it.

use std::time::Duration;

/// The settings of the claim loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimSettings {
    /// Slots that only critical alerts may take.
    pub reserved_critical_slots: usize,
    /// An alert with a larger body becomes a dead letter without its body.
    pub max_body_bytes: usize,
    /// The longest time that one pull request may wait at the server, at most 10 s. `stop` takes as long.
    pub expires: Duration,
    /// The time after which the claim loop restarts if alerts wait although slots are free.
    pub stall_after: Duration,
}

impl Default for ClaimSettings {
    fn default() -> Self {
        Self {
            reserved_critical_slots: 0,
            max_body_bytes: 512 * 1024,
            expires: Duration::from_secs(2),
            stall_after: Duration::from_secs(60),
        }
    }
}

/// Whether alerts are claimed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Claim,
    /// A service that investigations need is unavailable, or the worker drains.
    Pause,
}
