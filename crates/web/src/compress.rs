//! Compresses pages with gzip while they are sent. Event streams are not compressed, because each event has to arrive
//! at once.
//!
//! No page contains a secret, so the length of a compressed page reveals none.

use std::io::Write as _;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt as _, stream};

/// The content types that are compressed.
const TYPES: [&str; 4] = ["text/html", "text/css", "text/javascript", "image/svg+xml"];
/// Fast, and within some per cent of the smallest.
const LEVEL: Compression = Compression::new(5);

/// Compresses a response for a client that accepts it.
pub(super) async fn compress(request: Request, next: Next) -> Response {
    let accepts = accepts_gzip(request.headers());
    let mut response = next.run(request).await;
    if !is_page(&response) {
        return response;
    }
    response
        .headers_mut()
        .append(VARY, HeaderValue::from_static("Accept-Encoding"));
    if !accepts {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts
        .headers
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    let encoder = Some(GzEncoder::new(Vec::new(), LEVEL));
    let compressed = stream::unfold(
        (body.into_data_stream(), encoder),
        |(mut body, encoder)| async move {
            let mut encoder = encoder?;
            match body.next().await {
                Some(Ok(part)) => {
                    // A vector takes every byte.
                    let written = encoder.write_all(&part).and_then(|()| encoder.flush());
                    let bytes = std::mem::take(encoder.get_mut());
                    Some((
                        written
                            .map(|()| Bytes::from(bytes))
                            .map_err(axum::Error::new),
                        (body, Some(encoder)),
                    ))
                }
                Some(Err(error)) => Some((Err(error), (body, None))),
                None => Some((
                    encoder.finish().map(Bytes::from).map_err(axum::Error::new),
                    (body, None),
                )),
            }
        },
    );
    Response::from_parts(parts, Body::from_stream(compressed))
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim() == "gzip" && quality.trim() != "q=0"
    })
}

fn is_page(response: &Response) -> bool {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    response.status() != StatusCode::NOT_MODIFIED && TYPES.iter().any(|page| kind.starts_with(page))
}
