//! The errors of the NATS adapter.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::time::Duration;

use super::topology::fields::Difference;
use crate::config::SecretError;
use crate::engine::ports::BrokerUnavailable;
use crate::investigation::ids::SessionId;

/// An operation on the broker failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the servers is invalid: retrying does not help.
    #[error("nats url \"{url}\" cannot be used: {reason}")]
    Url {
        /// Without credentials.
        url: String,
        reason: String,
    },
    /// No server answered in time.
    #[error("nats at {url} gave no connection within {waited:?}: {source}")]
    Unreachable {
        /// Without credentials.
        url: String,
        waited: Duration,
        /// The error of the last attempt.
        source: async_nats::ConnectError,
    },
    /// The server refused the connection: retrying does not help.
    #[error("nats at {url} refused the connection: {source}")]
    Refused {
        /// Without credentials.
        url: String,
        source: async_nats::ConnectError,
    },
    /// A file of the credentials cannot be used.
    #[error("nats credentials: {0}")]
    Credentials(#[from] SecretError),
    /// Older servers silently ignore settings that tarsy depends on.
    #[error("nats-server at {url} is version {version}; tarsy needs 2.11 or newer")]
    OldServer {
        /// Without credentials.
        url: String,
        version: String,
    },
    /// A stream or consumer could not be created, changed or read.
    #[error("{object}: cannot {action}: {reason}")]
    Admin {
        /// `TARSY_ALERTS` or `TARSY_ALERTS/critical`.
        object: String,
        /// `create`, `update`, `read` or `remove`.
        action: &'static str,
        /// The error text of the server.
        reason: String,
    },
    /// Streams or consumers are missing or differ.
    #[error("nats streams are not as tarsy needs them, run `tarsy migrate`:{}", listed(.0))]
    Topology(Vec<Difference>),
    /// A header value that cannot be sent.
    #[error("header {0} contains a line break")]
    Header(String),
    /// No stream has this subject.
    #[error("no stream stores {0}: run `tarsy migrate`")]
    NoStream(String),
    /// The stream has reached its `max_bytes`.
    #[error("the queue is full: {subject} was not stored ({reason})")]
    Full {
        subject: String,
        /// The error text of the server.
        reason: String,
    },
    /// The message is larger than the limit of the stream or the server.
    #[error("the alert is too large for {subject} ({reason})")]
    TooLarge {
        subject: String,
        /// The error text of the server.
        reason: String,
    },
    /// The server dropped the message as a duplicate: nothing was stored.
    #[error("{0} was not stored: the server took it for a duplicate")]
    Duplicate(String),
    /// The server refused the message.
    #[error("{subject} was not stored: {reason}")]
    Rejected {
        subject: String,
        /// The error text of the server.
        reason: String,
    },
    /// The dead letter does not have the body of the alert.
    #[error("alert {0} cannot be retried: its body was too large to be kept, submit it again")]
    BodyNotKept(SessionId),
    /// The server did not answer in time: the outcome is unknown.
    #[error("broker is unavailable: {0}")]
    Unavailable(String),
}

impl Error {
    /// The server or the client library refused `action` on `object`.
    pub(super) fn admin(object: impl Into<String>, action: &'static str, error: &dyn Display) -> Self {
        let mut reason = error.to_string();
        if reason.contains("insufficient storage") {
            reason += ": the server reserves all that a stream may hold; lower max_bytes of the stream in `streams`, or give JetStream more room";
        }
        Self::Admin { object: object.into(), action, reason }
    }
}

/// An error of the client library without another meaning: the connection is closed, or the server did not answer.
impl<K: Clone + Debug + Display + PartialEq> From<async_nats::error::Error<K>> for Error {
    fn from(error: async_nats::error::Error<K>) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<Error> for BrokerUnavailable {
    fn from(error: Error) -> Self {
        let Error::Unavailable(reason) = error else { return Self(error.to_string()) };
        Self(reason)
    }
}

/// The result of `request`; [`Error::Unavailable`] with the reason `silence` when it takes longer than `limit`.
pub(super) async fn within<T, E: Into<Error>>(
    limit: Duration,
    silence: impl Into<String> + Send,
    request: impl Future<Output = Result<T, E>> + Send,
) -> Result<T, Error> {
    match tokio::time::timeout(limit, request).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(Error::Unavailable(silence.into())),
    }
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("\n  {difference}")).collect()
}
