//! Polls a condition until a deadline, with pauses, because the system under test needs the CPU.

use std::time::Duration;

use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns when `holds` returns true; panics with `what` at the timeout.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFnMut() -> bool) {
    eventually_within(TIMEOUT, what, holds).await;
}

/// Like [`eventually`], with another timeout.
pub(crate) async fn eventually_within(
    timeout: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> bool,
) {
    let limit = Instant::now() + timeout;
    while !holds().await {
        assert!(Instant::now() < limit, "not within {timeout:?}: {what}");
        tokio::time::sleep(POLL_INTERVAL).await; // interval between polls
    }
}
