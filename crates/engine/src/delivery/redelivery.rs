//! `RedeliveryBackoff`: how long a released session stays in the queue, and whether the release counts as an attempt.
//!
//! Each redelivery costs a claim and an event. A service can refuse calls while its health check succeeds: then no
//! probe pauses the worker, and without a growing delay the session would circulate without end.
//!
//! A session is not to blame for a service that is unavailable. But a request can kill the LLM service, and the store
//! can refuse the content of a write, or need longer for it than a statement may take: such a session would be
//! redelivered until its deadline, and take the service from all others each time. So the third release in a row for
//! which the session is to blame counts as an attempt, and each one after it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::run::control::ReleaseReason;
use tarsy_core::ids::SessionId;

/// The first delay is longer than the probe takes to notice an outage.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(5),
    max: Duration::from_secs(60),
};
/// Older releases are forgotten: another worker runs the session.
const MAX_AGE: Duration = Duration::from_secs(600);
/// Releases in a row that count as no attempt, although the session is to blame: a rollout of a service breaks calls,
/// too.
const MAX_FREE_RELEASES: u32 = 2;

/// The consequences of a release for the redelivery of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redelivery {
    /// The time until the redelivery: from 5 s to 60 s, doubled with each release in a row without a checkpoint
    /// between.
    pub delay: Duration,
    pub(crate) counts_as_attempt: bool,
}

/// The releases of this process, by session.
#[derive(Debug, Default)]
pub struct RedeliveryBackoff {
    history: Mutex<History>,
}

#[derive(Debug, Default)]
struct History {
    releases: HashMap<SessionId, Releases>,
    /// The time when a run ended that had written a checkpoint: the LLM service worked for it, and so did the store.
    progressed: HashMap<SessionId, Instant>,
    /// The time when the store finished the admission of an alert.
    admitted: HashMap<SessionId, Instant>,
}

/// Releases of one session in a row.
#[derive(Clone, Copy, Debug)]
struct Releases {
    count: u32,
    to_blame: u32,
    last_at: Instant,
    model_broke: bool,
}

impl RedeliveryBackoff {
    /// A run has ended that wrote a checkpoint.
    pub fn progressed(&self, session: SessionId) {
        let mut history = self.history.lock();
        history.progressed.insert(session, Instant::now());
        if let Some(releases) = history.releases.get_mut(&session) {
            releases.count = 0;
            releases.to_blame = 0;
        }
    }

    /// The store has finished the admission of an alert.
    pub(crate) fn admitted(&self, alert: SessionId) {
        let mut history = self.history.lock();
        history.releases.remove(&alert);
        history.admitted.insert(alert, Instant::now());
    }

    /// A session, or an alert without one, is released. `None`: no call and no write has failed, so the next failure
    /// counts as the first one.
    pub(crate) fn released(
        &self,
        session: SessionId,
        reason: &ReleaseReason,
    ) -> Option<Redelivery> {
        let now = Instant::now();
        let mut history = self.history.lock();
        let is_recent = |at: Instant| now.duration_since(at) < MAX_AGE;
        history
            .releases
            .retain(|_, releases| is_recent(releases.last_at));
        history.progressed.retain(|_, at| is_recent(*at));
        history.admitted.retain(|_, at| is_recent(*at));
        let since = history
            .releases
            .get(&session)
            .map_or(now, |releases| releases.last_at);
        let is_to_blame = match reason {
            ReleaseReason::ModelUnavailable(_) => false,
            ReleaseReason::ModelBroke(_) => history.broke_for_this_alone(session, since),
            ReleaseReason::StoreTimedOut(_) => history.store_worked_for_another(session, now),
            ReleaseReason::Refused(_) => true,
            ReleaseReason::Drain
            | ReleaseReason::StoreUnavailable(_)
            | ReleaseReason::StoreBehind(_)
            | ReleaseReason::Incompatible(_) => {
                history.releases.remove(&session);
                return None;
            }
        };
        let none = Releases {
            count: 0,
            to_blame: 0,
            last_at: now,
            model_broke: false,
        };
        let releases = history.releases.entry(session).or_insert(none);
        let delay = BACKOFF.ceiling(releases.count);
        releases.count = releases.count.saturating_add(1);
        releases.to_blame = releases.to_blame.saturating_add(u32::from(is_to_blame));
        releases.last_at = now;
        releases.model_broke = matches!(reason, ReleaseReason::ModelBroke(_));
        Some(Redelivery {
            delay,
            counts_as_attempt: is_to_blame && releases.to_blame > MAX_FREE_RELEASES,
        })
    }

    /// The session has ended, or its lease is lost.
    pub fn forget(&self, session: SessionId) {
        self.history.lock().releases.remove(&session);
    }
}

impl History {
    /// Whether the store has worked for another session since the last release of this one, or in the last minute
    /// before its first one. When the store is slow for all sessions, none of them is to blame.
    fn store_worked_for_another(&self, session: SessionId, now: Instant) -> bool {
        let last = self.releases.get(&session).map(|releases| releases.last_at);
        let since = last.or_else(|| now.checked_sub(BACKOFF.max)).unwrap_or(now);
        self.progressed
            .iter()
            .chain(&self.admitted)
            .any(|(other, at)| *other != session && *at > since)
    }

    /// Whether the LLM service broke off for this session alone: since then it worked for another one, or broke for no
    /// other. One request does not break every call of a service.
    fn broke_for_this_alone(&self, session: SessionId, since: Instant) -> bool {
        let worked = self
            .progressed
            .iter()
            .any(|(other, at)| *other != session && *at >= since);
        let broke_for_another = self.releases.iter().any(|(other, releases)| {
            *other != session && releases.model_broke && releases.last_at >= since
        });
        worked || !broke_for_another
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    fn unavailable() -> ReleaseReason {
        ReleaseReason::ModelUnavailable(String::new())
    }

    fn broke() -> ReleaseReason {
        ReleaseReason::ModelBroke(String::new())
    }

    /// The redelivery after each of these releases of session 1: `true` after a checkpoint.
    fn released(progress: [bool; 7], reason: &ReleaseReason) -> [Redelivery; 7] {
        let backoff = RedeliveryBackoff::default();
        progress.map(|progress| {
            if progress {
                backoff.progressed(session(1));
            }
            backoff.released(session(1), reason).unwrap()
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_doubles_to_a_minute_and_begins_anew_after_progress() {
        let progress = [false, false, false, false, false, true, false];
        let redeliveries = released(progress, &unavailable());
        assert_eq!(
            redeliveries.map(|redelivery| redelivery.delay.as_secs()),
            [5, 10, 20, 40, 60, 5, 10]
        );

        let backoff = RedeliveryBackoff::default();
        let delay = |id| backoff.released(session(id), &unavailable()).unwrap().delay;
        assert_eq!((delay(1), delay(1)), (BACKOFF.first, 2 * BACKOFF.first));
        assert_eq!(delay(2), BACKOFF.first, "each session has its own");
        backoff.forget(session(1));
        assert_eq!(delay(1), BACKOFF.first);
        assert_eq!(backoff.released(session(1), &ReleaseReason::Drain), None);
        assert_eq!(
            delay(1),
            BACKOFF.first,
            "a release without a fault ends the row"
        );
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(delay(1), BACKOFF.first);
    }

    #[tokio::test(start_paused = true)]
    async fn each_release_that_a_session_is_to_blame_for_is_an_attempt_from_the_third_on() {
        let progress = [false, false, false, false, true, false, false];
        let counts = |reason: &ReleaseReason| {
            released(progress, reason).map(|redelivery| redelivery.counts_as_attempt)
        };
        for reason in [broke(), ReleaseReason::Refused(String::new())] {
            assert_eq!(
                counts(&reason),
                [false, false, true, true, false, false, true],
                "{reason:?}"
            );
        }
        assert_eq!(counts(&unavailable()), [false; 7]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_statement_counts_from_the_third_on_if_the_store_works_for_others() {
        let backoff = RedeliveryBackoff::default();
        let slow = ReleaseReason::StoreTimedOut(String::new());
        let counts = |id| {
            backoff
                .released(session(id), &slow)
                .unwrap()
                .counts_as_attempt
        };
        for _ in 0..5 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!([1, 2].map(counts), [false, false], "it is slow for both");
        }
        // Another alert is admitted before each time but the second.
        let mut counted = Vec::new();
        for others in [true, false, true, true, true] {
            tokio::time::advance(Duration::from_secs(1)).await;
            if others {
                backoff.admitted(session(3));
            }
            counted.push(counts(1));
        }
        assert_eq!(counted, [false, false, false, true, true]);
        tokio::time::advance(Duration::from_secs(1)).await;
        backoff.progressed(session(1));
        backoff.progressed(session(3));
        assert!(!counts(1), "a checkpoint begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_breaks_off_for_all_sessions_counts_for_none_until_it_works_again() {
        let backoff = RedeliveryBackoff::default();
        let counts = |id| {
            backoff
                .released(session(id), &broke())
                .unwrap()
                .counts_as_attempt
        };
        for _ in 0..5 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!([1, 2].map(counts), [false, false]);
        }
        let mut counted = Vec::new();
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            backoff.progressed(session(3));
            counted.push(counts(1));
        }
        assert_eq!(counted.last(), Some(&true), "{counted:?}");
    }
}
