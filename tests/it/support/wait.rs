//! Polls a condition with a deadline, gently: the machine is busy with what is waited for.

use std::time::Duration;

use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Returns when `holds` says true; a failed test with `what` when it never does.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFnMut() -> bool) {
    eventually_within(PATIENCE, what, holds).await;
}

/// The same with another patience.
pub(crate) async fn eventually_within(patience: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let limit = Instant::now() + patience;
    while !holds().await {
        assert!(Instant::now() < limit, "not within {patience:?}: {what}");
        tokio::time::sleep(BETWEEN_LOOKS).await; // pacing of looks
    }
}
