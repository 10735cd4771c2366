//! Keeps the leases of a worker alive: the database first, then the broker.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::control::Stop;
use super::outage::Outages;
use super::ports::{Delivery, Feed, Renewal, Sessions};
use super::running::{Run, Running};

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
    let renewing = async {
        loop {
            ticks.tick().await;
            renew((&*sessions, &outages), &running, &*feed, lease).await;
        }
    };
    tokio::select! {
        () = renewing => {}
        () = end.cancelled() => {}
    }
}

async fn renew<S: Sessions, D: Delivery, F: Feed>(
    (sessions, outages): (&S, &Outages),
    running: &Running<D>,
    feed: &F,
    lease: Duration,
) {
    let runs: Vec<Run<D>> = running.all().into_iter().filter(|run| may_live_on(run, lease)).collect();
    if runs.is_empty() {
        outages.renewed(true);
        return;
    }
    let asked_at = Instant::now();
    let answers = sessions.renew(runs.iter().map(|run| run.lease).collect(), lease).await;
    outages.renewed(answers.is_ok());
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => {
            tracing::warn!("leases were not renewed: {error}");
            return;
        }
    };
    let renewed = runs.into_iter().zip(answers);
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
            feed.poke(run.lease.session_id);
            true
        }
        Renewal::Lost => {
            run.control.lose();
            false
        }
        // A statement holds the row: it renews the lease itself. Or the session is over and about to be settled.
        Renewal::Locked | Renewal::Ended => true,
    }
}
