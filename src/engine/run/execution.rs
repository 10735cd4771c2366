//! The loop of one execution, the same for every strategy: decide, perform, append, apply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use tokio::time::Instant;
use uuid::Uuid;

use super::control::{Control, Interrupted, ReleaseReason, STORE_BOUND};
use super::performed::{Performed, millis};
use super::tool_calls::Batch;
use super::{instruments, native};
use crate::engine::ports::{
    Checkpoint, ExecutionRecord, Feed, Journal, Lease, Model, ModelCallRecord, ModelError, ModelRequest, RunStatus,
    StoreError,
};
use crate::engine::world::{Ports, World};
use crate::investigation::execution::absorb;
use crate::investigation::execution::decide::{Decision, ModelCall, Purpose, decide};
use crate::investigation::execution::entry::{Answer, Entry, Outcome, ToolCall};
use crate::investigation::execution::event_refs::RecordedEntry;
use crate::investigation::execution::recovery::{self, LostCall, Recovery, sent_by};
use crate::investigation::execution::results::CallError;
use crate::investigation::execution::state::State;
use crate::investigation::execution::window::ToolBinding;
use crate::investigation::ids::ExecutionId;
use crate::investigation::plan::{AgentPlan, Strategy};
use crate::investigation::timeline::projection::{Measured, project};
use crate::investigation::timeline::{Delta, DeltaKind};

/// Pause after a failed model call.
const MODEL_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Pause between two attempts to write while the store is unavailable.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// One execution of a leased session.
pub(super) struct Execution<W: World> {
    ports: Arc<Ports<W>>,
    lease: Lease,
    control: Control,
    id: ExecutionId,
    checkpoint: u32,
    state: State,
    /// Entries about commits that the store has lost; they are written after the opening.
    owed: Vec<Entry>,
    /// A resume starts the iteration's time again.
    iteration_began: Instant,
    /// Whether an iteration is running whose duration has to be recorded.
    measuring: bool,
}

/// An execution to resume, with its part of the plan.
pub(super) struct Assignment {
    pub(super) execution: ExecutionRecord,
    pub(super) plan: AgentPlan,
    /// The findings of the stage before.
    pub(super) context: Option<String>,
    /// The session's detected losses of commits.
    pub(super) recoveries: Vec<Recovery>,
}

impl<W: World> Execution<W> {
    /// Reads the journal and replays it.
    pub(super) async fn resume(
        ports: Arc<Ports<W>>,
        lease: Lease,
        control: Control,
        assignment: Assignment,
    ) -> Result<Self, Interrupted> {
        let Assignment { execution, plan, context, recoveries } = assignment;
        let id = execution.execution_id;
        let entries = ports.journal.entries(lease.session_id, id).await?;
        let state = State::replay(Arc::new(plan), context, entries);
        let owed = recovery::owed(&state, id, &recoveries);
        Ok(Self {
            ports,
            lease,
            control,
            id,
            checkpoint: execution.checkpoint,
            state,
            owed,
            iteration_began: Instant::now(),
            measuring: false,
        })
    }

    /// Runs until the end of the execution is committed.
    pub(super) async fn run(mut self) -> Result<(), Interrupted> {
        loop {
            if let Some(reason) = self.control.stop_reason()
                && !self.state.is_stopped_at_once()
                && self.state.ended().is_none()
            {
                self.append(vec![Entry::Stopped { reason }]).await?;
                continue;
            }
            if !self.owed.is_empty() && !self.state.entries().is_empty() {
                let owed = std::mem::take(&mut self.owed);
                self.append(owed).await?;
                continue;
            }
            let decision = decide(&self.state);
            self.measure(&decision);
            match decision {
                Decision::Done(_) => return Ok(()),
                Decision::Append(entries) => self.append(entries).await?,
                Decision::CallModel(call) => self.call_model(call).await?,
                Decision::RunTools(calls) => self.run_tools(calls).await?,
            }
        }
    }

    /// Records the duration of an iteration. It is over when the next decision belongs to no answer.
    fn measure(&mut self, next: &Decision) {
        let over = matches!(next, Decision::Done(_) | Decision::CallModel(_));
        if over && std::mem::take(&mut self.measuring) {
            let took = self.iteration_began.elapsed().as_secs_f64();
            metrics::histogram!("tarsy_iteration_duration_seconds").record(took);
        }
    }

    async fn call_model(&mut self, call: ModelCall) -> Result<(), Interrupted> {
        let Some(request) = self.request(call) else {
            let missing = format!("the plan has no provider number {}", call.provider);
            return Err(ReleaseReason::Incompatible(missing).into());
        };
        if self.state.model_failure().is_some() {
            let pause = tokio::time::sleep(MODEL_RETRY_DELAY); // pace of the retries
            if self.control.unless_stopped(pause).await?.is_none() {
                return Ok(());
            }
        }
        self.control.permit()?;
        (self.iteration_began, self.measuring) = (Instant::now(), true);
        let (timeout, provider) = (request.timeout, request.provider.clone());
        let deltas = Deltas::new(self);
        let asked = self.ports.model.generate(request, |kind, text| deltas.send(kind, text));
        let asked = self.control.within(timeout, tokio::time::timeout(timeout, asked));
        let reply = match self.control.unless_stopped(asked).await? {
            Some(Ok(reply)) => reply,
            Some(Err(_elapsed)) => Err(self.timed_out(timeout).await),
            None => return Ok(()),
        };
        let duration = self.iteration_began.elapsed();
        instruments::model_call(&provider.name, &reply, duration);
        let entries_upto = u32::try_from(self.state.entries().len()).unwrap_or(u32::MAX);
        let (purpose, answer, error) = (call.purpose, None, None);
        let call = ModelCallRecord { purpose, provider, entries_upto, answer, error, duration };
        let performed = self.absorb(reply, call)?;
        self.commit(performed).await
    }

    /// Interprets a reply, and adds it to the record of its call.
    fn absorb(&self, reply: Result<Answer, ModelError>, call: ModelCallRecord) -> Result<Performed, Interrupted> {
        let measured = Measured { model_ms: millis(call.duration), ..Measured::default() };
        let (entries, call) = match reply {
            Err(ModelError::Unavailable(error)) => return Err(ReleaseReason::ModelUnavailable(error).into()),
            Err(ModelError::Broke(error)) => return Err(ReleaseReason::ModelBroke(error).into()),
            Err(ModelError::Failed { code, message, timeout }) => {
                tracing::info!(session_id = %self.lease.session_id, execution_id = %self.id, code, "model call failed: {message}");
                let entries = absorb::failed(&self.state, &code, CallError { message: &message, timeout });
                (entries, ModelCallRecord { error: Some(message), ..call })
            }
            Ok(answer) => {
                native::warn_if_unexpected(self.lease.session_id, self.id, self.state.plan().strategy, &answer);
                instruments::calls_beyond(self.state.plan().limits.max_calls, answer.calls.len());
                let entries = absorb::absorb(&self.state, answer.clone());
                let error = entries.iter().find_map(Entry::error).map(str::to_owned);
                (entries, ModelCallRecord { answer: Some(answer), error, ..call })
            }
        };
        Ok(Performed { entries, measured, model_calls: vec![call], ..Performed::default() })
    }

    /// The error after a time-out: a failure if the LLM service is serving, otherwise the service is unavailable.
    async fn timed_out(&self, timeout: Duration) -> ModelError {
        let message = format!("no answer within {} s", timeout.as_secs_f64());
        if self.ports.model.serving().await {
            ModelError::Failed { code: "timeout".to_owned(), message, timeout: true }
        } else {
            ModelError::Unavailable(message)
        }
    }

    fn request(&self, call: ModelCall) -> Option<ModelRequest> {
        let plan = self.state.plan();
        let mut provider = plan.providers.get(call.provider)?.clone();
        if call.purpose == Purpose::Conclusion {
            // A conclusion rests on what was found before.
            provider.native_tools.clear();
        }
        Some(ModelRequest {
            session_id: self.lease.session_id,
            execution_id: self.id,
            request_id: format!("{}:{}", self.id, self.state.iteration() + 1),
            provider,
            messages: self.state.messages(),
            tools: if call.tools == ToolBinding::Bound { plan.tools.clone() } else { Vec::new() },
            timeout: self.iteration_timeout(),
        })
    }

    fn iteration_timeout(&self) -> Duration {
        Duration::from_millis(self.state.plan().limits.iteration_timeout_ms)
    }

    /// Runs the calls of one decision and commits their results.
    async fn run_tools(&mut self, calls: Vec<ToolCall>) -> Result<(), Interrupted> {
        self.control.permit()?;
        let remaining = self.iteration_timeout().saturating_sub(self.iteration_began.elapsed());
        let deadline = Instant::now() + remaining;
        if let [call] = calls.as_slice()
            && !call.read_only
            && !remaining.is_zero()
        {
            self.append(vec![Entry::Started { call_id: call.id.clone() }]).await?;
        }
        let batch = Batch { tools: &*self.ports.tools, control: &self.control, state: &self.state, deadline };
        match batch.run(calls).await? {
            Some(performed) => self.commit(performed).await,
            None => Ok(()),
        }
    }

    /// Appends entries that no call has produced.
    async fn append(&mut self, entries: Vec<Entry>) -> Result<(), Interrupted> {
        self.commit(Performed { entries, ..Performed::default() }).await
    }

    /// Commits one checkpoint. While the store is unavailable the checkpoint is kept and written again, until the store
    /// commits or refuses it, the lease is lost or the run is stopped: a short outage costs no model's answer.
    async fn commit(&mut self, performed: Performed) -> Result<(), Interrupted> {
        let checkpoint = self.checkpoint(performed);
        let began = Instant::now();
        let numbers = loop {
            let write = self.ports.journal.append(self.lease, checkpoint.clone());
            match self.control.within(STORE_BOUND, write).await {
                Ok(numbers) => break numbers,
                Err(StoreError::Unavailable(error)) => {
                    tracing::warn!(session_id = %self.lease.session_id, execution_id = %self.id, "checkpoint {} delayed: store is unavailable: {error}", checkpoint.number);
                    let pause = tokio::time::sleep(STORE_RETRY_DELAY); // pace of the retries
                    if self.control.unless_stopped(pause).await?.is_none() {
                        return Err(ReleaseReason::StoreUnavailable(error).into());
                    }
                }
                Err(error) => {
                    if matches!(error, StoreError::Behind(_)) {
                        self.remember().await;
                    }
                    return Err(error.into());
                }
            }
        };
        metrics::histogram!("tarsy_checkpoint_duration_seconds").record(began.elapsed().as_secs_f64());
        self.control.progressed();
        self.checkpoint = checkpoint.number;
        let has_events = !checkpoint.events.is_empty();
        instruments::elisions(&checkpoint.entries);
        for recorded in RecordedEntry::all(checkpoint.entries, numbers) {
            self.state.apply(recorded);
        }
        if has_events {
            self.ports.feed.notify(self.lease.session_id);
        }
        Ok(())
    }

    /// Stores the calls that this run has sent: the store has lost steps, and only this run knows all their calls.
    async fn remember(&self) {
        let calls = sent_by(&self.state).into_iter().map(|call| LostCall { execution_id: self.id, call }).collect();
        let written = self.ports.journal.remember(self.lease.session_id, calls);
        if let Err(error) = self.control.within(STORE_BOUND, written).await {
            tracing::warn!(session_id = %self.lease.session_id, execution_id = %self.id, %error, "calls of lost steps could not be stored");
        }
    }

    fn checkpoint(&self, performed: Performed) -> Checkpoint {
        let Performed { entries, measured, model_calls, tool_calls } = performed;
        let events = project(&self.state, &entries, &measured);
        let answers = !model_calls.is_empty();
        let (status, error) = status_after(&entries);
        Checkpoint {
            execution_id: self.id,
            number: self.checkpoint + 1,
            id: Uuid::new_v4(),
            iteration: self.state.iteration() + u32::from(answers),
            attempt: 1,
            status,
            error,
            at: now(),
            entries,
            events,
            model_calls,
            tool_calls,
        }
    }
}

fn status_after(entries: &[Entry]) -> (RunStatus, Option<String>) {
    let Some(Entry::Ended { outcome }) = entries.last() else {
        return (RunStatus::Running, None);
    };
    match outcome {
        Outcome::Completed { .. } => (RunStatus::Completed, None),
        Outcome::Failed { error, .. } => (RunStatus::Failed, Some(error.clone())),
        Outcome::Cancelled => (RunStatus::Cancelled, None),
        Outcome::TimedOut => (RunStatus::TimedOut, None),
    }
}

/// The present in microseconds, the precision of the store.
pub(super) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

/// Emits the pieces of one answer as deltas with offsets.
struct Deltas<W: World> {
    feed: Arc<W::Feed>,
    stamp: Delta,
    /// The kind of the text: one that has to be parsed first is not for people.
    text_kind: DeltaKind,
    text: AtomicU64,
    thinking: AtomicU64,
}

impl<W: World> Deltas<W> {
    fn new(execution: &Execution<W>) -> Self {
        let stamp = Delta {
            session_id: execution.lease.session_id,
            execution_id: execution.id,
            epoch: execution.lease.epoch,
            iteration: execution.state.iteration() + 1,
            attempt: 1,
            kind: DeltaKind::Text,
            offset: 0,
            delta: String::new(),
        };
        let feed = Arc::clone(&execution.ports.feed);
        let is_react = execution.state.plan().strategy == Strategy::React;
        let text_kind = if is_react { DeltaKind::Raw } else { DeltaKind::Text };
        Self { feed, stamp, text_kind, text: AtomicU64::new(0), thinking: AtomicU64::new(0) }
    }

    fn send(&self, kind: DeltaKind, text: &str) {
        let (kind, sent) = match kind {
            DeltaKind::Thinking => (kind, &self.thinking),
            DeltaKind::Text | DeltaKind::Raw => (self.text_kind, &self.text),
        };
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let offset = sent.fetch_add(length, Ordering::Relaxed);
        self.feed.delta(Delta { kind, offset, delta: text.to_owned(), ..self.stamp.clone() });
    }
}
