//! Entries: the append-only records in the journal of an execution.
//!
//! An entry with a role is a message of the conversation with the model; an entry without one is a fact that decisions
//! depend on.

mod about;
mod alert_updated;
mod approval;
mod dispatched;
mod finish;
mod loaded_skills;
mod not_sent;
mod refused_tool;
mod stop_reason;
mod summary;
mod usage;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::native::{CodePart, Grounding};
use crate::react::ReplyKind;
use crate::readable::presentation::Facts;
use crate::review::Review;

pub use crate::summary::{Mark, with_text};
pub use about::{About, Fault};
pub use alert_updated::AlertUpdated;
pub use approval::{ApprovalEnded, ApprovalOutcome, ApprovalRequested, AskFault};
pub use dispatched::{Dispatched, Spent};
pub use finish::Finish;
pub use loaded_skills::LoadedSkills;
pub use not_sent::NotSent;
pub use refused_tool::RefusedTool;
pub use stop_reason::StopReason;
pub use summary::Summary;
pub use usage::Usage;

/// A record of the journal, appended once and never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Entry {
    /// A message that opens the conversation.
    Prompt {
        /// System or user.
        role: Role,
        content: String,
    },
    /// The model's answer, with the calls that were parsed from it.
    Answer(Answer),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// The result of a call in the `ReAct` format: the model reads it as a user message, `Observation: …`.
    Observation(ToolResult),
    /// A message of the loop to the model.
    Feedback {
        content: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<About>,
    },
    /// Alerts that joined the session have changed its alert: a message to the model.
    AlertUpdated(AlertUpdated),
    /// Fact: a model or tool call gave no answer.
    Failed {
        /// Text for people.
        error: String,
        timeout: bool,
        source: FailureSource,
        /// The error code of the LLM service, e.g. `context_window_exceeded`; empty for a failed tool call.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        code: String,
    },
    /// Fact: a call that may change something is about to be sent.
    Started { call_id: String },
    /// Fact: such a call was sent and its outcome is unknown; it is never sent again.
    Lost { call_id: String },
    /// Fact: the database lost commits, and these calls of the lost steps may have been sent. Every open call that may
    /// change something counts as sent, unless a person decides about it; and so does the open or the next call with
    /// the same identity as one of these.
    SentBefore {
        /// Number of the loss within the session, from 1.
        recovery: u32,
        calls: Vec<SentCall>,
    },
    /// Fact: a sub-agent begins.
    Dispatched(Box<Dispatched>),
    /// Fact: a call waits for a person.
    ApprovalRequested(Box<ApprovalRequested>),
    /// Fact: a call waits for a person no longer, or is not asked about.
    ApprovalEnded(Box<ApprovalEnded>),
    /// The time that calls have waited, and the words of people: a message to the model.
    AfterWait { content: String },
    /// Fact: the execution continues with another of the plan's providers.
    Switched {
        /// Index into the plan's providers.
        provider: usize,
    },
    /// Fact: the next answer is the last one.
    Concluding { reason: StopReason },
    /// Fact: the conversation has a note in place of each tool result up to this entry number (from 1).
    Elided {
        up_to: u32,
        /// The texts of skills up to it.
        #[serde(default, skip_serializing_if = "LoadedSkills::are_blanked")]
        skills: LoadedSkills,
    },
    /// Fact: a summary stands in the place of a long result, or could not be made.
    Summarised(Summary),
    /// Fact: a deadline, a cancel request or a budget stops the execution.
    Stopped { reason: StopReason },
    /// Fact: the execution has ended.
    Ended { outcome: Outcome },
}

/// The result of a tool call, or the reason why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// The full name, `server.tool`.
    pub tool: String,
    /// The text that the model reads: flattened, masked, cut to the limit.
    pub content: String,
    /// The tool reports a failure, or gave no result.
    pub is_error: bool,
    /// Bytes of the whole result, which is stored, if the text is only a part of it; otherwise 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub whole_bytes: u64,
    /// The reason why the call was not sent; `None` for one that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sent: Option<NotSent>,
    /// Facts of the whole result, and which lines of the text are words of tarsy; `None` for a result that is
    /// not presented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The cost of the sub-agent whose answer this is; `None` for any other result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// serde passes a reference.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is that of `skip_serializing_if`"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    System,
    /// The alert, feedback.
    User,
    /// The model.
    Assistant,
    /// A tool, by its result.
    Tool,
}

crate::words!(pub Role);

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub text: String,
    /// The reasoning, as far as the provider returns it.
    pub thinking: String,
    /// The tool calls, in the order to run them; their ids are unique within the execution.
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
    /// The finish reason. It decides whether the answer counts ([`verdict`](super::answers::verdict)).
    #[serde(default)]
    pub finish: Finish,
    /// The provider has signed the reasoning. The signature is a part of its own state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_signed: bool,
    /// Code that the provider ran, with its results, as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code_executions: Vec<CodePart>,
    /// Sources of the answer, as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groundings: Vec<Grounding>,
    /// The parsed text of an answer in the `ReAct` format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Box<ParsedReply>>,
    /// State of the provider, which the next request returns byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<Box<ProviderData>>,
    /// Ids of the calls whose arguments are masked here; the original arguments are needed to send them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked_calls: Vec<String>,
    /// The tools that it was made without, because the provider refuses them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_tools: Vec<RefusedTool>,
    /// The answer before the mask, until its calls are sent.
    #[serde(skip)]
    pub unmasked: Option<Box<Unmasked>>,
}

/// The text and calls of an answer before the mask. They are never stored and never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Unmasked {
    pub text: String,
    /// The calls with their unmasked arguments, in the order of the masked ones.
    pub calls: Vec<ToolCall>,
}

impl fmt::Debug for Unmasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unmasked")
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

/// A parsed text in the `ReAct` format. Its call, if it has one, is in [`Answer::calls`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedReply {
    pub kind: ReplyKind,
    /// The reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// The fault of the answer, for people, or the lines of its arguments that were not understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The call or final answer is an exact quotation of an untrusted text. If the model repeats it, it counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quotes: bool,
}

/// A tool call that the model requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the execution.
    pub id: String,
    /// The full name, `server.tool`.
    pub tool: String,
    /// A JSON object as a string: the text of the model where it wrote JSON.
    pub arguments: String,
    /// Whether the frozen plan calls the tool read-only and no person decides about its calls; the current tool list of
    /// the server does not matter.
    pub read_only: bool,
}

/// A call that may have been sent by a step whose commit was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentCall {
    /// The full name, `server.tool`.
    pub tool: String,
    /// [`identity`](super::recovery::identity) of the call.
    pub identity: String,
}

/// Opaque state of a provider: stored with the answer and returned with the next request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderData {
    pub provider: String,
    pub model: String,
    /// Format of the payload.
    pub format: String,
    /// Stored in a separate column, never as JSON text.
    #[serde(skip)]
    pub payload: Vec<u8>,
}

/// The call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureSource {
    Model,
    Tool,
    /// An answer that cannot be used, empty or cut off. It is the entry before this one and counts as the iteration.
    Answer,
}

/// The outcome of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    Completed {
        /// The final answer.
        analysis: String,
        reason: StopReason,
        /// The mark on the analysis, a warning for its readers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<Mark>,
        /// The outcome of a review; `None` for the end of any other agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        review: Option<Review>,
    },
    Failed {
        /// Text for people.
        error: String,
        reason: StopReason,
    },
    Cancelled,
    /// The session's deadline passed.
    TimedOut,
}

impl Entry {
    /// Blanks all results up to this entry number.
    pub fn elided(up_to: u32) -> Self {
        Self::Elided {
            up_to,
            skills: LoadedSkills::Blanked,
        }
    }

    /// A message of the loop on which no decision depends.
    pub(crate) fn feedback(content: impl Into<String>) -> Self {
        Self::Feedback {
            content: content.into(),
            about: None,
        }
    }

    /// The text of this message that the model did not write and may quote: the alert, a tool's result, or words of a
    /// person who decided about a call.
    pub(super) fn text_from_outside(&self) -> Option<&str> {
        if let Self::Prompt {
            role: Role::User,
            content,
        }
        | Self::ToolResult(ToolResult { content, .. })
        | Self::Observation(ToolResult { content, .. })
        | Self::AlertUpdated(AlertUpdated { content, .. })
        | Self::AfterWait { content } = self
        {
            Some(content)
        } else {
            None
        }
    }

    /// The role of the message; `None` for a fact.
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Prompt { role, .. } => Some(*role),
            Self::Answer(_) => Some(Role::Assistant),
            Self::ToolResult(_) => Some(Role::Tool),
            Self::Observation(_)
            | Self::Feedback { .. }
            | Self::AlertUpdated(_)
            | Self::AfterWait { .. } => Some(Role::User),
            Self::Failed { .. }
            | Self::Started { .. }
            | Self::Lost { .. }
            | Self::SentBefore { .. }
            | Self::Dispatched(_)
            | Self::ApprovalRequested(_)
            | Self::ApprovalEnded(_)
            | Self::Switched { .. }
            | Self::Concluding { .. }
            | Self::Elided { .. }
            | Self::Summarised(_)
            | Self::Stopped { .. }
            | Self::Ended { .. } => None,
        }
    }

    /// The final answer, if this is the end of a completed execution.
    pub fn analysis(&self) -> Option<&str> {
        if let Self::Ended {
            outcome: Outcome::Completed { analysis, .. },
        } = self
        {
            Some(analysis)
        } else {
            None
        }
    }

    /// The mark on the final answer, if this is the end of a completed execution, and the outcome of a review.
    pub fn completed(&self) -> Option<(Option<Mark>, Option<&Review>)> {
        if let Self::Ended {
            outcome: Outcome::Completed { mark, review, .. },
        } = self
        {
            Some((*mark, review.as_ref()))
        } else {
            None
        }
    }

    /// The error of a failed call.
    pub fn error(&self) -> Option<&str> {
        if let Self::Failed { error, .. } = self {
            Some(error)
        } else {
            None
        }
    }

    /// Code and error of a failed model call, or of an answer that cannot be used.
    pub fn model_failure(&self) -> Option<(&str, &str)> {
        let Self::Failed {
            source: FailureSource::Model | FailureSource::Answer,
            code,
            error,
            ..
        } = self
        else {
            return None;
        };
        Some((code, error))
    }

    /// Index of the provider that takes over.
    pub fn switched_to(&self) -> Option<usize> {
        if let Self::Switched { provider } = self {
            Some(*provider)
        } else {
            None
        }
    }

    /// The answer of the model.
    pub fn answer(&self) -> Option<&Answer> {
        if let Self::Answer(answer) = self {
            Some(answer)
        } else {
            None
        }
    }

    /// The result of a call, in either form.
    pub fn result(&self) -> Option<&ToolResult> {
        if let Self::ToolResult(result) | Self::Observation(result) = self {
            Some(result)
        } else {
            None
        }
    }

    /// The sub-agent that begins.
    pub fn dispatched(&self) -> Option<&Dispatched> {
        if let Self::Dispatched(dispatched) = self {
            Some(dispatched)
        } else {
            None
        }
    }

    /// The call that this entry asks about, starts, loses or dispatches, or has the result or its summary of.
    pub fn call_id(&self) -> Option<&str> {
        if let Self::Dispatched(dispatched) = self {
            return Some(&dispatched.call_id);
        }
        if let Self::Summarised(summary) = self {
            return Some(&summary.call_id);
        }
        if let Self::Started { call_id } | Self::Lost { call_id } = self {
            return Some(call_id);
        }
        if let Self::ApprovalRequested(requested) = self {
            return Some(&requested.call_id);
        }
        if let Self::ApprovalEnded(ended) = self {
            return Some(&ended.call_id);
        }
        self.result().map(|result| result.call_id.as_str())
    }

    /// The value of the `kind` column.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}
