//! `Dispatcher`, which brings each message of the queue to its acknowledgement.
//!
//! Each worker has one. Its methods are in the files of this folder, a file for each step of a delivery. The
//! background tasks of the worker hold the same dispatcher: they renew, stop and settle what it runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::outage::Outages;
use super::parked::ParkedMessages;
use super::redelivery::RedeliveryBackoff;
use super::settler::Settler;
use super::timeline::Timeline;
use crate::ports::ClaimRequest;
use crate::run::registry::Runs;
use crate::world::{Ports, World};
use tarsy_core::alert::policy::OnAcknowledged;
use tarsy_core::ids::WorkerId;

/// The settings of a worker for its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The id of this process.
    pub worker: WorkerId,
    /// The worker's name on timelines and in logs.
    pub worker_name: String,
    /// The time that a completed investigation covers later alerts of its fingerprint.
    pub cooldown: Duration,
    /// The handling of an acknowledged alert that has no open investigation.
    pub on_acknowledged: OnAcknowledged,
    pub limits: tarsy_config::Worker,
    /// The requests for approvals that may be open in all sessions.
    pub max_open: u32,
}

/// Deliveries that are recorded at the same time. In a burst for thousands of slots the others wait: all at once would
/// occupy the connections of the store for so long that other statements fail.
pub(crate) const MAX_RECEIVING: usize = 64;

/// The two steps of a shutdown.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// The worker claims nothing more and lets current calls finish.
    pub drain: CancellationToken,
    /// The worker releases its sessions in the middle of their calls.
    pub abort: CancellationToken,
}

/// The delivery side of a worker: the sessions that run here, and what their deliveries need.
#[derive(Debug)]
pub struct Dispatcher<W: World> {
    pub ports: Arc<Ports<W>>,
    pub settings: Settings,
    /// The sessions that run in this process.
    pub runs: Runs<W::Delivery>,
    pub backoff: RedeliveryBackoff,
    pub outages: Outages,
    pub settler: Arc<Settler<W>>,
    pub parked: Arc<ParkedMessages<W>>,
    pub shutdown: Shutdown,
    /// Turns of deliveries to be recorded.
    pub(crate) receiving: Semaphore,
}

impl<W: World> Dispatcher<W> {
    /// A dispatcher that runs nothing yet. `timeline` is the state that the timeline probe finds.
    pub fn new(
        ports: Arc<Ports<W>>,
        settings: Settings,
        timeline: watch::Receiver<Timeline>,
        shutdown: Shutdown,
    ) -> Arc<Self> {
        let settler = Settler::new(
            Arc::clone(&ports),
            settings.limits.lease,
            timeline.clone(),
            shutdown.drain.clone(),
        );
        let parked = ParkedMessages::new(
            Arc::clone(&ports),
            settings.limits.lease,
            timeline,
            shutdown.drain.clone(),
        );
        Arc::new(Self {
            ports,
            settings,
            runs: Runs::default(),
            backoff: RedeliveryBackoff::default(),
            outages: Outages::default(),
            settler: Arc::new(settler),
            parked: Arc::new(parked),
            shutdown,
            receiving: Semaphore::new(MAX_RECEIVING),
        })
    }

    /// The time that a lease lasts without a renewal.
    pub fn lease(&self) -> Duration {
        self.settings.limits.lease
    }

    /// A claim by this worker: without a message, and without grace for an outage of the store.
    pub fn claim_request(&self) -> ClaimRequest {
        ClaimRequest {
            worker: self.settings.worker,
            worker_name: self.settings.worker_name.clone(),
            token: Uuid::new_v4(),
            lease: self.lease(),
            stream_sequence: None,
            trace: None,
            outage_grace: Duration::ZERO,
            predecessors: Vec::new(),
        }
    }
}
