//! Keeps a message from being delivered again while something is done about it that no lease covers yet.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::engine::ports::{BrokerUnavailable, Delivery};

/// Does `work` and tells the broker every third of the lease that somebody is at it. A broker that does not answer
/// holds nothing up.
pub(super) async fn attended<D: Delivery, T>(delivery: &D, lease: Duration, work: impl Future<Output = T>) -> T {
    telling(lease / 3, || delivery.progress(), work).await
}

/// The same with any way to say it.
pub(super) async fn telling<T, P>(period: Duration, progress: impl Fn() -> P, work: impl Future<Output = T>) -> T
where
    P: Future<Output = Result<(), BrokerUnavailable>>,
{
    tokio::select! {
        biased;
        done = work => done,
        never = keep_telling(period, progress) => match never {},
    }
}

async fn keep_telling<P>(period: Duration, progress: impl Fn() -> P) -> Infallible
where
    P: Future<Output = Result<(), BrokerUnavailable>>,
{
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match tokio::time::timeout(period, progress()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("{error}"),
            Err(_) => tracing::debug!("the broker did not confirm in time that an alert is looked at"),
        }
    }
}
