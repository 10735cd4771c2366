//! The ports of the web server over the store and the broker.

use parking_lot::Mutex;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::time::Instant;

use super::checks::RecentChecks;
use super::people::Deciders;
use super::systems::Systems;
use super::workers::Workers;
use crate::admin::doctor::{Part, checks_of_web};
use crate::admin::publishing::submissions::Rules;
use crate::process::connect::Addresses;
use tarsy_bus::{AllFollower, Backlog, Follower, Nats, TimelineUpdate, TopologySettings};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::{Outbox as _, WorkerStatus};
use tarsy_reports::calls::{CallNumber, NumberedCall, RebuiltCall};
use tarsy_reports::{
    AlertReport, Check, DeadAlert, EventSearch, Excerpt, ExcerptPage, Facets, FoundEvents, IdMatch,
    SessionEntry, SessionPage, StatusCounts,
};
use tarsy_store::Store;
use tarsy_web::ports::{
    Lane, Queue, Reader, Timelines, Unavailable, Update, Updates, WorkerSystem,
};

/// The time limit for a call of the store or the broker, with the time for a connection.
const CALL_TIMEOUT: Duration = Duration::from_secs(6);
/// A server that has just started connects within milliseconds.
const FIRST_CONNECTION_TIMEOUT: Duration = Duration::from_secs(3);
/// Pages that are open at the same time share one read of the queue.
const LANES_AGE: Duration = Duration::from_secs(2);

/// The configuration of alerts and their queue.
#[derive(Debug)]
pub(super) struct Alerts {
    pub(super) rules: Rules,
    pub(super) topology: TopologySettings,
}

/// The configuration behind the ports.
#[derive(Debug)]
pub(super) struct Configured {
    pub(super) alerts: Alerts,
    pub(super) deciders: Deciders,
}

/// The statuses and reports that workers publish.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected {
    pub(super) workers: Workers,
    pub(super) systems: Systems,
}

/// The store and the broker.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) store: Arc<Store>,
    nats: watch::Receiver<Option<Nats>>,
    workers: Workers,
    systems: Systems,
    addresses: Addresses,
    alerts: Alerts,
    pub(super) deciders: Deciders,
    checks: RecentChecks,
    lanes: Mutex<Option<(Instant, Vec<Lane>)>>,
    /// The number of the connection on which the broker has refused to return the age of queued alerts.
    ages_refused: Mutex<Option<u64>>,
}

impl Backend {
    pub(super) fn new(
        store: Store,
        nats: watch::Receiver<Option<Nats>>,
        collected: Collected,
        addresses: Addresses,
        configured: Configured,
    ) -> Self {
        let Configured { alerts, deciders } = configured;
        Self {
            store: Arc::new(store),
            nats,
            workers: collected.workers,
            systems: collected.systems,
            addresses,
            alerts,
            deciders,
            checks: RecentChecks::default(),
            lanes: Mutex::default(),
            ages_refused: Mutex::default(),
        }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.alerts.rules
    }

    /// The connection to the broker, if there was one. It may be interrupted now.
    pub(super) fn broker(&self) -> Result<Nats, Unavailable> {
        self.nats
            .borrow()
            .clone()
            .ok_or_else(|| Unavailable("nats unavailable: no connection yet".to_owned()))
    }

    /// Like [`Self::broker`]; waits a moment for the first connection of this process.
    pub(super) async fn first_connection(&self) -> Result<Nats, Unavailable> {
        let mut nats = self.nats.clone();
        // If there is no connection in time, `broker` returns the error.
        tokio::time::timeout(FIRST_CONNECTION_TIMEOUT, nats.wait_for(Option::is_some))
            .await
            .ok();
        self.broker()
    }

    pub(super) async fn read<T, E: Error>(
        &self,
        call: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, Unavailable> {
        match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.unavailable("database", &error)),
            Err(_) => Err(Unavailable(format!(
                "database unavailable: no answer within {} s",
                CALL_TIMEOUT.as_secs()
            ))),
        }
    }

    /// The reason in one line, without secrets.
    pub(super) fn unavailable(&self, service: &str, error: &dyn Error) -> Unavailable {
        let text = format!("{service} unavailable: {error}");
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Unavailable(self.addresses.redact(&line))
    }

    async fn backlog(&self, nats: &Nats) -> Result<Vec<Backlog>, tarsy_bus::Error> {
        let connection = nats.connection_state().connections;
        if *self.ages_refused.lock() != Some(connection) {
            if let Ok(Ok(backlog)) = tokio::time::timeout(LANES_AGE, nats.backlog()).await {
                return Ok(backlog);
            }
            *self.ages_refused.lock() = Some(connection);
        }
        nats.backlog_without_ages().await
    }
}

impl Reader for Backend {
    async fn sessions(&self, page: SessionPage) -> Result<Vec<SessionEntry>, Unavailable> {
        self.read(self.store.session_page(page)).await
    }

    async fn counts(&self, page: SessionPage) -> Result<StatusCounts, Unavailable> {
        self.read(self.store.status_counts(page)).await
    }

    async fn facets(&self) -> Result<Facets, Unavailable> {
        self.read(self.store.facets()).await
    }

    async fn find(&self, part: &str) -> Result<IdMatch, Unavailable> {
        self.read(self.store.resolve(part)).await
    }

    async fn report(&self, id: SessionId) -> Result<Option<AlertReport>, Unavailable> {
        self.read(self.store.report(id)).await
    }

    async fn events(
        &self,
        id: SessionId,
        after: u32,
        limit: u32,
    ) -> Result<Vec<TimelineEvent>, Unavailable> {
        self.read(self.store.events(id, after, limit)).await
    }

    async fn excerpts(&self, page: ExcerptPage) -> Result<Vec<Excerpt>, Unavailable> {
        self.read(self.store.excerpts(page)).await
    }

    async fn search_events(&self, search: EventSearch) -> Result<FoundEvents, Unavailable> {
        self.read(self.store.search_events(search)).await
    }

    async fn calls(&self, id: SessionId) -> Result<Option<Vec<NumberedCall>>, Unavailable> {
        self.read(self.store.model_calls(id)).await
    }

    async fn call(
        &self,
        id: SessionId,
        number: CallNumber,
    ) -> Result<Option<RebuiltCall>, Unavailable> {
        self.read(self.store.model_call(id, number)).await
    }

    async fn dead_letters(&self, limit: u32) -> Result<Vec<DeadAlert>, Unavailable> {
        self.read(self.store.dead_alerts(limit)).await
    }
}

impl Timelines for Backend {
    type Session = SessionUpdates;
    type All = AllUpdates;

    fn follow(&self, id: SessionId, after: u32) -> Result<SessionUpdates, Unavailable> {
        Ok(SessionUpdates(Follower::start(
            &self.broker()?,
            id,
            after,
            Some(Arc::clone(&self.store)),
        )))
    }

    async fn follow_all(&self) -> Result<AllUpdates, Unavailable> {
        let nats = self.first_connection().await?;
        match AllFollower::start(&nats).await {
            Ok(follower) => Ok(AllUpdates(follower)),
            Err(error) => Err(self.unavailable("nats", &error)),
        }
    }

    fn is_live(&self) -> bool {
        super::is_connected(&self.nats)
    }
}

/// The follower of one session.
#[derive(Debug)]
pub(super) struct SessionUpdates(Follower);

impl Updates for SessionUpdates {
    async fn next(&mut self) -> Option<Update> {
        self.0.next().await.map(|update| match update {
            TimelineUpdate::Event(event) => Update::Event(event),
            TimelineUpdate::Delta(delta) => Update::Delta(delta),
        })
    }
}

/// The follower of all sessions.
#[derive(Debug)]
pub(super) struct AllUpdates(AllFollower);

impl Updates for AllUpdates {
    async fn next(&mut self) -> Option<Update> {
        self.0.next().await.map(Update::Event)
    }
}

impl Queue for Backend {
    async fn lanes(&self) -> Result<Vec<Lane>, Unavailable> {
        if let Some((at, lanes)) = &*self.lanes.lock()
            && at.elapsed() < LANES_AGE
        {
            return Ok(lanes.clone());
        }
        let nats = self.first_connection().await?;
        let backlog = match tokio::time::timeout(CALL_TIMEOUT, self.backlog(&nats)).await {
            Ok(Ok(backlog)) => backlog,
            Ok(Err(error)) => return Err(self.unavailable("nats", &error)),
            Err(_) => {
                return Err(Unavailable(
                    "nats unavailable: no answer about the queue".to_owned(),
                ));
            }
        };
        let lanes: Vec<Lane> = backlog
            .into_iter()
            .map(|of| Lane {
                priority: of.priority.as_str(),
                waiting: of.pending,
                in_work: of.in_progress,
                oldest: of.oldest,
            })
            .collect();
        *self.lanes.lock() = Some((Instant::now(), lanes.clone()));
        Ok(lanes)
    }

    fn workers(&self) -> Vec<WorkerStatus> {
        self.workers.current()
    }

    fn systems(&self) -> Vec<WorkerSystem> {
        self.systems.current()
    }

    async fn checks(&self) -> Vec<Check> {
        let checks = self.checks.get(|| {
            let part = Part {
                nats: self.broker().map_err(|Unavailable(reason)| reason),
                addresses: self.addresses.clone(),
                topology: self.alerts.topology.clone(),
                workers: self.workers.current(),
            };
            checks_of_web(part).boxed()
        });
        checks.await
    }
}
