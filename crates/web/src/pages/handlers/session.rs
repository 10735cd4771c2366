//! Handlers of `/sessions/{id}`: the page, its rows, its live stream, and its short addresses.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;

use super::events::{Loaded, load};
use super::{Asked, Page};
use crate::api::{find, report};
use crate::cache;
use crate::pages::dialogs;
use crate::pages::session::{Events, Session, Span, Waiting, range, session, timeline, waiting};
use crate::pages::steps::View;
use crate::ports::{Backend, Unavailable};
use crate::shell::response::html_response;
use crate::shell::viewer::Viewer;
use crate::shell::{self, Frame, NavEntry, Net, split};
use crate::state::Shared;
use tarsy_core::ids::SessionId;
use tarsy_reports::{AlertReport, ApprovalFilter, ApprovalRow, IdMatch, Requests, document};

/// A shorter session has no folded ranges.
const SHORT: u32 = 400;
/// The number of steps at each end of a session that are never folded.
const FIRST: u32 = 100;
const NEWEST: u32 = 300;
/// A session has fewer requests for approvals.
const MAX_APPROVALS: u32 = 100;
/// Events around the one that a short address names.
const AROUND: u32 = 100;

/// The rows to show.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    view: String,
    from: Option<u32>,
    to: Option<u32>,
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    let parameters: Parameters = asked.query()?;
    let Some(id) = SessionId::parse(&part) else {
        return redirect(&web, &asked, &part, None).await;
    };
    let (report, approvals) = tokio::join!(web.backend.report(id), approvals(&web, id));
    let Some(report) = report? else {
        return Ok(in_the_queue(&web, &asked, id).await);
    };
    let report = Arc::new(report);
    let viewer = asked.viewer.clone();
    let is_open = Session::new(&report, &viewer).is_open();
    let is_whole = parameters.view.is_empty() && parameters.span().is_none();
    let live = (is_open && is_whole).then(|| format!("/sessions/{id}/live"));
    let net = if is_open { net(&web) } else { Net::Still };
    let shown = Arc::clone(&report);
    let whole = web.renderer.render(move || {
        let page = Session {
            approvals: &approvals,
            ..Session::new(&shown, &viewer)
        };
        let frame = Frame {
            net,
            live,
            ..Frame::plain(page.title(), NavEntry::Session)
        };
        shell::page(&frame, &viewer, &session(&page)).into_string()
    });
    let whole = whole.await?;
    // The events of an ended session never change: its page differs only where the part without them differs.
    let tag = (!is_open).then(|| cache::tag(&whole, &asked.uri));
    if let Some(tag) = &tag
        && let Some(unchanged) = cache::unchanged(&asked.headers, tag)
    {
        return Ok(unchanged);
    }
    let response = in_two_parts(web, whole, report, asked.viewer, parameters);
    Ok(match tag {
        Some(tag) => cache::tagged(response, tag),
        None => response,
    })
}

/// The requests for approvals of a session. The page of a session whose requests cannot be read has its answer all the
/// same.
async fn approvals<B: Backend>(web: &Shared<B>, session: SessionId) -> Vec<ApprovalRow> {
    let filter = ApprovalFilter {
        limit: MAX_APPROVALS,
        requests: Requests::All,
        session: Some(session),
        since: None,
    };
    web.backend.approvals(filter).await.unwrap_or_default()
}

/// The connection of a page that changes by itself.
fn net<B: Backend>(web: &Shared<B>) -> Net {
    if web.backend.is_live() {
        Net::Live
    } else {
        Net::NotLive
    }
}

/// The page of an alert that no worker has seen: it was submitted just now, or the queue is long. Its stream waits for
/// the first event.
async fn in_the_queue<B: Backend>(web: &Shared<B>, asked: &Asked, id: SessionId) -> Response {
    let main = waiting(&Waiting {
        id,
        lanes: web.backend.lanes().await,
        workers: web.backend.workers(),
    });
    let frame = Frame {
        net: net(web),
        live: Some(format!("/sessions/{id}/live")),
        ..Frame::plain("In the queue", NavEntry::Session)
    };
    asked.page(&frame, &main)
}

/// Head and answer are sent at once; the events are read then. Without them the page shows the reason, and the
/// response is aborted: a browser would cache a complete page.
fn in_two_parts<B: Backend>(
    web: Shared<B>,
    page: String,
    report: Arc<AlertReport>,
    viewer: Viewer,
    parameters: Parameters,
) -> Response {
    let (first, rest) = match split(&page) {
        Some(halves) => (halves.first.to_owned(), halves.rest.to_owned()),
        None => (page, String::new()),
    };
    let second = async move {
        let rows = async {
            let loaded = load(&web, &report, parameters.span()).await?;
            let made = web.renderer.render(move || {
                timeline(&Session::new(&report, &viewer), &parameters.events(&loaded))
            });
            made.await
        };
        let (rows, failure) = match rows.await {
            Ok(rows) => (rows, None),
            Err(unavailable) => (
                maud::html! { p.banner { (unavailable.to_string()) } },
                Some(Err(unavailable)),
            ),
        };
        stream::iter([Ok(rows.into_string() + &rest)].into_iter().chain(failure))
    };
    let parts = stream::once(async move { Ok(first) }).chain(stream::once(second).flatten());
    let body =
        Body::from_stream(parts.map(|part: Result<String, Unavailable>| part.map(Bytes::from)));
    (
        [(
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        )],
        body,
    )
        .into_response()
}

impl Parameters {
    fn events<'a>(&self, loaded: &'a Loaded) -> Events<'a> {
        Events {
            events: &loaded.events,
            cut: &loaded.cut,
            view: View::parse(&self.view),
            span: self.span(),
        }
    }

    fn span(&self) -> Option<Span> {
        let is_all = self.from.is_none() && self.to.is_none();
        (!is_all).then(|| Span {
            from: self.from.unwrap_or(1),
            to: self.to.unwrap_or(u32::MAX),
        })
    }
}

/// The rows of a range, without a page around them.
pub(super) async fn rows<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    let parameters: Parameters = asked.query()?;
    let report = report(&web, &part).await?;
    let loaded = load(&web, &report, parameters.span()).await?;
    let rows = web.renderer.render(move || {
        range(
            &Session::new(&report, &asked.viewer),
            &parameters.events(&loaded),
        )
    });
    Ok(html_response(rows.await?))
}

/// The report as a file in Markdown.
pub(super) async fn markdown<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
) -> Page {
    let report = report(&web, &part).await?;
    let name = format!(
        "attachment; filename=\"tarsy-{}.md\"",
        report.alert_id.short()
    );
    let kind = "text/markdown; charset=utf-8".to_owned();
    let headers = [(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, name)];
    let lines = web
        .renderer
        .render(move || document::report(&report, chrono::Utc::now()))
        .await?;
    Ok((headers, lines.join("\n") + "\n").into_response())
}

/// A part of an id, for a message or a call.
pub(super) async fn part<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    redirect(&web, &asked, &part, None).await
}

/// A part of an id with the number of an event.
pub(super) async fn part_at<B: Backend>(
    State(web): State<Shared<B>>,
    Path((part, number)): Path<(String, u32)>,
    asked: Asked,
) -> Page {
    redirect(&web, &asked, &part, Some(number)).await
}

/// Leads from a part of an id to the page of its session, and there to an event.
async fn redirect<B: Backend>(
    web: &Shared<B>,
    asked: &Asked,
    part: &str,
    number: Option<u32>,
) -> Page {
    if let IdMatch::Many(ids) = web.backend.find(part).await? {
        let frame = Frame::plain("Several sessions", NavEntry::Elsewhere);
        return Ok(asked.page(&frame, &dialogs::several(part, &ids)));
    }
    let id = find(web, part).await?;
    let Some(number) = number else {
        return Ok(moved(&format!("/sessions/{id}")));
    };
    let session = web
        .backend
        .report(id)
        .await?
        .and_then(|report| report.session);
    let last = session
        .and_then(|session| u32::try_from(session.last_seq).ok())
        .unwrap_or_default();
    // Without the script a folded range does not open by itself.
    let may_be_folded = last > SHORT && number > FIRST && number <= last.saturating_sub(NEWEST);
    let range = if may_be_folded {
        let from = number.saturating_sub(AROUND);
        let to = number.saturating_add(AROUND);
        format!("?from={from}&to={to}")
    } else {
        String::new()
    };
    Ok(moved(&format!("/sessions/{id}{range}#{number}")))
}

fn moved(to: &str) -> Response {
    (StatusCode::FOUND, [("location", to)]).into_response()
}

#[cfg(test)]
mod tests {
    use crate::testing::backend::FakeBackend;
    use crate::testing::data::report;

    #[tokio::test]
    async fn a_short_address_of_an_event_leads_to_a_page_that_has_it() {
        let backend = FakeBackend::with_events(3);
        let id = report().alert_id;
        for (last, number, expected) in [
            (19, 17, "#17"),
            (5_000, 50, "#50"),
            (5_000, 4_900, "#4900"),
            (5_000, 2_001, "?from=1901&to=2101#2001"),
            (5_000, 120, "?from=20&to=220#120"),
        ] {
            let mut report = report();
            report.session.as_mut().unwrap().last_seq = last;
            backend.report(Some(report));
            let response = backend.answer(&format!("/s/{id}/{number}"), &[]).await;
            let location = response.headers()["location"].to_str().unwrap().to_owned();
            assert_eq!(
                (response.status().as_u16(), location),
                (302, format!("/sessions/{id}{expected}"))
            );
        }
    }
}
