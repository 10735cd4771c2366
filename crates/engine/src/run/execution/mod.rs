//! The loop of one execution, the same for every strategy: decide, perform, append, apply.

mod approvals;
mod attempts;
mod before_call;
mod commit;
mod iteration;
mod sub_agents;
mod summaries;
mod time_budget;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;

pub(super) use self::approvals::WaitingRoom;
use self::attempts::Attempts;
use self::iteration::Iteration;
pub(super) use self::time_budget::SHORTEST_CONCLUSION;
use self::time_budget::{CallEnd, TimeBudget};
use super::control::{Control, Interrupted, ReleaseReason};
use super::deltas::Deltas;
use super::instruments::Ids;
use super::performed::{Performed, millis};
use super::progress::{EndedExecution, ExecutionTotals};
use super::{instruments, model_retry, native};
use crate::ports::{
    CallFailure, ExecutionRecord, Journal, Lease, Model, ModelCallRecord, ModelError, ModelRequest,
    ProviderFailure, RecordedAttempts,
};
use crate::trace::gen_ai;
use crate::world::{Ports, World};
use tarsy_core::alert::policy::OnResolved;
use tarsy_core::chain::Reserve;
use tarsy_core::execution::decide::{Decision, ModelCall, Purpose, decide};
use tarsy_core::execution::entry::{Answer, Entry};
use tarsy_core::execution::recovery::{self, Recovery};
use tarsy_core::execution::results::CallError;
use tarsy_core::execution::state::State;
use tarsy_core::execution::{absorb, fallback, request};
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::{AgentPlan, ProviderPlan};
use tarsy_core::projection::Measured;
use tarsy_core::timeline::{Delta, DeltaKind};
use tarsy_core::vocabulary::ErrorCode;

/// One execution of a leased session.
pub(super) struct Execution<W: World> {
    ports: Arc<Ports<W>>,
    lease: Lease,
    control: Control,
    id: ExecutionId,
    /// The record after the last checkpoint.
    record: ExecutionRecord,
    state: State,
    /// The policy of the session for a resolved alert.
    on_resolved: OnResolved,
    /// Entries about commits that the store has lost; they are written after the opening.
    owed: Vec<Entry>,
    /// The iteration that runs, or the last one.
    iteration: Iteration,
    /// `None`: nothing is kept for the conclusion.
    time: Option<TimeBudget>,
    attempts: Attempts,
    /// The current attempt of the iteration's model call.
    attempt: u32,
    /// The time when the provider accepts the next call, after it has refused one.
    retry_at: Option<Instant>,
    /// The executions of sub-agents that an earlier run has dispatched, as the store had them then.
    sub_agents: Vec<ExecutionRecord>,
    /// The executions of its stage that wait for people.
    room: Arc<WaitingRoom>,
    /// The requests that may be open in all sessions.
    max_open: u32,
}

/// The outcome of one model call.
struct Reply {
    answer: Result<Answer, ModelError>,
    provider: ProviderPlan,
    duration: Duration,
    /// Pieces of the answer were emitted.
    has_begun: bool,
}

/// An execution to resume, with its part of the plan.
pub(super) struct Assignment {
    pub(super) execution: ExecutionRecord,
    pub(super) plan: Arc<AgentPlan>,
    /// The policy of the session for a resolved alert.
    pub(super) on_resolved: OnResolved,
    /// The findings of the stage before.
    pub(super) context: Option<String>,
    /// The session's detected losses of commits.
    pub(super) recoveries: Vec<Recovery>,
    /// The time that the session keeps while its stage runs.
    pub(super) reserve: Reserve,
    /// The executions of sub-agents that it has dispatched.
    pub(super) sub_agents: Vec<ExecutionRecord>,
    /// The executions of its stage that wait for people.
    pub(super) room: Arc<WaitingRoom>,
    /// The requests for approvals that may be open in all sessions.
    pub(super) max_open: u32,
}

impl<W: World> Execution<W> {
    /// Reads the journal, if it has been begun, and replays it.
    pub(super) async fn resume(
        ports: Arc<Ports<W>>,
        lease: Lease,
        control: Control,
        assignment: Assignment,
    ) -> Result<Self, Interrupted> {
        let record = assignment.execution;
        let id = record.execution_id;
        // Only checkpoints write entries.
        let entries = match record.checkpoint {
            0 => Vec::new(),
            _ => ports.journal.entries(lease.session_id, id).await?,
        };
        let state = State::replay(assignment.plan, assignment.context, entries).of_execution(id);
        let iteration = Iteration::resumed(&state);
        // In the first epoch no earlier owner can have tried a call.
        let recorded = match lease.epoch {
            0 | 1 => RecordedAttempts::default(),
            _ => ports.journal.attempts(lease.session_id, id).await?,
        };
        let time = TimeBudget::new(&control, &state, assignment.reserve);
        Ok(Self {
            ports,
            lease,
            control,
            time,
            id,
            record,
            on_resolved: assignment.on_resolved,
            owed: recovery::owed(&state, id, &assignment.recoveries),
            sub_agents: assignment.sub_agents,
            room: assignment.room,
            max_open: assignment.max_open,
            iteration,
            attempts: Attempts::new(&state, recorded),
            attempt: 1,
            retry_at: None,
            state,
        })
    }

    /// Runs until the end of the execution is committed.
    pub(super) async fn run(mut self) -> Result<EndedExecution, Interrupted> {
        loop {
            // An entry, so that every worker that replays the journal stops at the same place.
            if let Some(reason) = self.control.stop_reason()
                && !self.state.is_stopped_at_once()
                && self.state.ended().is_none()
            {
                self.append(vec![Entry::Stopped { reason }]).await?;
                continue;
            }
            // A journal begins with its opening, so the notes about lost commits come after it.
            if !self.owed.is_empty() && !self.state.entries().is_empty() {
                let owed = std::mem::take(&mut self.owed);
                self.append(owed).await?;
                continue;
            }
            if self.must_wrap_up() {
                self.wrap_up().await?;
                continue;
            }
            // A change of the alert belongs into the next prompt, so the decision is made again with it in the state.
            let decision = decide(&self.state);
            if before_call::is_before_call(&decision)
                && (self.append_updates().await? || self.append_pause().await?)
            {
                continue;
            }
            // An iteration is over when the next decision belongs to no answer.
            if matches!(decision, Decision::Done(_) | Decision::CallModel(_)) {
                self.end_iteration();
            }
            let span = self.iteration.span();
            match decision {
                Decision::Done(_) => {
                    return Ok(EndedExecution {
                        totals: ExecutionTotals::from_state(&self.state),
                        spent: self.state.spent_in_all(),
                        record: self.record,
                    });
                }
                Decision::Append(entries) => {
                    Box::pin(self.append_decided(entries))
                        .instrument(span)
                        .await?
                }
                Decision::CallModel(call) => self.call_model(call).await?,
                Decision::RunTools(calls) => {
                    Box::pin(self.run_tools(calls)).instrument(span).await?
                }
                Decision::Await(awaited) => {
                    Box::pin(self.await_sub_agents(awaited))
                        .instrument(span)
                        .await?
                }
                Decision::Wait(asked) => {
                    Box::pin(self.wait_for_people(asked))
                        .instrument(span)
                        .await?
                }
                Decision::Summarise(long) => {
                    Box::pin(self.summarise(long)).instrument(span).await?
                }
            }
        }
    }

    async fn call_model(&mut self, call: ModelCall) -> Result<(), Interrupted> {
        if self.state.model_failure().is_some() {
            let delay = model_retry::delay_before_iteration(
                self.state.model_failures(),
                self.retry_at.take(),
                self.longest_pause(),
            );
            if self.control.pause(delay).await?.is_none() {
                return Ok(());
            }
            // The alert may have changed, and much time may have passed, during the delay.
            if self.append_updates().await? && self.state.stopped().is_some() {
                return Ok(());
            }
            self.append_pause().await?;
        }
        if self.must_wrap_up() {
            return Ok(());
        }
        self.control.permit()?;
        let allowed = self.iteration_time(call.purpose);
        self.iteration = Iteration::begun(&self.state, call.provider, allowed);
        self.attempt = self.attempts.first(self.state.iteration() + 1);
        let span = self.iteration.span();
        self.model_step(call).instrument(span).await
    }

    /// Calls the model and commits its answer.
    async fn model_step(&mut self, call: ModelCall) -> Result<(), Interrupted> {
        let Some(reply) = self.reply(call).await? else {
            return Ok(());
        };
        let requested = reply
            .answer
            .as_ref()
            .err()
            .and_then(model_retry::requested_delay);
        self.retry_at = requested.map(|delay| Instant::now() + delay);
        let call = self.call_record(call.purpose, reply.provider, reply.duration);
        let performed = self.absorb(reply.answer, call)?;
        Box::pin(self.commit(performed)).await
    }

    /// The record of a model call that has ended, still without its outcome.
    fn call_record(
        &self,
        purpose: Purpose,
        provider: ProviderPlan,
        duration: Duration,
    ) -> ModelCallRecord {
        ModelCallRecord {
            purpose,
            provider,
            entries_upto: u32::try_from(self.state.entries().len()).unwrap_or(u32::MAX),
            answer: None,
            error: None,
            failure: None,
            duration,
        }
    }

    /// The reply to a model call. A call that the provider refuses for a while is repeated, if the iteration has enough
    /// time. `None`: the run has to stop.
    async fn reply(&mut self, call: ModelCall) -> Result<Option<Reply>, Interrupted> {
        let mut waits = 0;
        let mut timeout = self.iteration.allowed;
        loop {
            let Some(reply) = self.ask(call, timeout).await? else {
                return Ok(None);
            };
            let delay = match &reply.answer {
                // A repetition would show watchers a second answer after the pieces of the first one.
                Err(error) if !reply.has_begun => {
                    model_retry::delay_within_iteration(error, waits, self.remaining())
                }
                Ok(_) | Err(_) => None,
            };
            let Some(delay) = delay else {
                return Ok(Some(reply));
            };
            tracing::info!(
                session_id = %self.lease.session_id, execution_id = %self.id, delay_secs = delay.as_secs_f64(),
                "model call delayed: the provider is at its limit"
            );
            let delay = delay.min(self.longest_pause());
            if self.control.pause(delay).await?.is_none() || self.must_wrap_up() {
                return Ok(None);
            }
            self.control.permit()?;
            waits += 1;
            self.attempt += 1;
            timeout = Duration::from_millis(millis(self.remaining()));
        }
    }

    /// Asks the model once. `None`: the run has to stop, or the time of the session is used up.
    async fn ask(
        &mut self,
        call: ModelCall,
        timeout: Duration,
    ) -> Result<Option<Reply>, Interrupted> {
        let Some(body) = request::of_step(&self.state, call) else {
            let missing = format!("the plan has no provider number {}", call.provider);
            return Err(ReleaseReason::Incompatible(missing).into());
        };
        let time = self.call_time(call.purpose, timeout);
        // Longer than the call may last until it is cut off: only this loop knows that such a cut is no failure.
        let request = ModelRequest::new(self.lease.session_id, self.id, body, time.longest);
        let provider = request.provider.clone();
        let asked_at = Instant::now();
        let deltas = Deltas::new(
            &self.ports.feed,
            self.first_delta(),
            self.state.plan().strategy,
        );
        let span = gen_ai::chat(&request);
        let asked = Box::pin(
            self.ports
                .model
                .generate(request, |kind, text| deltas.send(kind, text)),
        );
        let asked = asked.instrument(span.clone());
        let asked = time.wait(asked, || deltas.are_arriving());
        let asked = self.control.within(time.longest, asked);
        let answer = match self.control.unless_stopped(asked).await? {
            Some(CallEnd::Answered(answer)) => answer,
            Some(CallEnd::Late(after)) => Err(Box::pin(self.timed_out(after)).await),
            Some(CallEnd::Cut) => {
                // The next call of the iteration is another attempt for those who watch.
                self.attempts
                    .record(self.state.iteration() + 1, self.attempt);
                return Ok(None);
            }
            None => return Ok(None),
        };
        let duration = asked_at.elapsed();
        instruments::model_call(&provider.name, &answer, duration);
        gen_ai::answered(&span, &answer);
        Ok(Some(Reply {
            answer,
            provider,
            duration,
            has_begun: deltas.have_begun(),
        }))
    }

    /// The time that is left of the iteration.
    fn remaining(&self) -> Duration {
        self.iteration
            .allowed
            .saturating_sub(self.iteration.began.elapsed())
    }

    fn first_delta(&self) -> Delta {
        Delta {
            session_id: self.lease.session_id,
            execution_id: self.id,
            agent: Some(self.state.plan().name.clone()),
            epoch: self.lease.epoch,
            iteration: self.state.iteration() + 1,
            attempt: self.attempt,
            kind: DeltaKind::Text,
            offset: 0,
            delta: String::new(),
        }
    }

    /// Interprets a reply, and adds it to the record of its call.
    fn absorb(
        &self,
        reply: Result<Answer, ModelError>,
        mut call: ModelCallRecord,
    ) -> Result<Performed, Interrupted> {
        let mut measured = Measured {
            model_ms: millis(call.duration),
            ..Measured::default()
        };
        let entries = match reply {
            // No answer of the model: nothing is recorded, and another worker may reach the service.
            Err(ModelError::Unavailable(error)) => {
                return Err(ReleaseReason::ModelUnavailable(error).into());
            }
            Err(ModelError::Broke(error)) => return Err(ReleaseReason::ModelBroke(error).into()),
            Err(ModelError::Failed {
                code,
                message,
                timeout,
                provider,
            }) => {
                let status = &provider.status;
                tracing::info!(
                    session_id = %self.lease.session_id, execution_id = %self.id, code, provider_status = status,
                    "model call failed: {message}"
                );
                let error = CallError {
                    message: &message,
                    timeout,
                };
                let failed = absorb::failed(&self.state, &code, error);
                let mut words = vec![code.trim(), status.trim()];
                words.retain(|word| !word.is_empty());
                words.push(&message);
                call.error = Some(words.join(": "));
                measured.retryable = Some(provider.retryable);
                call.failure = Some(CallFailure { code, provider });
                fallback::or_switched(&self.state, failed)
            }
            Ok(answer) => {
                native::warn_if_unexpected(
                    self.lease.session_id,
                    self.id,
                    self.state.plan().strategy,
                    &answer,
                );
                instruments::calls_beyond(self.state.plan().limits.max_calls, answer.calls.len());
                let entries =
                    fallback::or_switched(&self.state, absorb::absorb(&self.state, answer.clone()));
                call.error = entries.iter().find_map(Entry::error).map(str::to_owned);
                call.answer = Some(answer);
                entries
            }
        };
        Ok(Performed {
            entries,
            measured,
            model_calls: vec![call],
            ..Performed::default()
        })
    }

    /// The error after a time-out: a failure if the LLM service is serving, otherwise the service is unavailable.
    async fn timed_out(&self, timeout: Duration) -> ModelError {
        let message = format!("no answer within {} s", timeout.as_secs_f64());
        // A service that is down says nothing about the model, so the call costs the session no failure.
        if self.ports.model.serving().await {
            ModelError::Failed {
                code: ErrorCode::Timeout.as_str().to_owned(),
                message,
                timeout: true,
                provider: ProviderFailure {
                    retryable: true,
                    ..ProviderFailure::default()
                },
            }
        } else {
            ModelError::Unavailable(message)
        }
    }

    fn iteration_timeout(&self) -> Duration {
        Duration::from_millis(self.state.plan().limits.iteration_timeout_ms)
    }

    /// The ids for log lines.
    fn ids(&self) -> Ids {
        Ids {
            session_id: self.lease.session_id,
            execution_id: self.id,
        }
    }
}
