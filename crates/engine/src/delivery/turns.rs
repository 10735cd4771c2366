//! `Turns`, in which what needs the timeline stream is tried again until it succeeds or the worker drains.
//!
//! The settler and the messages of parked sessions wait here, outside of the slots.

use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::acknowledgement::{Acknowledgement, jittered};
use super::settle::SettleError;
use super::timeline::{Timeline, accepts_again};
use crate::backoff::Backoff;
use tarsy_core::ids::SessionId;

/// Sessions that are tried at the same time.
const MAX_CONCURRENT: usize = 16;
/// The time between two tries of one session.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    max: Duration::from_secs(30),
};

/// The turns of sessions whose messages wait for the timeline stream.
#[derive(Debug)]
pub(super) struct Turns {
    free: Semaphore,
    timeline: watch::Receiver<Timeline>,
    drain: CancellationToken,
}

impl Turns {
    /// Tries again at once when `timeline` changes to accepting, and gives up when `drain` is cancelled.
    pub(super) fn new(timeline: watch::Receiver<Timeline>, drain: CancellationToken) -> Self {
        Self {
            free: Semaphore::new(MAX_CONCURRENT),
            timeline,
            drain,
        }
    }

    /// Tries until there is an acknowledgement. The message returns to the queue when the worker drains. The first
    /// failure is a warning that begins with `unfinished`, such as `session not settled yet`.
    pub(super) async fn until_done<F>(
        &self,
        id: SessionId,
        unfinished: &'static str,
        attempt: impl Fn() -> F,
    ) -> Acknowledgement
    where
        F: Future<Output = Result<Acknowledgement, SettleError>>,
    {
        let mut timeline = self.timeline.clone();
        let mut tries = 0_u32;
        loop {
            // A change of the timeline during this try counts for the next one.
            timeline.mark_unchanged();
            let turn = tokio::select! {
                turn = self.free.acquire() => turn,
                () = self.drain.cancelled(), if tries > 0 => return Acknowledgement::Nak(Duration::ZERO),
            };
            match attempt().await {
                Ok(acknowledgement) => return acknowledgement,
                Err(error) if tries == 0 => {
                    tracing::warn!(session_id = %id, "{unfinished}: {error}");
                }
                Err(error) => tracing::debug!(session_id = %id, tries, "{unfinished}: {error}"),
            }
            // One that has to wait must not hold up the others.
            drop(turn);
            tokio::select! {
                () = self.drain.cancelled() => return Acknowledgement::Nak(Duration::ZERO),
                () = tokio::time::sleep(jittered(BACKOFF.ceiling(tries))) => {} // pacing of tries
                () = accepts_again(&mut timeline) => {}
            }
            tries = tries.saturating_add(1);
        }
    }
}
