//! How long a session stays in the queue after it was released because something did not work, and whether that was
//! an attempt.
//!
//! Each return costs a claim and an event. A service can refuse calls while its health says that it serves: then no
//! probe stops the worker, and without a growing delay session and worker would spin.
//!
//! What is unavailable is no session's fault. But a request can kill the LLM service, and a write can be refused for what
//! it says: such a session would come back until its deadline, and take the service down for all others each time. So the
//! third return in a row for its own doing, and each one after it, is counted as an attempt.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::investigation::ids::SessionId;

/// Longer than the probe takes to find out.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);
/// Older returns are forgotten: the session went on elsewhere.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Returns in a row for a session's own doing that are not counted: a service that is rolled out breaks a call, too.
const FREE: u32 = 2;

/// Why a session came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The LLM service was unavailable.
    Unavailable,
    /// The LLM service broke off during its call.
    Broke,
    /// The store refused its write.
    Refused,
}

/// What follows from a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    /// Until it comes again: doubled with each one in a row without a checkpoint between, from 5 s to 60 s.
    pub(crate) delay: Duration,
    /// It was an attempt.
    pub(crate) counts: bool,
}

/// The returns of the sessions that this process released.
#[derive(Debug, Default)]
pub struct Hesitation {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    returns: HashMap<SessionId, Returns>,
    /// When a run ended that had written something: then the LLM service worked for it.
    worked: HashMap<SessionId, Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Returns {
    count: u32,
    own_doing: u32,
    at: Instant,
    broke: bool,
}

impl Hesitation {
    /// A run has ended that wrote a checkpoint.
    pub(crate) fn worked(&self, session: SessionId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).worked.insert(session, Instant::now());
    }

    /// A session is released; `progressed`: it wrote a checkpoint since it was claimed.
    pub(crate) fn returned(&self, session: SessionId, progressed: bool, cause: Cause) -> Returned {
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.returns.retain(|_, returns| now.duration_since(returns.at) < FORGOTTEN);
        known.worked.retain(|_, at| now.duration_since(*at) < FORGOTTEN);
        let since = known.returns.get(&session).map_or(now, |returns| returns.at);
        let own_doing = match cause {
            Cause::Unavailable => false,
            Cause::Broke => known.is_alone(session, since),
            Cause::Refused => true,
        };
        let none = Returns { count: 0, own_doing: 0, at: now, broke: false };
        let returns = known.returns.entry(session).or_insert(none);
        if progressed {
            *returns = none;
        }
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(returns.count));
        returns.count = returns.count.saturating_add(1);
        returns.own_doing = returns.own_doing.saturating_add(u32::from(own_doing));
        (returns.at, returns.broke) = (now, cause == Cause::Broke);
        Returned { delay: doubled.min(LONGEST), counts: own_doing && returns.own_doing > FREE }
    }

    /// The session is over or goes its own way.
    pub(crate) fn forget(&self, session: SessionId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).returns.remove(&session);
    }
}

impl Known {
    /// Whether the service broke off for this session alone: it worked for another one since, or broke for no other. A
    /// service that breaks every call is not what one request does.
    fn is_alone(&self, session: SessionId, since: Instant) -> bool {
        let worked = self.worked.iter().any(|(other, at)| *other != session && *at >= since);
        let broke =
            |(other, returns): (&SessionId, &Returns)| *other != session && returns.broke && returns.at >= since;
        worked || !self.returns.iter().any(broke)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn session(number: u128) -> SessionId {
        SessionId(Uuid::from_u128(number))
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_doubles_to_a_minute_and_begins_anew_after_progress() {
        let hesitation = Hesitation::default();
        let delay = |id, progressed| hesitation.returned(session(id), progressed, Cause::Unavailable).delay;
        let told = [false, false, false, false, false, true, false].map(|progressed| delay(1, progressed).as_secs());
        assert_eq!(told, [5, 10, 20, 40, 60, 5, 10]);
        assert_eq!(delay(2, false), FIRST, "each session has its own");
        hesitation.forget(session(1));
        assert_eq!(delay(1, false), FIRST);
        tokio::time::advance(FORGOTTEN).await;
        assert_eq!(delay(1, false), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn from_the_third_return_in_a_row_for_its_own_doing_each_one_is_an_attempt() {
        for cause in [Cause::Broke, Cause::Refused] {
            let hesitation = Hesitation::default();
            let counts = |progressed, cause| hesitation.returned(session(1), progressed, cause).counts;
            let told = [false, false, false, false, true, false, false].map(|progressed| counts(progressed, cause));
            assert_eq!(told, [false, false, true, true, false, false, true], "{cause:?}");
            assert!(!counts(false, Cause::Unavailable), "what is unavailable is no attempt");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_breaks_off_for_every_session_is_no_attempt_of_any_until_it_works_for_another() {
        let hesitation = Hesitation::default();
        let round = async || {
            tokio::time::advance(Duration::from_secs(1)).await;
            [1, 2].map(|id| hesitation.returned(session(id), false, Cause::Broke).counts)
        };
        for _ in 0..5 {
            assert_eq!(round().await, [false, false]);
        }
        let mut counted = Vec::new();
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            hesitation.worked(session(3));
            counted.push(hesitation.returned(session(1), false, Cause::Broke).counts);
        }
        assert_eq!(counted.last(), Some(&true), "{counted:?}");
    }
}
