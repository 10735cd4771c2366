//! What can go wrong between tarsy and NATS.

use std::path::PathBuf;
use std::time::Duration;

use super::topology::Difference;
use crate::investigation::ids::SessionId;

/// An operation on the broker failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the servers cannot be understood: waiting does not help.
    #[error("nats url \"{url}\" cannot be used: {reason}")]
    Url {
        /// Without credentials.
        url: String,
        /// Why.
        reason: String,
    },
    /// Nobody answered in time.
    #[error("nats at {url} gave no connection within {waited:?}: {source}")]
    Unreachable {
        /// Without credentials.
        url: String,
        /// How long it was tried.
        waited: Duration,
        /// Why the last attempt failed.
        source: async_nats::ConnectError,
    },
    /// It answered, and trying again cannot help.
    #[error("nats at {url} refused the connection: {source}")]
    Refused {
        /// Without credentials.
        url: String,
        /// Why.
        source: async_nats::ConnectError,
    },
    /// The credentials file cannot be used.
    #[error("nats credentials {}: {source}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Older servers silently ignore settings that tarsy depends on.
    #[error("nats-server at {url} is version {version}; tarsy needs 2.11 or newer")]
    OldServer {
        /// Without credentials.
        url: String,
        /// As the server says.
        version: String,
    },
    /// A stream or consumer could not be created, changed or read.
    #[error("{object}: cannot {action}: {reason}")]
    Admin {
        /// `TARSY_ALERTS` or `TARSY_ALERTS/critical`.
        object: String,
        /// `create`, `update`, `read`.
        action: &'static str,
        /// The server's words.
        reason: String,
    },
    /// Streams or consumers are missing or differ.
    #[error("nats streams are not as tarsy needs them, run `tarsy migrate`:{}", listed(.0))]
    Topology(Vec<Difference>),
    /// A header value that cannot be sent.
    #[error("header {0} contains a line break")]
    Header(String),
    /// No stream takes this subject.
    #[error("no stream stores {0}: run `tarsy migrate`")]
    NoStream(String),
    /// The stream has reached its `max_bytes`.
    #[error("the queue is full: {subject} was not stored ({reason})")]
    Full {
        /// Where to.
        subject: String,
        /// The server's words.
        reason: String,
    },
    /// The message is larger than the stream or the server takes.
    #[error("the alert is too large for {subject} ({reason})")]
    TooLarge {
        /// Where to.
        subject: String,
        /// The server's words.
        reason: String,
    },
    /// The server dropped the message as a repetition: nothing was stored.
    #[error("{0} was not stored: the server took it for a duplicate")]
    Duplicate(String),
    /// The server refused the message.
    #[error("{subject} was not stored: {reason}")]
    Rejected {
        /// Where to.
        subject: String,
        /// The server's words.
        reason: String,
    },
    /// A dead letter without the alert's body.
    #[error("alert {0} cannot be retried: its body was too large to be kept, submit it again")]
    NotKept(SessionId),
    /// No answer in time; the outcome is unknown.
    #[error("broker is unavailable: {0}")]
    Unavailable(String),
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("\n  {difference}")).collect()
}
