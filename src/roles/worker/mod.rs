//! `tarsy worker`: claims alerts and investigates them.

pub mod gauges;
pub mod intake;
mod start;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::gauges::{show_load, show_queue};
use self::intake::ConfiguredIntake;
use self::start::{Reached, reach};
use super::connect::Addresses;
use super::shutdown::{Signals, print_ready};
use crate::bus::{
    ClaimSettings, ClaimedJob, Claims, Flow, JetStreamDelivery, JetStreamFeed, JetStreamQueue, WorkerPresence,
};
use crate::config::Config;
use crate::engine::delivery::dispatch::{Dispatcher, Intake, Settings};
use crate::engine::delivery::redelivery::Hesitation;
use crate::engine::delivery::settler::Settler;
use crate::engine::run::masked::Masked;
use crate::engine::run::registry::Running;
use crate::engine::worker::background::Background;
use crate::engine::worker::cancel::hear_requests;
use crate::engine::worker::presence::{Identity, announce};
use crate::engine::worker::probes::{Probes, State, probe};
use crate::engine::worker::renewal::renew_leases;
use crate::engine::worker::sweeper::Sweeper;
use crate::engine::worker::timeline_probe::{Timeline, watch_timeline};
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
    type Model = Masked<Client>;
    type Tools = Servers;
    type Journal = Store;
    type Feed = JetStreamFeed<Store>;
}

type WorkerDispatcher<I> = Dispatcher<Production, Store, I, JetStreamDelivery>;

/// Beside the drain timeout, and after a second signal: for the last checkpoint, release and answer.
const DRAIN_MARGIN: Duration = Duration::from_secs(15);

/// Works until the first signal, then lets current calls finish and hands its sessions back.
///
/// # Errors
/// When something is wrong that waiting does not mend: the address is taken, streams or schema do not fit, a part of
/// the worker has broken.
pub async fn run(options: Options, config: Config, signals: Signals) -> anyhow::Result<()> {
    run_with(options, config, signals, |intake| intake).await
}

/// The same with another reader of alerts, made of the one that fits the configuration.
///
/// # Errors
/// As [`run`].
pub async fn run_with<I: Intake>(
    options: Options,
    config: Config,
    signals: Signals,
    reader: impl FnOnce(ConfiguredIntake<Servers>) -> I,
) -> anyhow::Result<()> {
    let providers: Vec<String> = config.llm_providers.keys().cloned().collect();
    // Metrics and health outlive the drain.
    let (telemetry, ready) = Serving::start(options.listen, Role::Worker, &providers).await?;
    tracing::info!(address = %telemetry.address(), "metrics and probes are served");
    let result = tokio::select! {
        reached = reach(&options, &config, &ready) => match reached {
            Ok(reached) => {
                print_ready(telemetry.address())?;
                Worker { name: options.name.clone(), reached, reader }.work(config, ready, signals).await
            }
            Err(error) => Err(error),
        },
        () = signals.end.cancelled() => Ok(()),
    };
    telemetry.end().await;
    result
}

/// A worker that has reached everything it needs.
struct Worker<F> {
    name: String,
    reached: Reached,
    reader: F,
}

impl<I: Intake, F: FnOnce(ConfiguredIntake<Servers>) -> I> Worker<F> {
    async fn work(self, config: Config, ready: watch::Sender<Readiness>, signals: Signals) -> anyhow::Result<()> {
        let worker = config.worker.clone();
        let slots = usize::try_from(worker.slots)?;
        let claiming = ClaimSettings {
            reserved_critical_slots: usize::try_from(worker.reserved_critical_slots)?,
            max_alert_bytes: usize::try_from(worker.max_alert_bytes)?,
            ..ClaimSettings::default()
        };
        metrics::gauge!("tarsy_worker_slots").set(f64::from(worker.slots));
        // Its own: a broken part drains the worker, too.
        let drain = signals.end.child_token();
        let Self { name, reached, reader } = self;
        let intake = Arc::new(reader(intake(&name, &reached, &config)));
        let (timeline, timelines) = watch::channel(Timeline::Accepting);
        let ends = (drain.clone(), signals.now.clone());
        let dispatcher = dispatcher(&name, &reached, (&config, intake), (ends, timelines.clone()));
        let Reached { nats, requests, store, feed, model, tools, .. } = reached;
        let background = Background::default();
        let (flow, flows) = watch::channel(Flow::Pause);
        let mut claims = Claims::start(&nats, claiming, Arc::new(Semaphore::new(slots)), flows);

        let (lease, running, end) = (worker.lease, &dispatcher.running, background.end());
        let renewed = (Arc::clone(&store), Arc::clone(&dispatcher.outages));
        let renewing = renew_leases(renewed, Arc::clone(running), Arc::clone(&feed), (lease, end.clone()));
        background.spawn("renewal", renewing);
        let hearing = hear_requests(Arc::new(requests), Arc::clone(&store), Arc::clone(running), (lease, end.clone()));
        background.spawn("requests", hearing);
        let sweeper = Sweeper {
            ports: dispatcher.ports.clone(),
            sessions: Arc::clone(&store),
            queue: Arc::new(JetStreamQueue::new(&nats)),
            running: Arc::clone(running),
            settler: Arc::clone(&dispatcher.settler),
            settings: Arc::clone(&dispatcher.settings),
            interval: worker.sweep_interval,
            retention: config.retention.beyond(config.dedupe.cooldown),
        };
        background.spawn("sweeper", sweeper.run(end.clone()));
        let (state, states) = watch::channel(State::Paused(Vec::new()));
        let link = nats.clone();
        let outages = Arc::clone(&dispatcher.outages);
        let probes = Probes { sessions: store, model, broker: move || link.connection_state().connected, outages };
        background.spawn("probe", probe(probes, state, (drain.clone(), end.clone())));
        background.spawn("timeline probe", watch_timeline(Arc::clone(&feed), timeline, end.clone()));
        background.spawn("state", obey((states.clone(), timelines), (flow, ready), end.clone()));
        let identity = Identity {
            worker: dispatcher.settings.worker,
            name: name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots: worker.slots,
        };
        let presence = Arc::new(WorkerPresence::new(&nats));
        background.spawn("presence", announce(presence, identity, Arc::clone(running), (states, end)));
        background.spawn("queue gauges", show_queue(nats.clone(), background.end()));
        let load = (Arc::clone(running), worker.slots);
        background.spawn("load gauges", show_load(Arc::clone(&dispatcher.sessions), load, background.end()));
        tracing::info!(worker = name, slots, lease_secs = lease.as_secs_f64(), "worker has started");

        let jobs = TaskTracker::new();
        let broken = take_jobs(&mut claims, &jobs, (&dispatcher, &background)).await;
        drain.cancel();
        drained(claims, (jobs, &dispatcher), (worker.drain_timeout, &signals.now)).await;
        let broken = background.finish().await.or(broken);
        feed.close().await;
        if let Err(error) = nats.flush().await {
            // The sessions are free all the same: the store knows.
            tracing::warn!("the last answers to the broker may be lost: {error}");
        }
        tools.close().await;
        tracing::info!("worker is drained");
        match broken {
            None => Ok(()),
            Some(task) => bail!("the worker had to stop: its task \"{task}\" has broken"),
        }
    }
}

/// Takes alerts until the worker drains; returns the part of it that has broken.
async fn take_jobs<I: Intake>(
    claims: &mut Claims,
    jobs: &TaskTracker,
    (dispatcher, background): (&WorkerDispatcher<I>, &Background),
) -> Option<&'static str> {
    loop {
        tokio::select! {
            job = claims.next() => match job {
                Some(job) => { jobs.spawn(handle(dispatcher.clone(), job)); }
                None => return Some("claims"),
            },
            task = background.broken() => return Some(task),
            () = dispatcher.drain.cancelled() => return None,
        }
    }
}

/// Waits for the sessions and for what is being settled, while what still comes out of the queue is given back beside
/// them.
async fn drained<I: Intake>(
    claims: Claims,
    (jobs, dispatcher): (TaskTracker, &WorkerDispatcher<I>),
    (drain_timeout, now): (Duration, &CancellationToken),
) {
    let began = Instant::now();
    metrics::gauge!("tarsy_draining").set(1.0);
    jobs.close();
    let patience = async {
        tokio::select! {
            () = tokio::time::sleep(drain_timeout) => {} // the drain timeout itself
            () = now.cancelled() => {}
        }
        tokio::time::sleep(DRAIN_MARGIN).await;
    };
    let waited = async {
        tokio::select! {
            () = async { jobs.wait().await; dispatcher.settler.finished().await } => {}
            () = patience => tracing::warn!("sessions are left to their leases: {}", jobs.len()),
        }
    };
    tokio::join!(claims.stop(), waited);
    metrics::histogram!("tarsy_drain_duration_seconds").record(began.elapsed().as_secs_f64());
}

fn intake(name: &str, reached: &Reached, config: &Config) -> ConfiguredIntake<Servers> {
    let mask = reached.mask.clone();
    let parts = (Arc::clone(&reached.tools), Arc::clone(&reached.store));
    ConfiguredIntake::new(Arc::new(config.clone()), parts, mask, name.to_owned())
}

fn dispatcher<I: Intake>(
    name: &str,
    reached: &Reached,
    (config, intake): (&Config, Arc<I>),
    ((drain, hurry), timeline): ((CancellationToken, CancellationToken), watch::Receiver<Timeline>),
) -> WorkerDispatcher<I> {
    let worker = &config.worker;
    let settings = Settings {
        worker: WorkerId(Uuid::new_v4()),
        worker_name: name.to_owned(),
        lease: worker.lease,
        session_timeout: worker.session_timeout,
        attempts: worker.attempts,
        cooldown: config.dedupe.cooldown,
        tool_wait: worker.tool_wait,
        drain_timeout: worker.drain_timeout,
    };
    let ports = Ports {
        model: Arc::clone(&reached.model),
        tools: Arc::clone(&reached.tools),
        journal: Arc::clone(&reached.store),
        feed: Arc::clone(&reached.feed),
    };
    let parts = (Arc::clone(&reached.store), Arc::clone(&reached.feed));
    Dispatcher {
        ports,
        sessions: Arc::clone(&reached.store),
        intake,
        running: Arc::new(Running::default()),
        settings: Arc::new(settings),
        hesitation: Arc::new(Hesitation::default()),
        outages: Arc::default(),
        settler: Arc::new(Settler::new(parts, worker.lease, timeline, drain.clone())),
        drain,
        hurry,
    }
}

async fn handle<I: Intake>(dispatcher: WorkerDispatcher<I>, claimed: ClaimedJob) {
    let ClaimedJob { job, priority, slot } = claimed;
    metrics::counter!("tarsy_alerts_received_total", "priority" => priority.as_str()).increment(1);
    dispatcher.handle(job).await;
    // The slot is free only now: the bus asks for as many alerts as there are slots.
    drop(slot);
}

/// Tells the claim loop and the readiness probe what the worker does.
async fn obey(
    (mut states, mut timeline): (watch::Receiver<State>, watch::Receiver<Timeline>),
    (flow, ready): (watch::Sender<Flow>, watch::Sender<Readiness>),
    end: CancellationToken,
) {
    loop {
        let (wanted, readiness) = match &*states.borrow_and_update() {
            State::Claiming => (Flow::Claim, claiming(&timeline.borrow_and_update())),
            State::Paused(unavailable) if unavailable.is_empty() => {
                (Flow::Pause, Readiness::NotReady("starting".to_owned()))
            }
            State::Paused(unavailable) => {
                (Flow::Pause, Readiness::NotReady(format!("{} unavailable", unavailable.join(", "))))
            }
            State::Draining => (Flow::Pause, Readiness::NotReady("draining".to_owned())),
        };
        flow.send_if_modified(|flow| std::mem::replace(flow, wanted) != wanted);
        ready.send_replace(readiness);
        tokio::select! {
            () = end.cancelled() => return,
            Ok(()) = timeline.changed() => {}
            changed = states.changed() => if changed.is_err() {
                // The probe is gone, and with it the worker's right to claim.
                flow.send_replace(Flow::Pause);
                end.cancelled().await;
                return;
            },
        }
    }
}

/// Without the timeline stream investigations go on: a worker that is not ready would be no help.
fn claiming(timeline: &Timeline) -> Readiness {
    match timeline {
        Timeline::Accepting => Readiness::Ready,
        Timeline::Unavailable(_) => Readiness::Impaired("the timeline stream is unavailable".to_owned()),
    }
}
