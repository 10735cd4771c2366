//! `Worker`, with all its connections: from its first claim to the end of its drain.
//!
//! `inherited` continues the sessions of earlier workers of the pod, `tasks` starts what runs beside the jobs, and
//! `jobs` takes alerts and drains.

mod inherited;
mod jobs;
mod tasks;

use std::marker::PhantomData;
use std::sync::Arc;

use anyhow::bail;
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::process::shutdown::Signals;
use crate::roles::worker::Options;
use crate::roles::worker::dependencies::Dependencies;
use crate::roles::worker::pod::Membership;
use tarsy_bus::{Flow, JetStreamCancelRequests, JetStreamDelivery, JetStreamFeed, Nats};
use tarsy_config::Config;
use tarsy_core::ids::WorkerId;
use tarsy_engine::delivery::dispatcher::{Dispatcher, Settings, Shutdown};
use tarsy_engine::delivery::timeline::Timeline;
use tarsy_engine::ports::Intake;
use tarsy_engine::run::masked::Masked;
use tarsy_engine::worker::decisions::Drills;
use tarsy_engine::world::{Ports, World};
use tarsy_llm::client::Client;
use tarsy_mcp::Servers;
use tarsy_reports::system::ShownConfig;
use tarsy_store::Store;
use tarsy_telemetry::http::Readiness;

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

/// The identity of this process.
pub(super) struct Identity {
    worker: WorkerId,
    name: String,
    /// Workers of the same pod that are dead.
    predecessors: Vec<WorkerId>,
    drills: Drills,
    shown: ShownConfig,
}

impl Identity {
    pub(super) fn new(options: &Options) -> Self {
        let worker = WorkerId(Uuid::new_v4());
        Self {
            worker,
            name: options.name.clone(),
            predecessors: Membership::take(options.pod.as_ref(), worker).keep(),
            drills: options.drills,
            shown: options.shown.clone(),
        }
    }
}

/// A worker with all its connections.
pub(super) struct Worker<I: Intake> {
    config: Config,
    shown: ShownConfig,
    drills: Drills,
    predecessors: Vec<WorkerId>,
    dependencies: Dependencies,
    dispatcher: Arc<Dispatcher<Production<I>>>,
    timeline: watch::Sender<Timeline>,
}

impl<I: Intake> Worker<I> {
    pub(super) fn new(
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
            drills: identity.drills,
            predecessors: identity.predecessors,
            dependencies,
            dispatcher,
            timeline,
        }
    }

    /// Works until the drain.
    pub(super) async fn work(
        self,
        ready: watch::Sender<Readiness>,
        signals: &Signals,
    ) -> anyhow::Result<()> {
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
}
