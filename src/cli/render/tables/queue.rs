//! `tarsy queue`: the length of the queue, the alerts that come next, the workers.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::table::{Cell, Column, table};
use crate::cli::messages;
use crate::cli::render::format::{self, millis};
use crate::cli::render::style::{Paint, Style};
use tarsy_bus::{Backlog, MessageKind, Priority};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::WorkerStatus;
use tarsy_reports::words::{WHY_NO_PROVIDER, lacks_provider, unavailable_in_short};

/// An alert or question that no worker has claimed, with masked texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedAlert {
    pub alert_id: SessionId,
    pub kind: MessageKind,
    pub priority: Priority,
    pub queued_at: DateTime<Utc>,
    pub subject: String,
    /// `None` when the body is not an alert.
    pub title: Option<String>,
}

/// Each priority with its alerts, then the first ones that wait.
pub fn queue(
    backlog: &[Backlog],
    next: &[QueuedAlert],
    now: DateTime<Utc>,
    style: &Style,
) -> Vec<String> {
    let columns = [
        Column::Left("priority"),
        Column::Right("waiting"),
        Column::Right("in work"),
        Column::Right("oldest"),
    ];
    let rows = backlog.iter().map(|of| {
        let oldest = of.oldest.map_or_else(|| "-".to_owned(), format::span);
        [
            Cell::new(of.priority.as_str(), style),
            Cell::new(&of.pending.to_string(), style),
            Cell::new(&of.in_progress.to_string(), style),
            Cell::new(&oldest, style),
        ]
    });
    let mut lines = table(columns, &[], rows, style);
    lines.push(String::new());
    if !next.is_empty() {
        lines.extend(waiting(next, now, style));
        let pending: u64 = backlog.iter().map(|of| of.pending).sum();
        let more = pending.saturating_sub(u64::try_from(next.len()).unwrap_or(u64::MAX));
        if more > 0 {
            lines.push(format!("and {more} more (--limit)"));
        }
        lines.push(String::new());
    }
    lines
}

fn waiting(next: &[QueuedAlert], now: DateTime<Utc>, style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("next"),
        Column::Left("priority"),
        Column::Right("waits for"),
        Column::Rest("title"),
    ];
    let rows = next.iter().map(|waiting| {
        let queued = format::span(Duration::from_millis(millis(waiting.queued_at, now)));
        let title = waiting
            .title
            .as_deref()
            .unwrap_or("(no alert: a worker will give it up)");
        let question = if waiting.kind == MessageKind::Question {
            "question: "
        } else {
            ""
        };
        [
            Cell::new(&waiting.alert_id.short(), style),
            Cell::new(waiting.priority.as_str(), style),
            Cell::new(&queued, style),
            Cell::new(&format!("{question}{title}"), style),
        ]
    });
    table(columns, &["priority", "waits for"], rows, style)
}

/// The lines about the workers: the work of each, and the reason for a pause.
pub fn workers(workers: &[WorkerStatus], style: &Style) -> Vec<String> {
    if workers.is_empty() {
        return vec![messages::workers(messages::Workers::default())];
    }
    let columns = [
        Column::Left("worker"),
        Column::Right("slots"),
        Column::Right("busy"),
        Column::Rest("state"),
    ];
    let rows = workers.iter().map(|worker| {
        let services: Vec<&str> = worker.unavailable.iter().map(String::as_str).collect();
        let since = messages::since(worker.state_ms);
        let (state, paint) = match worker.state.as_str() {
            "paused" => (
                format!("paused: {}{since}", unavailable_in_short(&services)),
                Paint::Yellow,
            ),
            other => (other.to_owned(), Paint::Plain),
        };
        [
            Cell::new(&worker.name, style),
            Cell::new(&worker.slots.to_string(), style),
            Cell::new(&worker.running().to_string(), style),
            Cell::new(&state, style).painted(paint),
        ]
    });
    let mut lines = table(columns, &["slots", "busy"], rows, style);
    // The reason is a line below the table, because a narrow terminal cuts cells.
    let mut unavailable = workers.iter().flat_map(|worker| &worker.unavailable);
    if unavailable.any(|service| lacks_provider(&[service])) {
        lines.push(format!(
            "no provider of models can be called: {WHY_NO_PROVIDER}"
        ));
    }
    lines
}
