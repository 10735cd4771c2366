//! Entries: what the journal of an execution is made of.
//!
//! Entries with a role are the conversation and go to the model; entries without one are facts that decisions rest on.

use serde::{Deserialize, Serialize};

use super::recovery::SentCall;
use super::unmasked::Unmasked;
use crate::investigation::native::{CodePart, Grounding};
use crate::investigation::react::ReplyKind;

/// One step of an execution, appended once and never changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A message that opens the conversation.
    Prompt {
        /// System or user.
        role: Role,
        /// The text.
        content: String,
    },
    /// What the model answered, with the calls that were understood in it.
    Answer(Answer),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// The result of a call in the `ReAct` format: the model reads it as a user message, `Observation: …`.
    Observation(ToolResult),
    /// Something the loop tells the model.
    Feedback {
        /// The text.
        content: String,
    },
    /// Fact: a model or tool call gave no answer.
    Failed {
        /// For people.
        error: String,
        /// It took too long.
        timeout: bool,
        /// Which call failed.
        source: FailureSource,
        /// The service's word for it, e.g. `context_window_exceeded`; empty when there is none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        code: String,
    },
    /// Fact: a call that may change something is about to be sent.
    Started {
        /// The call.
        call_id: String,
    },
    /// Fact: such a call was sent, its outcome is unknown; it is never sent again.
    Lost {
        /// The call.
        call_id: String,
    },
    /// Fact: the database has lost commits, and these calls of the lost steps may have been sent. Whatever is open and
    /// may change something counts as sent, and so does the next call that is the same as one of these.
    SentBefore {
        /// Number of the loss in the session, from 1.
        recovery: u32,
        /// The calls.
        calls: Vec<SentCall>,
    },
    /// Fact: the execution goes on with another of the plan's providers.
    Switched {
        /// Index into the plan's providers.
        provider: usize,
    },
    /// Fact: the next answer is the last one.
    Concluding {
        /// Why.
        reason: StopReason,
    },
    /// Fact: tool results up to this entry number (from 1) are blanked in the conversation.
    Elided {
        /// The last blanked entry.
        up_to: u32,
    },
    /// Fact: the clock, a person or a budget wants the execution to stop.
    Stopped {
        /// Which of them.
        reason: StopReason,
    },
    /// Fact: the execution is over.
    Ended {
        /// How.
        outcome: Outcome,
    },
}

/// The result of a tool call, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// `server.tool`.
    pub tool: String,
    /// The text that the model reads: flattened, masked, cut to the limit.
    pub content: String,
    /// The tool reports a failure, or gave no result.
    pub is_error: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The alert, feedback.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    /// The word on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// The reasoning, as far as the provider shows it.
    pub thinking: String,
    /// The calls, in the order to run them; ids are unique in the execution.
    pub calls: Vec<ToolCall>,
    /// What it cost.
    pub usage: Usage,
    /// Why the model stopped, normalised (`stop`, `tool_calls`, `max_tokens`, …).
    pub finish: String,
    /// Code that the provider ran and its results, as they arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code_executions: Vec<CodePart>,
    /// What the answer rests on, as it arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groundings: Vec<Grounding>,
    /// What was understood of a text that had to be read for it (`ReAct`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Box<ParsedReply>>,
    /// What the provider needs back, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<Box<ProviderData>>,
    /// Ids of the calls whose arguments are masked here: the model's own are needed to send them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked_calls: Vec<String>,
    /// What the mask has taken out, until the calls are sent.
    #[serde(skip)]
    pub unmasked: Option<Box<Unmasked>>,
}

/// What was understood of a text in the `ReAct` format. The call, if there is one, stands in [`Answer::calls`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedReply {
    /// What the answer is.
    pub kind: ReplyKind,
    /// The reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// For people: what is wrong with the answer, or what of its arguments was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Its call or its end came from outside word for word: what it says again is meant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quotes: bool,
}

/// A tool call that the model asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the execution.
    pub id: String,
    /// `server.tool`.
    pub tool: String,
    /// The arguments: a JSON object as a string, exactly as the model wrote it if it wrote one.
    pub arguments: String,
    /// From the plan, not from what the server says today.
    pub read_only: bool,
}

/// Tokens of one model call, as the provider counts them; 0 for what it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input, cached tokens included.
    pub input_tokens: u64,
    /// Of these, read from the provider's cache.
    pub cached_tokens: u64,
    /// Output without reasoning.
    pub output_tokens: u64,
    /// Reasoning.
    pub thinking_tokens: u64,
}

impl Usage {
    /// All tokens that are paid for: input, output and reasoning.
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens).saturating_add(self.thinking_tokens)
    }

    /// The sum, field by field.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens + other.input_tokens,
            cached_tokens: self.cached_tokens + other.cached_tokens,
            output_tokens: self.output_tokens + other.output_tokens,
            thinking_tokens: self.thinking_tokens + other.thinking_tokens,
        }
    }
}

/// Provider state that travels with an answer and comes back unread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderData {
    /// Which provider wrote it.
    pub provider: String,
    /// For which model.
    pub model: String,
    /// How the payload is to be read.
    pub format: String,
    /// The bytes. Stored in a column of their own, never as JSON text.
    #[serde(skip)]
    pub payload: Vec<u8>,
}

/// Which call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureSource {
    /// The model.
    Model,
    /// A tool.
    Tool,
    /// The model, which answered nothing again: the answer stands before this and counts as the iteration.
    Answer,
}

/// Why an execution or a session stops; also `stop_reason` of the session's last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model gave its answer.
    FinalAnswer,
    /// The iterations are used up.
    MaxIterations,
    /// Too many time-outs in a row.
    Timeouts,
    /// A model call failed where none may.
    Error,
    /// The same call again and again.
    RepeatedCalls,
    /// The token or cost budget is used up.
    Budget,
    /// The conversation no longer fits into the model's context window.
    ContextWindow,
    /// A synthesis failed: the analyses that it was to put together stand in its place.
    SynthesisFailed,
    /// The session's deadline has passed.
    Deadline,
    /// Somebody asked for it.
    Cancelled,
    /// Too many workers died at the same step.
    AttemptsExhausted,
    /// Nothing to do: the alert was resolved before it came.
    NotInvestigated,
}

impl StopReason {
    /// The word on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FinalAnswer => "final_answer",
            Self::MaxIterations => "max_iterations",
            Self::Timeouts => "timeouts",
            Self::Error => "error",
            Self::RepeatedCalls => "repeated_calls",
            Self::Budget => "budget",
            Self::ContextWindow => "context_window",
            Self::SynthesisFailed => "synthesis_failed",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::NotInvestigated => "not_investigated",
        }
    }
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// With an analysis.
    Completed {
        /// The model's last answer.
        analysis: String,
        /// What led to it.
        reason: StopReason,
    },
    /// Without one.
    Failed {
        /// For people.
        error: String,
        /// What led to it.
        reason: StopReason,
    },
    /// On request.
    Cancelled,
    /// Past the session's deadline.
    TimedOut,
}

impl Entry {
    /// The role of the row; `None` for a fact.
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Prompt { role, .. } => Some(*role),
            Self::Answer(_) => Some(Role::Assistant),
            Self::ToolResult(_) => Some(Role::Tool),
            Self::Observation(_) | Self::Feedback { .. } => Some(Role::User),
            Self::Failed { .. }
            | Self::Started { .. }
            | Self::Lost { .. }
            | Self::SentBefore { .. }
            | Self::Switched { .. }
            | Self::Concluding { .. }
            | Self::Elided { .. }
            | Self::Stopped { .. }
            | Self::Ended { .. } => None,
        }
    }

    /// What went wrong, of an entry that is there to say so.
    pub fn error(&self) -> Option<&str> {
        if let Self::Failed { error, .. } = self { Some(error) } else { None }
    }

    /// The call that this is the result of; `None` for all that is no result.
    pub fn result_of(&self) -> Option<&str> {
        match self {
            Self::ToolResult(result) | Self::Observation(result) => Some(&result.call_id),
            Self::Prompt { .. }
            | Self::Answer(_)
            | Self::Feedback { .. }
            | Self::Failed { .. }
            | Self::Started { .. }
            | Self::Lost { .. }
            | Self::SentBefore { .. }
            | Self::Switched { .. }
            | Self::Concluding { .. }
            | Self::Elided { .. }
            | Self::Stopped { .. }
            | Self::Ended { .. } => None,
        }
    }

    /// The word of the row's `kind` column.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Prompt { .. } => "prompt",
            Self::Answer(_) => "answer",
            Self::ToolResult(_) => "tool_result",
            Self::Observation(_) => "observation",
            Self::Feedback { .. } => "feedback",
            Self::Failed { .. } => "failed",
            Self::Started { .. } => "started",
            Self::Lost { .. } => "lost",
            Self::SentBefore { .. } => "sent_before",
            Self::Switched { .. } => "switched",
            Self::Concluding { .. } => "concluding",
            Self::Elided { .. } => "elided",
            Self::Stopped { .. } => "stopped",
            Self::Ended { .. } => "ended",
        }
    }
}
