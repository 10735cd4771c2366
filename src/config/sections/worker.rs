//! `worker`, `dedupe` and `masking`: how a worker works, which alerts are the same, what is hidden.

use std::time::Duration;

use crate::config::read::reader::Map;

/// How a worker works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Investigations at the same time.
    pub slots: u32,
    /// Of these, kept free for critical alerts.
    pub reserved_critical_slots: u32,
    /// How long a lease lasts without a renewal.
    pub lease: Duration,
    /// Deaths at one checkpoint before the alert is given up.
    pub attempts: u32,
    /// How long a stopping worker lets current calls finish.
    pub drain_timeout: Duration,
    /// How long a session may take altogether.
    pub session_timeout: Duration,
    /// Time between two looks for what nobody takes care of. After four of them something is taken for forgotten.
    pub sweep_interval: Duration,
    /// How long an alert waits, since it was first delivered, for an MCP server of its chain that cannot be reached; then
    /// it is investigated without that server's tools. Zero: not at all.
    pub tool_wait: Duration,
    /// A larger body is a dead letter.
    pub max_alert_bytes: u64,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            slots: 4,
            reserved_critical_slots: 0,
            lease: Duration::from_secs(30),
            attempts: 5,
            drain_timeout: Duration::from_secs(45),
            session_timeout: Duration::from_secs(40 * 60),
            sweep_interval: Duration::from_secs(15),
            tool_wait: Duration::from_secs(60),
            max_alert_bytes: 512 * 1024,
        }
    }
}

impl Worker {
    pub(crate) fn read(mut map: Map<'_>) -> Self {
        let built_in = Self::default();
        let slots = map.get("slots").and_then(|field| field.number(1, 1_024)).unwrap_or(built_in.slots);
        let reserved = map.get("reserved_critical_slots").and_then(|field| {
            let number = field.number(0, 1_024)?;
            if number >= slots {
                field.fault(format!("{number} of {slots} slots; at least one has to be left for other alerts"));
            }
            Some(number)
        });
        let worker = Self {
            slots,
            reserved_critical_slots: reserved.unwrap_or(built_in.reserved_critical_slots),
            lease: map.duration("lease", 1, 600).unwrap_or(built_in.lease),
            attempts: map.get("attempts").and_then(|field| field.number(1, 100)).unwrap_or(built_in.attempts),
            drain_timeout: map.duration("drain_timeout", 0, 3_600).unwrap_or(built_in.drain_timeout),
            session_timeout: map.duration("session_timeout", 1, 7 * 24 * 3_600).unwrap_or(built_in.session_timeout),
            sweep_interval: map.duration("sweep_interval", 1, 600).unwrap_or(built_in.sweep_interval),
            tool_wait: map.duration("tool_wait", 0, 3_600).unwrap_or(built_in.tool_wait),
            max_alert_bytes: map
                .get("max_alert_bytes")
                .and_then(|field| field.bytes(1_024, 64 * 1024 * 1024))
                .unwrap_or(built_in.max_alert_bytes),
        };
        map.finish();
        worker
    }
}

/// When an alert is taken for one that was investigated before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dedupe {
    /// How long a completed investigation answers for later alerts of its fingerprint; zero for never.
    pub cooldown: Duration,
}

impl Default for Dedupe {
    fn default() -> Self {
        Self { cooldown: Duration::from_secs(3_600) }
    }
}

impl Dedupe {
    pub(crate) fn read(mut map: Map<'_>) -> Self {
        let cooldown = map.duration("cooldown", 0, 30 * 24 * 3_600).unwrap_or_else(|| Self::default().cooldown);
        map.finish();
        Self { cooldown }
    }
}

/// What nobody may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Masking {
    /// Environment variables whose values are replaced wherever they turn up.
    pub variables: Vec<String>,
    /// Files whose contents and lines are replaced wherever they turn up. Read when a process starts.
    pub files: Vec<String>,
}

impl Masking {
    pub(crate) fn read(mut map: Map<'_>) -> Self {
        let variables = map.get("variables").and_then(|field| field.list()).unwrap_or_default();
        let masking = Self {
            variables: variables.iter().filter_map(|field| field.variable_name()).collect(),
            files: map.texts("files"),
        };
        map.finish();
        masking
    }
}
