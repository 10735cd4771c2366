//! The gauges of what waits for people. The worker that reads the length of the queue exports them, too.
//!
//! A gauge that cannot be read keeps its value for a minute, because an alert must not end for one scrape. After that
//! it has no value: a worker that is cut off must not show for hours what it has read last.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::gauges::count;
use tarsy_bus::{Error, Nats, PeopleStream};
use tarsy_store::{Store, WaitingForPeople};

/// The longest time that the database may take for its gauges.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which a value is valid.
const LIFETIME: Duration = Duration::from_secs(60);
/// The delay of a worker without `approvals` that could never read the stream: its login may lack the right, and each
/// try is a line in the log of the broker.
const RIGHT_DELAY: Duration = Duration::from_secs(600);

/// The gauges of what waits for people.
pub(super) struct PeopleGauges {
    nats: Nats,
    store: Arc<Store>,
    /// Whether people decide, as the file of this worker says; that of others may say something else.
    people: PeopleStream,
    pending: LastRead,
    waiting: LastRead,
    next_try: Option<Instant>,
}

impl PeopleGauges {
    pub(super) fn new(nats: Nats, store: Arc<Store>, people: PeopleStream) -> Self {
        Self {
            nats,
            store,
            people,
            pending: LastRead::default(),
            waiting: LastRead::default(),
            next_try: None,
        }
    }

    /// Reads and exports the values.
    pub(super) async fn update(&mut self) {
        self.update_pending().await;
        // Where there is no stream, no person decides.
        if self.people == PeopleStream::Needed || self.pending.0.is_some() {
            self.update_waiting().await;
        }
        self.expire(Instant::now());
    }

    async fn update_pending(&mut self) {
        if self.next_try.is_some_and(|at| Instant::now() < at) {
            return;
        }
        match self.nats.pending_of_people().await {
            Ok(pending) => {
                self.pending = LastRead(Some(Instant::now()));
                metrics::gauge!("tarsy_decisions_pending").set(count(pending));
            }
            Err(Error::NoStream(_)) => {
                if self.pending.0.is_some() {
                    self.clear();
                }
            }
            Err(error) => {
                tracing::debug!(%error, "pending decisions not counted");
                let may_lack_right =
                    self.people == PeopleStream::Unused && self.pending.0.is_none();
                self.next_try = may_lack_right.then(|| Instant::now() + RIGHT_DELAY);
            }
        }
    }

    async fn update_waiting(&mut self) {
        match tokio::time::timeout(READ_TIMEOUT, self.store.waiting_for_people()).await {
            Ok(Ok(waiting)) => {
                self.waiting = LastRead(Some(Instant::now()));
                set_waiting(waiting);
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "sessions that wait for people not counted");
            }
            Err(_) => tracing::debug!("sessions that wait for people not counted in time"),
        }
    }

    /// Removes the values that are too old.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.pending.is_too_old(now) {
            clear_pending();
        }
        if self.waiting.is_too_old(now) {
            clear_waiting();
        }
    }

    /// The gauges of another worker are valid: those of this one have no value.
    pub(super) fn clear(&mut self) {
        self.pending = LastRead::default();
        self.waiting = LastRead::default();
        clear_pending();
        clear_waiting();
    }
}

/// The time of the last read that succeeded.
#[derive(Clone, Copy, Debug, Default)]
struct LastRead(Option<Instant>);

impl LastRead {
    fn is_too_old(self, now: Instant) -> bool {
        self.0.is_some_and(|at| now.duration_since(at) >= LIFETIME)
    }
}

fn clear_pending() {
    metrics::gauge!("tarsy_decisions_pending").set(f64::NAN);
}

fn set_waiting(waiting: WaitingForPeople) {
    metrics::gauge!("tarsy_approvals_open").set(count(waiting.requests));
    metrics::gauge!("tarsy_sessions_waiting").set(count(waiting.sessions));
    metrics::gauge!("tarsy_approval_oldest_ratio").set(waiting.oldest_ratio);
}

fn clear_waiting() {
    metrics::gauge!("tarsy_approvals_open").set(f64::NAN);
    metrics::gauge!("tarsy_sessions_waiting").set(f64::NAN);
    metrics::gauge!("tarsy_approval_oldest_ratio").set(f64::NAN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_value_is_too_old_a_minute_after_its_last_read() {
        assert!(!LastRead::default().is_too_old(Instant::now()));
        let read = LastRead(Some(Instant::now()));
        tokio::time::advance(LIFETIME - Duration::from_millis(1)).await;
        assert!(!read.is_too_old(Instant::now()));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(read.is_too_old(Instant::now()));
    }
}
