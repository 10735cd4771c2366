//! `Control`, the handle by which the worker stops a run: a stop, a drain, a lost lease, a lease without a recent
//! renewal.
//!
//! The background tasks and the dispatcher write to it. The loops of the run check it before every effect.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::SetOnce;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Span;

use super::numbers::{KnownNumbers, Numbers};
use crate::ports::StoreError;
use tarsy_core::execution::entry::StopReason;

/// The reason why a run ended before its session did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// Another worker owns the session: its message is not answered.
    #[error("lease lost")]
    LeaseLost,
    /// An execution panicked: it counts as an attempt, as if the worker had died.
    #[error("an execution panicked")]
    Panicked,
    /// Every open execution waits for people: the session has no owner until one of them decides, or time passes.
    #[error("parked")]
    Parked,
    /// Another claim of the session continues with it.
    #[error("released: {0}")]
    Release(#[from] ReleaseReason),
}

/// The more serious of two results: lost lease > panic > release > parked > success; the first of equals.
pub(super) fn more_serious(
    first: Result<(), Interrupted>,
    second: Result<(), Interrupted>,
) -> Result<(), Interrupted> {
    let rank = |end: &Result<(), Interrupted>| match end {
        Ok(()) => 0,
        Err(Interrupted::Parked) => 1,
        Err(Interrupted::Release(_)) => 2,
        Err(Interrupted::Panicked) => 3,
        Err(Interrupted::LeaseLost) => 4,
    };
    if rank(&second) > rank(&first) {
        second
    } else {
        first
    }
}

/// Converts a failed call to the store into the reason for the end of the run.
impl From<StoreError> for Interrupted {
    fn from(error: StoreError) -> Self {
        Self::Release(match error {
            StoreError::LeaseLost { .. } | StoreError::Ended => return Self::LeaseLost,
            StoreError::Behind(error) => ReleaseReason::StoreBehind(error),
            StoreError::Conflict(error) | StoreError::Undecided(error) => {
                ReleaseReason::Incompatible(error)
            }
            StoreError::Unavailable(error) => ReleaseReason::StoreUnavailable(error),
            StoreError::TimedOut(error) => ReleaseReason::StoreTimedOut(error),
            StoreError::Refused(error) => ReleaseReason::Refused(error),
        })
    }
}

/// The reason why a session is released.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseReason {
    /// This worker shuts down.
    #[error("draining")]
    Drain,
    /// The LLM service is unavailable.
    #[error("llm service is unavailable: {0}")]
    ModelUnavailable(String),
    /// The LLM service broke off before it answered: it may have died of this very request.
    #[error("llm service broke off before it answered: {0}")]
    ModelBroke(String),
    /// The store refuses what the session writes, and would refuse it again.
    #[error("store refused a write: {0}")]
    Refused(String),
    /// The store does not finish a statement of the session, although it answers.
    #[error("store takes too long: {0}")]
    StoreTimedOut(String),
    /// The store is unavailable, or the lease could not be renewed in time.
    #[error("store is unavailable: {0}")]
    StoreUnavailable(String),
    /// The store has lost commits of this run.
    #[error("store has lost commits: {0}")]
    StoreBehind(String),
    /// The journal was written by a newer version, or two writers share a lease.
    #[error("cannot go on: {0}")]
    Incompatible(String),
}

impl ReleaseReason {
    /// The word in metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::ModelUnavailable(_) => "model_unavailable",
            Self::ModelBroke(_) => "model_broke",
            Self::Refused(_) => "store_refused",
            Self::StoreTimedOut(_) => "store_timed_out",
            Self::StoreUnavailable(_) => "store_unavailable",
            Self::StoreBehind(_) => "store_behind",
            Self::Incompatible(_) => "incompatible",
        }
    }
}

/// Longer than any call to the store, its retries included.
pub(crate) const STORE_BOUND: Duration = Duration::from_secs(60);
/// The longest time that a step may exceed its own bound before the run counts as stuck.
const STEP_MARGIN: Duration = Duration::from_secs(10);

/// The steps that a run performs now, each with the instant by which it has to be done.
#[derive(Debug, Default)]
struct Steps {
    next: u64,
    open: BTreeMap<u64, Instant>,
}

/// Stops one run. Clones stop the same run.
#[derive(Clone, Debug)]
pub struct Control {
    stop: Arc<SetOnce<StopReason>>,
    deadline: Arc<OnceLock<Instant>>,
    lost: CancellationToken,
    drain: CancellationToken,
    asked_at: Instant,
    renewed: Arc<Mutex<Instant>>,
    renewal_timeout: Duration,
    steps: Arc<Mutex<Steps>>,
    progressed: Arc<AtomicBool>,
    resumed_after_death: Arc<AtomicBool>,
    numbers: Arc<KnownNumbers>,
    span: Span,
}

impl Control {
    /// The control of a run whose lease was requested at `asked_at`. After `renewal_timeout` without a renewal, the run
    /// begins no call. `drain` is the process's own token.
    pub fn new(asked_at: Instant, renewal_timeout: Duration, drain: CancellationToken) -> Self {
        Self {
            stop: Arc::default(),
            deadline: Arc::default(),
            lost: CancellationToken::new(),
            drain,
            asked_at,
            renewed: Arc::new(Mutex::new(asked_at)),
            renewal_timeout,
            steps: Arc::default(),
            progressed: Arc::default(),
            resumed_after_death: Arc::default(),
            numbers: Arc::default(),
            span: Span::current(),
        }
    }

    /// The time since the lease was requested.
    pub fn age(&self) -> Duration {
        self.asked_at.elapsed()
    }

    /// The span in which the run began: for lines about it in tasks that serve all runs.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Performs one step of the run. When the step exceeds its bound and a margin, the lease is not renewed any more.
    pub async fn within<T>(&self, bound: Duration, step: impl Future<Output = T>) -> T {
        let number = {
            let mut steps = self.steps.lock();
            steps.next += 1;
            let number = steps.next;
            steps
                .open
                .insert(number, Instant::now() + bound + STEP_MARGIN);
            number
        };
        // Removes the step however the future ends.
        let _open = OpenStep {
            control: self,
            number,
        };
        step.await
    }

    /// The time that the run has been stuck in a step that exceeds its own bound.
    pub(crate) fn stuck_for(&self) -> Option<Duration> {
        let earliest = self.steps.lock().open.values().min().copied()?;
        Instant::now()
            .checked_duration_since(earliest)
            .filter(|late| !late.is_zero())
    }

    /// A checkpoint was committed.
    pub fn progressed(&self) {
        self.progressed.store(true, Ordering::Relaxed);
    }

    /// Whether a checkpoint was committed in this run.
    pub(crate) fn has_progressed(&self) -> bool {
        self.progressed.load(Ordering::Relaxed)
    }

    /// The store has this many updates of the session's alert.
    pub(crate) fn has_updates(&self, count: u32) {
        self.numbers.has_updates(count);
    }

    /// The number of the last known update of the session's alert.
    pub fn updates(&self) -> u32 {
        self.numbers.updates()
    }

    /// The session has an event with this number.
    pub(crate) fn has_events(&self, last: u32) {
        self.numbers.has_events(last);
    }

    /// Waits until the session has more events, or its alert more updates. Cancel safe.
    pub(super) async fn changed_since(&self, seen: Numbers) {
        self.numbers.grown_beyond(seen).await;
    }

    /// An earlier owner of the session died at the present checkpoint.
    pub(crate) fn resumed_after_death(&self) {
        self.resumed_after_death.store(true, Ordering::Relaxed);
    }

    /// Whether a crash now would be a further death at the same checkpoint.
    pub(crate) fn is_at_risk(&self) -> bool {
        self.resumed_after_death.load(Ordering::Relaxed) && !self.has_progressed()
    }

    /// Asks the run to stop: a person has cancelled the session.
    pub fn cancel(&self) {
        self.stop(StopReason::Cancelled);
    }

    /// Asks the run to stop. Later reasons are ignored.
    pub(super) fn stop(&self, why: StopReason) {
        self.stop.set(why).ok();
    }

    /// Asks the run to stop at its deadline, when `remaining` has passed. Dropping the handle stops the timer.
    pub(crate) fn stop_after(&self, remaining: Duration) -> AbortOnDropHandle<()> {
        let control = self.clone();
        let deadline = *self.deadline.get_or_init(|| Instant::now() + remaining);
        AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep_until(deadline).await; // the deadline itself
            control.stop(StopReason::Deadline);
        }))
    }

    /// The deadline of the session; `None` before [`stop_after`](Self::stop_after).
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline.get().copied()
    }

    /// The control of work within this run that has a deadline of its own. It stops with the run, at its deadline, or
    /// at once for the reason `stopped`. Dropping the handle stops the timer.
    pub(super) fn within_run(
        &self,
        deadline: Option<Instant>,
        stopped: Option<StopReason>,
    ) -> (Self, AbortOnDropHandle<()>) {
        let inner = Self {
            stop: Arc::default(),
            deadline: Arc::default(),
            ..self.clone()
        };
        if let Some(deadline) = deadline {
            inner.deadline.set(deadline).ok();
        }
        let has_passed = deadline.is_some_and(|deadline| deadline <= Instant::now());
        let at_once = stopped
            .or_else(|| self.stop_reason())
            .or_else(|| has_passed.then_some(StopReason::Deadline));
        if let Some(reason) = at_once {
            inner.stop(reason);
        }
        let outer = self.clone();
        let stopping = inner.clone();
        let timer = AbortOnDropHandle::new(tokio::spawn(async move {
            let passed = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await, // the deadline itself
                    None => std::future::pending().await,
                }
            };
            let reason = tokio::select! {
                biased;
                reason = outer.stop.wait() => *reason,
                () = passed => StopReason::Deadline,
            };
            stopping.stop(reason);
        }));
        (inner, timer)
    }

    /// The reason why the run was asked to stop.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop.get().copied()
    }

    /// Waits until the run is asked to stop. Cancel safe.
    pub async fn stopped(&self) {
        self.stop.wait().await;
    }

    /// Performs `work` unless the run is asked to stop or its lease is lost before; then `work` is dropped. `None`: the
    /// run has to stop.
    ///
    /// # Errors
    /// When the lease is lost.
    pub async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, Interrupted> {
        tokio::select! {
            // In this order: a run that is stopped already begins no work.
            biased;
            () = self.lost() => Err(Interrupted::LeaseLost),
            () = self.stopped() => Ok(None),
            done = work => Ok(Some(done)),
        }
    }

    /// Waits unless the run is asked to stop or its lease is lost before. `None`: the run has to stop. A drain ends the
    /// wait at once: the caller asks for a permit next.
    ///
    /// # Errors
    /// When the lease is lost.
    pub(super) async fn pause(&self, delay: Duration) -> Result<Option<()>, Interrupted> {
        self.pause_until(delay, std::future::pending()).await
    }

    /// Waits like [`pause`](Self::pause), at most until `changed` ends.
    ///
    /// # Errors
    /// When the lease is lost.
    pub(super) async fn pause_until(
        &self,
        delay: Duration,
        changed: impl Future<Output = ()>,
    ) -> Result<Option<()>, Interrupted> {
        let ended = async {
            tokio::select! {
                () = self.drain.cancelled() => {}
                () = changed => {}
            }
        };
        // The wait itself: it ends at the latest when the delay is over.
        let passed = tokio::time::timeout(delay, ended);
        Ok(self.unless_stopped(passed).await?.map(drop))
    }

    /// The lease is lost: the run ends at its next await and writes nothing more.
    pub fn lose(&self) {
        self.lost.cancel();
    }

    /// Waits until the lease is lost. Cancel safe.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// The lease was renewed by a statement that was sent at `asked_at`.
    pub fn renewed(&self, asked_at: Instant) {
        let mut renewed = self.renewed.lock();
        *renewed = (*renewed).max(asked_at);
    }

    /// Checks that a model or tool call may begin now.
    ///
    /// # Errors
    /// When the lease is lost, the worker drains, or the lease was not renewed for too long.
    pub fn permit(&self) -> Result<(), Interrupted> {
        if self.drain.is_cancelled() && !self.lost.is_cancelled() {
            return Err(ReleaseReason::Drain.into());
        }
        self.owned()
    }

    /// Checks that the lease is still good, for a call that is recorded as started. A drain does not stop such a call:
    /// the next worker would have to count it as lost.
    ///
    /// # Errors
    /// When the lease is lost or was not renewed for too long.
    pub fn owned(&self) -> Result<(), Interrupted> {
        if self.lost.is_cancelled() {
            return Err(Interrupted::LeaseLost);
        }
        let renewed = *self.renewed.lock();
        if renewed.elapsed() >= self.renewal_timeout {
            let error = format!("no renewal for {} s", renewed.elapsed().as_secs());
            return Err(ReleaseReason::StoreUnavailable(error).into());
        }
        Ok(())
    }
}

struct OpenStep<'c> {
    control: &'c Control,
    number: u64,
}

impl Drop for OpenStep<'_> {
    fn drop(&mut self) {
        self.control.steps.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_step_that_outlives_its_bound_is_stuck_until_it_ends() {
        let control = Control::new(
            Instant::now(),
            Duration::from_secs(20),
            CancellationToken::new(),
        );
        let bound = Duration::from_secs(30);
        let quick = Duration::from_secs(1);
        let step = control.within(bound, std::future::pending::<()>());
        let mut step = Box::pin(step);
        assert!(futures_util::poll!(step.as_mut()).is_pending());
        control.within(quick, async {}).await;
        tokio::time::advance(bound + STEP_MARGIN).await;
        assert_eq!(control.stuck_for(), None);
        tokio::time::advance(quick).await;
        assert_eq!(control.stuck_for(), Some(quick));
        drop(step);
        assert_eq!(control.stuck_for(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_begins_without_a_recent_renewal() {
        let control = Control::new(
            Instant::now(),
            Duration::from_secs(20),
            CancellationToken::new(),
        );
        tokio::time::advance(Duration::from_secs(19)).await;
        assert_eq!(control.permit(), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(
            control.permit(),
            Err(Interrupted::Release(ReleaseReason::StoreUnavailable(
                "no renewal for 20 s".to_owned()
            )))
        );
        control.renewed(Instant::now());
        assert_eq!(control.permit(), Ok(()));
    }

    #[tokio::test]
    async fn the_first_reason_to_stop_stays() {
        let control = Control::new(
            Instant::now(),
            Duration::from_secs(20),
            CancellationToken::new(),
        );
        control.stop(StopReason::Cancelled);
        control.stop(StopReason::Deadline);
        control.stopped().await;
        assert_eq!(control.stop_reason(), Some(StopReason::Cancelled));
    }
}
