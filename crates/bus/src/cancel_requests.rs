//! Cancel requests to running sessions: one publish is stored and delivered live.
//!
//! The flag in the store decides; the request lets the owner of the session notice it at once.

use async_nats::{HeaderMap, Message, Subscriber};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, watch};

use super::connection::{ConnectionState, Nats, REQUEST_TIMEOUT};
use super::error::Error;
use super::headers::{self, ASKED_BY};
use super::names::{ALL_CONTROL, CONTROL, control_subject};
use super::stream::get::last_on_subject;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{BrokerUnavailable, CancelNotice, CancelRequests};

/// The limit of characters of a name that are shown.
const MAX_NAME: usize = 100;

/// The body of a request.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
enum Body {
    Cancel,
}

impl Nats {
    /// Asks the owner of a session to cancel it; returns when the stream has acknowledged the request.
    ///
    /// # Errors
    ///
    /// When the request is not stored or not known to be stored. Sending it again is harmless.
    pub async fn request_cancel(&self, session: SessionId) -> Result<(), Error> {
        self.send_cancel(session, HeaderMap::new()).await
    }

    /// The same with the name of the person who asks, which the end of the session shows.
    ///
    /// # Errors
    ///
    /// As [`Nats::request_cancel`], and when the name has a line break.
    pub async fn request_cancel_by(&self, session: SessionId, by: &str) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers::insert(&mut headers, ASKED_BY, by)?;
        self.send_cancel(session, headers).await
    }

    async fn send_cancel(&self, session: SessionId, headers: HeaderMap) -> Result<(), Error> {
        let subject = control_subject(session);
        let payload = serde_json::to_vec(&Body::Cancel).unwrap_or_default();
        let publish = self
            .jetstream
            .publish_with_headers(subject.clone(), headers, payload.into());
        match tokio::time::timeout(REQUEST_TIMEOUT, async { publish.await?.await }).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Error::Rejected {
                subject,
                reason: error.to_string(),
            }),
            Err(_) => Err(Error::Unavailable(format!(
                "no answer to a publish on {subject}"
            ))),
        }
    }

    /// Whether the stream has a cancel request for the session.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read.
    pub async fn cancel_requested(&self, session: SessionId) -> Result<bool, Error> {
        let last = last_on_subject(self, CONTROL, &control_subject(session)).await?;
        Ok(last.is_some_and(|message| is_cancel(&message.payload)))
    }
}

fn is_cancel(payload: &[u8]) -> bool {
    serde_json::from_slice::<Body>(payload).is_ok_and(|body| body == Body::Cancel)
}

/// Receives the cancel requests to every session: implements the port `CancelRequests`.
#[derive(Debug)]
pub struct JetStreamCancelRequests {
    nats: Nats,
    subscription: Mutex<Subscription>,
}

#[derive(Debug)]
struct Subscription {
    messages: Subscriber,
    connection: watch::Receiver<ConnectionState>,
    dropped: watch::Receiver<u64>,
    /// The number of the connection that has the subscription.
    connections: u64,
    /// Whether requests may have been missed, which `next` has not reported yet.
    missed: bool,
}

impl JetStreamCancelRequests {
    /// Subscribes: every later request is received while the connection lasts.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn listen(nats: &Nats) -> Result<Self, Error> {
        let connection = nats.watch_connection();
        let dropped = nats.watch_dropped();
        let connections = connection.borrow().connections;
        let messages = nats.client.subscribe(ALL_CONTROL).await?;
        // This connection's own requests follow the subscription anyway; the round trip orders those of others after
        // it, too.
        if let Err(error) = nats.rtt().await {
            tracing::debug!(%error, "cancel requests: subscription not confirmed, retrying on reconnect");
        }
        Ok(Self {
            nats: nats.clone(),
            subscription: Mutex::new(Subscription {
                messages,
                connection,
                dropped,
                connections,
                missed: true,
            }),
        })
    }
}

impl CancelRequests for JetStreamCancelRequests {
    async fn next(&self) -> CancelNotice {
        // One task listens, so the lock is never contended.
        self.subscription.lock().await.next().await
    }

    async fn cancel_requested(&self, session: SessionId) -> Result<bool, BrokerUnavailable> {
        Ok(self.nats.cancel_requested(session).await?)
    }

    async fn requested_by(&self, session: SessionId) -> Option<String> {
        let last = last_on_subject(&self.nats, CONTROL, &control_subject(session))
            .await
            .ok()??;
        last.headers
            .get(ASKED_BY)
            .map(|by| by.as_str().chars().take(MAX_NAME).collect())
    }
}

impl Subscription {
    async fn next(&mut self) -> CancelNotice {
        loop {
            if std::mem::take(&mut self.missed) {
                return CancelNotice::Missed;
            }
            tokio::select! {
                biased;
                Ok(()) = self.connection.changed() => {
                    let state = *self.connection.borrow_and_update();
                    // Requests between two connections were missed; the client has renewed the subscription.
                    self.missed = state.connected && state.connections != self.connections;
                    if state.connected {
                        self.connections = state.connections;
                    }
                }
                Ok(()) = self.dropped.changed() => self.missed = true,
                message = self.messages.next() => match message.as_ref().map(parse) {
                    Some(Some(request)) => return request,
                    Some(None) => {}
                    // The client is closed: no message will arrive.
                    None => std::future::pending().await,
                },
            }
        }
    }
}

/// `None` for a request that this version does not know.
fn parse(message: &Message) -> Option<CancelNotice> {
    let last_token = message.subject.rsplit('.').next();
    match last_token.and_then(SessionId::parse) {
        Some(session) if is_cancel(&message.payload) => Some(CancelNotice::Requested(session)),
        Some(_) | None => {
            tracing::debug!(subject = %message.subject, "cancel request ignored: unreadable");
            None
        }
    }
}
