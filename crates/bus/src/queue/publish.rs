//! Publishes an alert or a question to the queue: for the receiver, `submit`, `ask`, the sweeper and a retry.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::{NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::connection::{Nats, REQUEST_TIMEOUT};
use crate::error::Error;
use crate::headers::{self, SESSION_ID, TRACEPARENT};
use crate::names::{ALERTS, MessageKind, Priority, SubjectSuffix};
use tarsy_engine::backoff::Backoff;
use tarsy_engine::trace::{self, messaging};

/// The time that a publish waits for a leader. NATS elects one 4 s to 9 s after the last one was lost.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(12);
/// The time after which the server is assumed to be cut off from the others.
const CHANGE_AFTER: Duration = Duration::from_secs(4);
/// The name that a check of the queue expects.
const NO_STREAM: &str = "TARSY_CHECK";
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    max: Duration::from_millis(500),
};

/// The server's error code for a message above `max_msg_size`.
const MESSAGE_SIZE_EXCEEDED: ErrorCode = ErrorCode(10054);

/// An alert or a question to be queued.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAlert {
    pub priority: Priority,
    /// The end of the subject, for people.
    pub suffix: Option<SubjectSuffix>,
    /// Any text or JSON.
    pub body: Vec<u8>,
    /// An object of strings by header name. Headers that are not on the allow-list are left out.
    pub headers: Value,
}

/// Whether the stream may have the message already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repetition {
    IsAnother,
    IsTheSame,
}

/// An alert that the stream has acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub subject: String,
    /// Its sequence in the stream of alerts.
    pub sequence: u64,
}

impl Nats {
    /// Publishes an alert; returns when the stream has acknowledged it.
    ///
    /// # Errors
    ///
    /// When the alert is not stored, or not known to be stored ([`Error::Unavailable`]), after at most 22 s. A
    /// `duplicate` in the acknowledgement is an error, too: the server has stored nothing.
    pub async fn publish_alert(&self, alert: NewAlert) -> Result<Published, Error> {
        self.publish_as(MessageKind::Alert, alert, Repetition::IsAnother)
            .await
    }

    /// Like [`Nats::publish_alert`], for an alert with a derived session id in its headers: if the stream has stored
    /// it under this id within two minutes, it is not stored again, and that is no error.
    ///
    /// # Errors
    ///
    /// As [`Nats::publish_alert`], except for a duplicate.
    pub async fn publish_alert_once(&self, alert: NewAlert) -> Result<Published, Error> {
        self.publish_as(MessageKind::Alert, alert, Repetition::IsTheSame)
            .await
    }

    /// Publishes a question about the investigation that its header `Tarsy-Parent-Id` names.
    ///
    /// # Errors
    ///
    /// As [`Nats::publish_alert`].
    pub async fn publish_question(&self, question: NewAlert) -> Result<Published, Error> {
        self.publish_as(MessageKind::Question, question, Repetition::IsAnother)
            .await
    }

    /// Like [`Nats::publish_alert_once`], for a question.
    ///
    /// # Errors
    ///
    /// As [`Nats::publish_alert_once`].
    pub async fn publish_question_once(&self, question: NewAlert) -> Result<Published, Error> {
        self.publish_as(MessageKind::Question, question, Repetition::IsTheSame)
            .await
    }

    /// Asks whether a stream stores alerts. It needs no other right than that to publish alerts: the message names a
    /// stream that does not exist, so the stream of alerts refuses it.
    ///
    /// # Errors
    ///
    /// [`Error::NoStream`], [`Error::NoJetStream`], or when the server does not answer, after at most 22 s.
    pub async fn check_queue(&self) -> Result<(), Error> {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_STREAM, NO_STREAM);
        let subject = Priority::Low.subject(MessageKind::Alert);
        match self.enqueue(subject, headers, Vec::new()).await {
            Ok(_) | Err(Error::Rejected { .. } | Error::Full { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn publish_as(
        &self,
        kind: MessageKind,
        message: NewAlert,
        repetition: Repetition,
    ) -> Result<Published, Error> {
        let mut subject = message.priority.subject(kind);
        if let Some(suffix) = message.suffix {
            subject = format!("{subject}.{suffix}");
        }
        let mut headers = headers::for_copy(&message.headers)?;
        let span = messaging::publish(&subject, &message.headers);
        if let Some(context) = span.in_scope(trace::outgoing) {
            headers::insert(&mut headers, TRACEPARENT, &context.to_string())?;
        }
        let id = message.headers.get(SESSION_ID).and_then(Value::as_str);
        if let (Repetition::IsTheSame, Some(id)) = (repetition, id) {
            headers.insert(NATS_MESSAGE_ID, id);
        }
        let published = self
            .enqueue(subject, headers, message.body)
            .instrument(span.clone())
            .await;
        if published.is_err() {
            trace::fail(&span, "not_published");
        }
        published
    }

    /// Publishes a message on a subject of the queue. While a cluster elects a leader, no server takes it; it is
    /// therefore sent again; a message that may be stored is not.
    pub(crate) async fn enqueue(
        &self,
        subject: String,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Published, Error> {
        let body = Bytes::from(body);
        let begun = Instant::now();
        let mut refusals = 0;
        loop {
            match self
                .enqueue_once(subject.clone(), headers.clone(), body.clone())
                .await
            {
                Err(Error::NoStream(_)) if self.is_clustered() => {}
                // A server without JetStream may be a leaf node of one that has it, so it is asked after a failure.
                Err(Error::NoStream(_)) if !self.client.server_info().jetstream => {
                    return Err(self.no_jetstream());
                }
                outcome => return outcome,
            }
            if begun.elapsed() > ELECTION_TIMEOUT {
                return Err(Error::Unavailable(format!(
                    "no server takes {subject}: its stream has no leader, or does not exist (`tarsy migrate` creates it)"
                )));
            }
            if begun.elapsed() > CHANGE_AFTER {
                self.change_server().await;
            }
            tokio::time::sleep(BACKOFF.delay(refusals)).await;
            refusals += 1;
        }
    }

    async fn enqueue_once(
        &self,
        subject: String,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Published, Error> {
        let may_be_stored = headers.get(NATS_MESSAGE_ID).is_some();
        let publish = self
            .jetstream
            .publish_with_headers(subject.clone(), headers, body);
        let ack = match tokio::time::timeout(REQUEST_TIMEOUT, async { publish.await?.await }).await
        {
            Ok(Ok(ack)) => ack,
            Ok(Err(error)) => return Err(publish_error(subject, &error)),
            Err(_) => {
                return Err(Error::Unavailable(format!(
                    "no answer to a publish on {subject}"
                )));
            }
        };
        if ack.duplicate && !may_be_stored {
            return Err(Error::Duplicate(subject));
        }
        if ack.stream != ALERTS {
            return Err(Error::Rejected {
                subject,
                reason: format!("stream {} stores it instead of {ALERTS}", ack.stream),
            });
        }
        Ok(Published {
            subject,
            sequence: ack.sequence,
        })
    }
}

pub(crate) fn publish_error(subject: String, error: &PublishError) -> Error {
    let source = std::error::Error::source(error);
    let reason = source.map_or_else(|| error.to_string(), ToString::to_string);
    let code = source
        .and_then(|source| source.downcast_ref())
        .map(async_nats::jetstream::Error::error_code);
    if code == Some(MESSAGE_SIZE_EXCEEDED) {
        return Error::TooLarge { subject, reason };
    }
    if code == Some(ErrorCode::STREAM_STORE_FAILED) {
        return Error::Full { subject, reason };
    }
    match error.kind() {
        PublishErrorKind::StreamNotFound => Error::NoStream(subject),
        PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => {
            Error::Unavailable(error.to_string())
        }
        PublishErrorKind::MaxPayloadExceeded => Error::TooLarge { subject, reason },
        PublishErrorKind::WrongLastMessageId
        | PublishErrorKind::WrongLastSequence
        | PublishErrorKind::MaxAckPending
        | PublishErrorKind::Other => Error::Rejected { subject, reason },
    }
}
