//! `approvals.keys`: the keys with which channels sign, so that a stolen login of the broker decides nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::As;
use crate::declared::texts::{Text, VariableName};
use crate::read::reader::Field;
use crate::secret::SecretSource;
use crate::write::is_default;
use tarsy_core::approvals::Channel;

/// The key of each channel. A channel without one signs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ApprovalKeys {
    /// The key of the web server.
    #[serde(skip_serializing_if = "is_default")]
    pub web: Option<ApprovalKey>,
    /// The key of the receiver of Slack's buttons.
    #[serde(skip_serializing_if = "is_default")]
    pub slack: Option<ApprovalKey>,
    /// The key of the command line; everyone who decides there has it.
    #[serde(skip_serializing_if = "is_default")]
    pub cli: Option<ApprovalKey>,
    /// The key of decisions by a link, which the web server publishes.
    #[serde(skip_serializing_if = "is_default")]
    pub link: Option<ApprovalKey>,
}

impl ApprovalKeys {
    /// The key of a channel.
    pub fn at(&self, channel: Channel) -> Option<&ApprovalKey> {
        match channel {
            Channel::Web => self.web.as_ref(),
            Channel::Slack => self.slack.as_ref(),
            Channel::Cli => self.cli.as_ref(),
            Channel::Link => self.link.as_ref(),
            Channel::Drill => None,
        }
    }
}

/// The place of a key: a file or a variable. It is read again for every use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct ApprovalKey {
    /// The file with the key.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub secret_file: Option<String>,
    /// The variable with the key.
    #[serde(with = "As::<VariableName>", skip_serializing_if = "is_default")]
    pub secret_env: Option<String>,
}

impl ApprovalKey {
    /// The secret.
    pub fn source(&self) -> Option<SecretSource> {
        source(self.secret_file.as_ref(), self.secret_env.as_ref())
    }
}

/// The secret of two keys of which one is written.
pub(super) fn source(file: Option<&String>, variable: Option<&String>) -> Option<SecretSource> {
    let of_file = file.cloned().map(SecretSource::File);
    of_file.or_else(|| variable.cloned().map(SecretSource::Variable))
}

/// Reports a channel's key without a place, or with two.
pub(super) fn check(keys: &Field<'_>) {
    if !keys.is_map() {
        return;
    }
    for (_, field) in keys.entries() {
        if !field.is_map() {
            continue;
        }
        check_second(&field, "secret_file", "secret_env");
        if !field.has("secret_file") && !field.has("secret_env") {
            field.missing(
                "secret_file",
                "secret_file, or secret_env with the name of a variable",
            );
        }
    }
}

/// Reports a second place of one secret.
pub(super) fn check_second(field: &Field<'_>, file: &str, variable: &str) {
    if field.has(file)
        && let Some(second) = field.get(variable)
    {
        second.fault(format!(
            "a second source; accepted: either {file} or {variable}"
        ));
    }
}
