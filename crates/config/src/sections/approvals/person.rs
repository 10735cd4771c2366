//! `Person`, with the accounts by which the channels know them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::As;
use crate::declared::texts::Text;
use crate::write::is_default;
use tarsy_core::approvals::Channel;

/// A person with their accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Person {
    /// The user at the web server, as its proxy names them.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub web: Option<String>,
    /// The member id at Slack.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub slack: Option<String>,
    /// The name of their broker user, a token of its subjects.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub cli: Option<String>,
    /// Their groups, beside those of the channel.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    pub groups: Vec<String>,
}

impl Person {
    /// The account at a channel; a link names the person itself.
    pub fn account(&self, channel: Channel) -> Option<&str> {
        match channel {
            Channel::Web => self.web.as_deref(),
            Channel::Slack => self.slack.as_deref(),
            Channel::Cli => self.cli.as_deref(),
            Channel::Link | Channel::Drill => None,
        }
    }
}
