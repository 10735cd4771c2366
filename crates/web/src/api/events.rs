//! The events of a session: a page as JSON, all as lines, or a stream; and one event whole.

use std::collections::VecDeque;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde::{Deserialize, Serialize};

use super::{Answer, OK, find, query, sse, unseen};
use crate::fault::Fault;
use crate::ports::{Backend, Unavailable};
use crate::rights::Access;
use crate::state::Shared;
use crate::{cache, json};
use tarsy_core::ids::SessionId;
use tarsy_core::search::{Literal, MAX_LITERAL_BYTES};
use tarsy_core::timeline::TimelineEvent;
use tarsy_reports::{EventSearch, FoundEvent, Match};

const DEFAULT_LIMIT: u32 = 500;
const MAX_LIMIT: u32 = 1_000;
/// Events of the lines that are read at once.
const LINES_PAGE: u32 = 64;

#[derive(Deserialize)]
struct EventsQuery {
    #[serde(default)]
    after: u32,
    limit: Option<u32>,
    /// The text that the events contain; blank for all events.
    #[serde(default)]
    q: String,
}

#[derive(Serialize)]
struct Events {
    events: Vec<TimelineEvent>,
    /// The number of the last event that this answer covers, to ask for those after it.
    last_seq: u32,
    /// Whether this event is the end of the session.
    ended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SearchAnswer>,
}

/// The search that has found the events of an answer.
#[derive(Serialize)]
struct SearchAnswer {
    /// The number of the last event that was searched, to continue after it.
    searched_to: u32,
    /// Whether all stored events after `after` were searched.
    complete: bool,
    /// The first match of each event.
    matches: Vec<Match>,
}

/// The forms of the events of a session.
enum EventFormat {
    Page,
    Lines,
    Stream,
}

impl EventFormat {
    /// The first form in `Accept` that exists, or a page.
    fn accepted(headers: &HeaderMap) -> Self {
        headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|part| part.split(';').next())
            .find_map(|kind| match kind.trim() {
                "text/event-stream" => Some(Self::Stream),
                "application/x-ndjson" => Some(Self::Lines),
                "application/json" => Some(Self::Page),
                _ => None,
            })
            .unwrap_or(Self::Page)
    }
}

pub(super) async fn list<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
    Path(part): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let mut response = listed(web, &access, &part, &headers, &uri)
        .await
        .into_response();
    response
        .headers_mut()
        .insert(VARY, HeaderValue::from_static("Accept"));
    response
}

async fn listed<B: Backend>(
    web: Shared<B>,
    access: &Access,
    part: &str,
    headers: &HeaderMap,
    uri: &Uri,
) -> Answer {
    let EventsQuery { after, limit, q } = query(uri)?;
    let text = search_text(&q)?;
    if limit.is_some_and(|limit| !(1..=MAX_LIMIT).contains(&limit)) {
        return Err(Fault::Invalid(format!("limit: accepted: 1 to {MAX_LIMIT}")));
    }
    let id = find(&web, part).await?;
    let format = EventFormat::accepted(headers);
    if let Some(text) = text {
        if !matches!(format, EventFormat::Page) {
            return Err(Fault::Invalid(
                "q: a search is answered as a page: accept application/json".to_owned(),
            ));
        }
        let search = EventSearch {
            session: id,
            after,
            limit: limit.unwrap_or(DEFAULT_LIMIT),
            text,
        };
        return Ok(json::response(OK, &searched(&web, search).await?));
    }
    match format {
        EventFormat::Stream => {
            let after = sse::last_event_id(headers).unwrap_or(after);
            sse::session(web, access, id, after).await
        }
        EventFormat::Lines => lines(web, id, after).await,
        EventFormat::Page => {
            let events = web
                .backend
                .events(id, after, limit.unwrap_or(DEFAULT_LIMIT))
                .await?;
            if events.is_empty() && web.backend.report(id).await?.is_none() {
                return Err(unseen(id));
            }
            let (last_seq, ended) = match events.last() {
                Some(last) => (last.session_seq, last.event_type.is_end()),
                None => (after, sse::has_ended(&web, id, after).await),
            };
            let events = Events {
                events,
                last_seq,
                ended,
                search: None,
            };
            Ok(json::response(OK, &events))
        }
    }
}

/// The text of a search; `None` if it is blank.
pub(crate) fn search_text(text: &str) -> Result<Option<Literal>, Fault> {
    Literal::parse(text)
        .map_err(|_| Fault::Invalid(format!("q: at most {MAX_LITERAL_BYTES} bytes")))
}

async fn searched<B: Backend>(web: &Shared<B>, search: EventSearch) -> Result<Events, Fault> {
    let EventSearch { session, after, .. } = search;
    let found = web.backend.search_events(search).await?;
    let last_seq = found.searched_to;
    if last_seq == after && web.backend.report(session).await?.is_none() {
        return Err(unseen(session));
    }
    // The end of the session need not be among the events that are found.
    let ended = found.is_complete && sse::has_ended(web, session, last_seq).await;
    let mut events = Vec::new();
    let mut matches = Vec::new();
    for FoundEvent { event, found } in found.events {
        events.push(event);
        matches.push(found);
    }
    let search = Some(SearchAnswer {
        searched_to: last_seq,
        complete: found.is_complete,
        matches,
    });
    Ok(Events {
        events,
        last_seq,
        ended,
        search,
    })
}

/// Every stored event after `after` on a line, byte for byte as `watch --json` prints it.
async fn lines<B: Backend>(web: Shared<B>, id: SessionId, after: u32) -> Answer {
    let first = web.backend.events(id, after, LINES_PAGE).await?;
    if first.is_empty() && web.backend.report(id).await?.is_none() {
        return Err(unseen(id));
    }
    let body = stream::try_unfold(
        (web, VecDeque::from(first), after),
        move |(web, mut events, after)| async move {
            if events.is_empty() {
                events = web.backend.events(id, after, LINES_PAGE).await?.into();
            }
            let Some(event) = events.pop_front() else {
                return Ok::<_, Unavailable>(None);
            };
            let line = tarsy_reports::json::line(&event).unwrap_or_default() + "\n";
            // The end event is the last one: the store need not be asked again.
            let after = if event.event_type.is_end() {
                u32::MAX
            } else {
                event.session_seq
            };
            Ok(Some((Bytes::from(line), (web, events, after))))
        },
    );
    let kind = [(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    )];
    Ok((kind, Body::from_stream(body)).into_response())
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path(path): Path<EventPath>,
) -> Answer {
    let event = event_at(&web, &path).await?;
    let response = json::response(OK, &event);
    // A part of an id may belong to several sessions later.
    Ok(if SessionId::parse(&path.part).is_some() {
        cache::immutable(response)
    } else {
        response
    })
}

#[derive(Debug, Deserialize)]
pub(crate) struct EventPath {
    part: String,
    number: String,
}

/// The event that a path names, with its whole content.
pub(crate) async fn event_at<B: Backend>(
    web: &Shared<B>,
    path: &EventPath,
) -> Result<TimelineEvent, Fault> {
    let invalid = || Fault::Invalid("an event has a number from 1".to_owned());
    let number: u32 = path.number.parse().map_err(|_| invalid())?;
    let id = find(web, &path.part).await?;
    let before = number.checked_sub(1).ok_or_else(invalid)?;
    let found = web.backend.events(id, before, 1).await?.pop();
    found
        .filter(|event| event.session_seq == number)
        .ok_or_else(|| Fault::NotFound(format!("session {id} has no event {number}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};

    use crate::testing::backend::FakeBackend;
    use crate::testing::data::{report, story};

    /// The status and the body of the events with a query.
    async fn asked(backend: &Arc<FakeBackend>, query: &str, accept: &str) -> (u16, Value) {
        let path = format!("/api/v1/sessions/{}/events?{query}", report().alert_id);
        let response = backend.answer(&path, &[("accept", accept)]).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    #[tokio::test]
    async fn a_search_has_its_matches_and_ends_where_the_session_ends() {
        let events = story();
        let backend = FakeBackend::with(events.clone());
        let last = u32::try_from(events.len()).unwrap();
        let json = "application/json";
        // The fake searches two events at once, of which the first has no such text.
        let (status, first) = asked(&backend, "q=k8S.List_pods", json).await;
        assert_eq!(status, 200);
        assert_eq!(first["search"]["complete"], false);
        assert_eq!(
            [
                &first["last_seq"],
                &first["search"]["searched_to"],
                &first["ended"]
            ],
            [&json!(2), &json!(2), &json!(false)]
        );
        // The end of the session is searched, and does not contain the text.
        let query = format!("q=no-such-text&after={}", last - 1);
        let (_, end) = asked(&backend, &query, json).await;
        assert_eq!(
            end,
            json!({"events": [], "last_seq": last, "ended": true,
                   "search": {"searched_to": last, "complete": true, "matches": []}})
        );
        // Without a text it is a page as ever.
        let (_, blank) = asked(&backend, "q=%20&limit=1", json).await;
        let (_, page) = asked(&backend, "limit=1", json).await;
        assert_eq!(blank, page);
        assert_eq!(page.get("search"), None);
    }

    #[tokio::test]
    async fn a_search_is_refused_as_lines_as_a_stream_and_when_it_is_too_long() {
        let backend = FakeBackend::with_events(3);
        for accept in ["application/x-ndjson", "text/event-stream"] {
            let (status, body) = asked(&backend, "q=oom", accept).await;
            assert_eq!(
                (status, &body["error"]),
                (
                    400,
                    &json!("q: a search is answered as a page: accept application/json")
                )
            );
        }
        let long = format!("q={}", "x".repeat(201));
        let (status, body) = asked(&backend, &long, "*/*").await;
        assert_eq!(
            (status, &body["error"]),
            (400, &json!("q: at most 200 bytes"))
        );
    }

    #[tokio::test]
    async fn a_search_in_a_session_that_does_not_exist_finds_no_session() {
        let backend = FakeBackend::with(Vec::new());
        backend.report(None);
        let (status, _) = asked(&backend, "q=oom", "application/json").await;
        assert_eq!(status, 404);
        let page = format!("/sessions/{}/search?q=oom", report().alert_id);
        assert_eq!(backend.answer(&page, &[]).await.status().as_u16(), 404);
    }
}
