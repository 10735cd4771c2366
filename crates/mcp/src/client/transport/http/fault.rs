//! The errors of a request over HTTP, and whether the server may have acted on it.

use std::error::Error;
use std::fmt;

use reqwest::StatusCode;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// A failed request. No text names the address, a header or the token.
#[derive(Debug, thiserror::Error)]
pub(in crate::client) enum HttpFault {
    /// The configuration cannot be used.
    #[error("{0}")]
    Setup(String),
    /// There is no token to send.
    #[error("{0}")]
    Token(String),
    /// No connection was established.
    #[error("connection failed: {0}")]
    Connect(String),
    /// The server or a proxy refused the request or failed. The tool may have run.
    #[error("HTTP {0}")]
    Status(Refusal),
    /// A status with which no tool has run, as the operator has declared for this server.
    #[error("HTTP {0}")]
    NotRun(Refusal),
    /// The connection broke, or the answer cannot be read. The tool may have run.
    #[error("{0}")]
    Broken(String),
}

impl HttpFault {
    pub(super) fn from_error(error: reqwest::Error) -> Self {
        let unsent = error.is_connect() || error.is_builder();
        let text = describe(&error.without_url());
        if unsent {
            Self::Connect(text)
        } else {
            Self::Broken(format!("connection lost: {text}"))
        }
    }

    /// Whether the server cannot have acted on the request.
    fn is_unsent(&self) -> bool {
        match self {
            Self::Setup(_) | Self::Token(_) | Self::Connect(_) | Self::NotRun(_) => true,
            Self::Status(_) | Self::Broken(_) => false,
        }
    }
}

/// A status that is no success, and the reason that its body gives.
#[derive(Debug)]
pub(in crate::client) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) reason: Option<String>,
}

impl From<StatusCode> for Refusal {
    fn from(status: StatusCode) -> Self {
        Self {
            status,
            reason: None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        self.reason
            .iter()
            .try_for_each(|reason| write!(f, ": {reason}"))
    }
}

/// A request that failed in the transport.
pub(in crate::client) struct TransportFault {
    /// For people; names no secret.
    pub(in crate::client) text: String,
    /// The server cannot have acted on the request.
    pub(in crate::client) unsent: bool,
}

/// The cause of an error of the transport. Any transport but HTTP may have delivered the request.
pub(in crate::client) fn fault_of(error: &DynamicTransportError) -> TransportFault {
    match error.error.downcast_ref::<StreamableHttpError<HttpFault>>() {
        Some(StreamableHttpError::Client(fault)) => TransportFault {
            text: fault.to_string(),
            unsent: fault.is_unsent(),
        },
        Some(error) => TransportFault {
            text: error.to_string(),
            unsent: false,
        },
        None => TransportFault {
            text: error.error.to_string(),
            unsent: false,
        },
    }
}

/// An error and its innermost cause.
fn describe(error: &reqwest::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| (*error).source());
    match sources.last() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
