//! The connection to NATS: how it is made, kept and watched.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{Context, context::ContextBuilder};
use async_nats::{Client, ConnectError, ConnectErrorKind, Event};
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::Error;

const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
const PING_INTERVAL: Duration = Duration::from_secs(10);
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPT_PAUSE: Duration = Duration::from_millis(250);
const LOG_EVERY: Duration = Duration::from_secs(5);

/// How to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// One server or several, separated by commas.
    pub url: String,
    /// `worker`, `watch`, …: the connection's name and its inbox prefix, so that roles cannot read each other's replies.
    pub role: String,
    /// A credentials file.
    pub credentials: Option<PathBuf>,
    /// What to do while nobody answers.
    pub patience: Patience,
}

/// How long to try for the first connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// A command: give up with an error.
    Bounded(Duration),
    /// A worker: log and go on.
    Endless,
}

/// How the connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// It stands.
    pub connected: bool,
    /// Grows with every reconnect: what the server kept for this connection (pull requests, replies) is gone.
    pub connections: u64,
}

/// A connection that repairs itself.
#[derive(Clone, Debug)]
pub struct Nats {
    client: Client,
    jetstream: Context,
    link: watch::Receiver<Link>,
}

impl Nats {
    /// Connects and checks the server's version.
    ///
    /// # Errors
    ///
    /// When the server is too old, refuses, cannot be named or, with bounded patience, does not answer in time.
    pub async fn connect(options: &Options) -> Result<Self, Error> {
        let url = without_credentials(&options.url);
        let servers: Vec<&str> = options.url.split(',').map(str::trim).collect();
        let begun = Instant::now();
        let mut logged = begun;
        loop {
            let (link, watched) = watch::channel(Link::default());
            let link = Arc::new(link);
            let error = match client_options(options, &link).await?.connect(servers.as_slice()).await {
                Ok(client) => {
                    link.send_modify(|link| link.connected = true);
                    return Self::checked(client, watched, url);
                }
                Err(error) => error,
            };
            if let Patience::Bounded(waited) = options.patience {
                if is_final(&error) {
                    return Err(Error::Refused { url, source: error });
                }
                if begun.elapsed() + ATTEMPT_PAUSE >= waited {
                    return Err(Error::Unreachable { url, waited, source: error });
                }
            } else if error.kind() == ConnectErrorKind::ServerParse {
                return Err(Error::Refused { url, source: error });
            } else if logged == begun || logged.elapsed() >= LOG_EVERY {
                logged = Instant::now();
                tracing::warn!(%url, waited_secs = begun.elapsed().as_secs(), %error, "waiting for nats");
            }
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
    }

    fn checked(client: Client, link: watch::Receiver<Link>, url: String) -> Result<Self, Error> {
        if !client.is_server_compatible(2, 11, 0) {
            return Err(Error::OldServer { url, version: client.server_info().version });
        }
        let jetstream = ContextBuilder::new().timeout(REQUEST_TIMEOUT).ack_timeout(ACK_TIMEOUT).build(client.clone());
        Ok(Self { client, jetstream, link })
    }

    /// How the connection is now.
    pub fn link(&self) -> Link {
        *self.link.borrow()
    }

    /// Tells of every change of the connection from now on.
    pub fn watch_link(&self) -> watch::Receiver<Link> {
        let mut link = self.link.clone();
        link.mark_unchanged();
        link
    }

    /// Returns when everything that was sent has reached the server, or after 5 s.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn flush(&self) -> Result<(), Error> {
        match tokio::time::timeout(ACK_TIMEOUT, self.client.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Error::Away(error.to_string())),
            Err(_) => Err(Error::Away("flush was not answered".to_owned())),
        }
    }

    /// Sends a message without a stream: presence. Dropped while the connection is away.
    ///
    /// # Errors
    ///
    /// When the message cannot be sent at all.
    pub async fn show(&self, subject: String, payload: Vec<u8>) -> Result<(), Error> {
        if !self.link().connected {
            return Ok(());
        }
        match tokio::time::timeout(ACK_TIMEOUT, self.client.publish(subject, payload.into())).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Error::Away(error.to_string())),
            Err(_) => Err(Error::Away("the connection takes no message".to_owned())),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn jetstream(&self) -> &Context {
        &self.jetstream
    }
}

async fn client_options(
    options: &Options,
    link: &Arc<watch::Sender<Link>>,
) -> Result<async_nats::ConnectOptions, Error> {
    let link = Arc::clone(link);
    let client_options = async_nats::ConnectOptions::new()
        .name(format!("tarsy {}", options.role))
        .custom_inbox_prefix(format!("_INBOX_{}", options.role))
        .connection_timeout(CONNECTION_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .max_reconnects(None)
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            observe(&event, &link);
            std::future::ready(())
        });
    match &options.credentials {
        None => Ok(client_options),
        Some(path) => client_options
            .credentials_file(path)
            .await
            .map_err(|source| Error::Credentials { path: path.clone(), source }),
    }
}

/// Permission violations show nowhere but here: the caller only sees a timeout.
fn observe(event: &Event, link: &watch::Sender<Link>) {
    match event {
        Event::Connected => {
            tracing::info!("nats is connected");
            link.send_modify(|link| *link = Link { connected: true, connections: link.connections + 1 });
        }
        // The client's own end: whoever dropped it knows.
        Event::Closed => {
            tracing::debug!("nats connection is closed");
            link.send_modify(|link| link.connected = false);
        }
        Event::Disconnected => {
            tracing::warn!(%event, "nats is away");
            link.send_modify(|link| link.connected = false);
        }
        Event::ServerError(error) => tracing::error!(%error, "nats refused something"),
        Event::ClientError(error) => tracing::warn!(%error, "nats connection"),
        Event::SlowConsumer(subscription) => {
            tracing::warn!(subscription, "messages were dropped: a reader is too slow")
        }
        Event::LameDuckMode | Event::Draining => tracing::info!(%event, "nats connection"),
    }
}

/// Grows to 4 s, with jitter so that a fleet does not come back at one instant.
fn reconnect_delay(attempt: usize) -> Duration {
    let ceiling_ms = match attempt {
        0 => 0.0,
        1 => 50.0,
        2..=7 => 62.5 * f64::from(1_u32 << attempt.min(7)) / 2.0,
        _ => 4000.0,
    };
    Duration::from_secs_f64(ceiling_ms * fastrand::f64().mul_add(0.5, 0.5) / 1000.0)
}

fn is_final(error: &ConnectError) -> bool {
    matches!(
        error.kind(),
        ConnectErrorKind::ServerParse | ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation
    )
}

fn without_credentials(url: &str) -> String {
    let shown = |server: &str| match (server.find("://"), server.rfind('@')) {
        (Some(scheme), Some(at)) => {
            format!("{}://{}", server.get(..scheme).unwrap_or_default(), server.get(at + 1..).unwrap_or_default())
        }
        (None, Some(at)) => server.get(at + 1..).unwrap_or_default().to_owned(),
        (_, None) => server.to_owned(),
    };
    url.split(',').map(shown).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_do_not_show_in_errors() {
        assert_eq!(without_credentials("nats://user:s3cret@a:4222,tls://b:4222,u:p@c"), "nats://a:4222,tls://b:4222,c");
    }

    #[test]
    fn the_first_connection_is_tried_at_once_and_later_ones_at_most_every_four_seconds() {
        assert!(reconnect_delay(0).is_zero());
        assert!(reconnect_delay(1) <= Duration::from_millis(50));
        for attempt in 2..100 {
            let delay = reconnect_delay(attempt);
            assert!(delay >= Duration::from_millis(30) && delay <= Duration::from_secs(4), "{attempt}: {delay:?}");
        }
    }
}
