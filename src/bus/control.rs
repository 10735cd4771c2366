//! Requests to a session: durable and live with one publish. So far there is one, to cancel.
//!
//! The store's flag decides; this is how the owner hears of it at once.

use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::connection::{Link, Nats};
use super::error::Error;
use super::names::{CONTROL, control_subject};
use crate::investigation::ids::SessionId;

const TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
enum Request {
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
        let payload = serde_json::to_vec(&Request::Cancel).unwrap_or_default();
        let publish = self.jetstream().publish(subject.clone(), payload.into());
        match tokio::time::timeout(TIMEOUT, async { publish.await?.await }).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Error::Rejected { subject, reason: error.to_string() }),
            Err(_) => Err(Error::Away(format!("no answer to a publish on {subject}"))),
        }
    }

    /// Whether the session was asked to cancel.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read.
    pub async fn cancel_requested(&self, session: SessionId) -> Result<bool, Error> {
        let away = |error: &dyn std::error::Error| Error::Away(error.to_string());
        let read = async {
            let stream = self.jetstream().get_stream_no_info(CONTROL).await.map_err(|error| away(&error))?;
            match stream.get_last_raw_message_by_subject(&control_subject(session)).await {
                Ok(message) => Ok(is_cancel(&message.payload)),
                Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(false),
                Err(error) => Err(away(&error)),
            }
        };
        let read = tokio::time::timeout(TIMEOUT, read).await;
        read.unwrap_or_else(|_| Err(Error::Away("the control stream gave no answer".to_owned())))
    }
}

fn is_cancel(payload: &[u8]) -> bool {
    serde_json::from_slice::<Request>(payload).is_ok_and(|request| request == Request::Cancel)
}

/// Listens for requests to one session.
#[derive(Debug)]
pub struct Control {
    nats: Nats,
    session: SessionId,
    live: Subscriber,
    link: watch::Receiver<Link>,
}

impl Control {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn listen(nats: &Nats, session: SessionId) -> Result<Self, Error> {
        let link = nats.watch_link();
        let live = nats.client().subscribe(control_subject(session)).await;
        let live = live.map_err(|error| Error::Away(error.to_string()))?;
        Ok(Self { nats: nats.clone(), session, live, link })
    }

    /// Returns when the session was asked to cancel, before or after `listen`. Looks again after every reconnect.
    /// Cancel safe.
    pub async fn cancelled(&mut self) {
        loop {
            match self.nats.cancel_requested(self.session).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(session_id = %self.session, %error, "requests cannot be read now");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            }
            loop {
                tokio::select! {
                    Some(message) = self.live.next() => if is_cancel(&message.payload) { return },
                    changed = self.link.changed() => match changed {
                        Ok(()) => break,
                        // The connection is closed for good: nothing will come.
                        Err(_) => std::future::pending().await,
                    },
                }
            }
        }
    }
}
