//! Whether the timeline stream takes events. It can refuse them while the stream of alerts works: it has copies and a size
//! of its own. Investigations go on then, because their events are in the store; only settling waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::engine::ports::Feed;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(2);

/// How the timeline stream is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Timeline {
    /// It takes events, as far as is known.
    #[default]
    Accepting,
    /// It does not, and why.
    Unavailable(String),
}

/// Asks every two seconds until `end` is cancelled; shows what it finds in a metric and, when it changes, in the log.
pub async fn watch_timeline<F: Feed>(feed: Arc<F>, state: watch::Sender<Timeline>, end: CancellationToken) {
    let looking = async {
        loop {
            let found = match feed.accepting().await {
                Ok(()) => Timeline::Accepting,
                Err(error) => Timeline::Unavailable(error.0),
            };
            let accepting = found == Timeline::Accepting;
            metrics::gauge!("tarsy_timeline_available").set(f64::from(u8::from(accepting)));
            let was_accepting = *state.borrow() == Timeline::Accepting;
            match &found {
                Timeline::Accepting if !was_accepting => tracing::info!("timeline stream takes events again"),
                Timeline::Unavailable(why) if was_accepting => tracing::warn!(
                    "timeline stream unavailable: investigations go on, their events are published later: {why}"
                ),
                Timeline::Accepting | Timeline::Unavailable(_) => {}
            }
            state.send_if_modified(|state| std::mem::replace(state, found.clone()) != found);
            tokio::time::sleep(EVERY).await; // pacing of probes
        }
    };
    end.run_until_cancelled(looking).await;
}

/// Returns when the stream takes events again after it did not. Cancel safe.
pub(crate) async fn accepts_again(state: &mut watch::Receiver<Timeline>) {
    loop {
        if state.changed().await.is_err() {
            // The probe has ended, and with it everything that it could say.
            std::future::pending::<()>().await;
        }
        if *state.borrow_and_update() == Timeline::Accepting {
            return;
        }
    }
}
