//! `/sessions/{id}`, its rows, its live stream, and short addresses of it.

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;

use super::{Asked, Page};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::TimelineEvent;
use crate::reports::{AlertReport, IdMatch, document};
use crate::web::api::{find, sse, unseen};
use crate::web::layout::html_response;
use crate::web::pages::session::{Events, Session, range, session, timeline};
use crate::web::pages::shell::{self, Frame, Net, Place, split};
use crate::web::pages::small;
use crate::web::pages::steps::View;
use crate::web::pages::viewer::Viewer;
use crate::web::ports::{Backend, Unavailable};
use crate::web::{Shared, cache};

/// Events that are read at once.
const EVENTS_PAGE: u32 = 500;
/// Events of one page: later ones have ranges of their own.
const MAX_EVENTS: usize = 50_000;

/// Which rows are shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    view: String,
    from: Option<u32>,
    to: Option<u32>,
}

pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>, Path(part): Path<String>, asked: Asked) -> Response {
    asked.answer(render(&web, &asked, &part).await)
}

async fn render<B: Backend>(web: &Shared<B>, asked: &Asked, id: &str) -> Page {
    let parameters: Parameters = asked.query()?;
    let Some(id) = SessionId::parse(id) else { return found(web, asked, id, "").await };
    let report = web.backend.report(id).await?.ok_or_else(|| unseen(id))?;
    let page = Session { report: &report, viewer: &asked.viewer, now: chrono::Utc::now() };
    let is_whole = parameters.view.is_empty() && parameters.from.is_none() && parameters.to.is_none();
    let live = (page.is_open() && is_whole).then(|| format!("/sessions/{id}/live"));
    let net = match (page.is_open(), web.backend.is_live()) {
        (true, true) => Net::Live,
        (true, false) => Net::NotLive,
        (false, _) => Net::Still,
    };
    let is_open = page.is_open();
    let frame = Frame { net, live, ..Frame::plain(page.title(), Place::Session) };
    let whole = shell::page(&frame, &asked.viewer, &session(&page)).into_string();
    // The events of an ended session never change: its page differs only where the part without them differs.
    let tag = (!is_open).then(|| cache::tag(&whole, &asked.uri));
    if let Some(unchanged) = tag.as_ref().and_then(|tag| cache::unchanged(&asked.headers, tag)) {
        return Ok(unchanged);
    }
    let response = in_two_parts(web.clone(), whole, report, asked.viewer.clone(), parameters);
    Ok(match tag {
        Some(tag) => cache::tagged(response, tag),
        None => response,
    })
}

/// Head and answer are sent at once; the events are read then. Without them the page says why, and the response breaks
/// off: a browser would keep a complete one.
fn in_two_parts<B: Backend>(
    web: Shared<B>,
    page: String,
    report: AlertReport,
    viewer: Viewer,
    parameters: Parameters,
) -> Response {
    let (first, rest) = match split(&page) {
        Some(halves) => (halves.first.to_owned(), halves.rest.to_owned()),
        None => (page, String::new()),
    };
    let second = async move {
        let (rows, failure) = match events(&web, report.alert_id).await {
            Ok(events) => {
                let page = Session { report: &report, viewer: &viewer, now: chrono::Utc::now() };
                (timeline(&page, &parameters.of(&events)), None)
            }
            Err(unavailable) => (maud::html! { p.banner { (unavailable.to_string()) } }, Some(Err(unavailable))),
        };
        stream::iter([Ok(rows.into_string() + &rest)].into_iter().chain(failure))
    };
    let parts = stream::once(async move { Ok(first) }).chain(stream::once(second).flatten());
    let body = Body::from_stream(parts.map(|part: Result<String, Unavailable>| part.map(Bytes::from)));
    ([(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], body).into_response()
}

impl Parameters {
    fn of<'a>(&self, events: &'a [TimelineEvent]) -> Events<'a> {
        let (from, to) = (self.from.unwrap_or(1), self.to.unwrap_or(u32::MAX));
        Events { view: View::of(&self.view), from, to, ..Events::all(events) }
    }
}

/// All events of a session.
async fn events<B: Backend>(web: &Shared<B>, id: SessionId) -> Result<Vec<TimelineEvent>, Unavailable> {
    let mut events: Vec<TimelineEvent> = Vec::new();
    while events.len() < MAX_EVENTS {
        let after = events.last().map_or(0, |event| event.session_seq);
        let page = web.backend.events(id, after, EVENTS_PAGE).await?;
        if page.is_empty() {
            break;
        }
        events.extend(page);
        if events.last().is_some_and(|event| event.event_type.is_end()) {
            break;
        }
    }
    Ok(events)
}

/// The rows of a range, without a page around them.
pub(super) async fn rows<B: Backend>(State(web): State<Shared<B>>, Path(part): Path<String>, asked: Asked) -> Response {
    let rows = async {
        let parameters: Parameters = asked.query()?;
        let id = find(&web, &part).await?;
        let report = web.backend.report(id).await?.ok_or_else(|| unseen(id))?;
        let events = events(&web, id).await?;
        let page = Session { report: &report, viewer: &asked.viewer, now: chrono::Utc::now() };
        Ok(html_response(range(&page, &parameters.of(&events))))
    };
    asked.answer(rows.await)
}

/// The report as a file in Markdown.
pub(super) async fn markdown<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Response {
    let file = async {
        let id = find(&web, &part).await?;
        let report = web.backend.report(id).await?.ok_or_else(|| unseen(id))?;
        let lines = document::report(&report, chrono::Utc::now());
        let name = format!("attachment; filename=\"tarsy-{}.md\"", id.short());
        let kind = "text/markdown; charset=utf-8".to_owned();
        Ok(([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, name)], lines.join("\n") + "\n").into_response())
    };
    asked.answer(file.await)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct After {
    after: u32,
}

/// The rows of a running session as they change.
pub(super) async fn live<B: Backend>(State(web): State<Shared<B>>, Path(part): Path<String>, asked: Asked) -> Response {
    let stream = async {
        let After { after } = asked.query()?;
        let id = find(&web, &part).await?;
        let after = sse::last_event_id(&asked.headers).unwrap_or(after);
        sse::rows(web.clone(), &asked.access, id, after).await
    };
    stream.await.unwrap_or_else(|fault| fault.json())
}

/// A part of an id, for a message or a call.
pub(super) async fn part<B: Backend>(State(web): State<Shared<B>>, Path(part): Path<String>, asked: Asked) -> Response {
    asked.answer(found(&web, &asked, &part, "").await)
}

/// A part of an id with the number of an event.
pub(super) async fn part_at<B: Backend>(
    State(web): State<Shared<B>>,
    Path((part, number)): Path<(String, u32)>,
    asked: Asked,
) -> Response {
    asked.answer(found(&web, &asked, &part, &format!("#{number}")).await)
}

async fn found<B: Backend>(web: &Shared<B>, asked: &Asked, part: &str, fragment: &str) -> Page {
    if let IdMatch::Many(ids) = web.backend.find(part).await? {
        let frame = Frame::plain("Several sessions", Place::Elsewhere);
        return Ok(asked.page(&frame, &small::several(part, &ids)));
    }
    let id = find(web, part).await?;
    Ok((StatusCode::FOUND, [("location", format!("/sessions/{id}{fragment}"))]).into_response())
}
