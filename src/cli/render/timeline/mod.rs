//! Renders the timeline of one session: turns events and deltas into printed lines and a status line.
//!
//! Each event becomes a row (`event`, `session`, `code` and `footnotes` know the kinds), which is laid out in columns.
//! Deltas become the status line (`live`). Text of models and tools is cleaned here, once.

pub(crate) mod meta;
mod calls;
mod roster;
mod event;
mod session;
mod code;
pub(crate) mod footnotes;
mod row;
mod live;
mod event_line;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::cli::messages;
use crate::cli::render::{format, text};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::{Delta, EventType, TimelineEvent};

pub use super::style::{Charset, Style};
pub use event_line::event_line;

use calls::Calls;
use live::Live;
use meta::Meta;
use roster::Roster;
use row::{Body, Columns, Front};

/// At most so many lines of an analysis are shown if a synthesis follows.
const MAX_PART_LINES: usize = 14;

/// Renders one session, event by event.
#[derive(Debug)]
pub struct Timeline {
    style: Style,
    session: SessionId,
    started_at: Option<DateTime<Utc>>,
    ended: bool,
    roster: Roster,
    calls: Calls,
    live: Live,
}

impl Timeline {
    /// A timeline without events.
    pub fn new(style: Style, session: SessionId) -> Self {
        Self {
            roster: Roster::new(style.charset),
            style,
            session,
            started_at: None,
            ended: false,
            calls: Calls::default(),
            live: Live::default(),
        }
    }

    /// The printed lines of an event; expects events in the order of `session_seq`. Hidden events have no lines.
    pub fn event(&mut self, event: &TimelineEvent) -> Vec<String> {
        self.live.event(event);
        if event.event_type == EventType::Joined {
            self.ended = true;
            return vec![self.joined(event)];
        }
        let mut lines = Vec::new();
        let is_first = self.started_at.is_none();
        let started_at = *self.started_at.get_or_insert(event.created_at);
        if is_first {
            lines.push(self.title(event));
        }
        // The second agent adds a column, so the head is printed again.
        if self.roster.add(event) || is_first {
            lines.push(Columns::new(&self.style, self.roster.column).head());
        }
        let tool = self.calls.name(event, self.style.charset);
        if self.is_hidden(event) {
            return lines;
        }
        let mut row = event::row(event, tool, &self.style);
        if self.roster.is_team && !self.style.verbose && event.event_type == EventType::FinalAnalysis {
            "analysis".clone_into(&mut row.name);
            if let Body::Whole(_, limit) = &mut row.body {
                *limit = Some(MAX_PART_LINES);
            }
        }
        let columns = Columns::new(&self.style, self.roster.column).numbered(event.session_seq);
        lines.extend(columns.lines(&self.front(event, started_at), row));
        self.ended |= event.event_type.is_end();
        lines
    }

    /// The status line after a delta; `None` when the delta changes nothing.
    pub fn delta(&mut self, delta: &Delta) -> Option<String> {
        let is_ours = delta.session_id == self.session && !self.ended;
        (is_ours && self.live.delta(delta)).then(|| self.status()).flatten()
    }

    /// The status line of the answer that is being written, if there is one.
    pub fn status(&self) -> Option<String> {
        // The last column stays free: a terminal wraps when it is filled.
        let room = self.style.width.saturating_sub(1);
        let indent = " ".repeat(if self.style.utc { 16 } else { 12 });
        let (execution, _) = self.live.status(room, self.style.charset)?;
        let agent = self.roster.agent(execution).map(|agent| format!("{agent}  "));
        let head = format!("{indent}{}", agent.unwrap_or_default());
        let (_, status) = self.live.status(room.saturating_sub(text::width(&head)), self.style.charset)?;
        Some(text::cut(&format!("{head}{status}"), room, self.style.charset))
    }

    /// The hint after the last line: how to watch the session again, or how to continue watching.
    pub fn finish(&self) -> String {
        let short = self.session.short();
        if self.ended {
            return format!("To watch again: tarsy watch {short}   all thinking: -t   for programs: --json");
        }
        if self.started_at.is_none() && self.live.is_empty() {
            return messages::watch_again(self.session);
        }
        messages::continues(self.session)
    }

    fn is_hidden(&self, event: &TimelineEvent) -> bool {
        let is_stage = matches!(event.event_type, EventType::StageStarted | EventType::StageCompleted);
        is_stage && !self.roster.shows_stages() && !self.style.verbose
    }

    fn front(&self, event: &TimelineEvent, started_at: DateTime<Utc>) -> Front {
        let time = if self.style.utc {
            let tenths = event.created_at.timestamp_subsec_millis() / 100;
            format!("{}.{tenths}", event.created_at.format("%H:%M:%S"))
        } else {
            format::since_start(format::millis(started_at, event.created_at))
        };
        let agent = event.agent.as_deref().map_or_else(|| "-".to_owned(), |a| text::one_line(a, self.style.charset));
        Front { time, seq: event.session_seq, agent }
    }

    fn title(&self, event: &TimelineEvent) -> String {
        let meta = Meta::new(&event.metadata, self.style.charset);
        // The next event has the question itself.
        let about = meta.text("parent_id").map(|parent| format!("question about session {}", messages::short(&parent)));
        let title = about.or_else(|| meta.text("title")).or_else(|| meta.text("alert_type"));
        let title = title.filter(|title| !title.trim().is_empty()).or_else(|| Some("(no title)".to_owned()));
        let facts = text::join([title, meta.text("severity")], "  ");
        let session = format!("session {}", self.session.short());
        let room = self.style.width.saturating_sub(text::width(&session) + 3);
        format!(" {}{session}", text::pad(&text::cut(&facts, room, self.style.charset), room + 2))
    }

    fn joined(&self, event: &TimelineEvent) -> String {
        let meta = Meta::new(&event.metadata, self.style.charset);
        let session = meta.text("joined_session_id").unwrap_or_default();
        if meta.text("reason").as_deref() == Some("cooldown") {
            let finished = meta.text("finished_at").and_then(|at| DateTime::parse_from_rfc3339(&at).ok());
            let ago = finished.and_then(|at| (event.created_at - at.to_utc()).to_std().ok());
            return messages::covered_by_cooldown(&session, ago);
        }
        let running = meta.number("running_ms").map(Duration::from_millis);
        messages::joined(&session, meta.text("fingerprint").as_deref(), running)
    }
}
