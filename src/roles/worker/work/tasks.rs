//! Starts the tasks of a worker that run beside its jobs.

use std::sync::Arc;

use tokio::sync::watch;

use super::Worker;
use crate::process::connect::topology;
use crate::roles::worker::dependencies::Dependencies;
use crate::roles::worker::gauges::LoadGauges;
use crate::roles::worker::people::People;
use crate::roles::worker::people_gauges::PeopleGauges;
use crate::roles::worker::providers::ProviderCheck;
use crate::roles::worker::queue_gauges::QueueGauges;
use crate::roles::worker::state::StateApplier;
use crate::roles::worker::system::SystemReporter;
use crate::roles::worker::{notifications, people};
use tarsy_bus::{Flow, QueueMonitor};
use tarsy_engine::ports::Intake;
use tarsy_engine::worker::background::Background;
use tarsy_engine::worker::cancel::CancelListener;
use tarsy_engine::worker::presence::Announcer;
use tarsy_engine::worker::probes::{Probes, State};
use tarsy_engine::worker::renewal::LeaseRenewal;
use tarsy_engine::worker::sweeper::Sweeper;
use tarsy_engine::worker::timeline_probe::TimelineProbe;
use tarsy_telemetry::http::Readiness;

impl<I: Intake> Worker<I> {
    pub(super) fn start_tasks(
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
        let reporter = SystemReporter::new(
            &self.dispatcher.settings,
            &self.dependencies,
            self.shown.clone(),
            Arc::clone(&check),
        );
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
            people: PeopleGauges::new(
                nats.clone(),
                Arc::clone(&self.dependencies.store),
                topology(&self.config).people,
            ),
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
        let people = People {
            mask,
            drills: self.drills,
        };
        people::start(&background, &self.config, nats, store, people);
        background
    }
}
