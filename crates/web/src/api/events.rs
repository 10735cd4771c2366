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
use tarsy_core::timeline::TimelineEvent;

const DEFAULT_LIMIT: u32 = 500;
const MAX_LIMIT: u32 = 1_000;
/// Events of the lines that are read at once.
const LINES_PAGE: u32 = 64;

#[derive(Deserialize)]
struct EventsQuery {
    #[serde(default)]
    after: u32,
    limit: Option<u32>,
}

#[derive(Serialize)]
struct Events {
    events: Vec<TimelineEvent>,
    /// The number of the last event of this answer, to ask for those after it.
    last_seq: u32,
    /// Whether the last event is the end of the session.
    ended: bool,
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
    let EventsQuery { after, limit } = query(uri)?;
    if limit.is_some_and(|limit| !(1..=MAX_LIMIT).contains(&limit)) {
        return Err(Fault::Invalid(format!("limit: accepted: 1 to {MAX_LIMIT}")));
    }
    let id = find(&web, part).await?;
    match EventFormat::accepted(headers) {
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
            };
            Ok(json::response(OK, &events))
        }
    }
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
