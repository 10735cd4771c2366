//! The errors of the NATS adapter.

use std::path::PathBuf;
use std::time::Duration;

use super::topology::fields::Difference;
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
    /// The credentials file cannot be used.
    #[error("nats credentials {}: {source}", path.display())]
    Credentials { path: PathBuf, source: std::io::Error },
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

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("\n  {difference}")).collect()
}
