//! How long a session stays in the queue after it was handed back because the LLM service was away.
//!
//! Each return costs a claim and an event. A service can refuse calls while its health says that it serves: then no
//! probe stops the worker, and without a growing delay session and worker would spin.

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

/// The returns of the sessions that this process handed back.
#[derive(Debug, Default)]
pub struct Hesitation {
    returns: Mutex<HashMap<SessionId, (u32, Instant)>>,
}

impl Hesitation {
    /// The delay of this return: doubled with each one in a row without a checkpoint between, from 5 s to 60 s.
    pub(super) fn delay(&self, session: SessionId, progressed: bool) -> Duration {
        let now = Instant::now();
        let mut returns = self.returns.lock().unwrap_or_else(PoisonError::into_inner);
        returns.retain(|_, (_, at)| now.duration_since(*at) < FORGOTTEN);
        let (count, at) = returns.entry(session).or_insert((0, now));
        *count = if progressed { 0 } else { *count };
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(*count));
        *count = count.saturating_add(1);
        *at = now;
        doubled.min(LONGEST)
    }

    /// The session is over or goes its own way.
    pub(super) fn forget(&self, session: SessionId) {
        self.returns.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_delay_doubles_to_a_minute_and_begins_anew_after_progress() {
        let (hesitation, session) = (Hesitation::default(), SessionId(Uuid::from_u128(1)));
        let mut secs = |progressed| hesitation.delay(session, progressed).as_secs();
        let told: Vec<u64> = [false, false, false, false, false, true, false].into_iter().map(&mut secs).collect();
        assert_eq!(told, [5, 10, 20, 40, 60, 5, 10]);
        assert_eq!(hesitation.delay(SessionId(Uuid::from_u128(2)), false), FIRST, "each session has its own");
        hesitation.forget(session);
        assert_eq!(hesitation.delay(session, false), FIRST);
        tokio::time::advance(FORGOTTEN).await;
        assert_eq!(hesitation.delay(session, false), FIRST);
    }
}
