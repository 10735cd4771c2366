//! Keeps a message from being delivered again while something is done about it that no lease covers yet.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::ports::Delivery;

/// Does `work` and tells the broker every third of the lease that somebody is at it. A broker that does not answer
/// holds nothing up.
pub(super) async fn attended<D: Delivery, T>(delivery: &D, lease: Duration, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        never = keep_telling(delivery, lease / 3) => match never {},
    }
}

async fn keep_telling<D: Delivery>(delivery: &D, period: Duration) -> Infallible {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match tokio::time::timeout(period, delivery.progress()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("{error}"),
            Err(_) => tracing::debug!("the broker did not confirm in time that an alert is looked at"),
        }
    }
}
