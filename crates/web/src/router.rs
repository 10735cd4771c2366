//! The router: every route, and the middleware that a request passes before its handler.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Extensions, HeaderMap, StatusCode, Uri, Version};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};

use crate::access::{self, Gate};
use crate::fault::Fault;
use crate::json::API;
use crate::ports::Backend;
use crate::state::Shared;
use crate::{api, assets, headers, metrics, pages};

/// A form has a question at most.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The content types that are compressed while they are sent. An event of a stream has to arrive at once. No page
/// contains a secret, so the length of a compressed page reveals none.
const COMPRESSED: [&str; 4] = ["text/html", "text/css", "text/javascript", "image/svg+xml"];
/// Fast, and within some per cent of the smallest.
const COMPRESSION: CompressionLevel = CompressionLevel::Precise(5);

/// The router of the server. The first layer is the innermost.
pub(super) fn router<B: Backend>(web: Shared<B>, gate: Arc<Gate>) -> Router {
    Router::new()
        .merge(pages::routes::<B>(&web))
        .merge(access::login::routes(Arc::clone(&gate)))
        .route("/assets/{name}", get(asset))
        .nest(API, api::routes::<B>())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(gate, access::admit))
        .layer(compression())
        .layer(from_fn(headers::secure))
        .layer(from_fn(metrics::count))
        .with_state(web)
}

/// Compresses what is sent, and sends each part of a page at once.
fn compression() -> CompressionLayer<impl Predicate> {
    CompressionLayer::new()
        .quality(COMPRESSION)
        .compress_when(is_compressed)
}

fn is_compressed(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    COMPRESSED.iter().any(|page| kind.starts_with(page))
}

async fn asset(uri: Uri) -> Response {
    match assets::find(uri.path()) {
        Some(asset) => asset.into_response(),
        None => unknown().await,
    }
}

async fn unknown() -> Response {
    Fault::no_such_address().page()
}

async fn wrong_method() -> Response {
    Fault::Method.page()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io::Write as _;
    use std::time::Duration;

    use axum::body::Body;
    use axum::extract::Request;
    use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
    use axum::response::Html;
    use flate2::write::GzDecoder;
    use futures_util::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::testing::backend::FakeBackend;
    use crate::testing::data::{report, story};

    #[tokio::test]
    async fn a_page_is_compressed_and_an_answer_of_the_api_is_not() {
        let backend = FakeBackend::with_events(story().len());
        let page = format!("/sessions/{}", report().alert_id);
        let api = format!("/api/v1{page}");
        let events = format!("{api}/events");
        for (path, accept, encoding) in [
            (&page, "gzip", Some("gzip")),
            (&page, "br, gzip;q=0.5", Some("gzip")),
            (&page, "gzip;q=0", None),
            (&api, "gzip", None),
            (&events, "gzip", None),
        ] {
            let asked = [("accept-encoding", accept), ("accept", "text/event-stream")];
            let response = backend.answer(path, &asked).await;
            let headers = response.headers();
            let sent = headers
                .get(CONTENT_ENCODING)
                .map(|value| value.to_str().unwrap());
            assert_eq!(sent, encoding, "{path} {accept}");
            let varies = headers
                .get_all(VARY)
                .iter()
                .any(|value| value == "accept-encoding");
            assert_eq!(varies, *path == page, "{path} {accept}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_part_of_a_compressed_page_does_not_wait_for_the_rest() {
        let first = stream::iter([Ok::<_, Infallible>("the first part")]);
        let router: Router = Router::new()
            .route(
                "/",
                get(async || Html(Body::from_stream(first.chain(stream::pending())))),
            )
            .layer(compression());
        let request = Request::builder()
            .header(ACCEPT_ENCODING, "gzip")
            .body(Body::empty())
            .unwrap();
        let response = TowerToHyperService::new(router).call(request).await;
        let mut body = response.unwrap().into_body();
        let mut shown = GzDecoder::new(Vec::new());
        while shown.get_ref() != b"the first part" {
            let part = tokio::time::timeout(Duration::from_secs(60), body.frame()).await;
            let part = part.expect("no part comes").unwrap().unwrap();
            shown.write_all(&part.into_data().unwrap()).unwrap();
            shown.flush().unwrap();
        }
    }
}
