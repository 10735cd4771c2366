//! The gauges of the queue and of what waits for people, which one worker at a time exports.
//!
//! Every worker publishes its status. The live worker with the lowest id reads the length of the queue; the others
//! export nothing about it. While two workers disagree both export the same values, or for one interval none does.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use futures_util::StreamExt as _;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::gauges::count;
use super::people_gauges::PeopleGauges;
use tarsy_bus::{Backlog, Nats, Priority};
use tarsy_core::ids::WorkerId;
use tarsy_engine::ports::WorkerStatus;

/// The time between two reads of the queue's backlog, each of which is five requests to the broker.
const QUEUE_INTERVAL: Duration = Duration::from_secs(15);
/// A worker whose status is older has ended: it publishes one every five seconds.
const STATUS_LIFETIME: Duration = Duration::from_secs(12);
/// The number of workers whose status is kept at most.
const MAX_WORKERS: usize = 10_000;
/// The delay before a failed subscription is repeated.
const SUBSCRIBE_DELAY: Duration = Duration::from_secs(5);

/// The gauges of the length of the queue.
pub(super) struct QueueGauges {
    pub(super) nats: Nats,
    pub(super) worker: WorkerId,
    pub(super) people: PeopleGauges,
}

impl QueueGauges {
    /// Updates the gauges until `end` is cancelled.
    pub(super) async fn run(self, end: CancellationToken) {
        end.run_until_cancelled(self.update_forever()).await;
    }

    async fn update_forever(mut self) {
        let mut election = Election {
            own: self.worker,
            seen: BTreeMap::new(),
        };
        let mut ticks = tokio::time::interval(QUEUE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut exports = false;
        loop {
            let mut statuses = match self.nats.worker_statuses().await {
                Ok(statuses) => statuses,
                Err(error) => {
                    tracing::debug!(%error, "status of other workers not read");
                    self.people.expire(Instant::now());
                    tokio::time::sleep(SUBSCRIBE_DELAY).await; // pacing of the retries
                    continue;
                }
            };
            loop {
                tokio::select! {
                    _ = ticks.tick() => exports = self.update(&mut election).await,
                    status = statuses.next() => {
                        let Some(status) = status else { break };
                        election.receive(&status, Instant::now());
                        if election.is_own(Instant::now()) != exports {
                            exports = self.update(&mut election).await;
                        }
                    },
                }
            }
        }
    }

    /// Returns whether this worker exports the gauges.
    async fn update(&mut self, election: &mut Election) -> bool {
        if !election.is_own(Instant::now()) {
            clear();
            self.people.clear();
            return false;
        }
        match self.nats.backlog().await {
            Ok(backlog) => set(&backlog),
            // The timestamp of the last read shows the failure.
            Err(error) => tracing::debug!(%error, "queue gauges not updated"),
        }
        self.people.update().await;
        true
    }
}

/// The workers that have published a status of late.
#[derive(Debug)]
struct Election {
    own: WorkerId,
    seen: BTreeMap<WorkerId, Instant>,
}

impl Election {
    /// A worker that drains takes no part.
    fn receive(&mut self, status: &WorkerStatus, at: Instant) {
        if status.state == "draining" {
            self.seen.remove(&status.worker_id);
        } else if self.seen.len() < MAX_WORKERS || self.seen.contains_key(&status.worker_id) {
            self.seen.insert(status.worker_id, at);
        }
    }

    /// Whether this worker has the lowest id. Without the right to read any status it takes itself for the only one.
    fn is_own(&mut self, now: Instant) -> bool {
        self.seen
            .retain(|_, at| now.duration_since(*at) < STATUS_LIFETIME);
        self.seen
            .keys()
            .next()
            .is_none_or(|lowest| *lowest == self.own)
    }
}

fn set(backlog: &[Backlog]) {
    for queue in backlog {
        let priority = queue.priority.as_str();
        let oldest = queue.oldest.unwrap_or_default().as_secs_f64();
        metrics::gauge!("tarsy_queue_pending", "priority" => priority).set(count(queue.pending));
        metrics::gauge!("tarsy_queue_in_progress", "priority" => priority)
            .set(count(queue.in_progress));
        metrics::gauge!("tarsy_queue_oldest_alert_age_seconds", "priority" => priority).set(oldest);
    }
    let now = u64::try_from(Utc::now().timestamp_millis()).unwrap_or_default();
    metrics::gauge!("tarsy_queue_poll_timestamp_seconds")
        .set(Duration::from_millis(now).as_secs_f64());
}

/// The gauges of another worker are valid: those of this one have no value.
fn clear() {
    for priority in Priority::ALL.map(Priority::as_str) {
        metrics::gauge!("tarsy_queue_pending", "priority" => priority).set(f64::NAN);
        metrics::gauge!("tarsy_queue_in_progress", "priority" => priority).set(f64::NAN);
        metrics::gauge!("tarsy_queue_oldest_alert_age_seconds", "priority" => priority)
            .set(f64::NAN);
    }
    metrics::gauge!("tarsy_queue_poll_timestamp_seconds").set(f64::NAN);
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn status(worker: u128, state: &str) -> WorkerStatus {
        WorkerStatus {
            worker_id: WorkerId(Uuid::from_u128(worker)),
            name: "w".to_owned(),
            version: "0.1.0".to_owned(),
            slots: 1,
            sessions: vec![],
            busy: 0,
            state: state.to_owned(),
            unavailable: vec![],
            state_ms: 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_live_worker_with_the_lowest_id_reads_the_queue() {
        let mut second = Election {
            own: WorkerId(Uuid::from_u128(2)),
            seen: BTreeMap::new(),
        };
        assert!(
            second.is_own(Instant::now()),
            "a worker that reads no status reads the queue"
        );
        second.receive(&status(2, "claiming"), Instant::now());
        second.receive(&status(3, "claiming"), Instant::now());
        assert!(second.is_own(Instant::now()));
        second.receive(&status(1, "paused"), Instant::now());
        assert!(!second.is_own(Instant::now()));
        second.receive(&status(1, "draining"), Instant::now());
        assert!(
            second.is_own(Instant::now()),
            "a worker that drains takes no part"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_worker_takes_over_when_the_first_one_is_silent() {
        let mut second = Election {
            own: WorkerId(Uuid::from_u128(2)),
            seen: BTreeMap::new(),
        };
        second.receive(&status(1, "claiming"), Instant::now());
        tokio::time::advance(STATUS_LIFETIME / 2).await;
        second.receive(&status(2, "claiming"), Instant::now());
        assert!(!second.is_own(Instant::now()));
        tokio::time::advance(STATUS_LIFETIME / 2).await;
        assert!(second.is_own(Instant::now()));
    }
}
