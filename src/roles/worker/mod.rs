//! `tarsy worker`: claims alerts and investigates them.
//!
//! `dependencies` connects, `work` works until the drain, and the other modules are the tasks beside it.

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
mod people_gauges;
mod asking;
mod system;
mod work;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use chrono::TimeDelta;

use self::dependencies::{Dependencies, connect_dependencies};
use self::intake::ConfiguredIntake;
use self::pod::Pod;
use self::work::{Identity, Worker};
use crate::process::connect::Addresses;
use crate::process::shutdown::{Signals, print_ready};
use tarsy_config::Config;
use tarsy_engine::ports::Intake;
use tarsy_engine::worker::decisions::Drills;
use tarsy_mask::Mask;
use tarsy_reports::system::ShownConfig;
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
    /// Whether decisions of the channel `drill` count: in the worker of a drill only.
    pub drills: Drills,
    /// The configuration without secrets, for people.
    pub shown: ShownConfig,
}

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

/// The names of the agents that others may dispatch, each once.
fn sub_agents(config: &Config) -> Vec<String> {
    let names = config.agents.values().flat_map(|agent| &agent.agents);
    let names: BTreeSet<&String> = names.collect();
    names.into_iter().cloned().collect()
}
