//! Finds what nobody takes care of and does it: sessions past their deadline, alerts whose job is gone from the
//! stream, ends that are not published.
//!
//! Every worker sweeps. The store lets one of them at a time see a row, and everything here may be done twice: a claim
//! is fenced, a dead letter is stored once, two jobs of one alert find one place.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Retention;
use crate::engine::delivery::dispatch::Settings;
use crate::engine::delivery::settle::{SettleError, settle};
use crate::engine::delivery::settler::Settler;
use crate::engine::ports::{
    Claim, ClaimRequest, Claimed, DeadReason, Delivery, IdleAlert, Queue, Refusal, Sessions, StoreError, Sweep, Swept,
};
use crate::engine::run::control::Interrupted;
use crate::engine::run::registry::Running;
use crate::engine::run::session::end_early;
use crate::engine::world::{Ports, World};
use crate::investigation::chain::EarlyEnd;
use crate::investigation::ids::SessionId;
use crate::investigation::intake::headers::chosen_session_id;

/// Things of each kind that one sweep takes on.
const LIMIT: u32 = 100;
/// Of them at the same time: investigations come first.
const AT_ONCE: usize = 4;
/// Sweeps before something is taken for forgotten.
const PATIENCE: u32 = 4;
/// Rows of each kind that are deleted by one statement.
const ROWS: u32 = 500;
/// Such statements in one sweep.
const BATCHES: u32 = 10;
/// Between two of them.
const BATCH_PAUSE: Duration = Duration::from_millis(200);
/// A sweep that takes longer is broken off; what it left is found again.
const LONGEST: Duration = Duration::from_secs(120);

/// The sweeper of a worker.
#[derive(Debug)]
pub struct Sweeper<W: World, S, Q, D> {
    /// Adapters of the runs.
    pub ports: Ports<W>,
    /// Alerts and leases.
    pub sessions: Arc<S>,
    /// The stream of alerts.
    pub queue: Arc<Q>,
    /// What runs here.
    pub running: Arc<Running<D>>,
    /// What waits here until everything is on the stream.
    pub settler: Arc<Settler<S, W::Feed, D>>,
    /// How the worker deals with sessions.
    pub settings: Arc<Settings>,
    /// Time between two sweeps.
    pub interval: Duration,
    /// How long rows are kept.
    pub retention: Retention,
}

impl<W: World, S: Sessions, Q: Queue, D: Delivery> Sweeper<W, S, Q, D> {
    /// Sweeps until `end` is cancelled; the first time after a part of the interval, so that workers that start
    /// together do not sweep together.
    pub async fn run(self, end: CancellationToken) {
        let first = tokio::time::Instant::now() + self.interval.mul_f64(fastrand::f64());
        let mut ticks = tokio::time::interval_at(first, self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unavailable = false;
        let sweeping = async {
            let mut refused = false;
            loop {
                ticks.tick().await;
                unavailable = self.sweep(unavailable).await;
                if !unavailable && !self.retention.keeps_all() {
                    refused = self.prune(refused).await;
                }
            }
        };
        tokio::select! {
            () = end.cancelled() => {}
            () = sweeping => {}
        }
    }

    /// One sweep; returns whether the store was unavailable.
    async fn sweep(&self, was_unavailable: bool) -> bool {
        let min_age = self.interval.saturating_mul(PATIENCE);
        let found = match self.sessions.sweep(Sweep { interval: self.interval, min_age, limit: LIMIT }).await {
            Ok(found) => found,
            Err(error) => {
                if !was_unavailable {
                    tracing::warn!("nothing is swept: {error}");
                }
                return matches!(error, StoreError::Unavailable(_));
            }
        };
        // What is only not published yet goes last: it must not hold up the search for lost jobs.
        let (unsettled, first): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|swept| matches!(swept, Swept::Unsettled(_)));
        let all = first.into_iter().chain(unsettled);
        let mut troubles = Vec::new();
        let mut taken = stream::iter(all).map(|swept| self.take_care(swept)).buffer_unordered(AT_ONCE);
        let all = async {
            while let Some(done) = taken.next().await {
                troubles.extend(done.err());
            }
        };
        if tokio::time::timeout(LONGEST.min(self.interval.saturating_mul(PATIENCE)), all).await.is_err() {
            tracing::warn!("a sweep took too long: the rest of it is left to the next ones");
        }
        if let Some(first) = troubles.first() {
            tracing::warn!(count = troubles.len(), "some of what was swept has to wait: {first}");
        }
        false
    }

    /// Deletes what is old, for a short while; returns whether the store refused. Every worker does it: rows that another
    /// one deletes are passed over.
    async fn prune(&self, was_refused: bool) -> bool {
        for _ in 0..BATCHES {
            match self.sessions.prune(self.retention, ROWS).await {
                Ok(pruned) if pruned.rows.is_empty() => return false,
                Ok(pruned) => {
                    for (table, count) in pruned.rows {
                        metrics::counter!("tarsy_rows_pruned_total", "table" => table).increment(count);
                    }
                }
                Err(error) => {
                    if !was_refused {
                        tracing::warn!("nothing is pruned: {error}");
                    }
                    return true;
                }
            }
            tokio::time::sleep(BATCH_PAUSE).await; // pacing of batches
        }
        false
    }

    async fn take_care(&self, swept: Swept) -> Result<(), SettleError> {
        match swept {
            Swept::Overdue(session) => self.end(session).await,
            Swept::Idle(alert) if self.running.get(alert.alert_id).is_some() => Ok(()),
            Swept::Idle(alert) => self.look_after(alert).await,
            Swept::Unsettled(id) if self.settler.holds(id) => Ok(()),
            Swept::Unsettled(id) => {
                if settle(&*self.sessions, &*self.ports.feed, id).await?
                    != crate::engine::delivery::settle::Settled::NotOver
                {
                    metrics::counter!("tarsy_sweeps_total", "found" => "settled").increment(1);
                    tracing::info!(session_id = %id, "an end that was left behind is settled");
                }
                Ok(())
            }
        }
    }

    /// Past its deadline: nobody has to investigate it any more, with or without a broker.
    async fn end(&self, session: SessionId) -> Result<(), SettleError> {
        let request = ClaimRequest {
            worker: self.settings.worker,
            worker_name: self.settings.worker_name.clone(),
            token: Uuid::new_v4(),
            lease: self.settings.lease,
            stream_sequence: None,
            excuse: Duration::ZERO,
        };
        match self.sessions.claim(session, request).await? {
            Claim::Taken(claimed) => self.end_claimed(claimed).await?,
            Claim::Ended { settled: false } => {}
            Claim::Ended { settled: true } | Claim::Busy(_) | Claim::Incompatible | Claim::Unknown => return Ok(()),
        }
        settle(&*self.sessions, &*self.ports.feed, session).await.map(|_| ())
    }

    async fn end_claimed(&self, claimed: Claimed) -> Result<(), SettleError> {
        let session_id = claimed.lease.session_id;
        let end = if claimed.cancel_requested { EarlyEnd::Cancelled } else { EarlyEnd::Deadline };
        let reason = end.stop_reason();
        if !claimed.cancel_requested && !claimed.remaining.is_zero() {
            // The sweep and the claim do not agree: whoever has the job goes on.
            self.sessions.release(claimed.lease).await?;
            return Ok(());
        }
        match end_early(&self.ports, claimed.lease, end).await {
            Ok(()) => {
                metrics::counter!("tarsy_sweeps_total", "found" => "overdue").increment(1);
                tracing::info!(%session_id, reason = reason.as_str(), "session was ended by a sweep");
            }
            Err(Interrupted::Release(why)) => {
                tracing::debug!(%session_id, "session is not ended yet: {why}");
                self.sessions.release(claimed.lease).await?;
            }
            // Somebody else was faster.
            Err(Interrupted::LeaseLost | Interrupted::Panicked) => {}
        }
        Ok(())
    }

    /// Undecided, or open and nobody's: its job has to be in the stream.
    async fn look_after(&self, alert: IdleAlert) -> Result<(), SettleError> {
        let id = alert.alert_id;
        if let Some(refusal) = alert.undecided.then(|| refusal_of(&alert)).flatten() {
            self.sessions.give_up(id, refusal).await?;
            settle(&*self.sessions, &*self.ports.feed, id).await?;
            return Ok(());
        }
        if self.queue.holds(id, alert.stream_sequence).await? {
            return Ok(());
        }
        if alert.body.is_none() {
            tracing::debug!(session_id = %id, "a lost job cannot be queued again: its body is gone");
            return Ok(());
        }
        let sequence = self.queue.requeue(&alert).await?;
        metrics::counter!("tarsy_sweeps_total", "found" => "requeued").increment(1);
        tracing::warn!(session_id = %id, sequence, "the job of an alert was gone from the stream and is queued again");
        self.sessions.requeued(id, sequence).await?;
        Ok(())
    }
}

/// What the bus found wrong with an alert before it was stored: the worker that was to bury it is gone.
fn refusal_of(alert: &IdleAlert) -> Option<Refusal> {
    match chosen_session_id(&alert.headers) {
        Ok(Some(id)) if id != alert.alert_id => {
            let detail = format!("id {id} came before, with another body");
            Some(Refusal { reason: DeadReason::UsedId, detail })
        }
        Ok(_) => alert.body.is_none().then(|| Refusal {
            reason: DeadReason::TooLarge,
            detail: "the body is larger than what is taken".to_owned(),
        }),
        Err(invalid) => Some(invalid.into()),
    }
}

#[cfg(test)]
mod tests;
