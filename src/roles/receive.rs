//! `tarsy receive`: receives alerts over HTTP and publishes them to NATS, for monitoring systems without a NATS client.
//!
//! A client gets 202 only after the stream has acknowledged its alert. Until then the client is responsible for it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::connect::Addresses;
use super::shutdown::print_ready_and_metrics;
use crate::bus::{self, ASKED_BY, CHAIN, Error, Nats, NewAlert, PARENT_ID, SESSION_ID, TRACEPARENT};
use crate::config::{Config, Receive, Secret, environment_fault, process_env};
use crate::investigation::ids::SessionId;
use crate::listener::{Limits, Token};
use crate::receiver::{HeaderRules, InboundAlert, PublishError, Published, Queue, Settings, serve};
use crate::telemetry::http::Readiness;
use crate::telemetry::metrics::Configured;
use crate::telemetry::names::Role;
use crate::telemetry::serving::Serving;

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

const TOKEN_VARIABLE: &str = "TARSY_RECEIVE_TOKEN";
const TOKEN_FILE_VARIABLE: &str = "TARSY_RECEIVE_TOKEN_FILE";
/// Between two checks of the queue while it takes alerts.
const QUEUE_CHECK_INTERVAL: Duration = Duration::from_secs(30);
const QUEUE_RETRY_INTERVAL: Duration = Duration::from_secs(3);
const TOKEN_READ_INTERVAL: Duration = Duration::from_secs(2);
/// For the head of a request, and between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(3);
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// While the broker is unavailable. The client of NATS reconnects by itself.
const UNAVAILABLE_RETRY_DELAY: Duration = Duration::from_secs(5);
/// A full queue gets shorter by one investigation at a time.
const FULL_RETRY_DELAY: Duration = Duration::from_secs(30);

/// The token from the environment, if there is one.
///
/// # Errors
/// When the token cannot be read, or no client could send it. The error does not show its value.
pub fn token() -> anyhow::Result<Option<Token>> {
    let (name, text) = match (process_env(TOKEN_VARIABLE), process_env(TOKEN_FILE_VARIABLE)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let problem = format!("is set, and {TOKEN_FILE_VARIABLE} as well; accepted: one of them");
            return Err(invalid(TOKEN_VARIABLE, problem));
        }
        (Some(text), None) => (TOKEN_VARIABLE, text),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| invalid(TOKEN_FILE_VARIABLE, format!("{file}: {error}")))?;
            (TOKEN_FILE_VARIABLE, text)
        }
    };
    let problem = "is empty or has spaces or letters beyond ASCII; accepted: visible ASCII characters";
    Token::new(text.trim_end()).map(Some).ok_or_else(|| invalid(name, problem.to_owned()))
}

/// Reads the file of the token again and again, so that a renewed token is accepted without a restart.
async fn keep_up(token: Option<Token>) -> Infallible {
    let (Some(token), Some(file)) = (token, Secret::file_of(TOKEN_FILE_VARIABLE, &process_env)) else {
        return std::future::pending().await;
    };
    let mut last_fault = None;
    loop {
        tokio::time::sleep(TOKEN_READ_INTERVAL).await; // pacing of reads
        let fault = match file.read() {
            Ok(text) if token.renew(&text) => None,
            Ok(_) => Some("the file has no token".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault.as_ref().filter(|_| fault != last_fault) {
            tracing::error!(fault, "token not read again: the last one stays in use");
        }
        last_fault = fault;
    }
}

fn invalid(variable: &str, problem: String) -> anyhow::Error {
    environment_fault(variable, problem).into()
}

/// Receives until `shutdown` is cancelled, then finishes the open requests.
///
/// # Errors
/// When retrying cannot help: an address is taken, other machines could send alerts without a token, the broker is too
/// old.
pub async fn run(options: Options, config: &Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    let Options { addresses, listen, metrics_listen, token } = options;
    if token.is_none() && !listen.ip().is_loopback() {
        let problem = format!(
            "is not set, and {listen} can be reached from other machines: set it or {TOKEN_FILE_VARIABLE}, or listen on 127.0.0.1"
        );
        return Err(invalid(TOKEN_VARIABLE, problem));
    }
    let listener = TcpListener::bind(listen).await.with_context(|| format!("listen on {listen}"))?;
    let address = listener.local_addr()?;
    let (telemetry, ready) = Serving::start(metrics_listen, Role::Receive, &Configured::default()).await?;
    let settings = Settings {
        max_body_bytes: usize::try_from(config.worker.max_alert_bytes)?,
        headers: header_rules(&config.receive),
        header_timeout: HEADER_TIMEOUT,
        body_timeout: BODY_TIMEOUT,
        limits: Limits {
            connections: usize::try_from(config.receive.connections)?,
            per_address: usize::try_from(config.receive.connections_per_address)?,
        },
        token: token.clone(),
    };
    tracing::info!(%address, metrics = %telemetry.address, token = settings.token.is_some(), "receiver started");
    print_ready_and_metrics(address, telemetry.address)?;
    let (broker, queue) = watch::channel(None);
    let chains = config.named_chains().map(|chains| chains.into_iter().map(ToOwned::to_owned).collect());
    let receiver = tokio::spawn(serve(listener, settings, Broker { nats: queue, chains }, shutdown.clone()));
    let linked = tokio::select! {
        result = link(&addresses, &broker, &ready) => result,
        never = keep_up(token) => match never {},
        () = shutdown.cancelled() => Ok(()),
    };
    ready.send_replace(Readiness::NotReady("draining".to_owned()));
    shutdown.cancel();
    receiver.await.context("receiver")?;
    telemetry.end().await;
    tracing::info!("receiver stopped");
    linked
}

/// Connects, however long it takes, and keeps the readiness up to date. Returns only when retrying cannot help.
async fn link(
    addresses: &Addresses,
    broker: &watch::Sender<Option<Nats>>,
    ready: &watch::Sender<Readiness>,
) -> anyhow::Result<()> {
    let unavailable = || Readiness::NotReady("nats unavailable".to_owned());
    ready.send_replace(unavailable());
    let report = |error: &Error| {
        let is_refused = matches!(error, Error::Refused { .. });
        ready.send_replace(if is_refused { not_ready(error) } else { unavailable() });
    };
    let nats = addresses.nats_for_role("receive", &report).await?;
    let mut link = nats.watch_connection();
    broker.send_replace(Some(nats.clone()));
    loop {
        let connected = link.borrow_and_update().connected;
        let now = if connected { queue(&nats).await } else { unavailable() };
        let interval = if now == Readiness::Ready { QUEUE_CHECK_INTERVAL } else { QUEUE_RETRY_INTERVAL };
        if ready.send_replace(now.clone()) != now {
            match now {
                Readiness::NotReady(_) if !connected => {
                    tracing::warn!("nats disconnected: every alert is answered with 503 until nats is back");
                }
                Readiness::NotReady(why) => tracing::warn!("every alert is answered with 503: {why}"),
                Readiness::Ready | Readiness::Impaired(_) => tracing::info!("nats connected: alerts are queued"),
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

/// The stream of alerts, once there is a connection.
#[derive(Debug)]
struct Broker {
    nats: watch::Receiver<Option<Nats>>,
    /// `None`: the configuration defines no chain, so it does not tell which ones the workers know.
    chains: Option<Vec<String>>,
}

impl Queue for Broker {
    async fn publish(&self, alert: InboundAlert) -> Result<Published, PublishError> {
        // A message that waits in the buffer of a lost connection would be published in addition to the client's next
        // try.
        let (session_id, headers) = with_session_id(alert.headers, self.chains.as_deref())?;
        let nats = self.nats.borrow().clone().filter(|nats| nats.connection_state().connected);
        let Some(nats) = nats else {
            return Err(unavailable("the queue is unavailable", UNAVAILABLE_RETRY_DELAY));
        };
        let alert = NewAlert {
            priority: alert.priority.into(),
            suffix: alert.suffix.parse().ok(),
            body: alert.body.to_vec(),
            headers,
        };
        match nats.publish_alert(alert).await {
            Ok(published) => {
                let (subject, stream_sequence) = (published.subject, published.sequence);
                tracing::info!(%session_id, subject, stream_sequence, "alert published");
                Ok(Published { session_id, subject, stream_sequence })
            }
            Err(error) => {
                tracing::warn!(%session_id, "alert not published: {error}");
                Err(publish_error(&error))
            }
        }
    }
}

/// The rule for each header that a message may have. A proxy adds a `traceparent` of its own, so the response does not
/// name that header when it is ignored.
fn header_rules(receive: &Receive) -> HeaderRules {
    let forbidden = vec![PARENT_ID, ASKED_BY];
    let is_listed = |name: &str| !forbidden.contains(&name) && receive.headers.iter().any(|listed| listed == name);
    let (forwarded, rest): (Vec<_>, Vec<_>) = bus::ALLOWED.into_iter().partition(|name| is_listed(name));
    let ignored = rest.into_iter().filter(|name| *name != TRACEPARENT && !forbidden.contains(name)).collect();
    HeaderRules { forwarded, ignored, forbidden }
}

/// The session id that the client chose, otherwise a new one; and the headers with this id.
///
/// # Errors
/// When a worker would give the alert up for one of the headers.
fn with_session_id(
    headers: Vec<(&'static str, String)>,
    chains: Option<&[String]>,
) -> Result<(SessionId, Value), PublishError> {
    let given = |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, text)| text.as_str());
    let session_id = match given(SESSION_ID) {
        Some(text) => SessionId::parse(text).ok_or_else(|| {
            PublishError::Invalid(format!("header {SESSION_ID} is not a UUID of version 7; without it, one is chosen"))
        })?,
        None => SessionId(Uuid::now_v7()),
    };
    let chain = given(CHAIN).map(str::trim).filter(|chain| !chain.is_empty());
    if let (Some(chain), Some(chains)) = (chain, chains)
        && !chains.iter().any(|known| known == chain)
    {
        let known = chains.join(", ");
        return Err(PublishError::Invalid(format!("header {CHAIN} names no chain of tarsy.yaml; there are: {known}")));
    }
    let mut map: Map<String, Value> = headers.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
    map.insert(SESSION_ID.to_owned(), session_id.to_string().into());
    Ok((session_id, Value::Object(map)))
}

fn unavailable(reason: &str, retry_after: Duration) -> PublishError {
    PublishError::Unavailable { reason: reason.to_owned(), retry_after }
}

/// The error for the client. The log has the broker's own words.
fn publish_error(error: &Error) -> PublishError {
    match error {
        Error::Full { .. } => unavailable("the queue is full", FULL_RETRY_DELAY),
        Error::TooLarge { .. } => PublishError::TooLarge("body is larger than what the queue takes".to_owned()),
        Error::Header(_) => PublishError::Invalid(error.to_string()),
        Error::NoStream(_) => unavailable("the queue does not exist: run `tarsy migrate`", FULL_RETRY_DELAY),
        Error::NoJetStream { .. } => {
            unavailable("the queue has no JetStream: start nats-server with -js", FULL_RETRY_DELAY)
        }
        Error::Unavailable(_)
        | Error::Url { .. }
        | Error::BodyNotKept(_)
        | Error::Unreachable { .. }
        | Error::Refused { .. }
        | Error::Credentials { .. }
        | Error::OldServer { .. }
        | Error::Admin { .. }
        | Error::Topology(_)
        | Error::Storage { .. }
        | Error::PlacementWithoutCluster(_)
        | Error::Duplicate(_)
        | Error::Rejected { .. } => unavailable("the queue did not store the alert", UNAVAILABLE_RETRY_DELAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_can_be_listed_except_the_parent_of_a_question() {
        let all = Receive { headers: crate::config::RECEIVE_HEADERS.map(str::to_owned).into(), ..Receive::default() };
        let HeaderRules { mut forwarded, ignored, forbidden } = header_rules(&all);
        assert_eq!((ignored, &forbidden), (vec![], &vec![PARENT_ID, ASKED_BY]));
        forwarded.extend(forbidden);
        forwarded.sort_unstable();
        let mut known = bus::ALLOWED;
        known.sort_unstable();
        assert_eq!(forwarded, known);
        let none = header_rules(&Receive { headers: vec![PARENT_ID.to_owned()], ..Receive::default() });
        assert_eq!((none.forwarded.len(), none.ignored.len()), (0, bus::ALLOWED.len() - 3), "{none:?}");
    }

    #[test]
    fn a_session_id_of_the_client_is_kept_and_an_invalid_id_or_chain_is_refused() {
        let own = Uuid::now_v7().to_string();
        let named = vec![(SESSION_ID, own.clone()), ("Tarsy-Title", "t".to_owned())];
        let (id, headers) = with_session_id(named, None).unwrap();
        assert_eq!(id.to_string(), own);
        assert_eq!(headers, serde_json::json!({"Tarsy-Session-Id": own, "Tarsy-Title": "t"}));
        let (id, headers) = with_session_id(vec![], None).unwrap();
        assert_eq!(headers, serde_json::json!({"Tarsy-Session-Id": id.to_string()}));
        assert_eq!(id.0.get_version_num(), 7);
        let chains = ["db".to_owned(), "k8s".to_owned()];
        let chain = |name: &str| vec![(CHAIN, name.to_owned())];
        for (headers, refused) in [
            (vec![(SESSION_ID, "42".to_owned())], "is not a UUID of version 7"),
            (chain("nope"), "names no chain of tarsy.yaml; there are: db, k8s"),
        ] {
            let Err(PublishError::Invalid(why)) = with_session_id(headers, Some(&chains)) else { panic!("accepted") };
            assert!(why.contains(refused), "{why}");
        }
        assert!(with_session_id(chain(" k8s "), Some(&chains)).is_ok());
        assert!(with_session_id(chain("of-the-workers"), None).is_ok(), "this process does not know the chains");
    }
}
