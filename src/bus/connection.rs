//! The connection to NATS: how it is made, kept and watched.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{Context, context::ContextBuilder};
use async_nats::{Client, ConnectError, ConnectErrorKind, Event};
use tokio::sync::watch;
use tokio::time::Instant;

use super::address::{Address, Login, without_credentials};
use super::error::Error;

const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
const PING_INTERVAL: Duration = Duration::from_secs(10);
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPT_PAUSE: Duration = Duration::from_millis(250);
const LOG_EVERY: Duration = Duration::from_secs(5);

/// How to connect. Its `Debug` form leaves the login out.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// One server or several, separated by commas: `nats://host:4222`, with a user and a password or with a token as in
    /// `nats://user:password@host`, percent-encoded. The first of them that has a login gives it for all.
    pub url: String,
    /// `worker`, `watch`, …: the connection's name and its inbox prefix, so that roles cannot read each other's replies.
    pub role: String,
    /// A credentials file.
    pub credentials: Option<PathBuf>,
    /// What to do while nobody answers.
    pub retry: ConnectRetry,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (url, retry) = (without_credentials(&self.url), self.retry);
        f.debug_struct("Options")
            .field("url", &url)
            .field("role", &self.role)
            .field("retry", &retry)
            .finish_non_exhaustive()
    }
}

/// How long to try for the first connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectRetry {
    /// A command: give up with an error.
    UpTo(Duration),
    /// A worker: log and go on.
    Forever,
}

/// How the connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionState {
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
    url: Arc<str>,
    link: watch::Receiver<ConnectionState>,
    dropped: watch::Receiver<u64>,
}

/// What the client's events are turned into.
#[derive(Debug, Default)]
struct Observed {
    link: watch::Sender<ConnectionState>,
    /// How often a subscription was so slow that messages for it were dropped.
    dropped: watch::Sender<u64>,
}

impl Nats {
    /// Connects and checks the server's version.
    ///
    /// # Errors
    ///
    /// When the URL cannot be understood ([`Error::Url`]), the server is too old or refuses, or, with [`ConnectRetry::UpTo`],
    /// does not answer in time.
    pub async fn connect(options: &Options) -> Result<Self, Error> {
        let Address { servers, login, shown: url } = Address::parse(&options.url)?;
        let begun = Instant::now();
        let mut logged = begun;
        loop {
            let observed = Arc::new(Observed::default());
            let error = match client_options(options, &login, &observed).await?.connect(servers.as_slice()).await {
                Ok(client) => return Self::checked(client, &observed, url).await,
                Err(error) => error,
            };
            if let ConnectRetry::UpTo(waited) = options.retry {
                if is_final(&error) {
                    return Err(Error::Refused { url, source: error });
                }
                if begun.elapsed() + ATTEMPT_PAUSE >= waited {
                    return Err(Error::Unreachable { url, waited, source: error });
                }
            } else if logged == begun || logged.elapsed() >= LOG_EVERY {
                logged = Instant::now();
                tracing::warn!(%url, waited_secs = begun.elapsed().as_secs(), %error, "waiting for nats");
            }
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
    }

    async fn checked(client: Client, observed: &Observed, url: String) -> Result<Self, Error> {
        if !client.is_server_compatible(2, 11, 0) {
            return Err(Error::OldServer { url, version: client.server_info().version });
        }
        let (mut link, dropped) = (observed.link.subscribe(), observed.dropped.subscribe());
        // The client tells of its first connection like of any other, only a moment later.
        let first = tokio::time::timeout(ACK_TIMEOUT, link.wait_for(|link| link.connections > 0));
        if !matches!(first.await, Ok(Ok(_))) {
            return Err(Error::Unavailable("the connection was lost again at once".to_owned()));
        }
        let jetstream = ContextBuilder::new().timeout(REQUEST_TIMEOUT).ack_timeout(ACK_TIMEOUT).build(client.clone());
        Ok(Self { client, jetstream, url: url.into(), link, dropped })
    }

    /// How the connection is now.
    pub fn connection_state(&self) -> ConnectionState {
        *self.link.borrow()
    }

    /// Tells of every change of the connection from now on.
    pub fn watch_connection(&self) -> watch::Receiver<ConnectionState> {
        let mut link = self.link.clone();
        link.mark_unchanged();
        link
    }

    /// Tells when messages were dropped because a subscription of this connection was too slow.
    pub(super) fn watch_dropped(&self) -> watch::Receiver<u64> {
        let mut dropped = self.dropped.clone();
        dropped.mark_unchanged();
        dropped
    }

    /// Returns when everything that was sent has reached the server, or after 5 s.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn flush(&self) -> Result<(), Error> {
        match tokio::time::timeout(ACK_TIMEOUT, self.client.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Error::Unavailable(error.to_string())),
            Err(_) => Err(Error::Unavailable("flush was not answered".to_owned())),
        }
    }

    /// Sends a message without a stream: presence. Dropped while the connection is unavailable.
    ///
    /// # Errors
    ///
    /// When the message cannot be sent at all.
    pub async fn show(&self, subject: String, payload: Vec<u8>) -> Result<(), Error> {
        if !self.connection_state().connected {
            return Ok(());
        }
        match tokio::time::timeout(ACK_TIMEOUT, self.client.publish(subject, payload.into())).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Error::Unavailable(error.to_string())),
            Err(_) => Err(Error::Unavailable("the connection takes no message".to_owned())),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
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
    login: &Login,
    observed: &Arc<Observed>,
) -> Result<async_nats::ConnectOptions, Error> {
    let observed = Arc::clone(observed);
    let client_options = async_nats::ConnectOptions::new()
        .name(format!("tarsy {}", options.role))
        .custom_inbox_prefix(format!("_INBOX_{}", options.role))
        .connection_timeout(CONNECTION_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .max_reconnects(None)
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            observed.take(&event);
            std::future::ready(())
        });
    // The client itself takes no notice of what a URL says beside the host.
    let client_options = match login.clone() {
        Login::None => client_options,
        Login::Password { user, password } => client_options.user_and_password(user, password),
        Login::Token(token) => client_options.token(token),
    };
    match &options.credentials {
        None => Ok(client_options),
        Some(path) => client_options
            .credentials_file(path)
            .await
            .map_err(|source| Error::Credentials { path: path.clone(), source }),
    }
}

impl Observed {
    /// Permission violations show nowhere but here: the caller only sees a timeout.
    fn take(&self, event: &Event) {
        match event {
            Event::Connected => {
                tracing::info!("nats is connected");
                let connections = self.link.borrow().connections + 1;
                if connections > 1 {
                    metrics::counter!("tarsy_nats_reconnects_total").increment(1);
                }
                self.link.send_replace(ConnectionState { connected: true, connections });
            }
            // The client's own end: whoever dropped it knows.
            Event::Closed => {
                tracing::debug!("nats connection is closed");
                self.link.send_modify(|link| link.connected = false);
            }
            Event::Disconnected => {
                tracing::warn!(%event, "nats is unavailable");
                self.link.send_modify(|link| link.connected = false);
            }
            Event::ServerError(error) => tracing::error!(%error, "nats refused something"),
            Event::ClientError(error) => tracing::warn!(%error, "nats connection"),
            Event::SlowConsumer(subscription) => {
                tracing::warn!(subscription, "messages were dropped: a reader is too slow");
                self.dropped.send_modify(|dropped| *dropped = dropped.wrapping_add(1));
            }
            Event::LameDuckMode | Event::Draining => tracing::info!(%event, "nats connection"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_show_no_password() {
        let options = Options {
            url: "nats://u:s3cret@a:4222".to_owned(),
            role: "worker".to_owned(),
            credentials: None,
            retry: ConnectRetry::Forever,
        };
        assert_eq!(format!("{options:?}"), r#"Options { url: "nats://a:4222", role: "worker", retry: Forever, .. }"#);
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
