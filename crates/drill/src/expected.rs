//! The expected result of a drill, and the check of the drill's timeline against it.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::Value;

use tarsy_config::read::yaml;
use tarsy_core::execution::event_refs::cited;
use tarsy_core::timeline::{EventType, TimelineEvent};

/// The content of an `expected.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub status: ExpectedStatus,
    /// The last event's `stop_reason`; empty accepts any.
    #[serde(default)]
    pub stop_reason: String,
    /// The lowest accepted value of the highest iteration.
    #[serde(default)]
    pub min_iterations: u32,
    /// Tools (`server.tool`) that are called at least once.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Agents with exactly one analysis each.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Kinds of errors on the timeline, each at least once.
    #[serde(default)]
    pub errors: Vec<String>,
    /// Types of events on the timeline, each at least once.
    #[serde(default)]
    pub events: Vec<EventType>,
    /// The smallest number of citations of pages in the analysis.
    #[serde(default)]
    pub min_page_citations: usize,
    /// The smallest number of events that the analysis cites.
    #[serde(default)]
    pub min_citations: usize,
    /// Texts in the analysis; upper and lower case are equal.
    #[serde(default)]
    pub analysis: Vec<String>,
}

/// The expected end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedStatus {
    Completed,
    Failed,
    Cancelled,
    TimedOut,
}

impl ExpectedStatus {
    fn event(self) -> EventType {
        match self {
            Self::Completed => EventType::SessionCompleted,
            Self::Failed => EventType::SessionFailed,
            Self::Cancelled => EventType::SessionCancelled,
            Self::TimedOut => EventType::SessionTimedOut,
        }
    }
}

impl Expected {
    /// Parses an `expected.yaml`.
    ///
    /// # Errors
    /// A message when the text is not YAML or has unknown keys.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value = yaml::to_json(text).map_err(|error| error.to_string())?;
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// The faults of a session's whole timeline; empty if it is as expected.
    pub fn check(&self, events: &[TimelineEvent]) -> Vec<String> {
        let mut faults = order_faults(events);
        faults.extend(self.end_fault(events));
        let iterations = events.iter().filter_map(|event| event.iteration).max();
        let iterations = iterations.unwrap_or_default();
        faults.extend(too_few(iterations, self.min_iterations, "iterations"));
        for tool in &self.tools {
            if !has_event(events, EventType::LlmToolCall, "tool_name", tool) {
                faults.push(format!("tool {tool} was not called"));
            }
        }
        for agent in &self.agents {
            let analyses = events.iter().filter(|event| {
                event.event_type == EventType::FinalAnalysis && event.agent.as_ref() == Some(agent)
            });
            let count = analyses.count();
            if count != 1 {
                faults.push(format!("{count} analyses of {agent}, expected one"));
            }
        }
        for kind in &self.errors {
            if !has_event(events, EventType::Error, "kind", kind) {
                faults.push(format!("no error of the kind {kind:?}"));
            }
        }
        for wanted in &self.events {
            if !events.iter().any(|event| event.event_type == *wanted) {
                faults.push(format!("no event {wanted}"));
            }
        }
        let pages = citations(events);
        faults.extend(too_few(
            pages,
            self.min_page_citations,
            "citations of pages",
        ));
        faults.extend(self.citation_faults(events));
        let analysis = analysis(events).to_lowercase();
        for text in &self.analysis {
            if !analysis.contains(&text.to_lowercase()) {
                faults.push(format!("the analysis does not mention {text:?}"));
            }
        }
        faults
    }

    /// Checks that the analysis cites only results of tools, and enough of them.
    fn citation_faults(&self, events: &[TimelineEvent]) -> Vec<String> {
        let cited = cited(analysis(events));
        let wrong = cited.iter().filter(|number| {
            !events.iter().any(|event| {
                event.session_seq == **number && event.event_type == EventType::ToolResult
            })
        });
        let mut faults: Vec<String> = wrong
            .map(|number| format!("[{number}] is not the result of a tool"))
            .collect();
        faults.extend(too_few(cited.len(), self.min_citations, "events are cited"));
        faults
    }

    fn end_fault(&self, events: &[TimelineEvent]) -> Option<String> {
        let expected = self.status.event();
        match events.last() {
            Some(last) if last.event_type == expected => {
                let reason = last.metadata.get("stop_reason").and_then(Value::as_str);
                let reason = reason.unwrap_or_default();
                let differs = !self.stop_reason.is_empty() && self.stop_reason != reason;
                differs.then(|| format!("stopped by {reason:?}, expected {:?}", self.stop_reason))
            }
            Some(last) => Some(format!(
                "the last event is {}, expected {expected}",
                last.event_type
            )),
            None => Some(format!("there are no events, expected {expected}")),
        }
    }
}

fn too_few<T: PartialOrd + Display>(count: T, min: T, counted: &str) -> Option<String> {
    (count < min).then(|| format!("{count} {counted}, expected at least {min}"))
}

/// Checks that the events are numbered without a gap and that at most one of them ends the session.
fn order_faults(events: &[TimelineEvent]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut numbers = (1_u32..).zip(events.iter().map(|event| event.session_seq));
    if let Some((expected, number)) = numbers.find(|(expected, number)| expected != number) {
        faults.push(format!(
            "event number {number} comes where {expected} is expected"
        ));
    }
    let ends = events.iter().filter(|event| event.event_type.is_end());
    let ends = ends.count();
    if ends > 1 {
        faults.push(format!("{ends} events end the session"));
    }
    faults
}

/// Whether an event of this type has this text in its metadata.
fn has_event(events: &[TimelineEvent], event_type: EventType, key: &str, text: &str) -> bool {
    let mut events = events.iter().filter(|event| event.event_type == event_type);
    events.any(|event| event.metadata.get(key).and_then(Value::as_str) == Some(text))
}

fn analysis(events: &[TimelineEvent]) -> &str {
    last_analysis(events).map_or("", |event| event.content.as_str())
}

fn citations(events: &[TimelineEvent]) -> usize {
    let citations =
        last_analysis(events).and_then(|event| event.metadata.get("citations")?.as_array());
    citations.map_or(0, Vec::len)
}

fn last_analysis(events: &[TimelineEvent]) -> Option<&TimelineEvent> {
    events.iter().rev().find(|event| {
        event.event_type == EventType::FinalAnalysis && event.metadata.get("review").is_none()
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use tarsy_core::ids::SessionId;
    use tarsy_core::timeline::EventStatus;

    fn event(
        session_seq: u32,
        event_type: EventType,
        content: &str,
        metadata: Value,
    ) -> TimelineEvent {
        TimelineEvent {
            session_id: SessionId(Uuid::nil()),
            session_seq,
            execution_id: None,
            sequence_number: None,
            stage: None,
            agent: None,
            iteration: Some(session_seq),
            attempt: None,
            event_type,
            status: EventStatus::Completed,
            content: content.to_owned(),
            metadata,
            created_at: DateTime::UNIX_EPOCH,
            truncated: false,
        }
    }

    fn expected() -> Expected {
        let text = "status: completed\nmin_iterations: 3\nstop_reason: final_answer\nerrors: [malformed]\n\
            tools: [drill.look]\nevents: [code_execution]\nmin_page_citations: 1\nanalysis: [OOMKilled]\n";
        Expected::parse(text).unwrap()
    }

    #[test]
    fn a_timeline_as_expected_has_no_faults() {
        let events = [
            event(
                1,
                EventType::LlmToolCall,
                "{}",
                json!({"tool_name": "drill.look"}),
            ),
            event(
                2,
                EventType::Error,
                "no header",
                json!({"kind": "malformed"}),
            ),
            event(3, EventType::CodeExecution, "1", Value::Null),
            event(
                4,
                EventType::FinalAnalysis,
                "The pod was oomkilled.",
                json!({"citations": [{}]}),
            ),
            event(
                5,
                EventType::SessionCompleted,
                "",
                json!({"stop_reason": "final_answer"}),
            ),
        ];
        assert_eq!(expected().check(&events), Vec::<String>::new());
    }

    #[test]
    fn every_fault_is_named() {
        let events = [
            event(
                1,
                EventType::LlmToolCall,
                "{}",
                json!({"tool_name": "drill.other"}),
            ),
            event(1, EventType::FinalAnalysis, "No idea.", Value::Null),
            event(2, EventType::Error, "", json!({"kind": "model"})),
            event(2, EventType::SessionFailed, "", Value::Null),
        ];
        assert_eq!(
            expected().check(&events),
            [
                "event number 1 comes where 2 is expected",
                "the last event is session_failed, expected session_completed",
                "2 iterations, expected at least 3",
                "tool drill.look was not called",
                "no error of the kind \"malformed\"",
                "no event code_execution",
                "0 citations of pages, expected at least 1",
                "the analysis does not mention \"OOMKilled\"",
            ]
        );
        assert_eq!(expected().check(&[]).len(), 7);
    }

    #[test]
    fn every_expected_agent_has_one_analysis() {
        let expected = Expected::parse("status: completed\nagents: [sre, dba, chief]\n").unwrap();
        let of = |session_seq, agent: &str| TimelineEvent {
            agent: Some(agent.to_owned()),
            ..event(session_seq, EventType::FinalAnalysis, "", Value::Null)
        };
        let events = [
            of(1, "sre"),
            of(2, "chief"),
            of(3, "chief"),
            event(4, EventType::SessionCompleted, "", json!({})),
        ];
        assert_eq!(
            expected.check(&events),
            [
                "0 analyses of dba, expected one",
                "2 analyses of chief, expected one"
            ]
        );
    }

    #[test]
    fn an_analysis_may_cite_only_results_of_tools() {
        let expected = Expected {
            min_citations: 3,
            ..Expected::parse("status: completed").unwrap()
        };
        let events = [
            event(1, EventType::LlmToolCall, "{}", Value::Null),
            event(2, EventType::ToolResult, "full", Value::Null),
            event(
                3,
                EventType::FinalAnalysis,
                "Full [2], as asked [1], [9] [2].",
                Value::Null,
            ),
            event(4, EventType::SessionCompleted, "", Value::Null),
        ];
        let wrong = [
            "[1] is not the result of a tool",
            "[9] is not the result of a tool",
        ];
        assert_eq!(expected.check(&events), wrong);
        let expected = Expected {
            min_citations: 4,
            ..expected
        };
        assert_eq!(
            expected.check(&events)[2],
            "3 events are cited, expected at least 4"
        );
    }

    #[test]
    fn a_second_end_is_a_fault() {
        let events: Vec<_> = (1..=2)
            .map(|seq| event(seq, EventType::SessionCompleted, "", Value::Null))
            .collect();
        let only_status = Expected::parse("status: completed").unwrap();
        assert_eq!(only_status.check(&events), ["2 events end the session"]);
    }

    #[test]
    fn another_reason_to_stop_is_a_fault() {
        let expected = Expected {
            stop_reason: "max_iterations".to_owned(),
            ..Expected::parse("status: completed").unwrap()
        };
        let events = [event(
            1,
            EventType::SessionCompleted,
            "",
            json!({"stop_reason": "final_answer"}),
        )];
        assert_eq!(
            expected.check(&events),
            ["stopped by \"final_answer\", expected \"max_iterations\""]
        );
    }
}
