//! `tarsy receive`: takes alerts over HTTP and queues them, for monitoring systems that do not speak NATS.
//!
//! A client hears 202 only after the stream has acknowledged its alert: until then the alert is the client's.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::connect::Addresses;
use super::shutdown::say_ready_and_metrics;
use crate::bus::{self, Error, Nats, NewAlert, PARENT_ID, SESSION_ID, TRACEPARENT};
use crate::config::{Config, Fault, Faults, Receive, process_env};
use crate::investigation::ids::SessionId;
use crate::listener::Limits;
use crate::receiver::{Headers, Queue, Refused, Settings, Stored, Token, Visitor, serve};
use crate::telemetry::http::Readiness;
use crate::telemetry::names::Role;
use crate::telemetry::serving::Serving;

/// How to receive.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the broker is.
    pub addresses: Addresses,
    /// Where the door is; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where metrics and health are served; port 0 takes a free one.
    pub metrics_listen: SocketAddr,
    /// What clients have to show.
    pub token: Option<Token>,
}

const TOKEN: &str = "TARSY_RECEIVE_TOKEN";
const TOKEN_FILE: &str = "TARSY_RECEIVE_TOKEN_FILE";
/// For a head, and between two requests.
const HEAD_PATIENCE: Duration = Duration::from_secs(3);
/// For a body.
const PATIENCE: Duration = Duration::from_secs(10);
/// While the broker is unavailable: it is tried again at once, and clients wait on their own anyway.
const UNAVAILABLE_RETRY: Duration = Duration::from_secs(5);
/// A full queue gets shorter by one investigation at a time.
const FULL_RETRY: Duration = Duration::from_secs(30);

/// The token that the environment names, if it does.
///
/// # Errors
/// When it cannot be read or no client could send it; the value is not shown.
pub fn token() -> anyhow::Result<Option<Token>> {
    let (name, text) = match (process_env(TOKEN), process_env(TOKEN_FILE)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(wrong(TOKEN, format!("is set, and {TOKEN_FILE} as well; accepted: one of them")));
        }
        (Some(text), None) => (TOKEN, text),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(&file);
            (TOKEN_FILE, text.map_err(|error| wrong(TOKEN_FILE, format!("{file}: {error}")))?)
        }
    };
    let usable = "is empty or has spaces or letters beyond ASCII; accepted: visible ASCII characters";
    Token::new(text.trim_end()).map(Some).ok_or_else(|| wrong(name, usable.to_owned()))
}

fn wrong(key: &str, problem: String) -> anyhow::Error {
    let fault = Fault { key: key.to_owned(), line: 0, problem };
    Faults { file: "environment".to_owned(), faults: vec![fault] }.into()
}

/// Receives until `shutdown` is cancelled, then finishes the open requests.
///
/// # Errors
/// When something is wrong that waiting does not mend: an address is taken, everybody could come in, the broker is too old.
pub async fn run(options: Options, config: &Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    let Options { addresses, listen, metrics_listen, token } = options;
    if token.is_none() && !listen.ip().is_loopback() {
        let problem = format!(
            "is not set, and {listen} can be reached from other machines: set it or {TOKEN_FILE}, or listen on 127.0.0.1"
        );
        return Err(wrong(TOKEN, problem));
    }
    let listener = TcpListener::bind(listen).await.with_context(|| format!("listen on {listen}"))?;
    let address = listener.local_addr()?;
    let (telemetry, ready) = Serving::start(metrics_listen, Role::Receive, &[]).await?;
    let settings = Settings {
        max_body_bytes: usize::try_from(config.worker.max_alert_bytes)?,
        headers: headers(&config.receive),
        head_patience: HEAD_PATIENCE,
        patience: PATIENCE,
        limits: Limits {
            connections: usize::try_from(config.receive.connections)?,
            per_address: usize::try_from(config.receive.connections_per_address)?,
        },
        token,
    };
    tracing::info!(%address, metrics = %telemetry.address(), token = settings.token.is_some(), "receives alerts over HTTP");
    say_ready_and_metrics(address, telemetry.address())?;
    let (broker, queue) = watch::channel(None);
    let door = tokio::spawn(serve(listener, settings, Broker(queue), shutdown.clone()));
    let linked = tokio::select! {
        result = link(&addresses, &broker, &ready) => result,
        () = shutdown.cancelled() => Ok(()),
    };
    ready.send_replace(Readiness::NotReady("draining".to_owned()));
    shutdown.cancel();
    door.await.context("the door")?;
    telemetry.end().await;
    tracing::info!("the door is closed");
    linked
}

/// Connects, however long it takes, and tells whether the connection stands. Returns only for what waiting cannot mend.
async fn link(
    addresses: &Addresses,
    broker: &watch::Sender<Option<Nats>>,
    ready: &watch::Sender<Readiness>,
) -> anyhow::Result<()> {
    let unavailable = || Readiness::NotReady("nats unavailable".to_owned());
    ready.send_replace(unavailable());
    let nats = addresses.nats_for_role("receive").await?;
    let mut link = nats.watch_connection();
    broker.send_replace(Some(nats));
    loop {
        let connected = link.borrow_and_update().connected;
        if connected {
            tracing::info!("alerts are queued");
        } else {
            tracing::warn!("every alert is answered with 503 until nats is back");
        }
        ready.send_replace(if connected { Readiness::Ready } else { unavailable() });
        if link.changed().await.is_err() {
            // The sender lives as long as the client, which lives in `broker`.
            anyhow::bail!("the connection to nats has ended");
        }
    }
}

/// The stream of alerts, once it can be reached.
#[derive(Debug)]
struct Broker(watch::Receiver<Option<Nats>>);

impl Queue for Broker {
    async fn put(&self, visitor: Visitor) -> Result<Stored, Refused> {
        // What is published while the connection is unavailable would wait in its buffer, and the client tries again: twice.
        let nats = self.0.borrow().clone().filter(|nats| nats.connection_state().connected);
        let Some(nats) = nats else {
            return Err(later("the queue is unavailable", UNAVAILABLE_RETRY));
        };
        let (session_id, headers) = with_id(visitor.headers);
        let alert = NewAlert {
            priority: visitor.priority.into(),
            suffix: Some(visitor.suffix.to_owned()),
            body: visitor.body.to_vec(),
            headers,
        };
        match nats.publish_alert(alert).await {
            Ok(published) => {
                let (subject, stream_sequence) = (published.subject, published.sequence);
                tracing::info!(%session_id, subject, stream_sequence, "alert received");
                Ok(Stored { session_id, subject, stream_sequence })
            }
            Err(error) => {
                tracing::warn!(%session_id, "alert was not queued: {error}");
                Err(refused(&error))
            }
        }
    }
}

/// What becomes of each header that a message may have. A proxy adds a trace of its own: the answer does not name it.
fn headers(receive: &Receive) -> Headers {
    let is_listed = |name: &str| name != PARENT_ID && receive.headers.iter().any(|listed| listed == name);
    let (passed, rest): (Vec<_>, Vec<_>) = bus::ALLOWED.into_iter().partition(|name| is_listed(name));
    let left_out = rest.into_iter().filter(|name| ![PARENT_ID, TRACEPARENT].contains(name)).collect();
    Headers { passed, left_out, refused: vec![PARENT_ID] }
}

/// The id that the client chose, if it is one, else a new one; it goes with the alert.
fn with_id(headers: Vec<(&'static str, String)>) -> (SessionId, Value) {
    let chosen = headers.iter().find(|(name, _)| *name == SESSION_ID).and_then(|(_, text)| SessionId::parse(text));
    let session_id = chosen.unwrap_or_else(|| SessionId(Uuid::now_v7()));
    let mut map: Map<String, Value> = headers.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
    map.insert(SESSION_ID.to_owned(), session_id.to_string().into());
    (session_id, Value::Object(map))
}

fn later(why: &str, retry_after: Duration) -> Refused {
    Refused::Later { why: why.to_owned(), retry_after }
}

/// What the client is told; the log has the server's own words.
fn refused(error: &Error) -> Refused {
    match error {
        Error::Full { .. } => later("the queue is full", FULL_RETRY),
        Error::TooLarge { .. } => Refused::TooLarge("body is larger than what the queue takes".to_owned()),
        Error::Header(_) | Error::Suffix(_) => Refused::Never(error.to_string()),
        Error::NoStream(_) => later("there is no queue: run `tarsy migrate`", FULL_RETRY),
        Error::Unavailable(_)
        | Error::Url { .. }
        | Error::NotKept(_)
        | Error::Unreachable { .. }
        | Error::Refused { .. }
        | Error::Credentials { .. }
        | Error::OldServer { .. }
        | Error::Admin { .. }
        | Error::Topology(_)
        | Error::Duplicate(_)
        | Error::Rejected { .. } => later("the queue did not take it", UNAVAILABLE_RETRY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_of_an_alert_can_be_listed_but_the_one_of_a_question() {
        let all = Receive { headers: crate::config::RECEIVE_HEADERS.map(str::to_owned).into(), ..Receive::default() };
        let Headers { mut passed, left_out, refused } = headers(&all);
        assert_eq!((left_out, refused), (vec![], vec![PARENT_ID]));
        passed.push(PARENT_ID);
        passed.sort_unstable();
        let mut known = bus::ALLOWED;
        known.sort_unstable();
        assert_eq!(passed, known);
        let none = headers(&Receive { headers: vec![PARENT_ID.to_owned()], ..Receive::default() });
        assert_eq!((none.passed.len(), none.left_out.len()), (0, bus::ALLOWED.len() - 2), "{none:?}");
    }

    #[test]
    fn a_valid_id_of_the_client_is_kept_and_any_other_replaced() {
        let own = Uuid::now_v7().to_string();
        let (id, headers) = with_id(vec![(SESSION_ID, own.clone()), ("Tarsy-Title", "t".to_owned())]);
        assert_eq!(id.to_string(), own);
        assert_eq!(headers, serde_json::json!({"Tarsy-Session-Id": own, "Tarsy-Title": "t"}));
        for wrong in [vec![], vec![(SESSION_ID, "42".to_owned())]] {
            let (id, headers) = with_id(wrong);
            assert_eq!(headers, serde_json::json!({"Tarsy-Session-Id": id.to_string()}));
            assert_eq!(id.0.get_version_num(), 7);
        }
    }
}
