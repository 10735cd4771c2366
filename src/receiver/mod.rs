//! The door for monitoring systems that speak HTTP and not NATS: `POST /alertmanager`, `/grafana`, `/alert`.
//!
//! Owns the rules of the door (who may come in, what is an alert, what is answered) and the life of its connections.
//! It keeps nothing: what comes in is handed to a [`Queue`] and answered with 202 only after that has it. It knows no
//! broker. Alertmanager gives an answer 4xx up for good and tries again after 5xx: so 4xx is only what can never succeed.

mod answer;
mod request;
mod server;
mod token;

use std::future::Future;
use std::time::Duration;

use hyper::body::Bytes;

pub use server::serve;
pub use token::Token;

use crate::investigation::alert::Severity;
use crate::investigation::ids::SessionId;
use crate::listener::Limits;

/// The rules of a door.
#[derive(Debug)]
pub struct Settings {
    /// What clients have to show; `None` lets everybody in.
    pub token: Option<Token>,
    /// A longer body is refused without being read.
    pub max_body_bytes: usize,
    /// What becomes of the headers of a request.
    pub headers: Headers,
    /// For the head of a request; also how long a connection may be idle.
    pub head_patience: Duration,
    /// For the body of a request.
    pub patience: Duration,
    /// Connections at the same time.
    pub limits: Limits,
}

/// What becomes of the headers of a request. One that is on no list is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// They go with the alert.
    pub passed: Vec<&'static str>,
    /// They do not, and the answer names them: the alert counts more than a wish that comes with it.
    pub left_out: Vec<&'static str>,
    /// A request with one of them is no alert.
    pub refused: Vec<&'static str>,
}

/// An alert that may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// How it is queued: what the client says, else the severity in the body.
    pub priority: Severity,
    /// Where it knocked, as the end of a subject: `alertmanager`, `grafana` or `http`.
    pub suffix: &'static str,
    /// Names as in [`Headers::passed`].
    pub headers: Vec<(&'static str, String)>,
    /// Names as in [`Headers::left_out`]: what the client sent in vain.
    pub left_out: Vec<&'static str>,
    /// As received.
    pub body: Bytes,
}

/// An alert that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The id of its investigation.
    pub session_id: SessionId,
    /// Where it is.
    pub subject: String,
    /// Its sequence there.
    pub stream_sequence: u64,
}

/// Why an alert is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Not now: worth another try after this time.
    Later {
        /// For people.
        why: String,
        /// When.
        retry_after: Duration,
    },
    /// Larger than what can be kept.
    TooLarge(String),
    /// Never.
    Never(String),
}

/// Where alerts are kept.
pub trait Queue: Send + Sync + 'static {
    /// Returns when the alert is kept, in bounded time.
    ///
    /// # Errors
    /// When it is not, or not known to be.
    fn put(&self, alert: Visitor) -> impl Future<Output = Result<Stored, Refused>> + Send;
}
