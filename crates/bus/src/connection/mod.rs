//! The connection to NATS: connects, reconnects and reports its state.

mod servers;

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{Context, context::ContextBuilder};
use async_nats::{AuthError, Client, ConnectError, ConnectErrorKind, Event};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::servers::ServerChanges;
use super::address::{Address, Login, without_credentials};
use super::credentials::{ClientCertificate, Credentials};
use super::error::{Error, within};
use tarsy_engine::backoff::Backoff;

const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
const PING_INTERVAL: Duration = Duration::from_secs(10);
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_RETRY_DELAY: Duration = Duration::from_millis(250);
/// The time between two connections, after the first attempt.
const RECONNECT_BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    max: Duration::from_secs(4),
};
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// The options of a connection. The `Debug` form leaves the login out.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// One server or several, separated by commas: `nats://host:4222`, with a user and a password or with a token as in
    /// `nats://user:password@host`, percent-encoded. The first login is used for all servers.
    pub url: String,
    /// `worker`, `watch`, …: the connection's name and its inbox prefix, so that roles cannot read each other's
    /// replies.
    pub role: String,
    pub credentials: Credentials,
    /// The time to retry while no server answers.
    pub retry: ConnectRetry,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("url", &without_credentials(&self.url))
            .field("role", &self.role)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// The time to try for the first connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectRetry {
    /// The time limit for a command: then fail with an error.
    UpTo(Duration),
    /// For a role: log and retry.
    Forever,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionState {
    pub connected: bool,
    /// Number of connections so far. After a reconnect the server has lost the pull requests and replies of the one
    /// before.
    pub connections: u64,
}

/// A connection that reconnects by itself.
#[derive(Clone, Debug)]
pub struct Nats {
    pub(super) client: Client,
    pub(super) jetstream: Context,
    /// The URL without credentials.
    pub(super) url: Arc<str>,
    state: watch::Receiver<ConnectionState>,
    dropped: watch::Receiver<u64>,
    pub(super) changes: Arc<ServerChanges>,
    /// Reads the file with the servers again, until the last clone of the connection is dropped.
    _file: Option<Arc<AbortOnDropHandle<()>>>,
}

/// Turns the client's events into the state of the connection, logs and metrics.
#[derive(Debug, Default)]
struct ConnectionEvents {
    state: watch::Sender<ConnectionState>,
    /// The number of times that messages were dropped because a subscription was too slow.
    dropped: watch::Sender<u64>,
}

impl Nats {
    /// Connects and checks the server's version.
    ///
    /// # Errors
    ///
    /// When the URL cannot be understood ([`Error::Url`]), a file of the credentials cannot be used, the server is too
    /// old or refuses, or, with [`ConnectRetry::UpTo`], does not answer in time.
    pub async fn connect(options: &Options) -> Result<Self, Error> {
        Self::connect_reporting(options, &|_| {}).await
    }

    /// Like [`Self::connect`]; each failed try is also given to `report`.
    ///
    /// # Errors
    ///
    /// As [`Self::connect`].
    pub async fn connect_reporting(
        options: &Options,
        report: &(dyn Fn(&Error) + Sync),
    ) -> Result<Self, Error> {
        let Address {
            servers,
            login,
            redacted: url,
        } = Address::parse(&options.url)?;
        options.credentials.check()?;
        let begun = Instant::now();
        let mut logged = begun;
        loop {
            let events = Arc::new(ConnectionEvents::default());
            let error = match client_options(options, login.clone(), &events)
                .connect(servers.as_slice())
                .await
            {
                Ok(client) => {
                    let mut nats = Self::checked(client, &events, url).await?;
                    nats.follow_file(options);
                    return Ok(nats);
                }
                Err(error) => error,
            };
            let is_final = is_final(&error);
            let error = failed(options, login.as_ref(), &url, begun.elapsed(), error);
            match options.retry {
                ConnectRetry::UpTo(waited)
                    if is_final || begun.elapsed() + CONNECT_RETRY_DELAY >= waited =>
                {
                    return Err(error);
                }
                ConnectRetry::UpTo(_) => {}
                ConnectRetry::Forever => {
                    report(&error);
                    if logged == begun || logged.elapsed() >= LOG_INTERVAL {
                        logged = Instant::now();
                        tracing::warn!(%error, fix = error.fix(), "waiting for nats");
                    }
                }
            }
            tokio::time::sleep(CONNECT_RETRY_DELAY).await;
        }
    }

    async fn checked(
        client: Client,
        events: &ConnectionEvents,
        url: String,
    ) -> Result<Self, Error> {
        if !client.is_server_compatible(2, 11, 0) {
            return Err(Error::OldServer {
                url,
                version: client.server_info().version,
            });
        }
        let mut state = events.state.subscribe();
        let dropped = events.dropped.subscribe();
        // The client reports its first connection like every other one, a moment later.
        let first =
            tokio::time::timeout(ACK_TIMEOUT, state.wait_for(|state| state.connections > 0));
        if !matches!(first.await, Ok(Ok(_))) {
            return Err(Error::Unavailable(
                "the connection was lost again at once".to_owned(),
            ));
        }
        let jetstream = ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(ACK_TIMEOUT)
            .build(client.clone());
        Ok(Self {
            client,
            jetstream,
            url: url.into(),
            state,
            dropped,
            changes: Arc::default(),
            _file: None,
        })
    }

    fn follow_file(&mut self, options: &Options) {
        if let Some(file) = options.credentials.url_file.clone() {
            let following = servers::follow_file(self.client.clone(), file, options.url.clone());
            self._file = Some(Arc::new(AbortOnDropHandle::new(tokio::spawn(following))));
        }
    }

    /// The present state of the connection.
    pub fn connection_state(&self) -> ConnectionState {
        *self.state.borrow()
    }

    /// Reports every change of the connection from now on.
    pub fn watch_connection(&self) -> watch::Receiver<ConnectionState> {
        let mut state = self.state.clone();
        state.mark_unchanged();
        state
    }

    /// Reports when messages were dropped because a subscription of this connection was too slow.
    pub(super) fn watch_dropped(&self) -> watch::Receiver<u64> {
        let mut dropped = self.dropped.clone();
        dropped.mark_unchanged();
        dropped
    }

    /// Returns when the server has received all that was sent, or fails after 5 s.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn flush(&self) -> Result<(), Error> {
        within(ACK_TIMEOUT, "flush was not answered", self.client.flush()).await
    }

    /// Publishes on core NATS, without a stream. Dropped while the connection is unavailable.
    ///
    /// # Errors
    ///
    /// When the message cannot be sent.
    pub(crate) async fn publish_ephemeral(
        &self,
        subject: String,
        payload: Vec<u8>,
    ) -> Result<(), Error> {
        if !self.connection_state().connected {
            return Ok(());
        }
        within(
            ACK_TIMEOUT,
            "the connection takes no message",
            self.client.publish(subject, payload.into()),
        )
        .await
    }
}

fn client_options(
    options: &Options,
    login: Option<Login>,
    events: &Arc<ConnectionEvents>,
) -> async_nats::ConnectOptions {
    let events = Arc::clone(events);
    let Credentials {
        login: source,
        ca,
        certificate,
        ..
    } = options.credentials.clone();
    // The client ignores the login in a URL, and it asks for the login again for each connection.
    let with_login = async_nats::ConnectOptions::with_auth_callback(move |challenge| {
        let auth = source.auth(login.as_ref(), &challenge);
        std::future::ready(auth.map_err(AuthError::new))
    });
    let mut client_options = with_login
        .name(format!("tarsy {}", options.role))
        .custom_inbox_prefix(format!("_INBOX_{}", options.role))
        .connection_timeout(CONNECTION_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .max_reconnects(None)
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            events.record(&event);
            std::future::ready(())
        });
    // The client reads these files for each connection, too.
    if options.credentials.need_tls() {
        client_options = client_options.require_tls(true);
    }
    if let Some(ca) = ca {
        client_options = client_options.add_root_certificates(ca);
    }
    if let Some(ClientCertificate { certificate, key }) = certificate {
        client_options = client_options.add_client_certificate(certificate, key);
    }
    client_options
}

impl ConnectionEvents {
    /// Logs an event of the connection. A permission violation appears only here: the caller sees a timeout.
    fn record(&self, event: &Event) {
        match event {
            Event::Connected => {
                tracing::info!("nats is connected");
                let connections = self.state.borrow().connections + 1;
                if connections > 1 {
                    metrics::counter!("tarsy_nats_reconnects_total").increment(1);
                }
                self.state.send_replace(ConnectionState {
                    connected: true,
                    connections,
                });
            }
            // The process itself has closed the client.
            Event::Closed => {
                tracing::debug!("nats connection is closed");
                self.state.send_modify(|state| state.connected = false);
            }
            Event::Disconnected => {
                tracing::warn!(%event, "nats is unavailable");
                self.state.send_modify(|state| state.connected = false);
            }
            Event::ServerError(error) => tracing::error!(%error, "nats server error"),
            Event::ClientError(error) => tracing::warn!(%error, "nats client error"),
            Event::SlowConsumer(subscription) => {
                tracing::warn!(subscription, "messages dropped: subscription too slow");
                self.dropped
                    .send_modify(|dropped| *dropped = dropped.wrapping_add(1));
            }
            Event::LameDuckMode | Event::Draining => {
                tracing::info!(%event, "nats server is shutting down: it will close this connection")
            }
        }
    }
}

fn reconnect_delay(attempt: usize) -> Duration {
    let failures = u32::try_from(attempt).unwrap_or(u32::MAX).checked_sub(1);
    failures.map_or(Duration::ZERO, |failures| RECONNECT_BACKOFF.delay(failures))
}

/// The error of a failed try after `waited`.
fn failed(
    options: &Options,
    login: Option<&Login>,
    url: &str,
    waited: Duration,
    source: ConnectError,
) -> Error {
    let url = url.to_owned();
    if !is_final(&source) {
        let waited = if let ConnectRetry::UpTo(limit) = options.retry {
            limit
        } else {
            waited
        };
        return Error::Unreachable {
            url,
            waited,
            source,
        };
    }
    let reason = if source.kind() == ConnectErrorKind::AuthorizationViolation {
        options.credentials.login.refusal(login).to_owned()
    } else {
        source.to_string()
    };
    Error::Refused { url, reason }
}

fn is_final(error: &ConnectError) -> bool {
    matches!(
        error.kind(),
        ConnectErrorKind::ServerParse
            | ConnectErrorKind::Authentication
            | ConnectErrorKind::AuthorizationViolation
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
            credentials: Credentials::default(),
            retry: ConnectRetry::Forever,
        };
        assert_eq!(
            format!("{options:?}"),
            r#"Options { url: "nats://a:4222", role: "worker", retry: Forever, .. }"#
        );
    }

    #[test]
    fn the_first_connection_is_tried_at_once_and_later_ones_at_most_every_four_seconds() {
        assert!(reconnect_delay(0).is_zero());
        assert!(reconnect_delay(1) <= Duration::from_millis(50));
        for attempt in 2..100 {
            let delay = reconnect_delay(attempt);
            assert!(
                delay >= Duration::from_millis(30) && delay <= Duration::from_secs(4),
                "{attempt}: {delay:?}"
            );
        }
    }
}
