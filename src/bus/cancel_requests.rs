//! Requests to sessions: durable and live with one publish. So far there is one, to cancel.
//!
//! The store's flag decides; this is how the owner hears of it at once.

use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, watch};

use super::connection::{ConnectionState, Nats};
use super::error::Error;
use super::names::{ALL_CONTROL, CONTROL, control_subject};
use super::timeline::stream_get::last_on;
use crate::engine::ports::{BrokerUnavailable, CancelNotice, CancelRequests};
use crate::investigation::ids::SessionId;

const TIMEOUT: Duration = Duration::from_secs(10);

/// What is on the wire.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
enum Body {
    Cancel,
}

impl Nats {
    /// Asks the owner of a session to cancel it; returns when the stream has acknowledged it.
    ///
    /// # Errors
    ///
    /// When the request is not stored or not known to be stored. Sending it again is harmless.
    pub async fn request_cancel(&self, session: SessionId) -> Result<(), Error> {
        let subject = control_subject(session);
        let payload = serde_json::to_vec(&Body::Cancel).unwrap_or_default();
        let publish = self.jetstream().publish(subject.clone(), payload.into());
        match tokio::time::timeout(TIMEOUT, async { publish.await?.await }).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Error::Rejected { subject, reason: error.to_string() }),
            Err(_) => Err(Error::Unavailable(format!("no answer to a publish on {subject}"))),
        }
    }

    /// Whether the session was asked to cancel.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read.
    pub async fn cancel_requested(&self, session: SessionId) -> Result<bool, Error> {
        let last = last_on(self, CONTROL, &control_subject(session)).await?;
        Ok(last.is_some_and(|message| is_cancel(&message.payload)))
    }
}

fn is_cancel(payload: &[u8]) -> bool {
    serde_json::from_slice::<Body>(payload).is_ok_and(|body| body == Body::Cancel)
}

/// Hears the requests to every session: implements the port `CancelRequests`.
#[derive(Debug)]
pub struct JetStreamCancelRequests {
    nats: Nats,
    listening: Mutex<Listening>,
}

#[derive(Debug)]
struct Listening {
    live: Subscriber,
    link: watch::Receiver<ConnectionState>,
    dropped: watch::Receiver<u64>,
    /// Of the connection that is listened on.
    connections: u64,
    /// Nobody was told yet that requests may have been missed.
    missed: bool,
}

impl JetStreamCancelRequests {
    /// Begins to listen: whatever is requested after this has returned is heard, as long as the server answers.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn listen(nats: &Nats) -> Result<Self, Error> {
        let (link, dropped) = (nats.watch_connection(), nats.watch_dropped());
        let connections = link.borrow().connections;
        let live = nats.client().subscribe(ALL_CONTROL).await;
        let live = live.map_err(|error| Error::Unavailable(error.to_string()))?;
        // What this connection asks comes after the subscription anyway; what others request does so only from now on.
        if let Err(error) = nats.rtt().await {
            tracing::debug!(%error, "requests are heard when the server is back");
        }
        let listening = Mutex::new(Listening { live, link, dropped, connections, missed: true });
        Ok(Self { nats: nats.clone(), listening })
    }
}

impl CancelRequests for JetStreamCancelRequests {
    async fn next(&self) -> CancelNotice {
        // One task listens, so nobody waits for this lock.
        self.listening.lock().await.next().await
    }

    async fn cancel_requested(&self, session: SessionId) -> Result<bool, BrokerUnavailable> {
        self.nats.cancel_requested(session).await.map_err(|error| BrokerUnavailable(error.to_string()))
    }
}

impl Listening {
    async fn next(&mut self) -> CancelNotice {
        loop {
            if std::mem::take(&mut self.missed) {
                return CancelNotice::Missed;
            }
            tokio::select! {
                biased;
                Ok(()) = self.link.changed() => {
                    let link = *self.link.borrow_and_update();
                    // Between two connections requests went to nobody; the new one has the subscription.
                    self.missed = link.connected && link.connections != self.connections;
                    if link.connected {
                        self.connections = link.connections;
                    }
                }
                Ok(()) = self.dropped.changed() => self.missed = true,
                message = self.live.next() => match message.as_ref().map(parse) {
                    Some(Some(request)) => return request,
                    Some(None) => {}
                    // The connection is closed for good: nothing will come.
                    None => std::future::pending().await,
                },
            }
        }
    }
}

/// `None` for what this version does not understand.
fn parse(message: &Message) -> Option<CancelNotice> {
    let session = message.subject.rsplit('.').next().and_then(SessionId::parse);
    let Some(session) = session.filter(|_| is_cancel(&message.payload)) else {
        tracing::debug!(subject = %message.subject, "a request to a session was not understood");
        return None;
    };
    Some(CancelNotice::Requested(session))
}
