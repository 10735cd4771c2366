//! The renewal of this worker's leases: in the store first, then the heartbeats of their messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::delivery::dispatcher::Dispatcher;
use crate::delivery::outage::StoreCheck;
use crate::ports::{Delivery, Feed, Renewal, Sessions};
use crate::run::registry::RunHandle;
use crate::world::World;
use tarsy_core::ids::SessionId;

/// Heartbeats that wait for the broker at the same time.
const HEARTBEATS_AT_ONCE: usize = 1_000;

/// Renews all leases every third of the lease.
///
/// When a lease is lost, its run is stopped; its message is not answered. A failed renewal stops no run: the runs
/// notice by themselves when the last renewal is too long ago. A run stuck in one step is not renewed.
#[derive(Debug)]
pub struct LeaseRenewal<W: World>(pub Arc<Dispatcher<W>>);

type Run<W> = RunHandle<<W as World>::Delivery>;

impl<W: World> LeaseRenewal<W> {
    /// Renews until `end` is cancelled.
    pub async fn run(self, end: CancellationToken) {
        end.run_until_cancelled(self.renew_forever()).await;
    }

    async fn renew_forever(self) {
        let mut ticks = tokio::time::interval(self.0.lease() / 3);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waiting = BTreeSet::new();
        let mut waits = JoinSet::new();
        loop {
            ticks.tick().await;
            while let Some(done) = waits.try_join_next() {
                match done {
                    Ok(session) => waiting.remove(&session),
                    // After a panic, a row that is still waited for may be waited for twice.
                    Err(_) => std::mem::take(&mut waiting).is_empty(),
                };
            }
            for run in self.renew().await {
                if waiting.insert(run.lease.session_id) {
                    waits.spawn(Self(Arc::clone(&self.0)).renew_locked(run));
                }
            }
        }
    }

    /// Renews a lease whose row many statements write to, so that it is never free when all leases are renewed. Waits
    /// for the row while the other leases are renewed.
    async fn renew_locked(self, run: Run<W>) -> SessionId {
        let session_id = run.lease.session_id;
        let asked_at = Instant::now();
        let sessions = &self.0.ports.sessions;
        match sessions.renew_one(run.lease, self.0.lease()).await {
            Ok(renewed @ Renewal::Renewed { .. }) => {
                self.apply(&run, renewed, asked_at);
            }
            // The next renewal of all leases acts on these.
            Ok(Renewal::Locked | Renewal::Lost | Renewal::Ended) => {}
            Err(error) => {
                metrics::counter!("tarsy_lease_renewals_failed_total").increment(1);
                run.control
                    .span()
                    .in_scope(|| tracing::warn!(%session_id, "lease not renewed: {error}"));
            }
        }
        session_id
    }

    /// Renews all leases. Returns the runs whose row another statement holds.
    async fn renew(&self) -> Vec<Run<W>> {
        let Dispatcher {
            ports,
            runs,
            outages,
            ..
        } = &*self.0;
        let runs: Vec<_> = runs
            .all()
            .into_iter()
            .filter(|run| self.is_to_be_renewed(run))
            .collect();
        if runs.is_empty() {
            // Without a lease to renew, no renewal can have failed.
            outages.renewed(StoreCheck::Passed);
            return Vec::new();
        }
        let asked_at = Instant::now();
        let answers = ports
            .sessions
            .renew(runs.iter().map(|run| run.lease).collect(), self.0.lease())
            .await;
        outages.renewed(StoreCheck::from_result(&answers));
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                metrics::counter!("tarsy_lease_renewals_failed_total").increment(1);
                tracing::warn!("leases not renewed: {error}");
                return Vec::new();
            }
        };
        let mut locked = Vec::new();
        let mut owned = Vec::new();
        for (run, answer) in runs.into_iter().zip(answers) {
            if answer == Renewal::Locked {
                locked.push(run.clone());
            }
            if self.apply(&run, answer, asked_at) {
                owned.extend(run.delivery);
            }
        }
        self.send_heartbeats(owned).await;
        locked
    }

    /// Sends the heartbeats, for a short time: a slow broker must not delay the next renewal.
    async fn send_heartbeats(&self, deliveries: Vec<Arc<W::Delivery>>) {
        let sending = stream::iter(deliveries)
            .map(|delivery| async move { delivery.progress().await })
            .buffer_unordered(HEARTBEATS_AT_ONCE)
            .collect::<Vec<_>>();
        let Ok(sent) = tokio::time::timeout(self.0.lease() / 6, sending).await else {
            metrics::counter!("tarsy_heartbeats_failed_total").increment(1);
            tracing::warn!("heartbeats not sent: no answer from the broker");
            return;
        };
        if let Some(error) = sent.into_iter().find_map(Result::err) {
            metrics::counter!("tarsy_heartbeats_failed_total").increment(1);
            tracing::warn!("heartbeats not sent: {error}");
        }
    }

    /// A run stuck in one step is not renewed, so that another worker can take the session over; when its lease
    /// expires, the run is stopped.
    fn is_to_be_renewed(&self, run: &Run<W>) -> bool {
        let Some(stuck_for) = run.control.stuck_for() else {
            return true;
        };
        // One line for each stuck run: the next renewal comes a third of a lease later.
        if stuck_for <= self.0.lease() / 3 {
            let session_id = run.lease.session_id;
            run.control.span().in_scope(|| {
                tracing::error!(%session_id, "lease left to expire: the run is stuck in a step");
            });
        }
        if stuck_for > self.0.lease() {
            run.control.lose();
        }
        false
    }

    /// Applies an answer to its run. Returns whether the message gets a heartbeat.
    fn apply(&self, run: &Run<W>, answer: Renewal, asked_at: Instant) -> bool {
        match answer {
            Renewal::Renewed {
                cancel_requested,
                updates,
                last_seq,
            } => {
                run.control.renewed(asked_at);
                run.control.has_updates(updates);
                run.control.has_events(last_seq);
                if cancel_requested {
                    run.control.cancel();
                }
                // A joined alert may have added an event that only the table has.
                self.0
                    .ports
                    .feed
                    .notify_up_to(run.lease.session_id, last_seq);
                true
            }
            Renewal::Lost => {
                run.control.lose();
                false
            }
            // A statement holds the row. Most of them renew the lease themselves, but a join does not: without a recent
            // renewal both the session and its message must become free.
            Renewal::Locked => run.control.owned().is_ok(),
            // The session has ended and is about to be settled.
            Renewal::Ended => true,
        }
    }
}

#[cfg(test)]
mod tests;
