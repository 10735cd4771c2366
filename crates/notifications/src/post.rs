//! Sends an HTTP POST request with a JSON body, signed or unsigned.

use chrono::Utc;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use ring::hmac::Key;
use serde_json::Value;
use uuid::Uuid;

use super::{answer, signature};
use tarsy_engine::ports::ProviderAnswer;

/// Sends a body; the status says what became of it.
pub(super) async fn json(client: &Client, url: Url, body: &Value) -> ProviderAnswer {
    let request = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    match request.send().await {
        Ok(response) => answer::of_status(response).await,
        Err(error) => answer::failed(error),
    }
}

/// Posts JSON as [`json`] does, with the headers of Standard Webhooks; `key` signs them.
pub(super) async fn signed(
    client: &Client,
    url: Url,
    id: Uuid,
    body: &Value,
    key: Option<&Key>,
) -> ProviderAnswer {
    let body = body.to_string();
    let headers = signature::headers(id, Utc::now().timestamp(), &body, key);
    let request = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .headers(headers)
        .body(body);
    match request.send().await {
        Ok(response) => answer::of_status(response).await,
        Err(error) => answer::failed(error),
    }
}
