//! The port `Journal`: reads and writes of a session under a lease; and `PastSessions`, its reads of earlier ones.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::dead_letter::DeadReason;
use super::lease::{Lease, StoreError};
use super::model::ProviderFailure;
use super::people::{AskedApproval, ClosedApproval, WaitingCalls};
use tarsy_core::alert_update::NumberedUpdate;
pub use tarsy_core::chain::{
    ExecutionRecord, RunStatus, SessionRecord, StageEnd, StageRecord, SubAgentRecord,
};
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::entry::{Answer, Entry, Mark, StopReason, ToolCall};
use tarsy_core::execution::event_refs::RecordedEntry;
use tarsy_core::execution::recovery::LostCall;
use tarsy_core::ids::{ExecutionId, SessionId};
pub use tarsy_core::past::{By, Past, PastQuery, PastReport};
use tarsy_core::plan::{AgentPlan, PastScope, ProviderPlan, Strategy, SuccessPolicy};
pub use tarsy_core::read_result::{StoredResult, Timeline};
use tarsy_core::review::Review;
use tarsy_core::skills::TextHash;
use tarsy_core::summary::fields;
use tarsy_core::timeline::{EventDraft, EventType};

/// The tries of an execution's model calls, as its timeline shows them to a worker that continues with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedAttempts {
    /// Claims of the session since the last event of the execution, or since the start of its stage.
    pub claims: u32,
    /// The last attempt of each iteration that has events.
    pub by_iteration: BTreeMap<u32, u32>,
}

/// Reads what earlier investigations found, masked by the present mask. None of them is the session itself, the
/// investigation that it is a question about, a question, or a session that runs.
pub trait PastSessions: Send + Sync + 'static {
    /// The newest investigations that a query finds, seen from this session.
    fn past(
        &self,
        session: SessionId,
        query: PastQuery,
    ) -> impl Future<Output = Result<Past, StoreError>> + Send;

    /// The report of the one session whose id begins or ends with `wanted`; `None` if there is none within the scope.
    fn past_report(
        &self,
        session: SessionId,
        wanted: String,
        scope: PastScope,
    ) -> impl Future<Output = Result<Option<PastReport>, StoreError>> + Send;
}

/// Appends to a session under a lease. Retries an unknown outcome with the same bytes by itself, for a bounded time.
pub trait Journal: PastSessions + WaitingCalls {
    /// The frozen plan and how far the session has come.
    fn load(
        &self,
        session: SessionId,
    ) -> impl Future<Output = Result<SessionRecord, StoreError>> + Send;

    /// The entries of one execution, in order, with the numbers of the events generated from them.
    fn entries(
        &self,
        session: SessionId,
        execution: ExecutionId,
    ) -> impl Future<Output = Result<Vec<RecordedEntry>, StoreError>> + Send;

    /// The tries that the timeline of an execution shows.
    fn attempts(
        &self,
        session: SessionId,
        execution: ExecutionId,
    ) -> impl Future<Output = Result<RecordedAttempts, StoreError>> + Send;

    /// The stored result of a tool call, by the number of its event; `None` if no result has this number. It belongs to
    /// the session, or to the investigation that the session is a question about.
    fn result(
        &self,
        session: SessionId,
        timeline: Timeline,
        event: u32,
    ) -> impl Future<Output = Result<Option<StoredResult>, StoreError>> + Send;

    /// The stored texts of skills with these hashes, as far as they are stored.
    fn skill_texts(
        &self,
        hashes: Vec<TextHash>,
    ) -> impl Future<Output = Result<BTreeMap<TextHash, String>, StoreError>> + Send;

    /// The updates of the session's alert after this number, in order.
    fn alert_updates(
        &self,
        session: SessionId,
        after: u32,
    ) -> impl Future<Output = Result<Vec<NumberedUpdate>, StoreError>> + Send;

    /// Appends one checkpoint, all of it or nothing. Sending the same checkpoint again returns the same event numbers.
    fn append(
        &self,
        lease: Lease,
        checkpoint: Checkpoint,
    ) -> impl Future<Output = Result<Appended, StoreError>> + Send;

    /// One transition of the session itself (a stage begins or ends): all of it or nothing.
    fn step(
        &self,
        lease: Lease,
        step: SessionStep,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The end of the session, with its last events, and that of its last stage: all of it or nothing.
    fn finish(
        &self,
        lease: Lease,
        end: SessionEnd,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Keeps calls that may have been sent by steps whose commits the store has lost, for whichever worker continues.
    /// Needs no lease: a call that is kept twice, or although its start is committed, changes nothing.
    fn remember(
        &self,
        session: SessionId,
        calls: Vec<LostCall>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// A committed checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// For each entry the number of the event generated from it
    /// ([`event_of_each_entry`](tarsy_core::execution::event_refs::event_of_each_entry)).
    pub events: Vec<Option<u32>>,
    /// The number of the last update of the session's alert.
    pub updates: u32,
}

/// The data that one checkpoint writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub execution_id: ExecutionId,
    /// The execution's last number + 1.
    pub number: u32,
    /// Random; a retry keeps it.
    pub id: Uuid,
    /// The iteration that these entries belong to, from 1 (0: before the first).
    pub iteration: u32,
    /// The attempt of the iteration's model call, from 1, as in
    /// [`TimelineEvent`](tarsy_core::timeline::TimelineEvent).
    pub attempt: u32,
    /// Status of the execution from now on.
    pub status: RunStatus,
    /// The reason why it failed.
    pub error: Option<String>,
    /// The time of the step, with microsecond precision.
    pub at: DateTime<Utc>,
    /// In order.
    pub entries: Vec<Entry>,
    /// In order.
    pub events: Vec<EventDraft>,
    /// For reports; no resume reads them.
    pub model_calls: Vec<ModelCallRecord>,
    /// The tool calls with their whole results, of which the entries may have only a part.
    pub tool_calls: Vec<ToolCallRecord>,
    /// The sub-agents that its entries begin.
    pub sub_agents: Vec<SubAgentBegin>,
    /// The requests that its entries make.
    pub asked: Vec<AskedApproval>,
    /// The requests that its entries close.
    pub closed: Vec<ClosedApproval>,
}

/// A row of `llm_interactions`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCallRecord {
    pub purpose: Purpose,
    /// The provider that was called.
    pub provider: ProviderPlan,
    /// The conversation is the journal up to this entry number.
    pub entries_upto: u32,
    /// The answer; `None` after a failure.
    pub answer: Option<Answer>,
    /// The failure; with an answer, the remark that the answer is empty.
    pub error: Option<String>,
    /// The LLM service's report about a failed call.
    pub failure: Option<CallFailure>,
    /// The duration of the call.
    pub duration: Duration,
}

/// The reason why a model call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// The error code of the LLM service.
    pub code: String,
    pub provider: ProviderFailure,
}

/// A row of `tool_interactions`. Only its result is read back, by [`Journal::result`].
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallRecord {
    pub call: ToolCall,
    pub state: ToolCallState,
    /// The whole masked result.
    pub result: Option<String>,
    /// The reason why there is no result.
    pub error: Option<String>,
    /// The duration of the call.
    pub duration: Duration,
}

/// The outcome of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToolCallState {
    /// The call has a result.
    Done,
    /// The tool or its server has reported an error.
    Failed,
    /// Its server did not answer, and the call may have changed something.
    Lost,
}

tarsy_core::words!(pub ToolCallState);

/// One transition of the session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionStep {
    /// The session's last step + 1.
    pub number: u32,
    /// The time of the step, with microsecond precision.
    pub at: DateTime<Utc>,
    pub change: StageChange,
    /// The session's own events.
    pub events: Vec<EventDraft>,
}

/// The change that a transition makes.
#[derive(Clone, Debug, PartialEq)]
pub enum StageChange {
    /// A stage begins, with its executions.
    Begin(StageBegin),
    /// A stage ends.
    End(StageEnd),
}

/// A stage that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct StageBegin {
    /// Counted from 1.
    pub stage_no: u32,
    /// Its executions, in order of their numbers: id, agent, strategy, backend, model.
    pub executions: Vec<ExecutionBegin>,
    /// Name of the stage.
    pub name: String,
    pub success_policy: SuccessPolicy,
}

/// The first stage, which begins with its session.
#[derive(Clone, Debug, PartialEq)]
pub struct StageBegun {
    pub begin: StageBegin,
    /// Says so in the timeline.
    pub event: EventDraft,
}

/// An execution that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionBegin {
    pub execution_id: ExecutionId,
    /// Counted from 1; 0 for a sub-agent.
    pub agent_no: u32,
    /// Name of the agent.
    pub agent: String,
    pub strategy: Strategy,
    /// The first provider's backend.
    pub backend: String,
    /// The first provider's model.
    pub model: String,
}

impl ExecutionBegin {
    /// The execution of an agent with this plan.
    pub fn new(execution_id: ExecutionId, agent_no: u32, agent: &AgentPlan) -> Self {
        let provider = agent.providers.first();
        Self {
            execution_id,
            agent_no,
            agent: agent.name.clone(),
            strategy: agent.strategy,
            backend: provider.map(|p| p.backend.clone()).unwrap_or_default(),
            model: provider.map(|p| p.model.clone()).unwrap_or_default(),
        }
    }
}

/// An execution of a sub-agent that begins, in the stage of its parent.
#[derive(Clone, Debug, PartialEq)]
pub struct SubAgentBegin {
    /// The call of its parent.
    pub call_id: String,
    /// Without a number in the stage: 0.
    pub execution: ExecutionBegin,
}

/// The end of the last stage, which is committed with that of the session.
#[derive(Clone, Debug, PartialEq)]
pub struct StageEnded {
    /// The session's last step + 1.
    pub step: u32,
    pub end: StageEnd,
    /// Says so in the timeline.
    pub event: EventDraft,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SessionEnd {
    /// Never running.
    pub status: RunStatus,
    /// Goes into the last event's metadata.
    pub reason: StopReason,
    /// The last update of the alert that the analysis knew; it covers no later one.
    pub covered_updates: u32,
    pub final_analysis: Option<String>,
    /// The mark on the analysis, a warning for its readers.
    pub mark: Option<Mark>,
    /// The outcome of the review, if one was due.
    pub review: Option<Review>,
    /// Cause, evidence and next step; also the event before the last one.
    pub executive_summary: Option<String>,
    /// The reason why there is no analysis.
    pub error: Option<String>,
    /// The time of the step, with microsecond precision.
    pub at: DateTime<Utc>,
    /// The last event.
    pub event: EventDraft,
    /// The end of the last stage, if it is not committed yet.
    pub stage: Option<StageEnded>,
    /// A dead letter has to be published before the session is settled; its reason.
    pub dead_letter: Option<DeadReason>,
}

impl SessionEnd {
    /// The events that the end adds to the timeline, in order: that of the last stage and the executive summary, if
    /// there are any, then the last event. The statement that ends the session writes them, so each is there once or
    /// not at all.
    pub fn events(&self) -> Vec<EventDraft> {
        let of_stage = self.stage.iter().map(|ended| ended.event.clone());
        let summary = self.executive_summary.as_deref();
        let summary = summary.map(|lines| {
            let fields = serde_json::to_value(fields(lines)).unwrap_or_default();
            EventDraft::new(EventType::ExecutiveSummary, lines, fields)
        });
        of_stage
            .chain(summary)
            .chain([self.event.clone()])
            .collect()
    }
}
