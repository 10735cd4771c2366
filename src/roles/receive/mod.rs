//! `tarsy receive`: receives alerts over HTTP and publishes them to NATS, for monitoring systems without a NATS client.
//!
//! A client gets 202 only after the stream has acknowledged its alert. Until then the client is responsible for it.

mod token;
mod hooks;
mod broker;
mod slack;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::broker::{Broker, header_rules};
use self::hooks::Hooks;
pub use self::slack::run_slack;
pub use self::token::token;
use self::token::{TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, invalid};
use crate::process::connect::Addresses;
use crate::process::shutdown::print_ready_and_metrics;
use tarsy_bus::{Error, Nats};
use tarsy_config::{Config, process_env};
use tarsy_core::intake::{Intake, MAX_BODY_BYTES};
use tarsy_http::listener::{Limits, Token};
use tarsy_receiver::{Settings, serve};
use tarsy_telemetry::http::Readiness;
use tarsy_telemetry::metrics::Configured;
use tarsy_telemetry::names::Role;
use tarsy_telemetry::serving::Serving;

/// The arguments of the role.
#[derive(Clone, Debug)]
pub struct Options {
    pub addresses: Addresses,
    /// The address for alerts; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address for metrics and probes; port 0 takes a free one.
    pub metrics_listen: SocketAddr,
    /// The token that clients have to send.
    pub token: Option<Token>,
}

/// The time between two checks of the queue while it takes alerts.
const QUEUE_CHECK_INTERVAL: Duration = Duration::from_secs(30);
const QUEUE_RETRY_INTERVAL: Duration = Duration::from_secs(3);
/// The time limit for the head of a request, and between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(3);
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Receives until `shutdown` is cancelled, then finishes the open requests.
///
/// # Errors
/// When retrying cannot help: an address is taken, other machines could send alerts without a token, a secret of a
/// source cannot be read, the broker is too old.
pub async fn run(
    options: Options,
    config: &Config,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let listen = options.listen;
    if options.token.is_none() && !listen.ip().is_loopback() {
        let problem = format!(
            "is not set, and {listen} can be reached from other machines: set it or {TOKEN_FILE_VARIABLE}, or listen on 127.0.0.1"
        );
        return Err(invalid(TOKEN_VARIABLE, problem));
    }
    let Hooks { proofs, renewals } = Hooks::from_config(config, &process_env)?;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("listen on {listen}"))?;
    let address = listener.local_addr()?;
    let (telemetry, ready) = Serving::start(
        options.metrics_listen,
        Role::Receive,
        &Configured::default(),
    )
    .await?;
    let settings = Settings {
        max_body_bytes: MAX_BODY_BYTES,
        max_body_of_source: max_bodies(config)?,
        max_alert_bytes: usize::try_from(config.worker.max_alert_bytes)?,
        headers: header_rules(&config.receive),
        header_timeout: HEADER_TIMEOUT,
        body_timeout: BODY_TIMEOUT,
        limits: Limits {
            connections: usize::try_from(config.receive.connections)?,
            per_address: usize::try_from(config.receive.connections_per_address)?,
        },
        token: options.token.clone(),
        hooks: proofs,
        intake: Intake::new(config.sources.all()),
        routes: config.routes.clone(),
    };
    tracing::info!(%address, metrics = %telemetry.address, token = settings.token.is_some(), "receiver started");
    print_ready_and_metrics(address, telemetry.address)?;
    let (broker, queue) = watch::channel(None);
    let chains = config
        .named_chains()
        .map(|chains| chains.into_iter().map(ToOwned::to_owned).collect());
    let queue = Broker {
        nats: queue,
        chains,
    };
    let receiver = tokio::spawn(serve(listener, settings, queue, shutdown.clone()));
    let linked = tokio::select! {
        result = link(&options.addresses, &broker, &ready, Serves::Alerts) => result,
        never = token::keep_up(options.token) => match never {},
        never = hooks::keep_up(renewals) => match never {},
        () = shutdown.cancelled() => Ok(()),
    };
    ready.send_replace(Readiness::NotReady("draining".to_owned()));
    shutdown.cancel();
    receiver.await.context("receiver")?;
    telemetry.end().await;
    tracing::info!("receiver stopped");
    linked
}

/// The requests that a process takes. They have broker users of their own: the one that reads the bodies of strangers
/// may not send what people decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    Alerts,
    Slack,
}

impl Serves {
    fn nats_role(self) -> &'static str {
        match self {
            Self::Alerts => "receive",
            Self::Slack => "slack",
        }
    }

    /// One request in words.
    fn one(self) -> &'static str {
        match self {
            Self::Alerts => "alert",
            Self::Slack => "request",
        }
    }
}

/// The limits of the sources that have one.
fn max_bodies(config: &Config) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut limits = BTreeMap::new();
    for configured in config.sources.iter() {
        if let Some(bytes) = configured.max_body {
            limits.insert(configured.source.name.clone(), usize::try_from(bytes)?);
        }
    }
    Ok(limits)
}

/// Connects, however long it takes, and keeps the readiness up to date. Returns only when retrying cannot help.
async fn link(
    addresses: &Addresses,
    broker: &watch::Sender<Option<Nats>>,
    ready: &watch::Sender<Readiness>,
    serves: Serves,
) -> anyhow::Result<()> {
    let unavailable = || Readiness::NotReady("nats unavailable".to_owned());
    ready.send_replace(unavailable());
    let nats = addresses
        .nats_for_role(serves.nats_role(), &|error| {
            let is_refused = matches!(error, Error::Refused { .. });
            ready.send_replace(if is_refused {
                not_ready(error)
            } else {
                unavailable()
            });
        })
        .await?;
    let mut link = nats.watch_connection();
    broker.send_replace(Some(nats.clone()));
    loop {
        let connected = link.borrow_and_update().connected;
        let now = match serves {
            _ if !connected => unavailable(),
            Serves::Alerts => queue(&nats).await,
            // The role may only publish.
            Serves::Slack => Readiness::Ready,
        };
        let interval = if now == Readiness::Ready {
            QUEUE_CHECK_INTERVAL
        } else {
            QUEUE_RETRY_INTERVAL
        };
        if ready.send_replace(now.clone()) != now {
            match now {
                Readiness::NotReady(_) if !connected => {
                    tracing::warn!(
                        "nats disconnected: every {} is answered with 503 until nats is back",
                        serves.one()
                    );
                }
                Readiness::NotReady(why) => {
                    tracing::warn!("every {} is answered with 503: {why}", serves.one())
                }
                Readiness::Ready | Readiness::Impaired(_) => {
                    tracing::info!("nats connected: {}s are queued", serves.one())
                }
            }
        }
        tokio::select! {
            changed = link.changed() => if changed.is_err() {
                // The sender lives as long as the client, which lives in `broker`.
                anyhow::bail!("the connection to nats has ended");
            },
            () = tokio::time::sleep(interval), if connected => {} // pacing of checks
        }
    }
}

/// Whether the queue takes alerts.
async fn queue(nats: &Nats) -> Readiness {
    match nats.check_queue().await {
        Ok(()) => Readiness::Ready,
        Err(error) => not_ready(&error),
    }
}

fn not_ready(error: &Error) -> Readiness {
    Readiness::NotReady(match error.fix() {
        Some(fix) => format!("{error}. Fix: {fix}"),
        None => error.to_string(),
    })
}
