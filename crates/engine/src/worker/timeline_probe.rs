//! `TimelineProbe`, which finds out whether the timeline stream takes events.
//!
//! The stream can refuse events while the stream of alerts works: each has separate copies and limits. Investigations
//! continue then, because their events are in the store; only settlements wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::delivery::timeline::Timeline;
use crate::ports::Feed;

/// The time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// Probes the timeline stream every two seconds, and shows its state in a metric and its changes in the log.
#[derive(Debug)]
pub struct TimelineProbe<F> {
    pub feed: Arc<F>,
    pub state: watch::Sender<Timeline>,
}

impl<F: Feed> TimelineProbe<F> {
    /// Probes until `end` is cancelled.
    pub async fn run(self, end: CancellationToken) {
        end.run_until_cancelled(self.probe_forever()).await;
    }

    async fn probe_forever(&self) {
        loop {
            let found = match self.feed.accepting().await {
                Ok(()) => Timeline::Accepting,
                Err(error) => Timeline::Unavailable(error.0),
            };
            let accepting = found == Timeline::Accepting;
            metrics::gauge!("tarsy_timeline_available").set(f64::from(u8::from(accepting)));
            let was_accepting = *self.state.borrow() == Timeline::Accepting;
            match &found {
                Timeline::Accepting if !was_accepting => {
                    tracing::info!("timeline stream takes events again")
                }
                Timeline::Unavailable(why) if was_accepting => tracing::warn!(
                    "timeline stream unavailable: investigations go on, their events are published later: {why}"
                ),
                Timeline::Accepting | Timeline::Unavailable(_) => {}
            }
            self.state
                .send_if_modified(|state| std::mem::replace(state, found.clone()) != found);
            tokio::time::sleep(PROBE_INTERVAL).await; // pacing of probes
        }
    }
}
