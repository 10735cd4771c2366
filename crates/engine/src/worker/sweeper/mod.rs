//! `Sweeper`, which finds orphaned rows and repairs them: sessions past their deadline, alerts whose message is gone
//! from the queue, ends that are not settled.
//!
//! Every worker sweeps. The store returns a row to one worker at a time, and each repair may be done twice: a claim is
//! fenced, a dead letter is stored once, two messages of one alert find one disposition.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::delivery::dispatcher::Dispatcher;
use crate::delivery::settle::{SettleError, Settled, settle};
use crate::ports::{
    Claim, Claimed, DeadReason, IdleAlert, Queue, Refusal, Sessions, StoreError, Sweep, Swept,
    WakeCause,
};
use crate::run::control::Interrupted;
use crate::run::early_end::end_early;
use crate::run::instruments;
use crate::world::World;
use tarsy_config::Retention;
use tarsy_core::chain::EarlyEnd;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers::chosen_session_id;

/// Limit of the rows of each kind that one sweep repairs.
const MAX_ROWS: u32 = 100;
/// Rows that are repaired at the same time: investigations come first.
const MAX_CONCURRENT: usize = 4;
/// Sweep intervals without a change before a row counts as orphaned.
const MIN_AGE_INTERVALS: u32 = 4;
/// Rows of each kind that are deleted by one statement.
const PRUNE_ROWS: u32 = 500;
/// Limit of the statements that delete rows in one sweep.
const PRUNE_BATCHES: u32 = 10;
/// Limit of the statements that add words to sessions in one sweep.
const WORDS_BATCHES: u32 = 20;
/// The time between two statements of these batches.
const BATCH_DELAY: Duration = Duration::from_millis(200);
/// A sweep that takes longer is cut off. Later sweeps find the rest again.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(120);

/// The sweeper of a worker.
#[derive(Debug)]
pub struct Sweeper<W: World> {
    dispatcher: Arc<Dispatcher<W>>,
    /// Time between two sweeps.
    interval: Duration,
    retention: Retention,
    /// The result of the last sweep, so that an outage is logged once.
    store_unavailable: bool,
    /// The result of the last prune, so that a refusal is logged once.
    prune_refused: bool,
    /// The result of the last completion of words, so that a refusal is logged once.
    words_refused: bool,
}

impl<W: World> Sweeper<W> {
    /// A sweeper that deletes rows which are older than `retention` keeps them.
    pub fn new(dispatcher: &Arc<Dispatcher<W>>, interval: Duration, retention: Retention) -> Self {
        Self {
            dispatcher: Arc::clone(dispatcher),
            interval,
            retention,
            store_unavailable: false,
            prune_refused: false,
            words_refused: false,
        }
    }

    fn sessions(&self) -> &W::Sessions {
        &self.dispatcher.ports.sessions
    }

    /// Sweeps until `end` is cancelled. The first sweep comes after a random part of the interval, so that workers that
    /// start together do not sweep together.
    pub async fn run(self, end: CancellationToken) {
        end.run_until_cancelled(self.sweep_forever()).await;
    }

    async fn sweep_forever(mut self) {
        let first = tokio::time::Instant::now() + self.interval.mul_f64(fastrand::f64());
        let mut ticks = tokio::time::interval_at(first, self.interval);
        // After a long sweep, the missed ones would follow at once and all find the same rows.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.sweep().await;
            if !self.store_unavailable && !self.retention.keeps_all() {
                self.prune_refused = self.prune().await.is_err();
            }
            if !self.store_unavailable {
                self.words_refused = self.complete_words().await.is_err();
            }
        }
    }

    async fn sweep(&mut self) {
        let min_age = self.interval.saturating_mul(MIN_AGE_INTERVALS);
        let sweep = Sweep {
            interval: self.interval,
            min_age,
            limit: MAX_ROWS,
        };
        let found = match self.sessions().sweep(sweep).await {
            Ok(found) => found,
            Err(error) => {
                if !self.store_unavailable {
                    tracing::warn!("sweep failed: {error}");
                }
                self.store_unavailable =
                    matches!(error, StoreError::Unavailable(_) | StoreError::TimedOut(_));
                return;
            }
        };
        self.store_unavailable = false;
        // Settlements go last: they must not delay the search for lost messages.
        let (unsettled, urgent): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|swept| matches!(swept, Swept::Unsettled(_)));
        let all = stream::iter(urgent.into_iter().chain(unsettled));
        let mut errors = Vec::new();
        let mut repairs = all
            .map(|swept| self.repair(swept))
            .buffer_unordered(MAX_CONCURRENT);
        let repairing = async {
            while let Some(done) = repairs.next().await {
                errors.extend(done.err());
            }
        };
        let limit = SWEEP_TIMEOUT.min(min_age);
        if tokio::time::timeout(limit, repairing).await.is_err() {
            tracing::warn!("sweep cut off: it took too long");
        }
        if let Some(first) = errors.first() {
            tracing::warn!(
                count = errors.len(),
                "orphaned rows not repaired yet: {first}"
            );
        }
    }

    /// Deletes some old rows. Every worker does so: rows that another one deletes now are skipped.
    async fn prune(&self) -> Result<(), StoreError> {
        for _ in 0..PRUNE_BATCHES {
            let pruned = self.sessions().prune(self.retention, PRUNE_ROWS).await;
            let pruned = pruned.inspect_err(|error| {
                if !self.prune_refused {
                    tracing::warn!("prune failed: {error}");
                }
            })?;
            if pruned.rows.is_empty() {
                break;
            }
            for (table, count) in pruned.rows {
                metrics::counter!("tarsy_rows_pruned_total", "table" => table).increment(count);
            }
            tokio::time::sleep(BATCH_DELAY).await; // pacing of batches
        }
        Ok(())
    }

    /// Gives words to sessions that lack them: those of earlier versions. Every worker does so; a session that gets
    /// them twice gets the same ones.
    async fn complete_words(&self) -> Result<(), StoreError> {
        for _ in 0..WORDS_BATCHES {
            let worded = self.sessions().complete_words().await;
            let worded = worded.inspect_err(|error| {
                if !self.words_refused {
                    tracing::warn!("search words of older sessions not stored: {error}");
                }
            })?;
            if worded.sessions > 0 {
                tracing::info!(
                    sessions = worded.sessions,
                    "search words of older sessions stored: the search finds them now"
                );
            }
            if worded.is_all {
                break;
            }
            tokio::time::sleep(BATCH_DELAY).await; // pacing of batches
        }
        Ok(())
    }

    async fn repair(&self, swept: Swept) -> Result<(), SettleError> {
        let Dispatcher {
            ports,
            runs,
            settler,
            ..
        } = &*self.dispatcher;
        match swept {
            Swept::Overdue(session) => self.end(session).await,
            Swept::Idle(alert) if runs.get(alert.alert_id).is_some() => Ok(()),
            Swept::Idle(alert) => self.requeue(alert).await,
            Swept::Unsettled(id) if settler.holds(id) => Ok(()),
            Swept::Unsettled(id) => {
                if settle(ports, id).await? != Settled::NotOver {
                    metrics::counter!("tarsy_sweeps_total", "found" => "settled").increment(1);
                    tracing::info!(session_id = %id, "orphaned session settled");
                }
                Ok(())
            }
        }
    }

    /// Ends a session past its deadline. No worker has to run it any more, so this needs no message.
    async fn end(&self, session: SessionId) -> Result<(), SettleError> {
        // Only the holder of the lease may write the end, so a worker that still runs the session is not overtaken.
        let request = self.dispatcher.claim_request();
        match self.sessions().claim(session, request).await? {
            Claim::Taken(claimed) => self.end_claimed(claimed).await?,
            Claim::Ended { settled: false } => {}
            Claim::Ended { settled: true }
            | Claim::Busy(_)
            | Claim::Waiting
            | Claim::Incompatible
            | Claim::Unknown => return Ok(()),
        }
        settle(&self.dispatcher.ports, session).await.map(|_| ())
    }

    async fn end_claimed(&self, claimed: Claimed) -> Result<(), SettleError> {
        let session_id = claimed.lease.session_id;
        let ports = &self.dispatcher.ports;
        let end = if claimed.cancel_requested {
            EarlyEnd::Cancelled
        } else {
            EarlyEnd::Deadline
        };
        let reason = end.stop_reason();
        if !claimed.cancel_requested && !claimed.remaining.is_zero() {
            // The sweep and the claim disagree: the owner of the message continues with the session.
            ports.sessions.release(claimed.lease, "sweep").await?;
            return Ok(());
        }
        match end_early(ports, claimed.lease, end).await {
            Ok(ended) => {
                metrics::counter!("tarsy_sweeps_total", "found" => "overdue").increment(1);
                let took = self
                    .dispatcher
                    .settings
                    .limits
                    .session_timeout
                    .saturating_sub(claimed.remaining);
                instruments::session_ended(session_id, &ended, took);
                tracing::info!(%session_id, reason = reason.as_str(), "session ended by a sweep");
            }
            Err(Interrupted::Release(why)) => {
                tracing::debug!(%session_id, "session not ended yet: {why}");
                ports.sessions.release(claimed.lease, why.as_str()).await?;
            }
            // Another worker was faster; an end waits for no person.
            Err(Interrupted::LeaseLost | Interrupted::Panicked | Interrupted::Parked) => {}
        }
        Ok(())
    }

    /// Queues an alert again that is undecided, or open without an owner, and whose message is gone from the stream.
    async fn requeue(&self, alert: IdleAlert) -> Result<(), SettleError> {
        let id = alert.alert_id;
        let ports = &self.dispatcher.ports;
        if let Some(refusal) = alert.undecided.then(|| refusal_of(&alert)).flatten() {
            // In this order: the settlement publishes the dead letter that the row owes.
            ports.sessions.give_up(id, refusal).await?;
            settle(ports, id).await?;
            return Ok(());
        }
        if ports.queue.holds(id, alert.stream_sequence).await? {
            return Ok(());
        }
        if alert.body.is_none() {
            tracing::debug!(session_id = %id, "alert not queued again: its body is not stored");
            return Ok(());
        }
        // Queued before it is recorded: a worker that dies in between leaves a message too many, and not one too few.
        let sequence = ports.queue.requeue(&alert).await?;
        report_requeued(&alert, sequence);
        ports.sessions.requeued(id, sequence).await?;
        Ok(())
    }
}

/// Counts and logs a message that was queued again. A session that waited for people has none: its expiry and the
/// resolution of its alert are left to the sweeper, and only a decision is queued by the worker that records it.
fn report_requeued(alert: &IdleAlert, sequence: u64) {
    let id = alert.alert_id;
    if let Some(cause) = alert.woken_by {
        instruments::session_woken(cause);
    }
    match alert.woken_by {
        Some(WakeCause::Expiry) => {
            tracing::info!(session_id = %id, sequence, "session woken: a request for an approval has expired");
        }
        Some(WakeCause::Resolved) => {
            tracing::info!(session_id = %id, sequence, "session woken: its alert was resolved");
        }
        Some(WakeCause::Decision) | None => {
            metrics::counter!("tarsy_sweeps_total", "found" => "requeued").increment(1);
            tracing::warn!(session_id = %id, sequence, "lost message queued again");
        }
    }
}

/// The fault that the bus found in an alert. The worker that had to give it up is gone.
fn refusal_of(alert: &IdleAlert) -> Option<Refusal> {
    match chosen_session_id(&alert.headers) {
        Ok(Some(id)) if id != alert.alert_id => Some(Refusal::used_id(id)),
        Ok(_) => alert.body.is_none().then(|| Refusal {
            reason: DeadReason::TooLarge,
            detail: "the body is larger than what is taken".to_owned(),
        }),
        Err(invalid) => Some(invalid.into()),
    }
}

#[cfg(test)]
mod tests;
