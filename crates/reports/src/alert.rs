//! The report about one alert and its investigation.

use chrono::{DateTime, Utc};
use diesel::prelude::Queryable;
use serde::Serialize;
use serde_json::Value;

use super::ShownStatus;
use super::stored::{Stored, StoredOption};
use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::{Mark, StopReason, with_text};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::review::Review;
use tarsy_core::verdicts::PersonVerdict;
use tarsy_engine::ports::{DeadReason, RunStatus, ToolCallState};

use super::tokens::{StoredTokens, Tokens};
use super::{DispositionKind, SeenBefore};

/// An alert, and the investigation that it opened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AlertReport {
    /// The id of the alert, and of the session that it opened.
    pub alert_id: SessionId,
    /// The time of the first delivery.
    pub received_at: DateTime<Utc>,
    /// The disposition of the alert.
    #[serde(rename = "place")]
    pub disposition: DispositionKind,
    /// The session that covers it, for a joined alert.
    pub joined_session_id: Option<SessionId>,
    /// The route whose limit of an hour kept the alert from being investigated. Such an alert is listed in
    /// `joined_session_id`, or is the one whose session lists the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    pub subject: String,
    /// The sequence of the message in the stream of alerts.
    pub stream_sequence: i64,
    pub deliveries: i32,
    /// Allow-listed headers of the producer.
    pub headers: Value,
    pub dead_reason: Option<DeadReason>,
    /// The reason in a sentence.
    pub dead_detail: Option<String>,
    /// Alerts with the same fingerprint join one session.
    pub fingerprint: Option<String>,
    /// Selects the chain.
    pub alert_type: Option<String>,
    pub title: Option<String>,
    pub severity: Option<Severity>,
    /// `alertmanager`, `grafana`, `json` or `text`.
    pub source: Option<String>,
    /// The alert, cleaned and masked.
    pub body: Option<String>,
    /// Alerts that joined this one's session, in order.
    pub joined: Vec<JoinedAlert>,
    /// The investigation that a follow-up question is about.
    pub parent_id: Option<SessionId>,
    /// Follow-up questions about this investigation, in order.
    pub questions: Vec<QuestionReport>,
    /// The earlier investigations of its alert; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_before: Option<SeenBefore>,
    /// `None` when the alert opened no session.
    pub session: Option<SessionReport>,
    /// The address of the alert's page, if `web.public_url` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A follow-up question that has a session.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct QuestionReport {
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub session_id: SessionId,
    pub created_at: DateTime<Utc>,
    #[diesel(deserialize_as = ShownStatus)]
    pub status: RunStatus,
    /// The text of the question, cleaned and masked.
    pub question: Option<String>,
    pub answer: Option<String>,
    /// The reason when there is no answer.
    pub error: Option<String>,
}

/// An investigation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionReport {
    pub created_at: DateTime<Utc>,
    pub deadline_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub cancel_requested_at: Option<DateTime<Utc>>,
    pub status: RunStatus,
    /// Whether it waits for a person, without a worker. Its status is `running`.
    pub waits_for_approval: bool,
    pub stop_reason: Option<StopReason>,
    /// The mark on the analysis, a warning for its readers.
    #[serde(flatten, serialize_with = "with_text")]
    pub mark: Option<Mark>,
    /// The outcome of the review, if one was due; null otherwise.
    pub review: Option<Review>,
    pub chain: String,
    /// The name of the worker that has or had its last lease.
    pub worker: String,
    /// The lease epoch: grows by one with every claim and release.
    pub epoch: i32,
    /// The workers that had it before, in order: one for each takeover.
    pub previous_workers: Vec<String>,
    /// The number of its last event.
    pub last_seq: i32,
    /// The changes by alerts that joined it, in order.
    pub alert_updates: Vec<AlertUpdateReport>,
    /// The last of these changes that the analysis covers; 0 until the end.
    pub covered_updates: i32,
    /// Cause, evidence and next step.
    pub executive_summary: Option<String>,
    pub final_analysis: Option<String>,
    /// The citations: words of the analysis with the pages that support them; null when there are none.
    pub citations: Value,
    /// The verdicts of people about the analysis, the newest first: it counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<PersonVerdict>,
    /// The reason when there is no analysis.
    pub error: Option<String>,
    pub stages: Vec<StageReport>,
    /// The tokens of each model, in order of its first call.
    pub models: Vec<ModelReport>,
    pub model_calls: Vec<ModelCallReport>,
    pub tool_calls: Vec<ToolCallReport>,
}

impl SessionReport {
    /// The number of changes of the alert that came after the last model call of a completed session.
    pub fn late_updates(&self) -> usize {
        let covered = usize::try_from(self.covered_updates).unwrap_or_default();
        if self.status == RunStatus::Completed {
            self.alert_updates.len().saturating_sub(covered)
        } else {
            0
        }
    }
}

/// The changes by an alert that joined a session.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct AlertUpdateReport {
    /// The number of the update in its session, from 1.
    pub number: i32,
    pub at: DateTime<Utc>,
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub alert_id: SessionId,
    /// `severity` and `status`, if they have changed; `firing` and `resolved`, each with `count` and `lines`.
    pub report: Value,
}

/// A stage with its executions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageReport {
    /// The number of the stage in its session, from 1.
    pub stage_no: i32,
    pub name: String,
    pub status: RunStatus,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub executions: Vec<ExecutionReport>,
}

impl StageReport {
    /// The executions, each of the stage before those that it dispatched.
    pub fn ordered(&self) -> Vec<&ExecutionReport> {
        let mut ordered: Vec<&ExecutionReport> = Vec::with_capacity(self.executions.len());
        for execution in self.executions.iter().filter(|each| !each.is_sub_agent()) {
            ordered.push(execution);
            let id = Some(execution.execution_id);
            ordered.extend(
                self.executions
                    .iter()
                    .filter(|each| each.parent_execution_id == id),
            );
        }
        ordered
    }

    /// The number of its agents, without those that they dispatched.
    pub fn agents(&self) -> usize {
        let agents = self.executions.iter().filter(|each| !each.is_sub_agent());
        agents.count()
    }
}

impl ExecutionReport {
    /// Whether another execution dispatched it.
    pub fn is_sub_agent(&self) -> bool {
        self.parent_execution_id.is_some()
    }
}

/// The report about an agent's run.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct ExecutionReport {
    #[diesel(deserialize_as = Stored<ExecutionId>)]
    pub execution_id: ExecutionId,
    /// The execution that dispatched it as a sub-agent.
    #[diesel(deserialize_as = StoredOption<ExecutionId>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_execution_id: Option<ExecutionId>,
    /// The call of its parent that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<String>,
    pub agent: String,
    pub strategy: String,
    #[diesel(deserialize_as = ShownStatus)]
    pub status: RunStatus,
    /// The last iteration, from 1.
    pub iteration: i32,
    pub started_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub analysis: Option<String>,
    pub error: Option<String>,
    /// The number of its tool calls.
    pub tool_calls: i64,
    /// The tokens of its model calls.
    pub usage: Tokens,
}

/// The calls of one model.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct ModelReport {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The backend of the LLM service.
    pub backend: String,
    /// The provider's name of the model.
    pub model: String,
    /// Calls, failed ones included.
    pub calls: i64,
    /// Calls without an answer.
    pub failed: i64,
    pub usage: Tokens,
}

/// The report about a model call. Its request is the journal of the execution up to `entries_upto`; its answer is the
/// next entry.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct ModelCallReport {
    #[diesel(deserialize_as = Stored<ExecutionId>)]
    pub execution_id: ExecutionId,
    pub agent: String,
    /// The time at which its answer was stored.
    pub at: DateTime<Utc>,
    /// The number of the iteration, from 1.
    pub iteration: i32,
    /// `iteration`, `forced_conclusion`, `synthesis` or `summary`.
    pub purpose: String,
    /// The number of the last journal entry in the request.
    pub entries_upto: i32,
    /// The provider's name in the configuration.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    pub duration_ms: i64,
    /// `None` when the call failed.
    #[diesel(deserialize_as = StoredTokens)]
    pub usage: Option<Tokens>,
    /// A summary of the answer: lengths, counts, reasoning. Of a failed call its `code`, `retryable`, `provider_status`
    /// and `retry_after_ms`.
    pub response: Option<Value>,
    /// The reason when there is no usable answer.
    pub error: Option<String>,
}

/// The report about a tool call, with the beginning of its result.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Serialize)]
pub struct ToolCallReport {
    pub agent: String,
    /// The time at which its result was stored.
    pub at: DateTime<Utc>,
    /// The full name, `server.tool`.
    pub tool: String,
    /// The arguments as the model wrote them; the first 2,000 characters.
    pub arguments: String,
    #[diesel(deserialize_as = Stored<ToolCallState>)]
    pub state: ToolCallState,
    pub duration_ms: i64,
    /// The first 2,000 characters, masked.
    pub result: Option<String>,
    /// The size of the whole result.
    pub result_bytes: Option<i64>,
    /// The reason when there is no result.
    pub error: Option<String>,
    /// The number of the event that shows its result: an analysis cites this number.
    pub event: Option<i32>,
}

/// An alert that joined a session.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Serialize)]
pub struct JoinedAlert {
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub alert_id: SessionId,
    /// The time of the first delivery.
    pub received_at: DateTime<Utc>,
    pub title: Option<String>,
    #[diesel(deserialize_as = StoredOption<Severity>)]
    pub severity: Option<Severity>,
}
