//! The HTTP receiver for webhooks of monitoring systems: `POST /alertmanager`, `/grafana` and `/alert`.
//!
//! Checks a request, passes its alert to a [`Queue`], and answers 202 only after the queue has stored the alert. The
//! receiver itself stores nothing and knows no broker. Alertmanager drops an alert after a 4xx and tries again after a
//! 5xx, so a 4xx is only sent for a request that can never succeed.

mod server;
mod request;
mod response;

use std::time::Duration;

use hyper::body::Bytes;

pub use server::serve;

use crate::investigation::alert::Severity;
use crate::investigation::ids::SessionId;
use crate::listener::{Limits, Token};

/// The rules of a receiver.
#[derive(Debug)]
pub struct Settings {
    /// The bearer token that clients have to send; `None` accepts every client.
    pub token: Option<Token>,
    /// A longer body is rejected without being read.
    pub max_body_bytes: usize,
    pub headers: HeaderRules,
    /// For the head of a request; also the longest time that a connection may be idle.
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub limits: Limits,
}

/// Which headers of a request are passed on. A header in no list is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderRules {
    /// Published with the alert.
    pub forwarded: Vec<&'static str>,
    /// Not published, but named in the response: losing the alert would be worse than losing the header.
    pub ignored: Vec<&'static str>,
    /// A request with one of these is not an alert and is rejected.
    pub forbidden: Vec<&'static str>,
}

/// An alert that passed every check and can be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundAlert {
    /// From the query of the request, otherwise from the body.
    pub priority: Severity,
    /// The end of its subject, from the endpoint: `alertmanager`, `grafana` or `http`.
    pub suffix: &'static str,
    /// Names as in [`HeaderRules::forwarded`].
    pub headers: Vec<(&'static str, String)>,
    /// Names as in [`HeaderRules::ignored`] that the client sent.
    pub ignored_headers: Vec<&'static str>,
    /// As received.
    pub body: Bytes,
}

/// Where a published alert is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub session_id: SessionId,
    pub subject: String,
    pub stream_sequence: u64,
}

/// Why an alert was not published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishError {
    /// The queue is unavailable or full: the client may try again after `retry_after`.
    Unavailable { reason: String, retry_after: Duration },
    /// The alert is larger than what the queue stores.
    TooLarge(String),
    /// The queue will never accept this alert.
    Invalid(String),
}

/// Stores alerts for workers.
pub trait Queue: Send + Sync + 'static {
    /// Returns when the alert is stored, in bounded time.
    ///
    /// # Errors
    /// When the alert is not stored, or it is unknown whether it is.
    fn publish(&self, alert: InboundAlert) -> impl Future<Output = Result<Published, PublishError>> + Send;
}
