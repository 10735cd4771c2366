//! Everything about one alert and its investigation, for people: read in one go, written nowhere.

mod model_calls;
mod read;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use crate::investigation::ids::{ExecutionId, SessionId};

/// An alert, and the investigation that it opened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AlertReport {
    /// Its id, which is the session's, too.
    pub alert_id: SessionId,
    /// When a worker first saw it.
    pub received_at: DateTime<Utc>,
    /// `undecided`, `opened`, `joined`, `ended` or `dead`.
    pub place: String,
    /// The session that took it along.
    pub joined_session_id: Option<SessionId>,
    /// Where it was published.
    pub subject: String,
    /// Its sequence in the stream of alerts.
    pub stream_sequence: i64,
    /// How often it was delivered.
    pub deliveries: i32,
    /// Allow-listed headers of the producer.
    pub headers: Value,
    /// Why it was given up, as a word.
    pub dead_reason: Option<String>,
    /// The same for people.
    pub dead_detail: Option<String>,
    /// What makes two alerts the same.
    pub fingerprint: Option<String>,
    /// What chains are chosen by.
    pub alert_type: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// `critical`, `high`, `normal` or `low`.
    pub severity: Option<String>,
    /// `alertmanager`, `grafana`, `json` or `text`.
    pub source: Option<String>,
    /// The alert, cleaned and masked.
    pub body: Option<String>,
    /// Alerts that this one's session took along, in order.
    pub joined: Vec<JoinedAlert>,
    /// Of a follow-up question: the investigation that it is about.
    pub parent_id: Option<SessionId>,
    /// What was asked about this investigation, in order.
    pub questions: Vec<QuestionReport>,
    /// Absent when the alert opened none.
    pub session: Option<SessionReport>,
}

/// A follow-up question that a worker has begun with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuestionReport {
    /// Its own session.
    pub session_id: SessionId,
    /// When a worker began.
    pub created_at: DateTime<Utc>,
    /// As of a session.
    pub status: String,
    /// As it was asked, cleaned and masked.
    pub question: Option<String>,
    /// As it was answered.
    pub answer: Option<String>,
    /// Why there is no answer.
    pub error: Option<String>,
}

/// An investigation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionReport {
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When it has to be over.
    pub deadline_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// When somebody asked to cancel it.
    pub cancel_requested_at: Option<DateTime<Utc>>,
    /// `running`, `completed`, `failed`, `cancelled` or `timed_out`.
    pub status: String,
    /// Why it ended.
    pub stop_reason: Option<String>,
    /// The chain.
    pub chain: String,
    /// Its worker's name, the last one's when it is over.
    pub worker: String,
    /// How often it was claimed or released.
    pub epoch: i32,
    /// Number of its last event.
    pub last_seq: i32,
    /// Cause, evidence and next step.
    pub executive_summary: Option<String>,
    /// The analysis.
    pub final_analysis: Option<String>,
    /// Which words of the analysis rest on which pages; null when none does.
    pub citations: Value,
    /// Why there is none.
    pub error: Option<String>,
    /// In order.
    pub stages: Vec<StageReport>,
    /// What each model cost, in order of its first call.
    pub models: Vec<ModelReport>,
    /// In order.
    pub model_calls: Vec<ModelCallReport>,
    /// In order.
    pub tool_calls: Vec<ToolCallReport>,
}

/// A stage with its executions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageReport {
    /// From 1.
    pub stage_no: i32,
    /// Name of the stage.
    pub name: String,
    /// As of a session.
    pub status: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// In order of their numbers.
    pub executions: Vec<ExecutionReport>,
}

/// One agent's run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExecutionReport {
    /// The run.
    pub execution_id: ExecutionId,
    /// Name of the agent.
    pub agent: String,
    /// The strategy's word.
    pub strategy: String,
    /// As of a session.
    pub status: String,
    /// Its last iteration.
    pub iteration: i32,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// What it found.
    pub analysis: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// How many tool calls it made.
    pub tool_calls: i64,
    /// What its model calls cost.
    pub usage: Tokens,
}

/// Tokens, as far as the provider tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Sent, cached ones included.
    pub input: i64,
    /// Read from the provider's cache.
    pub cached: i64,
    /// Written.
    pub output: i64,
    /// Spent on reasoning.
    pub thinking: i64,
}

/// What one model did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelReport {
    /// Name of the provider in the configuration.
    pub provider: String,
    /// The part of the LLM service.
    pub backend: String,
    /// The provider's name of the model.
    pub model: String,
    /// Calls, failed ones included.
    pub calls: i64,
    /// Calls without an answer.
    pub failed: i64,
    /// What they cost.
    pub usage: Tokens,
}

/// One model call. Its request is the journal of the execution up to an entry; its answer is the entry behind that.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelCallReport {
    /// The run.
    pub execution_id: ExecutionId,
    /// Name of the agent.
    pub agent: String,
    /// When its answer was written.
    pub at: DateTime<Utc>,
    /// From 1.
    pub iteration: i32,
    /// `iteration`, `forced_conclusion` or `synthesis`.
    pub purpose: String,
    /// Number of the last entry that went along.
    pub entries_upto: i32,
    /// Name of the provider in the configuration.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// How long it took.
    pub duration_ms: i64,
    /// What it cost; absent when it failed.
    pub usage: Option<Tokens>,
    /// What the answer was like: lengths, counts, reasoning.
    pub response: Option<Value>,
    /// Why it is of no use.
    pub error: Option<String>,
}

/// One tool call, with the beginning of its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolCallReport {
    /// Name of the agent.
    pub agent: String,
    /// When its result was written.
    pub at: DateTime<Utc>,
    /// `server.tool`.
    pub tool: String,
    /// As the model wrote them; at most 2,000 characters.
    pub arguments: String,
    /// `done`, `failed` or `lost`.
    pub state: String,
    /// How long it took.
    pub duration_ms: i64,
    /// The first 2,000 characters, masked.
    pub result: Option<String>,
    /// Bytes of the whole result.
    pub result_bytes: Option<i64>,
    /// Why there is none.
    pub error: Option<String>,
    /// Number of the event that tells its result: an analysis cites it.
    pub event: Option<u32>,
}

/// An alert that a session took along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JoinedAlert {
    /// Its id.
    pub alert_id: SessionId,
    /// When a worker saw it.
    pub received_at: DateTime<Utc>,
    /// For people.
    pub title: Option<String>,
    /// `critical`, `high`, `normal` or `low`.
    pub severity: Option<String>,
}
