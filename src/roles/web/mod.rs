//! `tarsy web`: serves pages and a JSON API that show investigations. It keeps no state: any replica answers any
//! request.
//!
//! It starts without the database and without the broker, and continues when it loses one of them: the history comes
//! from the database, and what happens now from the broker.

mod auth;
mod backend;
mod checks;
mod people;
mod requests;
mod submissions;
mod systems;
mod workers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::backend::{Alerts, Backend, Collected};
use self::people::Deciders;
use crate::admin::publishing::submissions::Rules;
use crate::process::connect::{Addresses, topology};
use crate::process::people::channel_keys;
use crate::process::shutdown::print_ready_and_metrics;
use tarsy_bus::{Error, Nats};
use tarsy_config::Config;
use tarsy_http::listener::Limits;
use tarsy_store::{ConnectOptions, Schema, Store, check_schema};
use tarsy_telemetry::http::Readiness;
use tarsy_telemetry::metrics::Configured;
use tarsy_telemetry::names::Role;
use tarsy_telemetry::serving::Serving;
use tarsy_web::{Settings, serve};

/// The arguments of the role.
#[derive(Clone, Debug)]
pub struct Options {
    pub addresses: Addresses,
    /// The address for people and programs; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address for metrics and probes; port 0 takes a free one.
    pub metrics_listen: SocketAddr,
}

const CHECK_INTERVAL: Duration = Duration::from_secs(5);
const POOL_SIZE: usize = 8;
/// Short, because a person waits for the page.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves until `shutdown` is cancelled, then finishes the open requests.
///
/// # Errors
/// When retrying cannot help: an address is taken, other machines could read without a login, or no database is named.
pub async fn run(
    options: Options,
    config: &Config,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let Options {
        addresses,
        listen,
        metrics_listen,
    } = options;
    let gate = auth::gate(&config.web, listen)?;
    let database = database(&addresses)?;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("listen on {listen}"))?;
    let address = listener.local_addr()?;
    let (telemetry, ready) =
        Serving::start(metrics_listen, Role::Web, &Configured::default()).await?;
    let settings = Settings {
        limits: Limits {
            connections: usize::try_from(config.web.connections)?,
            per_address: usize::try_from(config.web.connections_per_address)?,
        },
        streams_per_user: usize::try_from(config.web.streams_per_user)?,
        gate: gate.gate,
    };
    tracing::info!(%address, metrics = %telemetry.address, auth = gate.name, "web server started");
    print_ready_and_metrics(address, telemetry.address)?;
    let (broker, nats) = watch::channel(None);
    let collected = Collected::default();
    let store = Store::new(&database)?.linking(config.web.public_url.clone());
    let backend = Arc::new(Backend::new(
        store.clone(),
        nats.clone(),
        collected.clone(),
        addresses.clone(),
        backend::Configured {
            alerts: Alerts {
                rules: Rules::from_config(config),
                topology: topology(config),
            },
            deciders: Deciders::new(config.approvals.clone(), channel_keys(config)),
        },
    ));
    let serving = tokio::spawn(serve(listener, settings, backend, shutdown.clone()));
    let linked = tokio::select! {
        result = link(&addresses, &broker) => result,
        never = collected.workers.collect(nats.clone()) => match never {},
        never = collect_systems(&collected, nats.clone(), config) => match never {},
        never = keep_ready(&store, &database, nats, &ready) => match never {},
        never = auth::keep_up(gate.renewed) => match never {},
        () = shutdown.cancelled() => Ok(()),
    };
    ready.send_replace(Readiness::NotReady("draining".to_owned()));
    shutdown.cancel();
    serving.await.context("web server")?;
    telemetry.end().await;
    tracing::info!("web server stopped");
    linked
}

/// Collects the reports of workers, if any user may see them: the broker may not permit it otherwise.
async fn collect_systems(
    collected: &Collected,
    nats: watch::Receiver<Option<Nats>>,
    config: &Config,
) -> std::convert::Infallible {
    if config.web.allow.system.is_empty() {
        return std::future::pending().await;
    }
    collected.systems.collect(nats).await
}

fn database(addresses: &Addresses) -> anyhow::Result<ConnectOptions> {
    Ok(ConnectOptions {
        pool_size: POOL_SIZE,
        statement_timeout: STATEMENT_TIMEOUT,
        connect_timeout: CONNECT_TIMEOUT,
        retry_for: Duration::ZERO,
        may_be_read_only: true,
        only_reads: true,
        ..addresses.database("tarsy web")?
    })
}

/// Connects, however long it takes; the client reconnects by itself. Returns only when retrying cannot help.
async fn link(addresses: &Addresses, broker: &watch::Sender<Option<Nats>>) -> anyhow::Result<()> {
    let nats = addresses.nats_for_role("web", &log_retry).await?;
    broker.send_replace(Some(nats));
    std::future::pending().await
}

fn log_retry(error: &Error) {
    tracing::debug!(%error, "nats unavailable: retrying");
}

/// The longest time that the first connection to the broker may take before the role is impaired.
const CONNECT_GRACE: Duration = Duration::from_secs(1);

/// Keeps the readiness up to date: the server is useful while the database or the broker answers. A database that
/// another one has superseded may answer as well, so a newer one is looked for.
async fn keep_ready(
    store: &Store,
    database: &ConnectOptions,
    nats: watch::Receiver<Option<Nats>>,
    ready: &watch::Sender<Readiness>,
) -> std::convert::Infallible {
    // A role that is impaired for a moment at its start would log a warning although nothing is wrong.
    let mut first = nats.clone();
    tokio::time::timeout(CONNECT_GRACE, first.wait_for(Option::is_some))
        .await
        .ok();
    loop {
        store.look_for_a_newer_primary().await;
        let is_live = is_connected(&nats);
        let history = match check_schema(database).await {
            Ok(Schema::Current | Schema::Newer(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        let now = match (history, is_live) {
            (Ok(()), true) => Readiness::Ready,
            (Ok(()), false) => Readiness::Impaired(
                "nats unavailable: pages show the history, and are not live".to_owned(),
            ),
            (Err(error), true) => Readiness::Impaired(format!("database unavailable: {error}")),
            (Err(error), false) => {
                Readiness::NotReady(format!("nats and the database unavailable: {error}"))
            }
        };
        if ready.send_replace(now.clone()) != now {
            match now {
                Readiness::Ready => tracing::info!("database and nats available"),
                Readiness::Impaired(why) | Readiness::NotReady(why) => {
                    tracing::warn!("web server impaired: {why}")
                }
            }
        }
        tokio::time::sleep(CHECK_INTERVAL).await; // pacing of checks
    }
}

fn is_connected(nats: &watch::Receiver<Option<Nats>>) -> bool {
    nats.borrow()
        .as_ref()
        .is_some_and(|nats| nats.connection_state().connected)
}
