//! Stand-ins with the names of the adapters of `bus`, until those are there: no requests, no sweeps, no presence.

use crate::bus::{Error, Nats};
use crate::engine::ports::{BrokerAway, IdleAlert, Presence, Queue, Request, Requests, WorkerNews};
use crate::investigation::ids::SessionId;

#[derive(Debug)]
pub(super) struct JetStreamQueue;

impl JetStreamQueue {
    pub(super) fn new(_nats: &Nats) -> Self {
        Self
    }
}

impl Queue for JetStreamQueue {
    async fn holds(&self, _alert: SessionId, _stream_sequence: u64) -> Result<bool, BrokerAway> {
        Ok(true)
    }

    async fn requeue(&self, alert: &IdleAlert) -> Result<u64, BrokerAway> {
        Err(BrokerAway(format!("{} is not queued again", alert.alert_id)))
    }
}

#[derive(Debug)]
pub(super) struct ControlRequests;

impl ControlRequests {
    pub(super) async fn listen(nats: &Nats) -> Result<Self, Error> {
        nats.flush().await.map(|()| Self)
    }
}

impl Requests for ControlRequests {
    async fn next(&self) -> Request {
        std::future::pending().await
    }

    async fn cancel_requested(&self, _session: SessionId) -> Result<bool, BrokerAway> {
        Ok(false)
    }
}

#[derive(Debug)]
pub(super) struct WorkerPresence;

impl WorkerPresence {
    pub(super) fn new(_nats: &Nats) -> Self {
        Self
    }
}

impl Presence for WorkerPresence {
    fn announce(&self, worker: &WorkerNews) {
        tracing::trace!(?worker, "presence");
    }
}
