//! `tarsy worker`: claims alerts and investigates them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::connect::{Addresses, topology, wait_for_schema};
use super::gauges::{show_load, show_queue};
use super::intake::ConfiguredIntake;
use super::shutdown::say_ready;
use super::tools;
use crate::bus::{ClaimSettings, Claims, FeedSettings, Flow, JetStreamFeed, Job as Claimed, JobDelivery, Nats};
use crate::config::Config;
use crate::engine::dispatch::{Dispatcher, Job, Settings};
use crate::engine::ports::{Model, Refusal, Sessions};
use crate::engine::renewal::renew_leases;
use crate::engine::running::Running;
use crate::engine::world::{Ports, World};
use crate::investigation::ids::WorkerId;
use crate::llm::client::Client;
use crate::mcp::Servers;
use crate::store::Store;
use crate::telemetry::http::Readiness;
use crate::telemetry::names::Role;
use crate::telemetry::serving::Serving;

/// How to work.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where everything is.
    pub addresses: Addresses,
    /// Name on timelines and in logs.
    pub name: String,
    /// Where metrics and health are served; port 0 takes a free one.
    pub listen: SocketAddr,
}

/// The adapters of a worker.
#[derive(Debug)]
struct Production;

impl World for Production {
    type Model = Client;
    type Tools = Servers;
    type Journal = Store;
    type Feed = JetStreamFeed<Store>;
}

type WorkerDispatcher = Dispatcher<Production, Store, ConfiguredIntake<Servers>, JobDelivery>;

/// Between two looks at the store and the LLM service.
const PROBE_EVERY: Duration = Duration::from_secs(2);
/// Beside the drain timeout: for the last checkpoint, hand-back and answer.
const DRAIN_MARGIN: Duration = Duration::from_secs(15);

/// Works until `shutdown` is cancelled, then lets current calls finish and hands its sessions back.
///
/// # Errors
/// When something is wrong that waiting does not mend: the address is taken, streams or schema do not fit.
pub async fn run(options: Options, config: Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    let providers: Vec<String> = config.llm_providers.keys().cloned().collect();
    // Metrics and health outlive the drain.
    let (telemetry, ready) = Serving::start(options.listen, Role::Worker, &providers).await?;
    let result = tokio::select! {
        started = start(&options, &config) => {
            let worker = started?;
            say_ready(telemetry.address())?;
            worker.work(config, ready, shutdown).await
        }
        () = shutdown.cancelled() => Ok(()),
    };
    telemetry.end().await;
    result
}

/// A worker that has reached everything it needs.
struct Worker {
    name: String,
    nats: Nats,
    store: Arc<Store>,
    feed: Arc<JetStreamFeed<Store>>,
    model: Arc<Client>,
    tools: Arc<Servers>,
}

async fn start(options: &Options, config: &Config) -> anyhow::Result<Worker> {
    let database = options.addresses.database(&format!("tarsy worker {}", options.name))?;
    let model = Arc::new(Client::connect(&options.addresses.llm_addr)?);
    let nats = options.addresses.nats_for_role("worker").await?;
    nats.verify_topology(&topology(config)).await?;
    wait_for_schema(&database).await?;
    let store = Arc::new(Store::new(&database)?);
    let feed = Arc::new(JetStreamFeed::new(&nats, Arc::clone(&store), FeedSettings::default()));
    let tools = Arc::new(tools::start(config, &CancellationToken::new())?);
    Ok(Worker { name: options.name.clone(), nats, store, feed, model, tools })
}

impl Worker {
    async fn work(
        self,
        config: Config,
        ready: watch::Sender<Readiness>,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let worker = &config.worker;
        let (slots, drain_timeout) = (usize::try_from(worker.slots)?, worker.drain_timeout);
        let settings = ClaimSettings {
            reserved_critical_slots: usize::try_from(worker.reserved_critical_slots)?,
            max_alert_bytes: usize::try_from(worker.max_alert_bytes)?,
            ..ClaimSettings::default()
        };
        let (lease, all_slots) = (worker.lease, worker.slots);
        metrics::gauge!("tarsy_worker_slots").set(f64::from(worker.slots));
        let dispatcher = self.dispatcher(config, shutdown.clone())?;
        let (flow, flows) = watch::channel(Flow::Pause);
        let mut claims = Claims::start(&self.nats, settings, Arc::new(Semaphore::new(slots)), flows);
        let (store, feed) = (Arc::clone(&self.store), Arc::clone(&self.feed));
        let end = CancellationToken::new();
        let background = TaskTracker::new();
        background.spawn(renew_leases(store, Arc::clone(&dispatcher.running), feed, (lease, end.clone())));
        background.spawn(probe(Arc::clone(&self.store), Arc::clone(&self.model), flow, (ready, shutdown.clone())));
        let load = (Arc::clone(&dispatcher.running), all_slots);
        background.spawn(show_queue(self.nats.clone(), end.clone()));
        background.spawn(show_load(Arc::clone(&self.store), load, end.clone()));
        tracing::info!(worker = self.name, slots, lease_secs = lease.as_secs_f64(), "worker has started");

        let jobs = TaskTracker::new();
        loop {
            tokio::select! {
                job = claims.next() => match job {
                    Some(job) => { jobs.spawn(handle(dispatcher.clone(), job)); }
                    None => anyhow::bail!("the claim loop has ended"),
                },
                () = shutdown.cancelled() => break,
            }
        }
        jobs.close();
        // Beside each other: what still comes out of the queue is given back while sessions finish their calls.
        let waited = tokio::time::timeout(drain_timeout + DRAIN_MARGIN, jobs.wait());
        let ((), drained) = tokio::join!(claims.stop(), waited);
        if drained.is_err() {
            tracing::warn!("sessions are left to their leases: {}", jobs.len());
        }
        end.cancel();
        background.close();
        background.wait().await;
        self.feed.close().await;
        if let Err(error) = self.nats.flush().await {
            // The sessions are free all the same: the store knows.
            tracing::warn!("the last answers to the broker may be lost: {error}");
        }
        self.tools.close().await;
        tracing::info!("worker is drained");
        Ok(())
    }

    fn dispatcher(&self, config: Config, drain: CancellationToken) -> anyhow::Result<WorkerDispatcher> {
        let worker = config.worker.clone();
        let settings = Settings {
            worker: WorkerId(Uuid::new_v4()),
            worker_name: self.name.clone(),
            lease: worker.lease,
            session_timeout: worker.session_timeout,
            attempts: worker.attempts,
            drain_timeout: worker.drain_timeout,
        };
        let mask = tools::mask(&config);
        let intake = ConfiguredIntake::new(Arc::new(config), Arc::clone(&self.tools), mask, self.name.clone());
        let ports = Ports {
            model: Arc::clone(&self.model),
            tools: Arc::clone(&self.tools),
            journal: Arc::clone(&self.store),
            feed: Arc::clone(&self.feed),
        };
        Ok(Dispatcher {
            ports,
            sessions: Arc::clone(&self.store),
            intake: Arc::new(intake),
            running: Arc::new(Running::default()),
            settings: Arc::new(settings),
            drain,
        })
    }
}

async fn handle(dispatcher: WorkerDispatcher, claimed: Claimed) {
    let Claimed { received, derived_id, fault, priority, delivery, slot } = claimed;
    metrics::counter!("tarsy_alerts_received_total", "priority" => priority.as_str()).increment(1);
    let fault = fault.map(|fault| Refusal { reason: fault.reason, detail: fault.detail });
    dispatcher.handle(Job { received, fault, derived_id, delivery }).await;
    // The slot is free only now: the bus asks for as many alerts as there are slots.
    drop(slot);
}

/// Claims nothing while the store or the LLM service is away: a claimed alert would only go back to the queue.
async fn probe(
    store: Arc<Store>,
    model: Arc<Client>,
    flow: watch::Sender<Flow>,
    (ready, shutdown): (watch::Sender<Readiness>, CancellationToken),
) {
    loop {
        let looked = shutdown.run_until_cancelled(async { tokio::join!(store.reachable(), model.serving()) });
        let Some((store_answers, model_serves)) = looked.await else {
            ready.send_replace(Readiness::NotReady("draining".to_owned()));
            return;
        };
        let away: Vec<&str> = [(store_answers, "database"), (model_serves, "llm-service")]
            .into_iter()
            .filter(|(up, _)| !up)
            .map(|(_, name)| name)
            .collect();
        let present =
            if away.is_empty() { Readiness::Ready } else { Readiness::NotReady(format!("{} away", away.join(", "))) };
        let wanted = if away.is_empty() { Flow::Claim } else { Flow::Pause };
        flow.send_if_modified(|flow| std::mem::replace(flow, wanted) != wanted);
        if ready.send_replace(present.clone()) != present {
            match present {
                Readiness::Ready => tracing::info!("claims alerts"),
                Readiness::NotReady(why) => tracing::warn!(why, "claims nothing"),
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PROBE_EVERY) => {} // pacing of probes
            () = shutdown.cancelled() => {
                ready.send_replace(Readiness::NotReady("draining".to_owned()));
                return;
            }
        }
    }
}
