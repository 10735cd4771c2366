//! HTTP caching of pages: entity tags, `Cache-Control` and conditional requests (RFC 9110, sections 13.1.2 and
//! 15.4.5).
//!
//! A response is `no-store` unless its handler says otherwise.

use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

/// A browser keeps the page, and asks before it shows it again. A proxy keeps nothing.
const REVALIDATED: HeaderValue = HeaderValue::from_static("private, no-cache");
/// A committed event never changes.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

/// The tag of a page. `shown` decides all of the page for this build: it includes the theme and the rights of the
/// reader.
pub(super) fn tag(shown: &str, uri: &Uri) -> HeaderValue {
    // Another build may render the same data in another way.
    let hash = Sha256::new()
        .chain_update(tarsy_build_info::VERSION)
        .chain_update(tarsy_build_info::COMMIT)
        .chain_update(shown)
        .chain_update(uri.to_string())
        .finalize();
    let hash: String = hash
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // Hexadecimal digits are always a header.
    HeaderValue::from_str(&format!("W/\"{hash}\"")).unwrap_or(HeaderValue::from_static("W/\"\""))
}

/// The answer to a client that has this page already; `None` when it needs the page.
pub(super) fn unchanged(headers: &HeaderMap, tag: &HeaderValue) -> Option<Response> {
    let own = opaque(tag.to_str().ok()?);
    let is_known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|sent| sent.trim() == "*" || opaque(sent) == own);
    is_known.then(|| {
        let mut response = tagged(StatusCode::NOT_MODIFIED.into_response(), tag.clone());
        response
            .headers_mut()
            .insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    })
}

/// The part of a tag that the weak comparison compares (RFC 9110, section 8.8.3.2).
fn opaque(tag: &str) -> &str {
    tag.trim().trim_start_matches("W/")
}

/// The page with its tag.
pub(super) fn tagged(mut response: Response, tag: HeaderValue) -> Response {
    response.headers_mut().insert(ETAG, tag);
    response.headers_mut().insert(CACHE_CONTROL, REVALIDATED);
    response
}

/// A response that never changes.
pub(super) fn immutable(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, IMMUTABLE);
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::testing::backend::FakeBackend;
    use crate::testing::data::{report, story};

    fn header(response: &Response, name: &str) -> String {
        response
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
            .unwrap_or_default()
    }

    /// The address of the page of a session that has ended.
    fn page() -> String {
        format!("/sessions/{}", report().alert_id)
    }

    #[tokio::test]
    async fn a_page_that_the_browser_has_is_not_sent_again() {
        let backend = FakeBackend::with_events(story().len());
        let event = format!("{}/events/3", page());
        for path in [
            page(),
            format!("{}?view=cited", page()),
            event.clone(),
            format!("{event}?part=1"),
        ] {
            let first = backend.answer(&path, &[]).await;
            let tag = header(&first, "etag");
            let status = first.status();
            assert!(
                tag.starts_with("W/\"") && status == StatusCode::OK,
                "{path}: {status} {tag}"
            );
            assert_eq!(
                header(&first, "cache-control"),
                "private, no-cache",
                "{path}"
            );
            let strong = tag.trim_start_matches("W/");
            for sent in [tag.as_str(), strong, "*", &format!("\"other\", {tag}")] {
                let again = backend.answer(&path, &[("if-none-match", sent)]).await;
                assert_eq!(
                    (again.status(), header(&again, "etag")),
                    (StatusCode::NOT_MODIFIED, tag.clone()),
                    "{sent}"
                );
                assert_eq!(header(&again, "cache-control"), "private, no-cache");
                assert!(
                    again
                        .into_body()
                        .collect()
                        .await
                        .unwrap()
                        .to_bytes()
                        .is_empty()
                );
            }
            let others: [&[(&str, &str)]; 3] = [
                &[("if-none-match", "\"other\"")],
                &[("if-none-match", &tag), ("cookie", "tarsy-theme=dark")],
                &[("if-none-match", &tag), ("cookie", "tarsy-keys=off")],
            ];
            for headers in others
                .into_iter()
                .filter(|headers| headers.len() == 1 || !path.contains("part=1"))
            {
                assert_eq!(
                    backend.answer(&path, headers).await.status(),
                    StatusCode::OK,
                    "{path} {headers:?}"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_page_without_its_events_breaks_off_so_that_no_browser_keeps_it() {
        let backend = FakeBackend::with_events(story().len());
        backend.lose_events();
        let mut body = backend.answer(&page(), &[]).await.into_body();
        let mut text = Vec::new();
        let error = loop {
            match body.frame().await.expect("an error comes before the end") {
                Ok(frame) => text.extend(frame.into_data().unwrap()),
                Err(error) => break error,
            }
        };
        assert!(
            error.to_string().contains("database unavailable"),
            "{error}"
        );
        assert!(
            String::from_utf8(text)
                .unwrap()
                .contains("database unavailable"),
            "the page itself says so"
        );
    }

    #[tokio::test]
    async fn only_an_event_with_a_whole_id_is_immutable() {
        let backend = FakeBackend::with_events(story().len());
        let id = report().alert_id.to_string();
        let immutable = "private, max-age=31536000, immutable";
        let beginning: String = id.chars().take(8).collect();
        for (part, expected) in [(id.as_str(), immutable), (beginning.as_str(), "no-store")] {
            let response = backend
                .answer(&format!("/api/v1/sessions/{part}/events/3"), &[])
                .await;
            assert_eq!(
                (
                    response.status(),
                    header(&response, "cache-control").as_str()
                ),
                (StatusCode::OK, expected)
            );
        }
        let absent = backend
            .answer(&format!("/api/v1/sessions/{id}/events/99999"), &[])
            .await;
        assert_eq!(
            (absent.status(), header(&absent, "cache-control").as_str()),
            (StatusCode::NOT_FOUND, "no-store")
        );
    }
}
