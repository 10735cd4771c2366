//! The time of an execution: the soft deadline, and what is left for a model call and for the conclusion.
//!
//! The journal has the one fact that follows from it, `Stopped` with the reason `time_budget`. The instants are made
//! again by each owner of the session, from the deadline and the time at which the execution began.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Execution;
use crate::run::control::{Control, Interrupted};
use crate::run::performed::now;
use crate::world::World;
use tarsy_core::chain::Reserve;
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::entry::{Entry, StopReason};
use tarsy_core::execution::state::State;

/// The shortest time that is worth a conclusion. A worker that takes over with less asks no model any more.
pub(in crate::run) const SHORTEST_CONCLUSION: Duration = Duration::from_secs(10);

/// The instants of one execution of a session with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeBudget {
    /// The soft deadline: tools end, and no iteration begins behind it.
    pub(super) soft: Instant,
    /// A model call that was asked before is cut off here.
    mark: Instant,
    /// The time of the later stages begins.
    later: Instant,
    deadline: Instant,
}

impl TimeBudget {
    /// The instants for an execution in this state. `None`: it keeps no time, or its run has no deadline.
    pub(super) fn new(control: &Control, state: &State, whole: Reserve) -> Option<Self> {
        let deadline = control.deadline()?;
        if !state.plan().wraps_up() {
            return None;
        }
        let present = Instant::now();
        let age = state.began_at().map(|began| now() - began);
        let age = age.and_then(|age| age.to_std().ok()).unwrap_or_default();
        let remaining = deadline.saturating_duration_since(present) + age;
        let reserve = whole.within(remaining);
        // An instant that the clock of this machine does not have has passed.
        let before_deadline = |time| deadline.checked_sub(time).unwrap_or(present);
        Some(Self {
            soft: before_deadline(reserve.total()),
            mark: before_deadline(reserve.of_mark()),
            later: before_deadline(reserve.later),
            deadline,
        })
    }

    /// The time that a conclusion has now: up to that of the later stages. A conclusion that comes too late for that
    /// gets half of what remains, because without it no later stage begins.
    fn for_conclusion(self) -> Duration {
        let present = Instant::now();
        let before_later = self.later.saturating_duration_since(present);
        if before_later >= SHORTEST_CONCLUSION {
            return before_later;
        }
        let half = self.deadline.saturating_duration_since(present) / 2;
        before_later.max(half)
    }
}

/// The time limits of a model call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTime {
    /// After this time it has failed, unless its answer is still arriving.
    pub(super) usual: Duration,
    /// After this time it has failed.
    pub(super) longest: Duration,
    /// It is cut off here, which is no failure.
    cut: Option<Instant>,
}

/// The end of a model call.
pub(super) enum CallEnd<T> {
    Answered(T),
    /// It has failed after this time.
    Late(Duration),
    /// The time of the session is used up.
    Cut,
}

impl CallTime {
    /// Waits for a model call within its limits.
    pub(super) async fn wait<T>(
        self,
        asked: impl Future<Output = T>,
        is_arriving: impl Fn() -> bool,
    ) -> CallEnd<T> {
        let mut asked = pin!(asked);
        let began = Instant::now();
        for limit in [self.usual, self.longest] {
            let end = began + limit;
            let until = self.cut.map_or(end, |cut| cut.min(end));
            if let Ok(answer) = timeout_at(until, &mut asked).await {
                return CallEnd::Answered(answer);
            }
            if self.cut.is_some_and(|cut| cut <= end) {
                return CallEnd::Cut;
            }
            if limit == self.longest || !is_arriving() {
                return CallEnd::Late(limit);
            }
        }
        CallEnd::Late(self.longest)
    }
}

impl<W: World> Execution<W> {
    /// Whether nothing but a conclusion may begin any more, and the journal does not say so yet.
    pub(super) fn must_wrap_up(&self) -> bool {
        let is_late = self.time.is_some_and(|time| Instant::now() >= time.soft);
        is_late && self.state.may_run_out_of_time()
    }

    /// Records that the time is used up: an entry, so that every worker that replays the journal concludes.
    pub(super) async fn wrap_up(&mut self) -> Result<(), Interrupted> {
        self.append(vec![Entry::Stopped {
            reason: StopReason::TimeBudget,
        }])
        .await
    }

    /// The time limits of a model call that begins now. A conclusion has what remains for it.
    pub(super) fn call_time(&self, purpose: Purpose, usual: Duration) -> CallTime {
        let extended = if self.state.plan().wrap_up_ms > 0 {
            usual + self.iteration_timeout() / 2
        } else {
            usual
        };
        match self.time {
            Some(time) if purpose == Purpose::Conclusion => CallTime {
                usual,
                longest: extended.min(time.for_conclusion()).max(usual),
                cut: None,
            },
            Some(time) => CallTime {
                usual,
                longest: extended,
                cut: Some(time.mark),
            },
            None => CallTime {
                usual,
                longest: extended,
                cut: None,
            },
        }
    }

    /// The time of an iteration that begins now.
    pub(super) fn iteration_time(&self, purpose: Purpose) -> Duration {
        let usual = self.iteration_timeout();
        match self.time {
            Some(time) if purpose == Purpose::Conclusion => {
                let left = time.for_conclusion();
                if self.state.is_out_of_time() {
                    left
                } else {
                    usual.min(left)
                }
            }
            Some(_) | None => usual,
        }
    }

    /// The longest pause before the next model call: it ends at the soft deadline, and leaves half of its time to a
    /// conclusion.
    pub(super) fn longest_pause(&self) -> Duration {
        let usual = self.iteration_timeout();
        let Some(time) = self.time else { return usual };
        let left = if self.state.may_run_out_of_time() {
            time.soft.saturating_duration_since(Instant::now())
        } else {
            time.for_conclusion() / 2
        };
        usual.min(left)
    }

    /// Performs `work` up to the soft deadline. `None`: it is cut off there.
    pub(super) async fn before_soft_deadline<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match self.time {
            Some(time) => timeout_at(time.soft, work).await.ok(),
            None => Some(work.await),
        }
    }
}
