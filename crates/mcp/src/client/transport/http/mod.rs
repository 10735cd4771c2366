//! A server over streamable HTTP: one POST per message, answers as JSON or as server-sent events.
//!
//! The crate rmcp keeps the order of messages and the session; this folder sends the requests. The address, the headers
//! and the token appear in no error and no log.

mod token;
mod fault;
mod builder;
mod exchange;
mod body;
mod reason;
mod events;
mod pace;
mod session;
mod client;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use self::client::HttpClient;
pub(in crate::client) use self::fault::{HttpFault, TransportFault, fault_of};
pub(in crate::client) use self::session::HeaderSession;
pub(in crate::client) use self::token::BearerToken;
use crate::client::config::HttpConfig;

/// The longest body or event that is read, as with a line of a child process.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// The requests of one worker to one server at the same time, beyond any number of calls that may run at once.
const MAX_CONCURRENT_REQUESTS: usize = 64;
/// The number of times that a broken event stream is reopened, with delays from 0.5 to 5 s.
const MAX_STREAM_RETRIES: usize = 5;
const STREAM_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_STREAM_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Prepares the transport without sending a request. `lost` is set when the server has gone or has forgotten the
/// session, so that the next call opens a new connection. `session` is the one that headers name; without
/// one they get a random id.
///
/// # Errors
/// When a header, the proxy or the file of certificates is invalid.
pub(in crate::client) fn transport(
    config: &HttpConfig,
    token: Option<Arc<BearerToken>>,
    lost: Arc<AtomicBool>,
    session: Option<Arc<HeaderSession>>,
) -> Result<StreamableHttpClientTransport<HttpClient>, HttpFault> {
    let session = session::is_named_in(&config.headers)
        .then(|| session.unwrap_or_else(|| Arc::new(HeaderSession::of_one_connection())));
    let client = HttpClient {
        http: builder::build(config)?,
        token,
        lost,
        pace: Arc::default(),
        not_run_on: statuses(&config.not_run_on)?,
        session: session.clone(),
    };
    let mut settings = StreamableHttpClientTransportConfig::with_uri(config.url.as_str())
        .max_concurrent_requests(MAX_CONCURRENT_REQUESTS)
        // A call of an expired session fails at once and is not sent again here: rmcp does not know whether it may be.
        // The client then opens one new connection for all callers.
        .reinit_on_expired_session(false);
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(MAX_STREAM_RETRIES);
    retries.base_duration = STREAM_RETRY_DELAY;
    retries.max_delay = Some(MAX_STREAM_RETRY_DELAY);
    settings.retry_config = Arc::new(retries);
    for (name, value) in &config.headers {
        let value = match &session {
            Some(session) => session.named_in(value),
            None => value.clone(),
        };
        let named = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .zip(HeaderValue::from_str(&value).ok());
        let (header, mut value) =
            named.ok_or_else(|| HttpFault::Setup(format!("the header {name} cannot be sent")))?;
        value.set_sensitive(true);
        settings.custom_headers.insert(header, value);
    }
    Ok(StreamableHttpClientTransport::with_client(client, settings))
}

fn statuses(numbers: &[u16]) -> Result<Arc<[StatusCode]>, HttpFault> {
    let statuses = numbers.iter().map(|number| {
        StatusCode::from_u16(*number)
            .map_err(|_invalid| HttpFault::Setup(format!("{number} is no status of HTTP")))
    });
    statuses.collect()
}
