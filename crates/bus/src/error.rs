//! The errors of the NATS adapter.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::stream::StorageType;

use super::cause::Cause;
use super::difference::Difference;
use super::names::{ALERTS, DEAD_LETTERS, TIMELINE};
use tarsy_config::SecretError;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::BrokerUnavailable;

/// An operation on the broker failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the servers is invalid: retrying does not help.
    #[error("nats url \"{url}\" cannot be used: {reason}")]
    Url {
        /// The URL without credentials.
        url: String,
        reason: String,
    },
    /// No server answered in time.
    #[error("nats at {url} did not accept a connection within {waited:?}: {source}")]
    Unreachable {
        /// The URL without credentials.
        url: String,
        waited: Duration,
        /// The error of the last attempt.
        source: async_nats::ConnectError,
    },
    /// The server refused the connection: retrying does not help.
    #[error("nats at {url} refused the connection: {reason}")]
    Refused {
        /// The URL without credentials.
        url: String,
        reason: String,
    },
    /// The server can be used, but it stores no streams.
    #[error("nats at {url} has no JetStream: {cause}")]
    NoJetStream {
        /// The URL without credentials.
        url: String,
        cause: JetStreamOff,
    },
    /// A file of the credentials cannot be used.
    #[error("nats credentials: {0}")]
    Credentials(#[from] SecretError),
    /// Older servers silently ignore settings that tarsy depends on.
    #[error("nats-server at {url} is version {version}; tarsy needs 2.11 or newer")]
    OldServer {
        /// The URL without credentials.
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
        cause: Cause,
    },
    /// Streams or consumers are missing or differ.
    #[error("nats streams are not as tarsy needs them, run `tarsy migrate`:{}", listed(.0))]
    Topology(Vec<Difference>),
    /// A stream has another storage than the configuration asks for.
    #[error(
        "{stream}: its storage is {found} and `streams` in the configuration asks for {expected}, but NATS cannot change the storage of a stream: configure `storage: {found}` for it, or {replace}, delete it (`nats stream rm {stream}`) and run `tarsy migrate`"
    )]
    Storage {
        stream: String,
        found: &'static str,
        expected: &'static str,
        /// The steps that are needed before the stream is deleted.
        replace: &'static str,
    },
    /// A stream with a placement, on a server without a cluster.
    #[error(
        "{0}: `placement` in `streams` in the configuration needs servers that form a cluster, and this one does not"
    )]
    PlacementWithoutCluster(String),
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

/// The reason why a server has no JetStream for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JetStreamOff {
    #[error("it is switched off in nats-server")]
    Server,
    #[error("it is switched off for the account of this login")]
    Account,
    #[error("no server of its cluster answers for it")]
    Cluster,
}

impl Error {
    /// The command or setting that mends the cause; `None` where the text of the error has it, or waiting helps.
    pub fn fix(&self) -> Option<&'static str> {
        Some(match self {
            Self::Url { .. } => "set NATS_URL or --nats-url to nats://host:4222",
            Self::Unreachable { .. } => {
                "start nats-server -js there, or set NATS_URL or --nats-url"
            }
            // An address as an example would be masked in a log.
            Self::Refused { .. } => {
                "set NATS_USER and NATS_PASSWORD, or NATS_TOKEN, as the server has them"
            }
            Self::NoJetStream {
                cause: JetStreamOff::Server,
                ..
            } => "start nats-server with -js, or with jetstream {} in its configuration",
            Self::NoJetStream {
                cause: JetStreamOff::Account,
                ..
            } => "set jetstream: enabled in this account in the configuration of nats-server",
            Self::NoJetStream {
                cause: JetStreamOff::Cluster,
                ..
            } => "start the servers of the cluster that have JetStream",
            Self::Credentials(_) => "correct the file, or set another one",
            Self::OldServer { .. } => "upgrade nats-server",
            Self::Unavailable(_)
            | Self::Admin { .. }
            | Self::Topology(_)
            | Self::Storage { .. }
            | Self::PlacementWithoutCluster(_)
            | Self::Header(_)
            | Self::NoStream(_)
            | Self::Full { .. }
            | Self::TooLarge { .. }
            | Self::Duplicate(_)
            | Self::Rejected { .. }
            | Self::BodyNotKept(_) => return None,
        })
    }

    /// Whether only a change of an address or of a login helps.
    pub fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::Url { .. } | Self::Refused { .. } | Self::Credentials(_)
        )
    }

    /// The server or the client library refused `action` on `object`.
    pub(super) fn admin(
        object: impl Into<String>,
        action: &'static str,
        error: &(dyn std::error::Error + 'static),
    ) -> Self {
        let cause = Cause::from_error(error);
        let mut reason = error.to_string();
        if let Cause::Refused(code) = cause {
            reason += advice(code, &reason);
        }
        Self::Admin {
            object: object.into(),
            action,
            reason,
            cause,
        }
    }

    /// The storage of `stream` is not the expected one.
    pub(super) fn storage(stream: &str, found: StorageType, expected: StorageType) -> Self {
        let word = |storage| match storage {
            StorageType::File => "file",
            StorageType::Memory => "memory",
        };
        let replace = match stream {
            ALERTS => "stop the producers, wait until the workers have emptied the queue",
            TIMELINE => "since the database has every event",
            DEAD_LETTERS => "retry or save the letters that are needed",
            _ => "since the database has every cancel request",
        };
        Self::Storage {
            stream: stream.to_owned(),
            found: word(found),
            expected: word(expected),
            replace,
        }
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
        Self(if let Error::Unavailable(reason) = error {
            reason
        } else {
            error.to_string()
        })
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

/// The way out of a refusal, as the end of its text.
fn advice(code: ErrorCode, reason: &str) -> &'static str {
    // A cluster has one code for servers that are too few and for servers that are too full: only its text says which.
    let is_full = reason.contains("insufficient storage");
    match code {
        ErrorCode::STORAGE_RESOURCES_EXCEEDED => TOO_FULL,
        ErrorCode::CLUSTER_NO_PEERS if is_full => TOO_FULL,
        ErrorCode::CLUSTER_NO_PEERS => {
            ": fewer servers than `streams.replicas` run, or fit `placement` of the stream in `streams`; `nats server ls` shows them, `server_tags` in a server's configuration are its tags"
        }
        ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED => {
            ": `streams.replicas` above 1 needs servers that form a cluster"
        }
        _ => "",
    }
}

const TOO_FULL: &str = ": the server reserves all that a stream may hold; lower max_bytes of the stream in `streams`, or give JetStream more room";

fn listed(differences: &[Difference]) -> String {
    differences
        .iter()
        .map(|difference| format!("\n  {difference}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_mask::Mask;

    #[test]
    fn the_mask_of_a_log_leaves_the_fix_of_a_refused_login_as_it_is() {
        let refused = Error::Refused {
            url: "nats://db:4222".to_owned(),
            reason: "user or password is wrong".to_owned(),
        };
        let fix = refused.fix().unwrap();
        assert_eq!(
            fix,
            "set NATS_USER and NATS_PASSWORD, or NATS_TOKEN, as the server has them"
        );
        assert_eq!(Mask::default().apply(fix), fix);
    }
}
