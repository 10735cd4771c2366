//! `Request`, a call that waits or has waited for a person, as a message about it shows it.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::approvals::slack::SlackButton;
use crate::approvals::{CallHash, Channel, RequestId};
use crate::ids::SessionId;
use crate::readable::bounded::{cut, line};

/// The longest text of the model in a body for programs, in characters.
const MAX_WHY: usize = 2_000;
/// The longest comment in a message, in characters.
const MAX_COMMENT: usize = 300;
/// The longest name of a tool or a policy, in characters.
const MAX_NAME: usize = 150;

/// A request for the approval of one call. The store builds it; its texts are masked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Request {
    /// The number of the event that asks.
    pub event: u32,
    /// The full name of the tool.
    pub tool: String,
    pub policy: String,
    /// As they will be sent, byte for byte.
    pub arguments: String,
    pub call: CallHash,
    /// The text of the answer that asks: the words of a model.
    pub why: String,
    pub quorum: u8,
    /// The words of the channels on which a decision counts.
    pub channels: Vec<String>,
    /// The number of the last update of the alert.
    pub updates: u32,
    pub expires_at: DateTime<Utc>,
    /// The decision of people: `approved`, `denied`, `denied_session`.
    pub outcome: Option<String>,
    pub outcome_at: Option<DateTime<Utc>>,
    /// The people whose votes counted.
    #[serde(default)]
    pub decided_by: Vec<String>,
    /// The channel of the vote that decided.
    pub channel: Option<String>,
    pub comment: Option<String>,
    /// The outcome in the journal.
    pub closed_as: Option<String>,
    /// Whether the session has ended.
    pub is_over: bool,
    /// The name of the message that asks, as the provider gave it.
    pub receipt: Option<String>,
}

impl Request {
    /// Whether people can decide, as far as the store knew.
    pub fn is_open(&self) -> bool {
        self.outcome.is_none() && self.closed_as.is_none() && !self.is_over
    }

    /// Whether a decision of this channel counts.
    pub fn accepts(&self, channel: Channel) -> bool {
        self.channels.iter().any(|word| word == channel.as_str())
    }

    /// The button of a message of Slack about this request.
    pub fn button(&self, session: SessionId) -> SlackButton {
        SlackButton {
            request: RequestId {
                session,
                event: self.event,
            },
            call: self.call,
            updates: self.updates,
        }
    }

    /// The request, or its end, in a line.
    pub fn in_words(&self) -> String {
        if self.is_open() {
            let people = if self.quorum > 1 {
                format!("{} different people", self.quorum)
            } else {
                "a person".to_owned()
            };
            format!(
                "The call of {} waits for {people} (policy {}) until {}.",
                line(&self.tool, MAX_NAME),
                line(&self.policy, MAX_NAME),
                minute(self.expires_at)
            )
        } else {
            format!("The call of {}: {}", line(&self.tool, MAX_NAME), self.end())
        }
    }

    /// The end of the request: `approved by ana (web) at 2026-11-30 14:03 UTC`.
    pub fn end(&self) -> String {
        let Some(outcome) = &self.outcome else {
            return match self.closed_as.as_deref() {
                Some("expired") => "not decided in time, so it is not sent.".to_owned(),
                Some("withdrawn") => "withdrawn, because the alert was resolved.".to_owned(),
                Some(other) => format!("ended as {}.", line(&other.replace('_', " "), 40)),
                None => "the investigation has ended, so it is not sent.".to_owned(),
            };
        };
        let decision = match outcome.as_str() {
            "denied_session" => "denied for the whole investigation".to_owned(),
            other => line(other, 40),
        };
        let people = if self.decided_by.is_empty() {
            "people".to_owned()
        } else {
            line(&self.decided_by.join(", "), 200)
        };
        let channel = self
            .channel
            .as_deref()
            .map_or_else(String::new, |channel| format!(" ({})", line(channel, 20)));
        let at = self
            .outcome_at
            .map_or_else(String::new, |at| format!(" at {}", minute(at)));
        let comment = match self.comment.as_deref() {
            Some(comment) => format!(": {}", line(comment, MAX_COMMENT)),
            None => ".".to_owned(),
        };
        let closed = match self.closed_as.as_deref() {
            Some("approved" | "denied" | "denied_session") | None => String::new(),
            Some("lost") => ", and lost: it may have been sent".to_owned(),
            Some(other) => format!(", and not sent ({})", line(&other.replace('_', " "), 40)),
        };
        format!("{decision} by {people}{channel}{at}{closed}{comment}")
    }

    /// The request for a program.
    pub fn json(&self, session: SessionId) -> Value {
        let id = RequestId {
            session,
            event: self.event,
        };
        json!({
            "id": id.to_string(),
            "event": self.event,
            "tool": self.tool,
            "policy": self.policy,
            "arguments": self.arguments,
            "call_sha256": self.call,
            "why": cut(self.why.clone(), MAX_WHY),
            "quorum": self.quorum,
            "channels": self.channels,
            "updates": self.updates,
            "expires_at": self.expires_at,
            "outcome": self.outcome,
            "decided_by": self.decided_by,
            "closed_as": self.closed_as,
        })
    }
}

/// A time to the minute: `2026-11-30 14:03 UTC`.
fn minute(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
pub(super) mod tests {
    use chrono::TimeZone as _;

    use super::*;

    pub(in crate::notification) fn request() -> Request {
        Request {
            event: 42,
            tool: "k8s.rollout_restart".to_owned(),
            policy: "default".to_owned(),
            arguments: r#"{"name":"checkout","namespace":"shop"}"#.to_owned(),
            call: CallHash([0xab; 32]),
            why: "The pods have to be restarted. [7]".to_owned(),
            quorum: 1,
            channels: vec!["web".to_owned(), "slack".to_owned()],
            updates: 3,
            expires_at: Utc.with_ymd_and_hms(2026, 11, 30, 14, 3, 0).unwrap(),
            outcome: None,
            outcome_at: None,
            decided_by: Vec::new(),
            channel: None,
            comment: None,
            closed_as: None,
            is_over: false,
            receipt: None,
        }
    }

    pub(in crate::notification) fn approved() -> Request {
        Request {
            outcome: Some("approved".to_owned()),
            outcome_at: Some(Utc.with_ymd_and_hms(2026, 11, 30, 13, 5, 59).unwrap()),
            decided_by: vec!["ana".to_owned(), "bo".to_owned()],
            channel: Some("web".to_owned()),
            receipt: Some("1700.1".to_owned()),
            ..request()
        }
    }

    #[test]
    fn a_request_and_each_end_of_it_are_said_in_a_line() {
        let two = Request {
            quorum: 2,
            ..request()
        };
        let denied = Request {
            outcome: Some("denied_session".to_owned()),
            decided_by: vec!["slack:U7".to_owned()],
            comment: Some("wrong\ncluster".to_owned()),
            ..approved()
        };
        let closed = |word: &str| Request {
            closed_as: Some(word.to_owned()),
            ..request()
        };
        let over = Request {
            is_over: true,
            ..request()
        };
        for (request, expected) in [
            (
                request(),
                "The call of k8s.rollout_restart waits for a person (policy default) until 2026-11-30 14:03 UTC.",
            ),
            (
                two,
                "The call of k8s.rollout_restart waits for 2 different people (policy default) until 2026-11-30 14:03 \
                 UTC.",
            ),
            (
                approved(),
                "The call of k8s.rollout_restart: approved by ana, bo (web) at 2026-11-30 13:05 UTC.",
            ),
            (
                Request {
                    closed_as: Some("tool_changed".to_owned()),
                    ..approved()
                },
                "The call of k8s.rollout_restart: approved by ana, bo (web) at 2026-11-30 13:05 UTC, and not sent (tool \
                 changed).",
            ),
            (
                Request {
                    closed_as: Some("approved".to_owned()),
                    ..approved()
                },
                "The call of k8s.rollout_restart: approved by ana, bo (web) at 2026-11-30 13:05 UTC.",
            ),
            (
                denied,
                "The call of k8s.rollout_restart: denied for the whole investigation by slack:U7 (web) at 2026-11-30 \
                 13:05 UTC: wrong cluster",
            ),
            (
                closed("expired"),
                "The call of k8s.rollout_restart: not decided in time, so it is not sent.",
            ),
            (
                closed("tool_changed"),
                "The call of k8s.rollout_restart: ended as tool changed.",
            ),
            (
                over,
                "The call of k8s.rollout_restart: the investigation has ended, so it is not sent.",
            ),
        ] {
            assert_eq!(request.in_words(), expected);
        }
    }
}
