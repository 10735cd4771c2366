//! Keeps the leases of a worker alive: the database first, then the broker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::outage::Outages;
use crate::engine::ports::{Delivery, Feed, Renewal, Sessions};
use crate::engine::run::control::Stop;
use crate::engine::run::registry::{Run, Running};
use crate::investigation::ids::SessionId;

/// Renews every third of the lease until `end` is cancelled.
///
/// A lost lease takes the reins of its run and says nothing to the broker. A failed renewal changes nothing: the runs
/// find out by themselves when it was too long ago. A run whose present step has outlived its own bound is left out.
pub async fn renew_leases<S: Sessions, D: Delivery, F: Feed>(
    (sessions, outages): (Arc<S>, Arc<Outages>),
    running: Arc<Running<D>>,
    feed: Arc<F>,
    (lease, end): (Duration, CancellationToken),
) {
    let mut ticks = tokio::time::interval(lease / 3);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut waiting, mut waits) = (BTreeSet::new(), JoinSet::new());
    let renewing = async {
        loop {
            ticks.tick().await;
            while let Some(done) = waits.try_join_next() {
                match done {
                    Ok(session) => waiting.remove(&session),
                    // A panic: those that still wait are at worst waited for twice.
                    Err(_) => std::mem::take(&mut waiting).is_empty(),
                };
            }
            for run in renew((&*sessions, &outages), &running, &*feed, lease).await {
                if waiting.insert(run.lease.session_id) {
                    waits.spawn(wait_for_row((Arc::clone(&sessions), Arc::clone(&feed)), run, lease));
                }
            }
        }
    };
    tokio::select! {
        () = renewing => {}
        () = end.cancelled() => {}
    }
}

/// A row that many write to is never free at the moment of a renewal: this one waits for it, beside the others.
async fn wait_for_row<S: Sessions, D: Delivery, F: Feed>(
    (sessions, feed): (Arc<S>, Arc<F>),
    run: Run<D>,
    lease: Duration,
) -> SessionId {
    let (session_id, asked_at) = (run.lease.session_id, Instant::now());
    match sessions.renew_one(run.lease, lease).await {
        Ok(renewed @ Renewal::Renewed { .. }) => {
            apply(&run, renewed, asked_at, &*feed);
        }
        // The next renewal says more.
        Ok(Renewal::Locked | Renewal::Lost | Renewal::Ended) => {}
        Err(error) => tracing::warn!(%session_id, "a lease was not renewed: {error}"),
    }
    session_id
}

/// Returns those whose row was held by another statement.
async fn renew<S: Sessions, D: Delivery, F: Feed>(
    (sessions, outages): (&S, &Outages),
    running: &Running<D>,
    feed: &F,
    lease: Duration,
) -> Vec<Run<D>> {
    let runs: Vec<Run<D>> = running.all().into_iter().filter(|run| may_live_on(run, lease)).collect();
    if runs.is_empty() {
        outages.renewed(true);
        return Vec::new();
    }
    let asked_at = Instant::now();
    let answers = sessions.renew(runs.iter().map(|run| run.lease).collect(), lease).await;
    outages.renewed(answers.is_ok());
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => {
            tracing::warn!("leases were not renewed: {error}");
            return Vec::new();
        }
    };
    let renewed: Vec<(Run<D>, Renewal)> = runs.into_iter().zip(answers).collect();
    let locked = renewed.iter().filter(|(_, answer)| *answer == Renewal::Locked).map(|(run, _)| run.clone()).collect();
    let renewed = renewed.into_iter();
    let progress = renewed.filter_map(|(run, answer)| apply(&run, answer, asked_at, feed).then_some(run.delivery));
    // All at once and not for long: a slow broker must not hold up the next renewal.
    let told = futures_util::future::join_all(progress.map(|delivery| async move { delivery.progress().await }));
    match tokio::time::timeout(lease / 6, told).await {
        Ok(told) => {
            if let Some(error) = told.into_iter().find_map(Result::err) {
                tracing::warn!("{error}");
            }
        }
        Err(_) => tracing::warn!("the broker did not confirm in time that sessions are worked on"),
    }
    locked
}

/// Not so of a run that is stuck in a step: somebody else shall go on with its session. Once its lease has run out, its
/// reins are taken.
fn may_live_on<D>(run: &Run<D>, lease: Duration) -> bool {
    let Some(stuck_for) = run.control.stuck_for() else { return true };
    if stuck_for <= lease / 3 {
        let session_id = run.lease.session_id;
        tracing::error!(%session_id, "a step has outlived its own bound: the lease is left to run out");
    }
    if stuck_for > lease {
        run.control.lose();
    }
    false
}

/// Whether the broker is to be told that the session is being worked on.
fn apply<D: Delivery, F: Feed>(run: &Run<D>, answer: Renewal, asked_at: Instant, feed: &F) -> bool {
    match answer {
        Renewal::Renewed { cancel_requested, last_seq: _ } => {
            run.control.renewed(asked_at);
            if cancel_requested {
                run.control.stop(Stop::Cancelled);
            }
            // A joined alert may have added an event that only the table knows.
            feed.notify(run.lease.session_id);
            true
        }
        Renewal::Lost => {
            run.control.lose();
            false
        }
        // A statement holds the row. Most of them renew the lease themselves, but a join does not: without a recent
        // renewal the message must be free to come again, as the session is.
        Renewal::Locked => run.control.owned().is_ok(),
        // It is over and about to be settled.
        Renewal::Ended => true,
    }
}

#[cfg(test)]
mod tests;
