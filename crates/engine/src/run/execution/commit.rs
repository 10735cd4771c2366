//! Commits the checkpoints of an execution, and applies them to its state.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::approvals::closed_by;
use super::{Execution, sub_agents};
use crate::ports::{Appended, Checkpoint, ExecutionRecord, Feed, Journal, RunStatus, StoreError};
use crate::run::control::{Interrupted, ReleaseReason, STORE_BOUND};
use crate::run::instruments;
use crate::run::performed::{Performed, Written, now};
use crate::world::World;
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::entry::{Entry, Outcome};
use tarsy_core::execution::event_refs::RecordedEntry;
use tarsy_core::execution::recovery::{LostCall, sent_by};
use tarsy_core::projection::project;

/// Limit of the writes of a checkpoint that the store does not finish in time, before the session is released. Each has
/// its own retries.
const MAX_TIMED_OUT: u32 = 3;
/// Pause between two attempts to write while the store is unavailable.
const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);

impl<W: World> Execution<W> {
    /// Appends entries that no call has produced.
    pub(super) async fn append(&mut self, entries: Vec<Entry>) -> Result<(), Interrupted> {
        Box::pin(self.commit(Performed {
            entries,
            ..Performed::default()
        }))
        .await
    }

    /// Waits before a checkpoint is written again, unless the run has to stop.
    async fn pause_write(&self, checkpoint: u32, error: String) -> Result<(), Interrupted> {
        tracing::warn!(session_id = %self.lease.session_id, execution_id = %self.id, "checkpoint {checkpoint} delayed: the store is unavailable: {error}");
        let pause = tokio::time::sleep(STORE_RETRY_DELAY); // pace of the retries
        match self.control.unless_stopped(pause).await? {
            Some(()) => Ok(()),
            None => Err(ReleaseReason::StoreUnavailable(error).into()),
        }
    }

    /// Commits one checkpoint that rests on no decision of people, as [`write`](Self::write) does.
    pub(super) async fn commit(&mut self, performed: Performed) -> Result<(), Interrupted> {
        match self.write(performed).await? {
            Written::Committed => Ok(()),
            Written::Undecided(error) => Err(ReleaseReason::Incompatible(error).into()),
        }
    }

    /// Commits one checkpoint, unless the store lacks the decision of people that permits it. While the store is
    /// unavailable the checkpoint is kept and written again, until the store commits or refuses it, the lease is lost
    /// or the run is stopped: a short outage costs no model's answer. A store that answers, but does not finish this
    /// write, ends the run after some tries.
    pub(super) async fn write(&mut self, performed: Performed) -> Result<Written, Interrupted> {
        // Made once: a repeated write has the same id and number, so the store commits it at most once.
        let checkpoint = self.checkpoint(performed);
        let began = Instant::now();
        let mut timed_out = 0;
        let Appended {
            events: numbers,
            updates,
        } = loop {
            let write = self.ports.journal.append(self.lease, checkpoint.clone());
            match self.control.within(STORE_BOUND, write).await {
                Ok(appended) => break appended,
                Err(StoreError::TimedOut(error)) if timed_out < MAX_TIMED_OUT => {
                    timed_out += 1;
                    self.pause_write(checkpoint.number, error).await?;
                }
                Err(StoreError::Unavailable(error)) => {
                    self.pause_write(checkpoint.number, error).await?
                }
                Err(StoreError::Undecided(error)) => return Ok(Written::Undecided(error)),
                Err(error) => {
                    if matches!(error, StoreError::Behind(_)) {
                        self.remember().await;
                    }
                    return Err(error.into());
                }
            }
        };
        metrics::histogram!("tarsy_checkpoint_duration_seconds")
            .record(began.elapsed().as_secs_f64());
        self.control.progressed();
        self.control.has_updates(updates);
        let completed = checkpoint.entries.last().and_then(Entry::completed);
        self.record = ExecutionRecord {
            checkpoint: checkpoint.number,
            status: checkpoint.status,
            analysis: checkpoint
                .entries
                .iter()
                .rev()
                .find_map(Entry::analysis)
                .map(str::to_owned),
            error: checkpoint.error.clone(),
            mark: completed.and_then(|(mark, _)| mark),
            review: completed.and_then(|(_, review)| review.cloned()),
            ..self.record
        };
        self.attempts
            .record(checkpoint.iteration, checkpoint.attempt);
        let has_events = !checkpoint.events.is_empty();
        let ends = checkpoint
            .entries
            .iter()
            .any(|entry| matches!(entry, Entry::Ended { .. }));
        let facts = match checkpoint.entries.as_slice() {
            // The answer of a sub-agent is no analysis.
            [facts @ .., Entry::Ended { .. }] if self.record.agent_no == 0 => facts,
            facts => facts,
        };
        instruments::facts(self.ids(), &self.state, facts);
        for recorded in RecordedEntry::all(checkpoint.entries, numbers, Some(checkpoint.at)) {
            self.state.apply(recorded);
        }
        if ends {
            instruments::execution_ended(&self.state);
        }
        // After the commit: a watcher must not see an event that the store does not have.
        if has_events {
            self.ports.feed.committed(self.lease.session_id);
        }
        Ok(Written::Committed)
    }

    /// Stores the calls that this run has sent: the store has lost steps, and only this run knows all their calls.
    async fn remember(&self) {
        let calls = sent_by(&self.state).into_iter().map(|call| LostCall {
            execution_id: self.id,
            call,
        });
        let written = self
            .ports
            .journal
            .remember(self.lease.session_id, calls.collect());
        if let Err(error) = self.control.within(STORE_BOUND, written).await {
            tracing::warn!(session_id = %self.lease.session_id, execution_id = %self.id, %error, "calls of lost steps could not be stored");
        }
    }

    fn checkpoint(&self, performed: Performed) -> Checkpoint {
        let Performed {
            entries,
            measured,
            model_calls,
            tool_calls,
            asked,
            seen,
        } = performed;
        let closed = closed_by(&self.state, &entries, seen);
        let events = project(&self.state, &entries, &measured);
        let answers = model_calls
            .iter()
            .any(|call| call.purpose != Purpose::Summary);
        // An answer begins the next iteration; tool results and summaries belong to the one that runs.
        let iteration = self.state.iteration() + u32::from(answers);
        let attempt = if answers {
            self.attempt
        } else {
            self.attempts.count(iteration)
        };
        let (status, error) = status_after(&entries);
        let sub_agents = sub_agents::begun(self.state.plan(), &entries);
        Checkpoint {
            execution_id: self.id,
            number: self.record.checkpoint + 1,
            id: Uuid::new_v4(),
            iteration,
            attempt,
            status,
            error,
            at: now(),
            entries,
            events,
            model_calls,
            tool_calls,
            sub_agents,
            asked,
            closed,
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
