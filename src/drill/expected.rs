//! What a drill's investigation is expected to have done and found, and the check of its timeline.

use serde::Deserialize;

use crate::config::yaml;
use crate::investigation::timeline::{EventType, TimelineEvent};

/// The content of an `expected.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// How the session ends.
    pub status: ExpectedStatus,
    /// The highest iteration is at least this one.
    #[serde(default)]
    pub min_iterations: u32,
    /// `server.tool` names that were called at least once.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Texts that the analysis contains, whatever their case.
    #[serde(default)]
    pub analysis: Vec<String>,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedStatus {
    /// With an analysis.
    Completed,
    /// Without one.
    Failed,
    /// On request.
    Cancelled,
    /// Past its deadline.
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
    /// Reads an `expected.yaml`.
    ///
    /// # Errors
    /// When the text is not YAML of this shape: what is wrong, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value = yaml::to_json(text).map_err(|error| error.to_string())?;
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// What is wrong with a session's whole timeline; empty when nothing is.
    pub fn check(&self, events: &[TimelineEvent]) -> Vec<String> {
        let mut faults = order_faults(events);
        faults.extend(self.end_fault(events));
        let iterations = events.iter().filter_map(|event| event.iteration).max().unwrap_or(0);
        if iterations < self.min_iterations {
            faults.push(format!("{iterations} iterations, expected at least {}", self.min_iterations));
        }
        for tool in self.tools.iter().filter(|tool| !called(events, tool)) {
            faults.push(format!("tool {tool} was not called"));
        }
        let analysis = analysis(events).to_lowercase();
        for text in self.analysis.iter().filter(|text| !analysis.contains(&text.to_lowercase())) {
            faults.push(format!("the analysis does not mention {text:?}"));
        }
        faults
    }

    fn end_fault(&self, events: &[TimelineEvent]) -> Option<String> {
        let expected = self.status.event();
        match events.last() {
            Some(last) if last.event_type == expected => None,
            Some(last) => Some(format!("the last event is {}, expected {expected}", last.event_type)),
            None => Some(format!("there are no events, expected {expected}")),
        }
    }
}

/// Every event has the number after its predecessor's, and only the last is an end.
fn order_faults(events: &[TimelineEvent]) -> Vec<String> {
    let mut faults = Vec::new();
    for (expected, event) in (1_u32..).zip(events) {
        if event.session_seq != expected {
            faults.push(format!("event number {} stands where {expected} belongs", event.session_seq));
            break;
        }
    }
    let ends = events.iter().filter(|event| event.event_type.is_end()).count();
    if ends > 1 {
        faults.push(format!("{ends} events say that the session is over"));
    }
    faults
}

fn called(events: &[TimelineEvent], tool: &str) -> bool {
    events.iter().any(|event| {
        event.event_type == EventType::LlmToolCall
            && event.metadata.get("tool_name").and_then(|name| name.as_str()) == Some(tool)
    })
}

fn analysis(events: &[TimelineEvent]) -> &str {
    let last = events.iter().rev().find(|event| event.event_type == EventType::FinalAnalysis);
    last.map_or("", |event| event.content.as_str())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::investigation::ids::SessionId;
    use crate::investigation::timeline::EventStatus;

    fn event(session_seq: u32, event_type: EventType, content: &str, metadata: Value) -> TimelineEvent {
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
        Expected::parse("status: completed\nmin_iterations: 3\ntools: [drill.look]\nanalysis: [OOMKilled]\n").unwrap()
    }

    #[test]
    fn a_timeline_that_has_it_all_has_no_faults() {
        let events = [
            event(1, EventType::LlmToolCall, "{}", json!({"tool_name": "drill.look"})),
            event(2, EventType::FinalAnalysis, "The pod was oomkilled.", Value::Null),
            event(3, EventType::SessionCompleted, "", Value::Null),
        ];
        assert_eq!(expected().check(&events), Vec::<String>::new());
    }

    #[test]
    fn every_fault_is_named() {
        let events = [
            event(1, EventType::LlmToolCall, "{}", json!({"tool_name": "drill.other"})),
            event(1, EventType::FinalAnalysis, "No idea.", Value::Null),
            event(2, EventType::SessionFailed, "", Value::Null),
        ];
        assert_eq!(
            expected().check(&events),
            [
                "event number 1 stands where 2 belongs",
                "the last event is session_failed, expected session_completed",
                "2 iterations, expected at least 3",
                "tool drill.look was not called",
                "the analysis does not mention \"OOMKilled\"",
            ]
        );
        assert_eq!(expected().check(&[]).len(), 4);
    }

    #[test]
    fn a_second_end_is_a_fault() {
        let events: Vec<_> = (1..=2).map(|seq| event(seq, EventType::SessionCompleted, "", Value::Null)).collect();
        let only_status = Expected::parse("status: completed").unwrap();
        assert_eq!(only_status.check(&events), ["2 events say that the session is over"]);
    }
}
