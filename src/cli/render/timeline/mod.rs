//! Renders the timeline of one session: turns events and deltas into printed lines and a status line.
//!
//! Each event becomes a row (`core/timeline/rows/`), which is laid out in columns here. Deltas become the
//! status line (`live`).

mod roster;
pub(crate) mod prose;
mod row;
mod live;
mod event_line;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::cli::messages;
use crate::cli::render::{format, text};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::live::Live;
use tarsy_core::timeline::rows::meta::Meta;
use tarsy_core::timeline::rows::{self, Rows};
use tarsy_core::timeline::{Delta, EventType, TimelineEvent};

pub use super::style::{Charset, Prose, Style};
pub use event_line::event_line;

use roster::Roster;
use row::{Columns, Front};

/// Renders one session, event by event.
#[derive(Debug)]
pub struct Timeline {
    style: Style,
    session: SessionId,
    started_at: Option<DateTime<Utc>>,
    ended: bool,
    roster: Roster,
    rows: Rows,
    live: Live,
}

impl Timeline {
    /// A timeline without events.
    pub fn new(style: Style, session: SessionId) -> Self {
        Self {
            roster: Roster::new(style.charset),
            rows: Rows::new(style.charset),
            style,
            session,
            started_at: None,
            ended: false,
            live: Live::default(),
        }
    }

    /// The printed lines of an event; expects events in the order of `session_seq`. Every event has a row with its
    /// number, so that a citation is found and no number is missing.
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
            lines.extend(self.title(event));
        }
        // Older versions did not name the agents in the first event: there the second one adds a column and a head.
        if self.roster.add(event) || is_first {
            lines.push(Columns::new(&self.style, self.roster.column).head());
        }
        let row = self.rows.row(event);
        let columns =
            Columns::new(&self.style, self.roster.column).of_row(event.session_seq, row.took_ms);
        lines.extend(columns.lines(&self.front(event, started_at), row));
        self.ended |= event.event_type.is_end();
        lines
    }

    /// The status line after a delta; `None` when the delta changes nothing.
    pub fn delta(&mut self, delta: &Delta) -> Option<String> {
        let is_ours = delta.session_id == self.session && !self.ended;
        if is_ours && self.live.delta(delta) {
            self.status()
        } else {
            None
        }
    }

    /// The status line of the answer that is being written, if there is one.
    pub fn status(&self) -> Option<String> {
        // The last column stays free: a terminal wraps when it is filled.
        let room = self.style.width.saturating_sub(1);
        let indent = " ".repeat(if self.style.utc { 16 } else { 12 });
        let (execution, _) = live::status(&self.live, room, self.style.charset)?;
        // If there is no column of agents, the status line names none either.
        let agent = self.roster.agent(execution).or_else(|| {
            self.roster.column?;
            self.live.agent(execution)
        });
        let agent = agent.map(|agent| format!("{}  ", text::one_line(agent, self.style.charset)));
        let head = format!("{indent}{}", agent.unwrap_or_default());
        let rest = room.saturating_sub(text::width(&head));
        let (_, status) = live::status(&self.live, rest, self.style.charset)?;
        let line = format!("{head}{status}");
        Some(text::cut(&line, room, self.style.charset))
    }

    /// The hint after the last line: how to watch the session again, or how to continue watching.
    pub fn finish(&self) -> String {
        if self.ended {
            return messages::watch_ended_again(self.session, self.style.width);
        }
        if self.started_at.is_none() && self.live.is_empty() {
            return messages::watch_again(self.session);
        }
        messages::continues(self.session)
    }

    fn front(&self, event: &TimelineEvent, started_at: DateTime<Utc>) -> Front {
        let time = if self.style.utc {
            let tenths = event.created_at.timestamp_subsec_millis() / 100;
            format!("{}.{tenths}", event.created_at.format("%H:%M:%S"))
        } else {
            format::since_start(format::millis(started_at, event.created_at))
        };
        let agent = event
            .agent
            .as_deref()
            .map_or_else(|| "-".to_owned(), |a| text::one_line(a, self.style.charset));
        Front {
            time,
            seq: event.session_seq,
            agent,
        }
    }

    fn title(&self, event: &TimelineEvent) -> Vec<String> {
        let severity = Meta::new(&event.metadata, self.style.charset).text("severity");
        let facts = text::join(
            [Some(rows::title(event, self.style.charset)), severity],
            "  ",
        );
        let session = format!("session {}", self.session.short());
        let room = self.style.width.saturating_sub(text::width(&session) + 3);
        if text::width(&facts) <= room {
            return vec![format!(" {}{session}", text::pad(&facts, room + 2))];
        }
        let mut lines = text::wrap(&facts, self.style.width.saturating_sub(1));
        lines.iter_mut().for_each(|line| line.insert(0, ' '));
        lines.push(text::pad_left(&session, self.style.width));
        lines
    }

    fn joined(&self, event: &TimelineEvent) -> String {
        let meta = Meta::new(&event.metadata, self.style.charset);
        let session = meta.text("joined_session_id").unwrap_or_default();
        if meta.text("reason").as_deref() == Some("cooldown") {
            let finished = meta
                .text("finished_at")
                .and_then(|at| DateTime::parse_from_rfc3339(&at).ok());
            let ago = finished.and_then(|at| (event.created_at - at.to_utc()).to_std().ok());
            return messages::covered_by_cooldown(&session, ago);
        }
        if meta.text("reason").as_deref() == Some("limited") {
            let route = meta.text("route").unwrap_or_default();
            let most = meta.number("max_per_hour").unwrap_or_default();
            return messages::limited(&session, &route, most);
        }
        let running = meta.number("running_ms").map(Duration::from_millis);
        messages::joined(&session, meta.text("fingerprint").as_deref(), running)
    }
}
