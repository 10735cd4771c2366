//! `ApprovalRule`, frozen with a tool whose calls wait for a person.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ToolSpec, is_default};
use crate::approvals::{CallHash, Channel};

/// The rule by which people decide about the calls of a tool. Who may decide is no part of it: the configuration of the
/// worker that records a decision has the present approvers of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRule {
    /// The name of the policy.
    pub policy: String,
    /// The number of different people who have to approve: 1 or 2.
    pub quorum: u8,
    /// The time in which people may decide, in milliseconds, from the checkpoint that asks.
    pub timeout_ms: u64,
    /// The time from the decision to the sending, in milliseconds.
    pub valid_for_ms: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_timeout: OnTimeout,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_resolved: WhenResolved,
    /// The channels on which a decision counts.
    pub channels: Vec<Channel>,
    /// Whether the person who asked a question may not approve its calls.
    #[serde(default, skip_serializing_if = "is_default")]
    pub other_person: bool,
}

/// The step after a request that no person decided in time. There is none that sends the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OnTimeout {
    /// The model gets the refusal as the result of its call.
    #[default]
    Deny,
    /// The conclusion is forced as well.
    Conclude,
}

crate::words!(pub OnTimeout, pub ALL);

/// The effect of a resolution of the alert on an open request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum WhenResolved {
    /// The request ends without a decision.
    #[default]
    Withdraw,
    /// The request stays open; people see that the alert is resolved.
    Keep,
}

crate::words!(pub WhenResolved, pub ALL);

impl ApprovalRule {
    /// The time in which people may decide.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// The time from the decision to the sending.
    pub fn valid_for(&self) -> Duration {
        Duration::from_millis(self.valid_for_ms)
    }
}

impl CallHash {
    /// The hash of a call of this tool with these arguments.
    pub fn new(tool: &ToolSpec, arguments: &str) -> Self {
        Self::of_parts([
            &*tool.name,
            tool.tool(),
            &*tool.parameters_schema,
            arguments,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::changing_tool;

    #[test]
    fn every_part_of_a_call_changes_its_hash_and_the_hash_survives_its_text() {
        let tool = changing_tool("k8s.restart");
        let hash = CallHash::new(&tool, "{\"pod\":\"a\"}");
        let other_schema = ToolSpec {
            parameters_schema: "{\"type\":\"object\"}".to_owned(),
            ..tool.clone()
        };
        let renamed = ToolSpec {
            original_name: Some("re.start".to_owned()),
            ..tool.clone()
        };
        let others = [
            CallHash::new(&tool, "{\"pod\":\"b\"}"),
            CallHash::new(&tool, "{\"pod\": \"a\"}"),
            CallHash::new(&other_schema, "{\"pod\":\"a\"}"),
            CallHash::new(&renamed, "{\"pod\":\"a\"}"),
            CallHash::new(&changing_tool("k8s.delete"), "{\"pod\":\"a\"}"),
        ];
        assert!(others.iter().all(|other| *other != hash), "{others:?}");
        assert_eq!(CallHash::parse(&hash.to_string()), Some(hash));
        assert_eq!(CallHash::parse("é"), None);
        assert_eq!(CallHash::parse(&"g".repeat(64)), None);
    }
}
