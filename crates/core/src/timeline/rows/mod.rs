//! The rows of the timeline: the words of each row, for the terminal and for the web interface.
//!
//! [`Rows`] is a fold over the events of a session. An event becomes a [`Row`]: its kind, name, text, marks and
//! duration. A row has no layout: a terminal cuts it to columns (`cli/render/timeline/`), a page makes elements of it
//! (`web/pages/`). Metadata may come from another version, so each key of it may be absent (`meta`).

pub mod meta;
mod row;
mod stages;
mod branches;
mod calls;
mod code;
mod footnotes;
mod session;
mod event;

use chrono::{DateTime, Utc};

use crate::readable::format;
use crate::readable::text::Charset;
use crate::timeline::{EventType, TimelineEvent};

pub use code::Code;
pub use footnotes::{CitedPage, Footnotes, footnotes};
pub use meta::arguments;
pub use row::{Body, Kind, Mark, Row, Tone};
pub use session::title;

use branches::Branches;
use calls::Calls;
use meta::Meta;
use stages::Stages;

/// Lines of an analysis that are shown where there is little room, if a synthesis follows.
const MAX_PART_LINES: usize = 14;

/// The rows of one session.
#[derive(Debug, Default)]
pub struct Rows {
    charset: Charset,
    stages: Stages,
    calls: Calls,
    branches: Branches,
    /// The last error, with the number of its event.
    last_error: Option<(u32, String)>,
    /// The commit time of the previous event.
    last_at: Option<DateTime<Utc>>,
}

impl Rows {
    /// A session without events.
    pub fn new(charset: Charset) -> Self {
        Self {
            charset,
            ..Self::default()
        }
    }

    /// The row of the next event; expects events in the order of `session_seq`.
    pub fn row(&mut self, event: &TimelineEvent) -> Row {
        self.stages.add(event);
        let named = self.calls.add(event, self.charset);
        let reference = self.shown_before(event).map(|content| TimelineEvent {
            content,
            ..event.clone()
        });
        let mut row = event::row(
            reference.as_ref().unwrap_or(event),
            named.tool,
            self.charset,
        );
        row.call = named.call;
        row.branch = self.branches.add(event);
        if self.stages.is_minor(event) {
            row = row.toned(Tone::Quiet);
        }
        if event.event_type == EventType::SessionResumed {
            row.open_calls = self.calls.open();
            if let Some(before) = self.last_at {
                session::without_steps(&mut row, format::millis(before, event.created_at));
            }
        }
        self.last_at = Some(event.created_at);
        let is_part = self.stages.is_team || row.branch.is_some();
        if is_part && event.event_type == EventType::FinalAnalysis {
            let name = if row.branch.is_some() {
                "answer"
            } else {
                "analysis"
            };
            name.clone_into(&mut row.name);
            if let Body::Prose { limit, .. } = &mut row.body {
                *limit = Some(MAX_PART_LINES);
            }
        }
        row
    }

    /// The reference to an earlier event with the error of this end: the number of that event.
    fn shown_before(&mut self, event: &TimelineEvent) -> Option<String> {
        if event.event_type == EventType::Error {
            self.last_error = Some((event.session_seq, event.content.trim().to_owned()));
        }
        let (seq, error) = self.last_error.as_ref()?;
        let is_same =
            event.event_type.is_end() && !error.is_empty() && event.content.trim() == error;
        is_same.then(|| format!("see event {seq}"))
    }
}

/// The row of an event of which no other event of its session is known.
pub fn single(event: &TimelineEvent, charset: Charset) -> Row {
    let tool = Meta::new(&event.metadata, charset).text("tool_name");
    event::row(event, tool, charset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use crate::ids::{ExecutionId, SessionId};
    use crate::timeline::EventStatus;

    const OOM_KILLED: &str =
        include_str!("../../../../../tests/fixtures/timelines/oom_killed.jsonl");

    #[test]
    fn a_result_knows_its_call_and_a_takeover_the_calls_without_a_result() {
        let events: Vec<TimelineEvent> = OOM_KILLED
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let mut rows = Rows::default();
        let rows: Vec<Row> = events.iter().map(|event| rows.row(event)).collect();
        let numbered = || events.iter().map(|event| event.session_seq).zip(&rows);
        let calls: Vec<(u32, u32)> = numbered()
            .filter_map(|(number, row)| Some((number, row.call?)))
            .collect();
        assert_eq!(calls, [(10, 5), (11, 6), (12, 7), (13, 8)]);
        let open: Vec<(u32, &[u32])> = numbered()
            .filter(|(_, row)| row.kind == Kind::Resumed)
            .map(|(number, row)| (number, row.open_calls.as_slice()))
            .collect();
        assert_eq!(open, [(9, [5, 6, 7, 8].as_slice())]);
    }

    #[test]
    fn a_takeover_says_why_and_how_long_there_was_no_step() {
        for (reason, expected) in [
            (
                "lease_expired",
                "lease of w1 expired after 3.3 s; 4 read-only calls run again",
            ),
            (
                "restarted",
                "w1 died and was started again, 3.3 s without a step; 4 read-only calls run again",
            ),
        ] {
            let mut rows = Rows::default();
            let lines = OOM_KILLED.lines().map(|line| {
                let mut event: TimelineEvent = serde_json::from_str(line).unwrap();
                if event.event_type == EventType::SessionResumed {
                    event.metadata["reason"] = reason.into();
                }
                rows.row(&event)
            });
            let row = lines
                .into_iter()
                .find(|row| row.kind == Kind::Resumed)
                .unwrap();
            assert!(
                matches!(&row.body, Body::Line(line) if line == expected),
                "{row:?}"
            );
        }
    }

    #[test]
    fn reasoning_that_is_signed_has_a_quiet_mark() {
        let mut events = OOM_KILLED
            .lines()
            .map(|line| serde_json::from_str::<TimelineEvent>(line).unwrap());
        let mut thinking = events
            .find(|event| event.event_type == EventType::LlmThinking)
            .unwrap();
        let marks = |event: &TimelineEvent| single(event, Charset::Unicode).marks;
        assert_eq!(marks(&thinking), []);
        thinking.metadata["signed"] = true.into();
        assert_eq!(marks(&thinking), [Mark::new("signed", Tone::Quiet)]);
    }

    fn of_execution(
        seq: u32,
        execution: u128,
        event_type: EventType,
        metadata: Value,
    ) -> TimelineEvent {
        TimelineEvent {
            session_id: SessionId(Uuid::nil()),
            session_seq: seq,
            execution_id: Some(ExecutionId(Uuid::from_u128(execution))),
            sequence_number: None,
            stage: None,
            agent: None,
            iteration: None,
            attempt: None,
            event_type,
            status: EventStatus::Completed,
            content: "x".to_owned(),
            metadata,
            created_at: DateTime::UNIX_EPOCH,
            truncated: false,
        }
    }

    #[test]
    fn the_rows_of_a_sub_agent_name_the_event_that_began_it() {
        let begun = |child: u128| json!({"execution_id": ExecutionId(Uuid::from_u128(child))});
        let events = [
            of_execution(1, 1, EventType::AgentDispatched, begun(2)),
            of_execution(2, 1, EventType::AgentDispatched, begun(3)),
            of_execution(3, 3, EventType::LlmToolCall, Value::Null),
            of_execution(4, 2, EventType::FinalAnalysis, Value::Null),
            of_execution(5, 1, EventType::FinalAnalysis, Value::Null),
            // Metadata of another version leads nowhere.
            of_execution(6, 1, EventType::AgentDispatched, json!({"execution_id": 7})),
        ];
        let mut rows = Rows::default();
        let rows: Vec<Row> = events.iter().map(|event| rows.row(event)).collect();
        let branches: Vec<Option<u32>> = rows.iter().map(|row| row.branch).collect();
        assert_eq!(branches, [None, None, Some(2), Some(1), None, None]);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(
            names.get(3..5),
            Some(["answer", "final analysis"].as_slice())
        );
    }
}
