//! The HTTP receiver for webhooks: `POST /hooks/<source>` for each source; `/alertmanager`, `/grafana` and `/alert`.
//!
//! Checks a request, passes its alerts to a [`Queue`], and answers 202 only after the queue has stored all of them. The
//! receiver itself stores nothing and knows no broker. Alertmanager drops an alert after a 4xx and tries again after a
//! 5xx, so a 4xx is only sent for a request that can never succeed.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod server;
mod endpoint;
mod budget;
pub mod proof;
mod request;
mod readers;
mod alerts;
mod response;
pub mod slack;

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::body::Bytes;

pub use server::serve;

use self::proof::Proof;
use tarsy_config::Routes;
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::Intake;
use tarsy_http::listener::{Limits, Token};

/// The rules of a receiver.
#[derive(Debug)]
pub struct Settings {
    /// The token that clients have to send, unless the source of their path has another proof; `None` accepts
    /// every client.
    pub token: Option<Token>,
    /// The sources that have a path, each with its proof.
    pub hooks: BTreeMap<String, Proof>,
    /// Reads the bodies.
    pub intake: Intake,
    /// The rules for the priority of an alert, and for alerts that are ignored.
    pub routes: Routes,
    /// A longer body is rejected without being read; the limit of a source has precedence.
    pub max_body_bytes: usize,
    pub max_body_of_source: BTreeMap<String, usize>,
    /// The size above which a body is reduced before it is published.
    pub max_alert_bytes: usize,
    pub headers: HeaderRules,
    /// The time limit for the head of a request; also the longest time that a connection may be idle.
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub limits: Limits,
}

/// The headers of a request that are passed on. A header in no list is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderRules {
    /// Published with the alert.
    pub forwarded: Vec<&'static str>,
    /// Not published, but named in the response: losing the alert would be worse than losing the header.
    pub ignored: Vec<&'static str>,
    /// A request with one of these is not an alert and is rejected.
    pub forbidden: Vec<&'static str>,
}

/// A request that passed every check, with the alerts that can be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundAlerts {
    /// Never empty. Their bodies are the same bytes.
    pub alerts: Vec<InboundAlert>,
    /// The end of the subject, from the endpoint: the name of a source, or `http`.
    pub suffix: String,
    /// The source that the path names.
    pub source: Option<String>,
    /// The id of the first alert, if the proof of the sender gives one: a repetition of the request has the same.
    pub session_id: Option<SessionId>,
    /// Names as in [`HeaderRules::forwarded`].
    pub headers: Vec<(&'static str, String)>,
    /// Names as in [`HeaderRules::ignored`] that the client sent.
    pub ignored_headers: Vec<&'static str>,
    /// The received body, or a reduced one.
    pub body: Bytes,
}

/// One alert of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboundAlert {
    /// The priority in the query of the request, otherwise that of the route, otherwise that in the body.
    pub priority: Severity,
    /// The index of the alert in its body, if there are several.
    pub part: Option<u32>,
}

/// The place of a published alert in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub session_id: SessionId,
    pub subject: String,
    pub stream_sequence: u64,
}

/// The reason why alerts were not published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishError {
    /// The queue is unavailable or full: the client may try again after `retry_after`.
    Unavailable {
        reason: String,
        retry_after: Duration,
    },
    /// The alert is larger than what the queue stores.
    TooLarge(String),
    /// The queue will never accept this alert.
    Invalid(String),
}

/// Stores alerts for workers.
pub trait Queue: Send + Sync + 'static {
    /// The largest body that it stores, as far as that is known.
    fn max_body_bytes(&self) -> Option<usize>;

    /// Returns when all alerts are stored, in bounded time.
    ///
    /// # Errors
    /// When one of the alerts is not stored, or it is unknown whether it is. Those before it are stored.
    fn publish(
        &self,
        alerts: InboundAlerts,
    ) -> impl Future<Output = Result<Vec<Published>, PublishError>> + Send;
}
