//! `worker`, `dedupe` and `masking`: limits and intervals of a worker, the cooldown, further secrets.

use std::time::Duration;

use serde::Serialize;

use crate::read::reader::{Field, Map};
use crate::write::{bytes, written};
use tarsy_core::alert::policy::{OnAcknowledged, OnResolved};
use tarsy_mask::{Emails, OwnPattern, OwnRules};

/// The limits and intervals of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// The number of sessions that the worker runs at the same time.
    pub slots: u32,
    /// The number of slots that are reserved for critical alerts.
    pub reserved_critical_slots: u32,
    /// The time after which a lease expires without a renewal.
    #[serde(serialize_with = "written")]
    pub lease: Duration,
    /// The number of crashes at one checkpoint after which the alert is given up.
    pub attempts: u32,
    /// The time that a draining worker waits for running calls.
    #[serde(serialize_with = "written")]
    pub drain_timeout: Duration,
    /// The time limit of a session.
    #[serde(serialize_with = "written")]
    pub session_timeout: Duration,
    /// The interval between sweeps. Work that is untouched for four intervals counts as orphaned.
    #[serde(serialize_with = "written")]
    pub sweep_interval: Duration,
    /// The time that an alert waits after its first delivery for an unavailable MCP server of its chain. Then it is
    /// investigated without the tools of that server. Zero disables the wait.
    #[serde(serialize_with = "written")]
    pub tool_wait: Duration,
    /// Whether the worker checks its providers and asks each model that it uses for a word before it claims its first
    /// alert. A missing or refused key or an unknown model then keeps it from claiming.
    pub probe_models: bool,
    /// An alert with a larger body becomes a dead letter.
    #[serde(serialize_with = "bytes")]
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
            probe_models: true,
            max_alert_bytes: 512 * 1024,
        }
    }
}

/// A worker renews all leases in one statement, and keeps all conversations in its memory.
const MAX_SLOTS: u32 = 20_000;

impl Worker {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        let built_in = Self::default();
        let slots = map.number("slots", 1..=MAX_SLOTS).unwrap_or(built_in.slots);
        let reserved = map.get("reserved_critical_slots").and_then(|field| {
            let number = field.number(0..=MAX_SLOTS)?;
            if number >= slots {
                field.fault(format!(
                    "{number} of {slots} slots; at least one slot must remain for other alerts"
                ));
            }
            Some(number)
        });
        let max_alert_bytes = 1_024..=64 * 1024 * 1024;
        Self {
            slots,
            reserved_critical_slots: reserved.unwrap_or(built_in.reserved_critical_slots),
            lease: map.duration("lease", 1..=600).unwrap_or(built_in.lease),
            attempts: map.number("attempts", 1..=100).unwrap_or(built_in.attempts),
            drain_timeout: map
                .duration("drain_timeout", 0..=3_600)
                .unwrap_or(built_in.drain_timeout),
            session_timeout: map
                .duration("session_timeout", 1..=7 * 24 * 3_600)
                .unwrap_or(built_in.session_timeout),
            sweep_interval: map
                .duration("sweep_interval", 1..=600)
                .unwrap_or(built_in.sweep_interval),
            tool_wait: map
                .duration("tool_wait", 0..=3_600)
                .unwrap_or(built_in.tool_wait),
            probe_models: map.flag("probe_models").unwrap_or(built_in.probe_models),
            max_alert_bytes: map
                .bytes("max_alert_bytes", max_alert_bytes)
                .unwrap_or(built_in.max_alert_bytes),
        }
    }
}

/// The cooldown after a completed session, and the effects of alert statuses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dedupe {
    /// The time that a completed session covers later alerts of its fingerprint; zero disables the cooldown.
    #[serde(serialize_with = "written")]
    pub cooldown: Duration,
    /// The effect on a running investigation when its alert is resolved.
    pub on_resolved: OnResolved,
    /// The handling of an acknowledged alert that has no open investigation.
    pub on_acknowledged: OnAcknowledged,
}

impl Default for Dedupe {
    fn default() -> Self {
        Self {
            cooldown: Duration::from_secs(3_600),
            on_resolved: OnResolved::default(),
            on_acknowledged: OnAcknowledged::default(),
        }
    }
}

impl Dedupe {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        let cooldown = map
            .duration("cooldown", 0..=30 * 24 * 3_600)
            .unwrap_or_else(|| Self::default().cooldown);
        let on_resolved = map
            .get("on_resolved")
            .and_then(|field| field.choice(&OnResolved::ALL, OnResolved::as_str));
        let on_acknowledged = map.get("on_acknowledged");
        let on_acknowledged = on_acknowledged
            .and_then(|field| field.choice(&OnAcknowledged::ALL, OnAcknowledged::as_str));
        Self {
            cooldown,
            on_resolved: on_resolved.unwrap_or_default(),
            on_acknowledged: on_acknowledged.unwrap_or_default(),
        }
    }
}

/// Further secrets for the mask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Masking {
    /// Environment variables whose values are masked in every text.
    pub variables: Vec<String>,
    /// Files whose contents and lines are masked in every text. They are read again when they change.
    #[serde(serialize_with = "written")]
    pub files: Vec<String>,
    /// Regular expressions whose matches are masked in every text.
    #[serde(serialize_with = "written")]
    pub patterns: Vec<OwnPattern>,
    /// Whether e-mail addresses are masked in every text.
    pub emails: bool,
}

impl Masking {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        let variables = map
            .list("variables", Field::variable_name)
            .unwrap_or_default();
        let files = map.texts("files");
        let patterns = map.list("patterns", pattern).unwrap_or_default();
        Self {
            variables,
            files,
            patterns,
            emails: map.flag("emails").unwrap_or_default(),
        }
    }

    /// The rules for the mask.
    pub fn rules(&self) -> OwnRules {
        let emails = if self.emails {
            Emails::Masked
        } else {
            Emails::Shown
        };
        OwnRules {
            patterns: self.patterns.clone(),
            emails,
        }
    }
}

fn pattern(field: &Field<'_>) -> Option<OwnPattern> {
    let written = field.text()?;
    match OwnPattern::new(&written) {
        Ok(pattern) => Some(pattern),
        Err(fault) => {
            field.fault(format!("{written:?}; {fault}"));
            None
        }
    }
}
