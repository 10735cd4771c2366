//! Heartbeats: in-progress acks that keep a message from being redelivered while no lease covers the work on it.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::ports::BrokerUnavailable;

/// Runs `work` and calls `heartbeat` once a period meanwhile. A heartbeat that fails delays nothing.
pub(super) async fn with_heartbeat<T, H>(
    period: Duration,
    heartbeat: impl Fn() -> H,
    work: impl Future<Output = T>,
) -> T
where
    H: Future<Output = Result<(), BrokerUnavailable>>,
{
    let beating = async {
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match tokio::time::timeout(period, heartbeat()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!("heartbeat not sent: {error}"),
                Err(_) => tracing::debug!("heartbeat not sent: no answer from the broker"),
            }
        }
    };
    tokio::select! {
        biased;
        done = work => done,
        never = beating => never,
    }
}
