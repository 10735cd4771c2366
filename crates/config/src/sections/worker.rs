//! `worker`, `dedupe` and `masking`: limits and intervals of a worker, the cooldown, further secrets.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::{As, Bytes, Secs, words};
use crate::declared::texts::{Pattern, Text, VariableName};
use crate::read::reader::Field;
use tarsy_core::alert::policy::{OnAcknowledged, OnResolved};
use tarsy_mask::{Emails, OwnPattern, OwnRules};

/// The limits and intervals of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Worker {
    /// The number of sessions that the worker runs at the same time.
    #[schemars(range(min = 1, max = MAX_SLOTS))]
    pub slots: u32,
    /// The number of slots that are reserved for critical alerts.
    #[schemars(range(max = MAX_SLOTS))]
    pub reserved_critical_slots: u32,
    /// The time after which a lease expires without a renewal.
    #[serde(with = "As::<Secs<1, 600>>")]
    pub lease: Duration,
    /// The number of crashes at one checkpoint after which the alert is given up.
    #[schemars(range(min = 1, max = 100))]
    pub attempts: u32,
    /// The time that a draining worker waits for running calls.
    #[serde(with = "As::<Secs<0, 3_600>>")]
    pub drain_timeout: Duration,
    /// The time limit of a session.
    #[serde(with = "As::<Secs<1, 604_800>>")]
    pub session_timeout: Duration,
    /// The interval between sweeps. Work that is untouched for four intervals counts as orphaned.
    #[serde(with = "As::<Secs<1, 600>>")]
    pub sweep_interval: Duration,
    /// The time that an alert waits after its first delivery for an unavailable MCP server of its chain. Then it is
    /// investigated without the tools of that server. Zero disables the wait.
    #[serde(with = "As::<Secs<0, 3_600>>")]
    pub tool_wait: Duration,
    /// Whether the worker checks its providers and asks each model that it uses for a word before it claims its first
    /// alert. A missing or refused key or an unknown model then keeps it from claiming.
    pub probe_models: bool,
    /// An alert with a larger body becomes a dead letter.
    #[serde(with = "Bytes::<1_024, 67_108_864>")]
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
    pub(crate) fn check(&mut self, field: &Field<'_>) {
        let slots = self.slots;
        let reserved = self.reserved_critical_slots;
        if reserved >= slots {
            field.at("reserved_critical_slots").fault(format!(
                "{reserved} of {slots} slots; at least one slot must remain for other alerts"
            ));
        }
    }
}

/// The cooldown after a completed session, and the effects of alert statuses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Dedupe {
    /// The time that a completed session covers later alerts of its fingerprint; zero disables the cooldown.
    #[serde(with = "As::<Secs<0, 2_592_000>>")]
    pub cooldown: Duration,
    /// The effect on a running investigation when its alert is resolved.
    #[schemars(schema_with = "words::<OnResolved>")]
    pub on_resolved: OnResolved,
    /// The handling of an acknowledged alert that has no open investigation.
    #[schemars(schema_with = "words::<OnAcknowledged>")]
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

/// Further secrets for the mask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Masking {
    /// Environment variables whose values are masked in every text.
    #[serde(with = "As::<Vec<VariableName>>")]
    pub variables: Vec<String>,
    /// Files whose contents and lines are masked in every text. They are read again when they change.
    #[serde(with = "As::<Vec<Text>>")]
    pub files: Vec<String>,
    /// Regular expressions whose matches are masked in every text.
    #[serde(with = "As::<Vec<Pattern>>")]
    pub patterns: Vec<OwnPattern>,
    /// Whether e-mail addresses are masked in every text.
    pub emails: bool,
}

impl Masking {
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
