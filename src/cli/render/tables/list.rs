//! `sessions list`.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::table::{Cell, Column, millis, short_moment, status_paint, status_word, table};
use crate::cli::render::style::Style;
use crate::cli::render::{format, text};
use crate::store::SessionLine;

/// Names of workers end with what tells them apart.
const WORKER: usize = 10;

/// The table of sessions. `now` is for those that still run.
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
    let rows: Vec<Vec<Cell>> = sessions.iter().map(|session| row(session, now, style)).collect();
    table(&columns, &rows, style)
}

/// One session in one line, as `watch --all` begins with.
pub fn running(session: &SessionLine, now: DateTime<Utc>, style: &Style) -> String {
    let since = format::span(Duration::from_millis(millis(session.created_at, now)));
    let parts = [
        session.created_at.format("%H:%M:%S").to_string(),
        session.session_id.short(),
        format!("running for {since} on {}", session.worker),
        session.severity.clone().unwrap_or_else(|| "-".to_owned()),
        title(session, style.ascii),
    ];
    let line = parts.map(|part| text::one_line(&part, style.ascii)).join("  ");
    text::cut(&line, style.width, style.ascii)
}

/// What it is about; of a question, whose.
fn title(session: &SessionLine, ascii: bool) -> String {
    let title = session.title.as_deref().unwrap_or("(no title)");
    let arrow = if ascii { "->" } else { "↳" };
    match session.parent_id {
        Some(parent) => format!("{arrow} question about {}: {title}", parent.short()),
        None => title.to_owned(),
    }
}

fn row(session: &SessionLine, now: DateTime<Utc>, style: &Style) -> Vec<Cell> {
    let took = Duration::from_millis(millis(session.created_at, session.finished_at.unwrap_or(now)));
    vec![
        Cell::new(&session.session_id.short(), style),
        Cell::new(&short_moment(session.created_at), style),
        Cell::new(&status_word(&session.status), style).painted(status_paint(&session.status)),
        Cell::new(session.severity.as_deref().unwrap_or("-"), style),
        Cell::new(&title(session, style.ascii), style),
        Cell::new(&format::span(took), style),
        Cell::new(&session.worker, style).tail(WORKER, style),
    ]
}
