//! The counted attempt to prepare an alert.
//!
//! The store counts each delivery before its body is decoded, so that an alert that kills its worker is counted, too.

use std::time::Duration;

use crate::ports::Sessions;
use tarsy_core::ids::SessionId;

/// The longest time that a refund may delay the acknowledgement.
const REFUND_TIMEOUT: Duration = Duration::from_secs(5);

/// One counted attempt to prepare an alert. A worker that dies leaves it counted.
#[must_use = "an attempt is decided, counted as failed, or refunded"]
pub(super) struct Attempt<'a, S> {
    pub(super) sessions: &'a S,
    pub(super) alert: SessionId,
    /// The number that the store has just counted, from 1.
    pub(super) number: u32,
}

impl<S: Sessions> Attempt<'_, S> {
    /// Whether an earlier worker has died, perhaps because of this alert.
    pub(super) fn is_suspect(&self) -> bool {
        self.number > 1
    }

    /// The alert has its disposition: the count has no meaning any more.
    pub(super) fn decided(self) {}

    /// The attempt failed as if the worker had died: it stays counted.
    pub(super) fn failed(self) {}

    /// Takes the attempt off the count: it ended neither in a death nor in a decision. When the store is unavailable,
    /// the attempt stays counted.
    pub(super) async fn refund(self) {
        let id = self.alert;
        match tokio::time::timeout(REFUND_TIMEOUT, self.sessions.refund_attempt(id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(session_id = %id, "attempt not refunded: {error}"),
            Err(_) => {
                tracing::debug!(session_id = %id, "attempt not refunded: no answer from the store")
            }
        }
    }
}
