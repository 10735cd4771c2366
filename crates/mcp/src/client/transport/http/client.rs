//! The client that rmcp's transport sends its messages with.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, RequestId, RequestParamsMeta as _, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::time::error::Elapsed;

use super::body::{ReadBody, read, request_id, too_large, without_bom};
use super::events::events;
use super::exchange::{EVENT_STREAM, Exchange, JSON, has_type, session_of};
use super::fault::Refusal;
use super::pace::StreamPace;
use super::reason::reason;
use super::session::HeaderSession;
use super::{BearerToken, HttpFault, MAX_MESSAGE_BYTES};
use crate::client::transport::message;
use crate::client::transport::open::OpenRequests;
use tarsy_core::intake::headers::TRACEPARENT;

/// The longest body of a refusal that is read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// The time limit for the body of a refusal: its status has come, and the reason is only a help.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(3);
/// The time limit for the end of a session at its server; rmcp gives up, without a log, after 5 s.
const DELETE_TIMEOUT: Duration = Duration::from_secs(4);
const NEITHER: &str = "the answer is neither JSON nor a stream of events";

type Failure = StreamableHttpError<HttpFault>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The connection pool of one server, with its token.
#[derive(Clone, Debug)]
pub(in crate::client) struct HttpClient {
    pub(super) http: Client,
    pub(super) token: Option<Arc<BearerToken>>,
    /// The server has gone, or has forgotten the session.
    pub(super) lost: Arc<AtomicBool>,
    /// Limits how often streams are opened.
    pub(super) pace: Arc<StreamPace>,
    /// The statuses with which this server has run no tool.
    pub(super) not_run_on: Arc<[StatusCode]>,
    /// The session that headers name: what the server keeps for it is deleted only after its end.
    pub(super) session: Option<Arc<HeaderSession>>,
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let request = request_id(&message);
        let headers = traced(headers, &message);
        let body = serde_json::to_vec(&message).map_err(StreamableHttpError::Deserialize)?;
        let exchange = Exchange {
            method: Method::POST,
            uri: &uri,
            session: session_id.as_deref(),
            headers,
            body,
            is_notice: request.is_none(),
        };
        let response = match self.exchange(&exchange).await {
            Err(StreamableHttpError::SessionExpired)
                if self.not_run_on.contains(&StatusCode::NOT_FOUND) =>
            {
                return Err(StreamableHttpError::Client(HttpFault::NotRun(
                    StatusCode::NOT_FOUND.into(),
                )));
            }
            answered => answered?,
        };
        let status = response.status();
        match request {
            Some(request) if status.is_success() => answer(response, request).await,
            Some(request) => self.refusal(response, request).await,
            None => {
                // Whether the server takes a notification changes nothing here.
                if !status.is_success() {
                    tracing::warn!(%status, "mcp server refused a notification");
                }
                Ok(StreamableHttpPostResponse::Accepted)
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        if self
            .session
            .as_ref()
            .is_some_and(|session| !session.has_ended())
        {
            // Another connection, perhaps of another worker, continues with what the server keeps for the session.
            return Ok(());
        }
        let exchange = Exchange {
            method: Method::DELETE,
            uri: &uri,
            session: Some(&session_id),
            headers,
            body: Vec::new(),
            is_notice: false,
        };
        // A server need not support this, and its refusal changes nothing.
        let answered = tokio::time::timeout(DELETE_TIMEOUT, self.exchange(&exchange)).await;
        if self.session.is_some() {
            log_deletion(&answered);
        }
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        mut headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            headers.insert(HeaderName::from_static("last-event-id"), id);
        }
        let exchange = Exchange {
            method: Method::GET,
            uri: &uri,
            session: session_id.as_deref(),
            headers,
            body: Vec::new(),
            is_notice: false,
        };
        self.pace.turn().await;
        let response = match self.exchange(&exchange).await {
            Err(StreamableHttpError::SessionExpired) => {
                return Err(StreamableHttpError::ServerDoesNotSupportSse);
            }
            answered => answered?,
        };
        let status = response.status();
        if status.is_server_error() {
            return Err(StreamableHttpError::Client(HttpFault::Status(
                status.into(),
            )));
        }
        if !status.is_success() || !has_type(&response, EVENT_STREAM) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(events(response, None, MAX_MESSAGE_BYTES))
    }
}

impl HttpClient {
    /// An error that the server sends as the answer to this request is an answer. Any other status is a fault.
    async fn refusal(
        &self,
        response: Response,
        request: RequestId,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let session = session_of(&response);
        let body =
            match tokio::time::timeout(REFUSAL_TIMEOUT, read(response, MAX_REFUSAL_BYTES)).await {
                Ok(Ok(ReadBody::Whole(body))) => body,
                Ok(Ok(ReadBody::TooLarge) | Err(_)) | Err(_) => Vec::new(),
            };
        let may_answer = !matches!(
            status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND
        );
        if may_answer
            && let Some(message) = message::parse(without_bom(&body), &OpenRequests::only(None))
            && let Ok(ServerJsonRpcMessage::Error(error)) = serde_json::from_slice(&message)
            && error.id == Some(request)
        {
            return Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::Error(error),
                session,
            ));
        }
        let refusal = Refusal {
            status,
            reason: reason(&body),
        };
        let fault = if self.not_run_on.contains(&status) {
            HttpFault::NotRun(refusal)
        } else {
            HttpFault::Status(refusal)
        };
        Err(StreamableHttpError::Client(fault))
    }
}

/// Logs why a server may still keep something for a session that has ended.
fn log_deletion(answered: &Result<Result<Response, Failure>, Elapsed>) {
    let fault = match answered {
        Ok(Ok(response)) if response.status().is_success() => return,
        Ok(Ok(response)) => response.status().to_string(),
        Ok(Err(fault)) => fault.to_string(),
        Err(_elapsed) => format!("no answer within {DELETE_TIMEOUT:?}"),
    };
    tracing::warn!(fault, "mcp server has not deleted its session");
}

/// The headers with the trace of a call, which its message has as well: a proxy reads no message.
fn traced(mut headers: Headers, message: &ClientJsonRpcMessage) -> Headers {
    if let ClientJsonRpcMessage::Request(request) = message
        && let ClientRequest::CallToolRequest(call) = &request.request
        && let Some(context) = call.params.traceparent()
        && let Ok(value) = HeaderValue::from_str(context)
    {
        headers.insert(HeaderName::from_static(TRACEPARENT), value);
    }
    headers
}

/// The answer to a request: one message as JSON, or a stream of events.
async fn answer(
    response: Response,
    request: RequestId,
) -> Result<StreamableHttpPostResponse, Failure> {
    let session = session_of(&response);
    if matches!(
        response.status(),
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT
    ) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if has_type(&response, EVENT_STREAM) {
        let events = events(response, Some(request), MAX_MESSAGE_BYTES);
        return Ok(StreamableHttpPostResponse::Sse(events, session));
    }
    // JSON is read under any type, or none: it cannot be taken for something else.
    let fault = if has_type(&response, JSON) {
        "the answer is no JSON-RPC"
    } else {
        NEITHER
    };
    let body = read(response, MAX_MESSAGE_BYTES).await;
    let message = match body.map_err(StreamableHttpError::Client)? {
        ReadBody::Whole(body) => {
            let open = OpenRequests::only(Some(&request));
            let message = message::parse(without_bom(&body), &open)
                .ok_or_else(|| broken(&with_words(fault, &body)))?;
            serde_json::from_slice(&message).map_err(|_error| broken(&with_words(fault, &body)))?
        }
        ReadBody::TooLarge => too_large(Some(request), MAX_MESSAGE_BYTES),
    };
    Ok(StreamableHttpPostResponse::Json(message, session))
}

/// The fault with the words of the server, if they are no page of HTML.
fn with_words(fault: &str, body: &[u8]) -> String {
    reason(body).map_or_else(|| fault.to_owned(), |words| format!("{fault}: {words}"))
}

fn broken(text: &str) -> Failure {
    StreamableHttpError::Client(HttpFault::Broken(text.to_owned()))
}
