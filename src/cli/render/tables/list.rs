//! `sessions list`.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::table::{Cell, Column, short_moment, status_paint, table};
use crate::cli::render::format::{self, millis};
use crate::cli::render::style::{Charset, Paint, Style};
use crate::cli::render::text;
use tarsy_core::alert::Severity;
use tarsy_core::chain::RunStatus;
use tarsy_reports::words::status_word;
use tarsy_store::SessionLine;

/// The columns of a worker's name. Its end is shown, because it differs between workers.
const WORKER_COLUMNS: usize = 10;

/// The table of sessions; the time that a running one took ends at `now`.
pub fn sessions(sessions: &[SessionLine], now: DateTime<Utc>, style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("session"),
        Column::Left("when (utc)"),
        Column::Left("status"),
        Column::Left("severity"),
        Column::Rest("title"),
        Column::Right("took"),
        Column::Left("worker"),
    ];
    let optional = ["worker", "took", "when (utc)", "severity"];
    let rows = in_threads(sessions).map(|listed| row(&listed, now, style));
    table(columns, &optional, rows, style)
}

/// A session in the table.
struct Listed<'s> {
    session: &'s SessionLine,
    place: Nesting,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    /// The session is listed by the time at which it began.
    Own,
    /// The question is listed below its investigation.
    BelowInvestigation,
}

/// The sessions, each with the questions about it below it in the order in which they were asked. A question about an
/// investigation that is not in the list keeps its place.
fn in_threads(sessions: &[SessionLine]) -> impl Iterator<Item = Listed<'_>> {
    let own = sessions.iter().filter(move |session| {
        !session
            .parent_id
            .is_some_and(|id| sessions.iter().any(|session| session.session_id == id))
    });
    own.flat_map(|session| {
        let about = sessions
            .iter()
            .rev()
            .filter(move |other| other.parent_id == Some(session.session_id));
        let below = about.map(|session| Listed {
            session,
            place: Nesting::BelowInvestigation,
        });
        std::iter::once(Listed {
            session,
            place: Nesting::Own,
        })
        .chain(below)
    })
}

/// A running session in one line, for the beginning of `watch --all`.
pub fn running(session: &SessionLine, now: DateTime<Utc>, style: &Style) -> String {
    let since = format::span(Duration::from_millis(millis(session.created_at, now)));
    let parts = [
        session.created_at.format("%H:%M:%S").to_string(),
        session.session_id.short(),
        format!("running for {since} on {}", session.worker),
        session.severity.map_or("-", Severity::as_str).to_owned(),
        title(session, Nesting::Own, style.charset),
    ];
    let line = parts
        .map(|part| text::one_line(&part, style.charset))
        .join("  ");
    text::cut(&line, style.width, style.charset)
}

/// The title. A question also has the investigation that it asks about, unless it is listed below that.
fn title(session: &SessionLine, place: Nesting, charset: Charset) -> String {
    let title = session.title.as_deref().unwrap_or("(no title)");
    match session.parent_id {
        Some(_) if place == Nesting::BelowInvestigation => {
            format!("{} question: {title}", charset.pick("↳", "->"))
        }
        Some(parent) => format!(
            "{} question about {}: {title}",
            charset.pick("↳", "->"),
            parent.short()
        ),
        None => title.to_owned(),
    }
}

/// The status, or the mark of a completed session that has one. A question without an answer is not
/// shown as a failed investigation.
fn state(session: &SessionLine) -> String {
    if session.parent_id.is_some() {
        return match session.status {
            RunStatus::Completed => "answered".to_owned(),
            RunStatus::Failed | RunStatus::TimedOut => "no answer".to_owned(),
            RunStatus::Running
            | RunStatus::Cancelled
            | RunStatus::Limited
            | RunStatus::Unknown(_) => status_word(session.status.as_str()),
        };
    }
    session.mark.map_or_else(
        || status_word(session.status.as_str()),
        |mark| mark.word().to_owned(),
    )
}

fn row(listed: &Listed<'_>, now: DateTime<Utc>, style: &Style) -> [Cell; 7] {
    let Listed { session, place } = listed;
    // A question has no severity, and without an answer it is not a failed investigation.
    let (severity, paint) = if session.parent_id.is_some() {
        (None, Paint::Plain)
    } else {
        (session.severity, status_paint(session.status))
    };
    let took = Duration::from_millis(millis(
        session.created_at,
        session.finished_at.unwrap_or(now),
    ));
    [
        Cell::new(&session.session_id.short(), style),
        Cell::new(&short_moment(session.created_at), style),
        Cell::new(&state(session), style).painted(paint),
        Cell::new(severity.map_or("-", Severity::as_str), style),
        Cell::new(&title(session, *place, style.charset), style),
        Cell::new(&format::span(took), style),
        Cell::new(&session.worker, style).tail(WORKER_COLUMNS, style),
    ]
}
