//! Counts requests by kind (page, API, asset, stream) and status, and measures their duration.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;

use crate::json::API;

/// Counts the request and the time to the head of its response.
pub(super) async fn count(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let of_api = request.uri().path().starts_with(API);
    let of_assets = request.uri().path().starts_with("/assets/");
    let response = next.run(request).await;
    let content = response
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| value.as_bytes());
    let kind = match content {
        Some(b"text/event-stream") => "stream",
        _ if of_api => "api",
        _ if of_assets => "asset",
        _ => "page",
    };
    let code = class(response.status());
    metrics::counter!("tarsy_web_requests_total", "kind" => kind, "code" => code).increment(1);
    metrics::histogram!("tarsy_web_request_duration_seconds").record(began.elapsed().as_secs_f64());
    response
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        ..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500.. => "5xx",
    }
}
