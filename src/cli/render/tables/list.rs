//! `sessions list`.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::table::{Cell, Column, short_moment, status_paint, table};
use crate::cli::render::format::{self, millis};
use crate::cli::render::style::{Charset, Style};
use crate::cli::render::text;
use crate::investigation::alert::Severity;
use crate::reports::words::status_word;
use crate::store::SessionLine;

/// Only the end of a worker's name is shown: it differs between workers.
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
    table(columns, &optional, sessions.iter().map(|session| row(session, now, style)), style)
}

/// A running session in one line, for the beginning of `watch --all`.
pub fn running(session: &SessionLine, now: DateTime<Utc>, style: &Style) -> String {
    let since = format::span(Duration::from_millis(millis(session.created_at, now)));
    let parts = [
        session.created_at.format("%H:%M:%S").to_string(),
        session.session_id.short(),
        format!("running for {since} on {}", session.worker),
        session.severity.map_or("-", Severity::as_str).to_owned(),
        title(session, style.charset),
    ];
    let line = parts.map(|part| text::one_line(&part, style.charset)).join("  ");
    text::cut(&line, style.width, style.charset)
}

/// The title; of a question also the investigation that it asks about.
fn title(session: &SessionLine, charset: Charset) -> String {
    let title = session.title.as_deref().unwrap_or("(no title)");
    match session.parent_id {
        Some(parent) => format!("{} question about {}: {title}", charset.pick("↳", "->"), parent.short()),
        None => title.to_owned(),
    }
}

/// The status, or the mark of a completed session that has one.
fn state(session: &SessionLine) -> String {
    session.mark.map_or_else(|| status_word(session.status.as_str()), |mark| mark.word().to_owned())
}

fn row(session: &SessionLine, now: DateTime<Utc>, style: &Style) -> [Cell; 7] {
    let took = Duration::from_millis(millis(session.created_at, session.finished_at.unwrap_or(now)));
    [
        Cell::new(&session.session_id.short(), style),
        Cell::new(&short_moment(session.created_at), style),
        Cell::new(&state(session), style).painted(status_paint(session.status)),
        Cell::new(session.severity.map_or("-", Severity::as_str), style),
        Cell::new(&title(session, style.charset), style),
        Cell::new(&format::span(took), style),
        Cell::new(&session.worker, style).tail(WORKER_COLUMNS, style),
    ]
}
