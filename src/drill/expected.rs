//! What a drill's investigation is expected to have done and found, and the check of its timeline.

use serde::Deserialize;

use crate::config::read::yaml;
use crate::investigation::execution::event_refs::cited;
use crate::investigation::timeline::{EventType, TimelineEvent};

/// The content of an `expected.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// How the session ends.
    pub status: ExpectedStatus,
    /// The last event's `stop_reason`; any when empty.
    #[serde(default)]
    pub stop_reason: String,
    /// The highest iteration is at least this one.
    #[serde(default)]
    pub min_iterations: u32,
    /// `server.tool` names that were called at least once.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Agents that came to an analysis, each to exactly one.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Kinds of errors that the timeline tells, each at least once.
    #[serde(default)]
    pub errors: Vec<String>,
    /// Types of events that occur, each at least once.
    #[serde(default)]
    pub events: Vec<EventType>,
    /// How many words of the analysis rest on pages, at least.
    #[serde(default)]
    pub min_page_citations: usize,
    /// The analysis cites at least so many events.
    #[serde(default)]
    pub min_citations: usize,
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
        for tool in self.tools.iter().filter(|tool| !told(events, EventType::LlmToolCall, "tool_name", tool)) {
            faults.push(format!("tool {tool} was not called"));
        }
        for agent in &self.agents {
            let own = |event: &&TimelineEvent| event.agent.as_ref() == Some(agent);
            let analyses = events.iter().filter(|event| event.event_type == EventType::FinalAnalysis);
            let count = analyses.filter(own).count();
            if count != 1 {
                faults.push(format!("{count} analyses of {agent}, expected one"));
            }
        }
        for kind in self.errors.iter().filter(|kind| !told(events, EventType::Error, "kind", kind)) {
            faults.push(format!("no error of the kind {kind:?}"));
        }
        for wanted in self.events.iter().filter(|wanted| !events.iter().any(|event| event.event_type == **wanted)) {
            faults.push(format!("no event {wanted}"));
        }
        let citations = citations(events);
        if citations < self.min_page_citations {
            faults.push(format!("{citations} citations of pages, expected at least {}", self.min_page_citations));
        }
        faults.extend(self.citation_faults(events));
        let analysis = analysis(events).to_lowercase();
        for text in self.analysis.iter().filter(|text| !analysis.contains(&text.to_lowercase())) {
            faults.push(format!("the analysis does not mention {text:?}"));
        }
        faults
    }

    /// Whatever the analysis cites has to be a tool's result.
    fn citation_faults(&self, events: &[TimelineEvent]) -> Vec<String> {
        let cited = cited(analysis(events));
        let is_result = |number: &u32| {
            events.iter().any(|event| event.session_seq == *number && event.event_type == EventType::ToolResult)
        };
        let wrong = cited.iter().filter(|number| !is_result(number));
        let mut faults: Vec<String> =
            wrong.map(|number| format!("[{number}] is no event of a tool's result")).collect();
        if cited.len() < self.min_citations {
            faults.push(format!("{} events are cited, expected at least {}", cited.len(), self.min_citations));
        }
        faults
    }

    fn end_fault(&self, events: &[TimelineEvent]) -> Option<String> {
        let expected = self.status.event();
        match events.last() {
            Some(last) if last.event_type == expected => {
                let reason = last.metadata.get("stop_reason").and_then(|reason| reason.as_str()).unwrap_or_default();
                let differs = !self.stop_reason.is_empty() && self.stop_reason != reason;
                differs.then(|| format!("stopped by {reason:?}, expected {:?}", self.stop_reason))
            }
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

/// Whether an event of this type has this text in its metadata.
fn told(events: &[TimelineEvent], event_type: EventType, key: &str, text: &str) -> bool {
    let mut events = events.iter().filter(|event| event.event_type == event_type);
    events.any(|event| event.metadata.get(key).and_then(|value| value.as_str()) == Some(text))
}

fn analysis(events: &[TimelineEvent]) -> &str {
    last_analysis(events).map_or("", |event| event.content.as_str())
}

fn citations(events: &[TimelineEvent]) -> usize {
    let citations = last_analysis(events).and_then(|event| event.metadata.get("citations")?.as_array());
    citations.map_or(0, Vec::len)
}

fn last_analysis(events: &[TimelineEvent]) -> Option<&TimelineEvent> {
    events.iter().rev().find(|event| event.event_type == EventType::FinalAnalysis)
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
        let text = "status: completed\nmin_iterations: 3\nstop_reason: final_answer\nerrors: [malformed]\n\
            tools: [drill.look]\nevents: [code_execution]\nmin_page_citations: 1\nanalysis: [OOMKilled]\n";
        Expected::parse(text).unwrap()
    }

    #[test]
    fn a_timeline_that_has_it_all_has_no_faults() {
        let events = [
            event(1, EventType::LlmToolCall, "{}", json!({"tool_name": "drill.look"})),
            event(2, EventType::Error, "no header", json!({"kind": "malformed"})),
            event(3, EventType::CodeExecution, "1", Value::Null),
            event(4, EventType::FinalAnalysis, "The pod was oomkilled.", json!({"citations": [{}]})),
            event(5, EventType::SessionCompleted, "", json!({"stop_reason": "final_answer"})),
        ];
        assert_eq!(expected().check(&events), Vec::<String>::new());
    }

    #[test]
    fn every_fault_is_named() {
        let events = [
            event(1, EventType::LlmToolCall, "{}", json!({"tool_name": "drill.other"})),
            event(1, EventType::FinalAnalysis, "No idea.", Value::Null),
            event(2, EventType::Error, "", json!({"kind": "model"})),
            event(2, EventType::SessionFailed, "", Value::Null),
        ];
        assert_eq!(
            expected().check(&events),
            [
                "event number 1 stands where 2 belongs",
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
    fn every_agent_comes_to_one_analysis() {
        let expected = Expected::parse("status: completed\nagents: [sre, dba, chief]\n").unwrap();
        let of = |session_seq, agent: &str| TimelineEvent {
            agent: Some(agent.to_owned()),
            ..event(session_seq, EventType::FinalAnalysis, "", Value::Null)
        };
        let events =
            [of(1, "sre"), of(2, "chief"), of(3, "chief"), event(4, EventType::SessionCompleted, "", json!({}))];
        assert_eq!(expected.check(&events), ["0 analyses of dba, expected one", "2 analyses of chief, expected one"]);
    }

    #[test]
    fn an_analysis_cites_results_and_nothing_else() {
        let expected = Expected { min_citations: 3, ..Expected::parse("status: completed").unwrap() };
        let events = [
            event(1, EventType::LlmToolCall, "{}", Value::Null),
            event(2, EventType::ToolResult, "full", Value::Null),
            event(3, EventType::FinalAnalysis, "Full [2], as asked [1], [9] [2].", Value::Null),
            event(4, EventType::SessionCompleted, "", Value::Null),
        ];
        let wrong = ["[1] is no event of a tool's result", "[9] is no event of a tool's result"];
        assert_eq!(expected.check(&events), wrong);
        let expected = Expected { min_citations: 4, ..expected };
        assert_eq!(expected.check(&events)[2], "3 events are cited, expected at least 4");
    }

    #[test]
    fn a_second_end_is_a_fault() {
        let events: Vec<_> = (1..=2).map(|seq| event(seq, EventType::SessionCompleted, "", Value::Null)).collect();
        let only_status = Expected::parse("status: completed").unwrap();
        assert_eq!(only_status.check(&events), ["2 events say that the session is over"]);
    }

    #[test]
    fn another_reason_to_stop_is_a_fault() {
        let expected =
            Expected { stop_reason: "max_iterations".to_owned(), ..Expected::parse("status: completed").unwrap() };
        let events = [event(1, EventType::SessionCompleted, "", json!({"stop_reason": "final_answer"}))];
        assert_eq!(expected.check(&events), ["stopped by \"final_answer\", expected \"max_iterations\""]);
    }
}
