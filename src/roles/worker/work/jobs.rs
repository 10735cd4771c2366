//! Takes alerts from the queue until the worker drains, and waits for the end of its jobs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Worker;
use tarsy_bus::{ClaimSettings, ClaimedJob, Claims, Flow, JetStreamDelivery};
use tarsy_core::intake::MAX_BODY_BYTES;
use tarsy_engine::delivery::dispatcher::Dispatcher;
use tarsy_engine::ports::Intake;
use tarsy_engine::worker::background::Background;
use tarsy_engine::world::World;

/// The longest time that a drain may exceed the drain timeout or a second signal: for the last checkpoint, release and
/// acknowledgement.
const DRAIN_MARGIN: Duration = Duration::from_secs(15);

impl<I: Intake> Worker<I> {
    pub(super) fn start_claims(
        &self,
        slots: Arc<Semaphore>,
        flow: watch::Receiver<Flow>,
    ) -> anyhow::Result<Claims> {
        let worker = &self.config.worker;
        let settings = ClaimSettings {
            reserved_critical_slots: usize::try_from(worker.reserved_critical_slots)?,
            max_body_bytes: MAX_BODY_BYTES,
            ..ClaimSettings::default()
        };
        metrics::gauge!("tarsy_draining").set(0.0);
        metrics::gauge!("tarsy_worker_slots").set(f64::from(worker.slots));
        Ok(Claims::start(
            &self.dependencies.nats,
            settings,
            slots,
            flow,
        ))
    }

    /// Takes alerts until the worker drains. Returns the name of a task that has broken.
    pub(super) async fn take_jobs(
        &self,
        claims: &mut Claims,
        jobs: &TaskTracker,
        background: &Background,
    ) -> Option<&'static str> {
        loop {
            tokio::select! {
                job = claims.next() => match job {
                    Some(job) => { jobs.spawn(handle(Arc::clone(&self.dispatcher), job)); }
                    None => return Some("claims"),
                },
                task = background.broken() => return Some(task),
                () = self.dispatcher.shutdown.drain.cancelled() => return None,
            }
        }
    }

    /// Waits for the sessions and the settlements, and returns what still comes out of the queue meanwhile.
    pub(super) async fn drain(&self, claims: Claims, jobs: &TaskTracker, now: &CancellationToken) {
        let began = Instant::now();
        metrics::gauge!("tarsy_draining").set(1.0);
        jobs.close();
        let deadline = async {
            tokio::select! {
                () = tokio::time::sleep(self.dispatcher.settings.limits.drain_timeout) => {} // the drain timeout itself
                () = now.cancelled() => {}
            }
            tokio::time::sleep(DRAIN_MARGIN).await;
        };
        let finished = async {
            jobs.wait().await;
            self.dispatcher.settler.finished().await;
            self.dispatcher.parked.finished().await;
        };
        let waiting = async {
            tokio::select! {
                () = finished => {}
                () = deadline => tracing::warn!(sessions = jobs.len(), "drain cut off: leases have to expire"),
            }
        };
        tokio::join!(claims.stop(), waiting);
        metrics::histogram!("tarsy_drain_duration_seconds").record(began.elapsed().as_secs_f64());
    }
}

async fn handle<W: World<Delivery = JetStreamDelivery>>(
    dispatcher: Arc<Dispatcher<W>>,
    claimed: ClaimedJob,
) {
    let priority = claimed.priority.as_str();
    metrics::counter!("tarsy_alerts_received_total", "priority" => priority).increment(1);
    if claimed.deliveries > 1 {
        metrics::counter!("tarsy_alerts_redelivered_total").increment(1);
    }
    dispatcher.handle(claimed.job).await;
    // The slot is free only now: the bus requests as many alerts as there are slots.
    drop(claimed.slot);
}
