//! `tarsy worker`: claims alerts and investigates them.

pub mod pod;
mod dependencies;
mod providers;
pub mod intake;
pub mod message;
mod state;
mod gauges;
mod queue_gauges;
mod notifications;
mod people;
mod system;

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use chrono::TimeDelta;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use self::dependencies::{Dependencies, connect_dependencies};
use self::gauges::LoadGauges;
use self::intake::ConfiguredIntake;
use self::pod::{Membership, Pod};
use self::providers::ProviderCheck;
use self::queue_gauges::QueueGauges;
use self::state::StateApplier;
use self::system::SystemReporter;
use crate::process::connect::{Addresses, topology};
use crate::process::shutdown::{Signals, print_ready};
use tarsy_bus::{
    ClaimSettings, ClaimedJob, Claims, Flow, JetStreamCancelRequests, JetStreamDelivery,
    JetStreamFeed, Nats, QueueMonitor,
};
use tarsy_config::Config;
use tarsy_core::ids::WorkerId;
use tarsy_core::intake::MAX_BODY_BYTES;
use tarsy_engine::delivery::dispatcher::{Dispatcher, Settings, Shutdown};
use tarsy_engine::delivery::timeline::Timeline;
use tarsy_engine::ports::{Inherited, Intake};
use tarsy_engine::run::masked::Masked;
use tarsy_engine::worker::background::Background;
use tarsy_engine::worker::cancel::CancelListener;
use tarsy_engine::worker::presence::Announcer;
use tarsy_engine::worker::probes::{Probes, State};
use tarsy_engine::worker::renewal::LeaseRenewal;
use tarsy_engine::worker::sweeper::Sweeper;
use tarsy_engine::worker::timeline_probe::TimelineProbe;
use tarsy_engine::world::{Ports, World};
use tarsy_llm::client::Client;
use tarsy_mask::Mask;
use tarsy_mcp::Servers;
use tarsy_reports::system::ShownConfig;
use tarsy_store::Store;
use tarsy_telemetry::http::Readiness;
use tarsy_telemetry::metrics::Configured;
use tarsy_telemetry::names::Role;
use tarsy_telemetry::serving::Serving;

/// The addresses and the name of a worker.
#[derive(Clone, Debug)]
pub struct Options {
    pub addresses: Addresses,
    /// The worker's name on timelines and in logs.
    pub name: String,
    /// The pod whose earlier workers this one inherits from.
    pub pod: Option<Pod>,
    /// The address at which metrics and health are served; port 0 selects a free one.
    pub listen: SocketAddr,
    /// The mask of this process: it learns each token that is read.
    pub mask: Mask,
    /// The offset of the clock that models see.
    pub clock_offset: TimeDelta,
    /// The configuration without secrets, for people.
    pub shown: ShownConfig,
}

/// The adapters of a worker with this intake.
#[derive(Debug)]
struct Production<I>(PhantomData<I>);

impl<I: Intake> World for Production<I> {
    type Model = Masked<Client>;
    type Tools = Servers;
    type Journal = Store;
    type Feed = JetStreamFeed<Store>;
    type Sessions = Store;
    type Intake = I;
    type Delivery = JetStreamDelivery;
    type Queue = Nats;
    type CancelRequests = JetStreamCancelRequests;
    type Presence = Nats;
}

/// The longest time that a drain may exceed the drain timeout or a second signal: for the last checkpoint, release and
/// acknowledgement.
const DRAIN_MARGIN: Duration = Duration::from_secs(15);

/// Works until the first signal, then lets current calls finish and releases its sessions.
///
/// # Errors
/// When waiting cannot help: the address is taken, streams or schema do not fit this version, a background task has
/// broken.
pub async fn run(options: Options, config: Config, signals: Signals) -> anyhow::Result<()> {
    run_with(options, config, signals, |intake| intake).await
}

/// Like [`run`], with an intake that is made of the configured one.
///
/// # Errors
/// The errors of [`run`].
pub async fn run_with<I: Intake>(
    options: Options,
    config: Config,
    signals: Signals,
    intake: impl FnOnce(ConfiguredIntake) -> I,
) -> anyhow::Result<()> {
    let configured = Configured {
        providers: config.llm_providers.keys().cloned().collect(),
        servers: config.mcp_servers.keys().cloned().collect(),
        routes: config
            .routes
            .iter()
            .map(|route| route.name.clone())
            .collect(),
        agents: sub_agents(&config),
        policies: config.approvals.policies.keys().cloned().collect(),
    };
    // Metrics and health outlive the drain.
    let (telemetry, ready) = Serving::start(options.listen, Role::Worker, &configured).await?;
    tracing::info!(address = %telemetry.address, "metrics and probes are served");
    let result = tokio::select! {
        connected = connect_dependencies(&options.name, &options.addresses, &config, &options.mask, &ready) => match connected {
            Ok(dependencies) => {
                print_ready(telemetry.address)?;
                let configured = configured_intake(&options.name, &config, &dependencies);
                let intake = intake(configured.with_clock_offset(options.clock_offset));
                let identity = Identity::new(&options);
                let worker = Worker::new(identity, config, dependencies, intake, &signals);
                Box::pin(worker.work(ready, &signals)).await
            }
            Err(error) => Err(error),
        },
        () = signals.end.cancelled() => Ok(()),
    };
    telemetry.end().await;
    result
}

fn configured_intake(name: &str, config: &Config, dependencies: &Dependencies) -> ConfiguredIntake {
    ConfiguredIntake::new(
        Arc::new(config.clone()),
        Arc::clone(&dependencies.tools),
        Arc::clone(&dependencies.store),
        dependencies.mask.clone(),
        name.to_owned(),
    )
}

/// The identity of this process.
struct Identity {
    worker: WorkerId,
    name: String,
    /// Workers of the same pod that are dead.
    predecessors: Vec<WorkerId>,
    shown: ShownConfig,
}

impl Identity {
    fn new(options: &Options) -> Self {
        let worker = WorkerId(Uuid::new_v4());
        Self {
            worker,
            name: options.name.clone(),
            predecessors: Membership::take(options.pod.as_ref(), worker).keep(),
            shown: options.shown.clone(),
        }
    }
}

/// A worker with all its connections.
struct Worker<I: Intake> {
    config: Config,
    shown: ShownConfig,
    predecessors: Vec<WorkerId>,
    dependencies: Dependencies,
    dispatcher: Arc<Dispatcher<Production<I>>>,
    timeline: watch::Sender<Timeline>,
}

impl<I: Intake> Worker<I> {
    fn new(
        identity: Identity,
        config: Config,
        dependencies: Dependencies,
        intake: I,
        signals: &Signals,
    ) -> Self {
        let settings = Settings {
            worker: identity.worker,
            worker_name: identity.name,
            cooldown: config.dedupe.cooldown,
            on_acknowledged: config.dedupe.on_acknowledged,
            limits: config.worker.clone(),
            max_open: config.approvals.max_open,
        };
        let ports = Arc::new(Ports {
            model: Arc::clone(&dependencies.model),
            tools: Arc::clone(&dependencies.tools),
            journal: Arc::clone(&dependencies.store),
            feed: Arc::clone(&dependencies.feed),
            sessions: Arc::clone(&dependencies.store),
            intake: Arc::new(intake),
            queue: Arc::new(dependencies.nats.clone()),
            cancel_requests: Arc::clone(&dependencies.cancel_requests),
            presence: Arc::new(dependencies.nats.clone()),
        });
        let timeline = watch::Sender::new(Timeline::Accepting);
        // A separate token: a broken task drains the worker, too.
        let shutdown = Shutdown {
            drain: signals.end.child_token(),
            abort: signals.now.clone(),
        };
        let dispatcher = Dispatcher::new(ports, settings, timeline.subscribe(), shutdown);
        Self {
            config,
            shown: identity.shown,
            predecessors: identity.predecessors,
            dependencies,
            dispatcher,
            timeline,
        }
    }

    async fn work(self, ready: watch::Sender<Readiness>, signals: &Signals) -> anyhow::Result<()> {
        let (flow, flows) = watch::channel(Flow::Pause);
        let slots = Arc::new(Semaphore::new(usize::try_from(self.config.worker.slots)?));
        // The slots are taken before the claims begin, which would take all of them.
        let inherited = self.find_inherited(&slots).await;
        let mut claims = self.start_claims(slots, flows)?;
        let background = self.start_tasks(flow, ready);
        let settings = &self.dispatcher.settings;
        tracing::info!(
            worker = settings.worker_name,
            slots = settings.limits.slots,
            lease_secs = settings.limits.lease.as_secs_f64(),
            "worker has started"
        );

        let jobs = TaskTracker::new();
        self.run_inherited(inherited, &jobs);
        let broken = self.take_jobs(&mut claims, &jobs, &background).await;
        self.dispatcher.shutdown.drain.cancel();
        self.drain(claims, &jobs, &signals.now).await;
        let broken = background.finish().await.or(broken);
        self.dependencies.feed.close().await;
        if let Err(error) = self.dependencies.nats.flush().await {
            // The sessions are released all the same: the store has it.
            tracing::warn!("last acknowledgements may be lost: {error}");
        }
        self.dependencies.tools.close().await;
        tracing::info!("worker is drained");
        match broken {
            None => Ok(()),
            Some(task) => bail!("the worker had to stop: its task \"{task}\" has broken"),
        }
    }

    /// The sessions of earlier workers of this pod, each with a slot. Those that find none wait for their leases.
    async fn find_inherited(
        &self,
        slots: &Arc<Semaphore>,
    ) -> Vec<(Inherited, OwnedSemaphorePermit)> {
        let sessions = self
            .dispatcher
            .inherited(&self.predecessors, slots.available_permits())
            .await;
        sessions
            .into_iter()
            .filter_map(|session| Some((session, Arc::clone(slots).try_acquire_owned().ok()?)))
            .collect()
    }

    /// Continues these sessions, each in a separate job.
    fn run_inherited(&self, inherited: Vec<(Inherited, OwnedSemaphorePermit)>, jobs: &TaskTracker) {
        if inherited.is_empty() {
            return;
        }
        let dispatcher = Arc::clone(&self.dispatcher);
        let tracker = jobs.clone();
        let predecessors = self.predecessors.clone();
        jobs.spawn(async move {
            if !dispatcher.may_inherit().await {
                tracing::info!(
                    sessions = inherited.len(),
                    "sessions of the worker before this one wait for their leases"
                );
                return;
            }
            for (session, slot) in inherited {
                let dispatcher = Arc::clone(&dispatcher);
                let predecessors = predecessors.clone();
                tracker.spawn(async move {
                    dispatcher.inherit(session, predecessors).await;
                    drop(slot);
                });
            }
        });
    }

    fn start_claims(
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

    fn start_tasks(
        &self,
        flow: watch::Sender<Flow>,
        ready: watch::Sender<Readiness>,
    ) -> Background {
        let nats = &self.dependencies.nats;
        let dispatcher = || Arc::clone(&self.dispatcher);
        let (state, states) = watch::channel(State::Paused(Vec::new()));
        let sweeper = Sweeper::new(
            &self.dispatcher,
            self.config.worker.sweep_interval,
            self.config.retention.beyond(self.config.longest_cooldown()),
        );
        let link = nats.clone();
        let monitor = QueueMonitor::new(nats);

        let available = monitor.available();
        let check = Arc::new(ProviderCheck::new(
            self.config.clone(),
            self.dependencies.client.clone(),
        ));
        let applier = StateApplier {
            state: states.clone(),
            timeline: self.timeline.subscribe(),
            providers: check.why(),
            flow,
            ready,
        };
        let reporter = SystemReporter::new(self, Arc::clone(&check));
        let probes = Probes {
            dispatcher: dispatcher(),
            broker: move || link.connection_state().connected && *available.borrow(),
            providers: move || {
                let check = Arc::clone(&check);
                async move { check.passes().await }
            },
            state,
            remedies: self.dependencies.remedies.clone(),
        };
        let announcer = Announcer {
            dispatcher: dispatcher(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: states,
        };
        let queue_gauges = QueueGauges {
            nats: nats.clone(),
            worker: self.dispatcher.settings.worker,
            people: topology(&self.config).people,
        };
        let load_gauges = LoadGauges {
            dispatcher: dispatcher(),
            store: Arc::clone(&self.dependencies.store),
        };

        let timeline_probe = TimelineProbe {
            feed: Arc::clone(&self.dependencies.feed),
            state: self.timeline.clone(),
        };
        let background = Background::default();
        background.spawn("renewal", |end| LeaseRenewal(dispatcher()).run(end));
        background.spawn("requests", |end| CancelListener(dispatcher()).run(end));
        background.spawn("sweeper", |end| sweeper.run(end));
        background.spawn("probe", |end| probes.run(end));
        background.spawn("queue monitor", |end| monitor.run(end));
        background.spawn("timeline probe", |end| timeline_probe.run(end));
        background.spawn("state", |end| applier.run(end));
        background.spawn("presence", |end| announcer.run(end));
        background.spawn("system report", |end| reporter.run(end));
        background.spawn("queue gauges", |end| queue_gauges.run(end));
        background.spawn("load gauges", |end| load_gauges.run(end));
        let Dependencies { store, mask, .. } = &self.dependencies;
        notifications::start(&background, &self.config, store, mask);
        people::start(&background, &self.config, nats, store, mask);
        background
    }

    /// Takes alerts until the worker drains. Returns the name of a task that has broken.
    async fn take_jobs(
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
    async fn drain(&self, claims: Claims, jobs: &TaskTracker, now: &CancellationToken) {
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

/// The names of the agents that others may dispatch, each once.
fn sub_agents(config: &Config) -> Vec<String> {
    let names = config.agents.values().flat_map(|agent| &agent.agents);
    let names: BTreeSet<&String> = names.collect();
    names.into_iter().cloned().collect()
}
