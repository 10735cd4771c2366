//! The timeline of a session: its durable events and the live deltas of answers, as they go over the wire.

pub mod rows;
pub mod live;

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::{ExecutionId, SessionId};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A word that this version does not know: it is shown and otherwise ignored.
            Unknown(String),
        }

        impl $name {
            /// The words that this version knows, in their order.
            pub const KNOWN: &[&str] = &[$($word),*];

            /// The word on the wire and in the store.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Unknown(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)*
                    _ => Self::Unknown(word),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The type of an event. The first group belongs to executions, the second to the session.
    EventType {
        /// The model's reasoning.
        LlmThinking = "llm_thinking",
        /// Text beside tool calls.
        LlmResponse = "llm_response",
        /// A tool call of the model; the content is its arguments.
        LlmToolCall = "llm_tool_call",
        /// The result of a tool call.
        ToolResult = "tool_result",
        /// Reserved for a later version.
        McpToolCall = "mcp_tool_call",
        /// A summary of a long tool result, which the model reads in its place.
        McpToolSummary = "mcp_tool_summary",
        /// A failure; `metadata.kind` says of what.
        Error = "error",
        /// A follow-up question.
        UserQuestion = "user_question",
        /// Cause, evidence and next step of the investigation in at most three lines. It precedes the end of a session
        /// whose analysis begins with them.
        ExecutiveSummary = "executive_summary",
        /// The answer of an execution.
        FinalAnalysis = "final_analysis",
        /// A sub-agent begins; the content is its task.
        AgentDispatched = "agent_dispatched",
        /// Code that the provider ran, and its output.
        CodeExecution = "code_execution",
        /// A web search of the provider.
        GoogleSearchResult = "google_search_result",
        /// Pages that the provider read.
        UrlContextResult = "url_context_result",
        /// A call waits for people; the number of this event names the request.
        ApprovalRequested = "approval_requested",
        /// A call waits for people no longer, or is not asked about.
        ApprovalEnded = "approval_ended",
        /// The execution continues with another provider.
        ProviderFallback = "provider_fallback",
        /// The first event of every session.
        SessionStarted = "session_started",
        /// Another worker took over.
        SessionResumed = "session_resumed",
        /// A stage begins.
        StageStarted = "stage_started",
        /// A stage has ended.
        StageCompleted = "stage_completed",
        /// Another alert of the same fingerprint was linked to this session.
        AlertJoined = "alert_joined",
        /// The monitoring system reports that the alert is resolved.
        AlertResolved = "alert_resolved",
        /// The first report that a person has taken the alert over.
        AlertAcknowledged = "alert_acknowledged",
        /// An agent got what joined alerts have changed: more of the group fires, it is worse, or resolved.
        AlertUpdated = "alert_updated",
        /// A person has voted about a call that waits.
        ApprovalDecided = "approval_decided",
        /// The session waits for people without a worker.
        SessionWaiting = "session_waiting",
        /// End: an analysis, or nothing to investigate.
        SessionCompleted = "session_completed",
        /// End: no analysis.
        SessionFailed = "session_failed",
        /// End: on request.
        SessionCancelled = "session_cancelled",
        /// End: past its deadline.
        SessionTimedOut = "session_timed_out",
        /// End of an alert that joined another session (`metadata.joined_session_id`).
        Joined = "joined",
    }
}

words! {
    /// Whether the step that an event shows went well.
    EventStatus {
        Completed = "completed",
        Failed = "failed",
    }
}

impl EventType {
    /// Whether no event follows this one.
    pub fn is_end(&self) -> bool {
        matches!(
            self,
            Self::SessionCompleted
                | Self::SessionFailed
                | Self::SessionCancelled
                | Self::SessionTimedOut
                | Self::Joined
        )
    }
}

/// A durable event, as it is published, printed by `watch --json` and read back from the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// The session, or the alert for an alert that opened none.
    pub session_id: SessionId,
    /// Gap-free from 1: the total order of all events of the session.
    pub session_seq: u32,
    /// The execution; absent on the session's own events.
    pub execution_id: Option<ExecutionId>,
    /// Gap-free from 1 per execution; absent on the session's own events.
    pub sequence_number: Option<u32>,
    pub stage: Option<String>,
    pub agent: Option<String>,
    /// The execution's iteration, from 1.
    pub iteration: Option<u32>,
    /// The attempt of the iteration's model call that it comes from, counted from 1. A call is tried again by each
    /// worker that continues with the session before an answer is stored, and by the same worker after a rate limit.
    /// Older versions always wrote 1.
    pub attempt: Option<u32>,
    pub event_type: EventType,
    pub status: EventStatus,
    /// Text for people.
    pub content: String,
    /// The values for programs; may be null.
    pub metadata: Value,
    /// The time when the step was committed, in microseconds.
    pub created_at: DateTime<Utc>,
    /// Whether the content was cut for the wire; the store has all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// `metadata.kind` of the event that reports lost commits.
pub const LOST_COMMITS: &str = "lost_commits";

impl TimelineEvent {
    /// Whether steps that have events are taken again after this one: the database has lost their commits.
    pub fn repeats_steps(&self) -> bool {
        let kind = self.metadata.get("kind").and_then(Value::as_str);
        self.event_type == EventType::Error && kind == Some(LOST_COMMITS)
    }
}

/// An event without its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDraft {
    pub event_type: EventType,
    pub status: EventStatus,
    /// Text for people.
    pub content: String,
    /// The values for programs; may be `Value::Null`.
    pub metadata: Value,
}

impl EventDraft {
    /// A completed event.
    pub fn new(event_type: EventType, content: impl Into<String>, metadata: Value) -> Self {
        Self {
            event_type,
            status: EventStatus::Completed,
            content: content.into(),
            metadata,
        }
    }

    /// The same event, failed.
    #[must_use]
    pub fn failed(self) -> Self {
        Self {
            status: EventStatus::Failed,
            ..self
        }
    }

    /// Adds a field to the metadata, if it has a value.
    #[must_use]
    pub fn with(mut self, key: &str, value: Option<impl Into<Value>>) -> Self {
        if let (Some(value), Value::Object(metadata)) = (value, &mut self.metadata) {
            metadata.insert(key.to_owned(), value.into());
        }
        self
    }
}

/// The stream of an answer that a delta belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// The answer.
    Text,
    /// The reasoning.
    Thinking,
    /// `ReAct` text, which people see only after it is parsed.
    Raw,
}

/// A piece of an answer while the model writes it. It is shown at once, replaced by the durable event, and never
/// stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub session_id: SessionId,
    pub execution_id: ExecutionId,
    /// Name of the agent that writes; absent in deltas of older workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Lease epoch of the worker that streams; a watcher drops deltas of a lower epoch.
    pub epoch: u32,
    /// The execution's iteration, from 1.
    pub iteration: u32,
    /// The attempt of the iteration's model call, from 1, as in [`TimelineEvent::attempt`].
    pub attempt: u32,
    pub kind: DeltaKind,
    /// Bytes of this stream before this delta. A lower offset than the shown length truncates the shown text to it.
    pub offset: u64,
    /// The new text.
    pub delta: String,
}
