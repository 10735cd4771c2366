//! `approvals`: who decides about calls that wait for a person, and how each channel proves who they are.

mod checks;
mod keys;
mod person;
mod warnings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::keys::{ApprovalKey, ApprovalKeys};
pub use self::person::Person;
use crate::declared::forms::{As, Secs, entries, words};
use crate::declared::texts::{Text, VariableName};
use crate::secret::SecretSource;
use crate::write::is_default;
use tarsy_core::approvals::Channel;
use tarsy_core::plan::{OnTimeout, WhenResolved};

/// The policy of a tool whose server lists it in `approve` without one.
pub const DEFAULT_POLICY: &str = "default";
/// The group of every known person.
pub const EVERYONE: &str = "*";

/// The policies by which people decide, and the people.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Approvals {
    /// The policies by their names; a tool of `approve` names one.
    #[serde(skip_serializing_if = "is_default")]
    pub policies: BTreeMap<String, ApprovalPolicy>,
    /// The people by their names, each with their accounts at the channels and their groups.
    #[serde(skip_serializing_if = "is_default")]
    pub people: BTreeMap<String, Person>,
    /// The Slack user groups whose members belong to a group.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "entries::<Text>")]
    pub slack_groups: BTreeMap<String, String>,
    /// The keys with which each channel signs its decisions.
    #[serde(skip_serializing_if = "is_default")]
    pub keys: ApprovalKeys,
    /// The file with the key of links that decide.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub link_key_file: Option<String>,
    /// The variable with the key of links that decide.
    #[serde(with = "As::<VariableName>", skip_serializing_if = "is_default")]
    pub link_key_env: Option<String>,
    /// The requests that may be open in all sessions together.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_open: u32,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            policies: BTreeMap::new(),
            people: BTreeMap::new(),
            slack_groups: BTreeMap::new(),
            keys: ApprovalKeys::default(),
            link_key_file: None,
            link_key_env: None,
            max_open: 1_000,
        }
    }
}

impl Approvals {
    /// Whether people take part at all: a file without the section needs no stream for what they publish.
    pub fn is_used(&self) -> bool {
        *self != Self::default()
    }

    /// The person with this account at the channel, with their name.
    pub fn person_at(&self, channel: Channel, account: &str) -> Option<(&str, &Person)> {
        let mut people = self.people.iter();
        let found = people.find(|(_, person)| person.account(channel) == Some(account));
        found.map(|(name, person)| (name.as_str(), person))
    }

    /// The key with which a channel signs its decisions; `None` for a channel whose messages have no signature.
    pub fn key(&self, channel: Channel) -> Option<SecretSource> {
        self.keys.at(channel)?.source()
    }

    /// The key of links that decide.
    pub fn link_key(&self) -> Option<SecretSource> {
        keys::source(self.link_key_file.as_ref(), self.link_key_env.as_ref())
    }
}

/// A policy: who may decide, for how long, and where.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ApprovalPolicy {
    /// The groups whose members may decide; `*` is every known person.
    #[serde(with = "As::<Vec<Text>>")]
    #[schemars(length(min = 1), extend("x-required" = "a list of groups"))]
    pub approvers: Vec<String>,
    /// The number of different people who have to approve. With 2, only those of `people` count.
    #[schemars(range(min = 1, max = 2))]
    pub quorum: u8,
    /// The time in which people may decide.
    #[serde(with = "As::<Secs<60, 604_800>>")]
    pub timeout: Duration,
    /// The step after a request that no person decided in time.
    #[schemars(schema_with = "words::<OnTimeout>")]
    pub on_timeout: OnTimeout,
    /// The time from the decision to the sending.
    #[serde(with = "As::<Secs<60, 3_600>>")]
    pub valid_for: Duration,
    /// The effect of a resolution of the alert on an open request.
    #[schemars(schema_with = "words::<WhenResolved>")]
    pub on_resolved: WhenResolved,
    /// The channels on which a decision counts.
    #[schemars(schema_with = "channels")]
    pub channels: Vec<Channel>,
    /// Whether the person who asked a question may not approve its calls.
    pub other_person: bool,
}

/// The channels that a policy may name. That of drills is for their own workers.
const POLICY_CHANNELS: [Channel; 4] = [Channel::Web, Channel::Slack, Channel::Cli, Channel::Link];

fn channels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"enum": POLICY_CHANNELS.map(Channel::as_str)}})
}

impl Default for ApprovalPolicy {
    fn default() -> Self {
        Self {
            approvers: Vec::new(),
            quorum: 1,
            timeout: Duration::from_secs(4 * 3_600),
            on_timeout: OnTimeout::Deny,
            valid_for: Duration::from_secs(15 * 60),
            on_resolved: WhenResolved::Withdraw,
            channels: vec![Channel::Web, Channel::Slack, Channel::Cli],
            other_person: false,
        }
    }
}

impl ApprovalPolicy {
    /// Whether every known person may decide.
    pub fn is_for_everyone(&self) -> bool {
        self.approvers.iter().any(|group| group == EVERYONE)
    }
}
