//! `rmcp` with the smallest client over the same HTTP crate: JSON in, JSON out.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use rmcp::{RoleClient, ServiceExt as _};
use sse_stream::Sse;

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

#[derive(Clone)]
struct JsonClient(reqwest::Client);

/// A connection to the server at `url`.
pub(crate) async fn connect(url: &str) -> RunningService<RoleClient, ()> {
    let client = JsonClient(reqwest::Client::new());
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    ().serve(StreamableHttpClientTransport::with_client(client, config))
        .await
        .expect("the handshake")
}

impl StreamableHttpClient for JsonClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message).map_err(StreamableHttpError::Deserialize)?;
        let mut request = self
            .0
            .post(&*uri)
            .body(body)
            .header(CONTENT_TYPE, "application/json");
        request = request
            .header(ACCEPT, "application/json, text/event-stream")
            .headers(headers.into_iter().collect());
        if let Some(session) = session_id {
            request = request.header("mcp-session-id", &*session);
        }
        let response = request
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .map_err(StreamableHttpError::Client)?;
        if response.status() == reqwest::StatusCode::ACCEPTED {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = response
            .headers()
            .get("mcp-session-id")
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let body = response
            .bytes()
            .await
            .map_err(StreamableHttpError::Client)?;
        let message = serde_json::from_slice(&body).map_err(StreamableHttpError::Deserialize)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        _session_id: Arc<str>,
        _auth_header: Option<String>,
        _headers: Headers,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        _session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        _headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}
