//! An HTTP request with its bearer token: after a 401 the token is read again, and a new one is tried once.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request, Response, StatusCode, Url};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::client::HttpClient;
use super::fault::HttpFault;

pub(super) const EVENT_STREAM: &str = "text/event-stream";
pub(super) const JSON: &str = "application/json";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A request that can be sent a second time.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    pub(super) method: Method,
    pub(super) uri: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
    /// JSON; empty for none.
    pub(super) body: Vec<u8>,
    /// A notification: its refusal says nothing about the session.
    pub(super) is_notice: bool,
}

impl Exchange<'_> {
    fn request(&self, token: Option<&HeaderValue>) -> Result<Request, HttpFault> {
        let url = Url::parse(self.uri)
            .map_err(|_error| HttpFault::Setup("the url cannot be used".to_owned()))?;
        let mut request = Request::new(self.method.clone(), url);
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        if let Some(session) = self.session {
            let session = HeaderValue::from_str(session)
                .map_err(|_error| HttpFault::Broken("the session id is invalid".to_owned()))?;
            headers.insert(SESSION, session);
        }
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        if !self.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
            *request.body_mut() = Some(Body::from(self.body.clone()));
        }
        Ok(request)
    }
}

impl HttpClient {
    /// The head of the answer, whatever its status.
    ///
    /// # Errors
    /// When there is no token, no connection or no answer, and with a 404 when the session has expired.
    pub(super) async fn exchange(
        &self,
        exchange: &Exchange<'_>,
    ) -> Result<Response, StreamableHttpError<HttpFault>> {
        let answered = self.with_token(exchange).await;
        if matches!(answered, Err(HttpFault::Connect(_))) {
            self.lost.store(true, Ordering::Relaxed);
        }
        let response = answered.map_err(StreamableHttpError::Client)?;
        if response.status() == StatusCode::NOT_FOUND
            && exchange.session.is_some()
            && !exchange.is_notice
        {
            self.lost.store(true, Ordering::Relaxed);
            return Err(StreamableHttpError::SessionExpired);
        }
        Ok(response)
    }

    async fn with_token(&self, exchange: &Exchange<'_>) -> Result<Response, HttpFault> {
        let Some(token) = &self.token else {
            return self.send(exchange, None).await;
        };
        let header = token.header().await?;
        let response = self.send(exchange, Some(&header)).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        match token.renewed(&header).await? {
            Some(renewed) => self.send(exchange, Some(&renewed)).await,
            None => Ok(response),
        }
    }

    async fn send(
        &self,
        exchange: &Exchange<'_>,
        token: Option<&HeaderValue>,
    ) -> Result<Response, HttpFault> {
        let request = exchange.request(token)?;
        self.http
            .execute(request)
            .await
            .map_err(HttpFault::from_error)
    }
}

/// Whether the body of this response has the media type.
pub(super) fn has_type(response: &Response, media_type: &str) -> bool {
    let value = response
        .headers()
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    let named = value.split(|byte| *byte == b';').next().unwrap_or_default();
    named
        .trim_ascii()
        .eq_ignore_ascii_case(media_type.as_bytes())
}

/// The session that a response names.
pub(super) fn session_of(response: &Response) -> Option<String> {
    response
        .headers()
        .get(SESSION)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}
