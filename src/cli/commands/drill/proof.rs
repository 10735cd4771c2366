//! The summary at the end of a drill: when the owner was killed and replaced, and what was sent twice.
//!
//! Nothing in it is assumed. The events are those of the database; the tool server and the scripted model count the
//! requests that arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::approvals::{Approvals, Decided, Line};
use super::sub_agents::SubAgents;
use crate::admin::drill::SERVER;
use crate::cli::render::format;
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_drill::evidence::Evidence;

/// The width of the first column.
const WIDTH: usize = 12;

/// The files in which the services of a drill count requests; they end with this value.
#[derive(Debug)]
pub(super) struct Counters {
    folder: PathBuf,
}

/// A request that arrived at the tool server.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
pub(super) struct ToolRequest {
    /// The name of the tool, without that of the server.
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// A request that arrived at the scripted model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
pub(super) struct ModelRequest {
    pub(super) execution_id: String,
    /// The number of answers before it.
    pub(super) index: usize,
}

/// The worker that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kill {
    pub(super) worker: String,
    /// The last event that had been shown.
    pub(super) after: u32,
}

/// The facts about a finished run.
#[derive(Debug)]
pub(super) struct Facts<'f> {
    /// The stored timeline.
    pub(super) events: &'f [TimelineEvent],
    pub(super) evidence: &'f Evidence,
    pub(super) kill: Option<&'f Kill>,
    /// The decisions that people made in it.
    pub(super) decided: &'f [Decided],
    pub(super) lease: Duration,
    pub(super) tool_requests: &'f [ToolRequest],
    /// `None` with a real model, whose requests are not counted.
    pub(super) model_requests: Option<&'f [ModelRequest]>,
}

impl Counters {
    /// # Errors
    /// When no folder for temporary files can be written.
    pub(super) fn new() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("tarsy-drill-{}", Uuid::now_v7()));
        std::fs::create_dir(&folder)?;
        Ok(Self { folder })
    }

    pub(super) fn tools(&self) -> PathBuf {
        self.folder.join("tools")
    }

    pub(super) fn models(&self) -> PathBuf {
        self.folder.join("models")
    }

    pub(super) fn tool_requests(&self) -> anyhow::Result<Vec<ToolRequest>> {
        lines(&self.tools())
    }

    pub(super) fn model_requests(&self) -> anyhow::Result<Vec<ModelRequest>> {
        lines(&self.models())
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

/// The lines of a file; a file that does not exist has none.
fn lines<T: DeserializeOwned>(file: &Path) -> anyhow::Result<Vec<T>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?)
}

impl Facts<'_> {
    /// The lines of the summary.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec!["Measured in this run:".to_owned()];
        let mut add = |what: &str, text: String| lines.push(format!("  {what:<WIDTH$} {text}"));
        if let Some(Kill { worker, after }) = self.kill {
            add(
                "killed",
                format!("worker {worker} with SIGKILL after event {after}"),
            );
        }
        for Line { what, text } in self.approvals().lines() {
            add(what, text);
        }
        // A session that waits has no owner, so none is taken over.
        if let Some((event, waited)) = self.resumed()
            && self.decided.is_empty()
        {
            let worker = worker(event).unwrap_or("?");
            let seq = event.session_seq;
            let waited = format::span(waited);
            let lease = self.lease.as_secs();
            add(
                "taken over",
                format!("by {worker} after {waited} (event {seq}; the lease is {lease} s)"),
            );
        }
        let sub_agents = SubAgents::new(self.events);
        if let Some(sub_agents) = &sub_agents {
            add("sub-agents", sub_agents.sentence(self.kill));
        }
        add("sent again", self.sent_again());
        add("changes", self.changes());
        let ends = self.events.iter().filter(|event| event.event_type.is_end());
        let ends = format::count(ends.count(), "end");
        let events = format::count(self.events.len(), "event");
        let gaps = if self.has_gaps() {
            "with gaps"
        } else {
            "without a gap"
        };
        add("timeline", format!("{events}, numbered {gaps}, {ends}"));
        lines
    }

    /// The violations of the guarantees; empty if there are none.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for tool in self.repeats().into_keys() {
            if !self.is_read_only(tool) {
                faults.push(format!(
                    "{SERVER}.{tool} may change something and was sent twice"
                ));
            }
        }
        faults.extend(self.approvals().faults());
        if let Some(sub_agents) = SubAgents::new(self.events) {
            faults.extend(sub_agents.faults(self.kill));
            for tool in self.repeats().into_keys() {
                faults.push(format!("{SERVER}.{tool} was sent twice"));
            }
        }
        if self.has_gaps() {
            faults.push("the stored timeline has gaps".to_owned());
        }
        faults
    }

    fn approvals(&self) -> Approvals<'_> {
        Approvals {
            decided: self.decided,
            events: self.events,
            tool_requests: self.tool_requests,
            kill: self.kill,
        }
    }

    fn sent_again(&self) -> String {
        let repeats = self.repeats();
        let again = repeats.values().sum::<usize>();
        let of = format::count(self.tool_requests.len(), "tool call");

        let names: Vec<String> = repeats
            .keys()
            .map(|tool| format!("{SERVER}.{tool}"))
            .collect();
        let tools = match (again, repeats.keys().all(|tool| self.is_read_only(tool))) {
            (0, _) => format!("0 of {of}"),
            (_, true) => format!("{again} of {of}, read-only: {}", names.join(", ")),
            (_, false) => format!("{again} of {of}: {}", names.join(", ")),
        };
        let Some(requests) = self.model_requests else {
            return tools;
        };
        let distinct: BTreeSet<&ModelRequest> = requests.iter().collect();
        let again = requests.len() - distinct.len();
        format!(
            "{tools}; {again} of {}",
            format::count(requests.len(), "model call")
        )
    }

    fn changes(&self) -> String {
        let sent = self
            .tool_requests
            .iter()
            .filter(|request| !self.is_read_only(&request.tool))
            .count();
        let repeats = self.repeats();
        let twice: usize = repeats
            .iter()
            .filter(|(tool, _)| !self.is_read_only(tool))
            .map(|(_, count)| count)
            .sum();
        if sent == 0 {
            return "0 calls sent that may change something".to_owned();
        }
        let calls = format::count(sent, "call");
        format!("{calls} sent that may change something, {twice} of them twice")
    }

    fn is_read_only(&self, tool: &str) -> bool {
        self.evidence.tool(tool).is_some_and(|tool| tool.read_only)
    }

    /// The number of requests that each tool received beyond those of the model.
    fn repeats(&self) -> BTreeMap<&str, usize> {
        let asked: Vec<(&str, Value)> = self.events.iter().filter_map(asked).collect();
        let mut repeats = BTreeMap::new();
        for (index, request) in self.tool_requests.iter().enumerate() {
            let earlier = self.tool_requests.iter().take(index);
            let earlier = earlier.filter(|other| *other == request).count();
            let wanted = asked
                .iter()
                .filter(|(tool, with)| *tool == request.tool && *with == request.arguments)
                .count();
            // The timeline shows masked arguments, so a first request may have none that is equal.
            if earlier >= wanted.max(1) {
                *repeats.entry(request.tool.as_str()).or_default() += 1;
            }
        }
        repeats
    }

    /// The event of the new owner after the kill, with the time since the event before it.
    fn resumed(&self) -> Option<(&TimelineEvent, Duration)> {
        let Kill { worker: killed, .. } = self.kill?;
        self.events.windows(2).find_map(|pair| match pair {
            [before, event]
                if event.event_type == EventType::SessionResumed
                    && worker(event) != Some(killed.as_str()) =>
            {
                let waited = event.created_at - before.created_at;
                Some((event, waited.to_std().unwrap_or_default()))
            }
            _ => None,
        })
    }

    fn has_gaps(&self) -> bool {
        (1_u32..)
            .zip(self.events)
            .any(|(expected, event)| event.session_seq != expected)
    }
}

fn worker(event: &TimelineEvent) -> Option<&str> {
    event.metadata.get("worker")?.as_str()
}

/// The tool of the drill that a call names, with its arguments.
fn asked(event: &TimelineEvent) -> Option<(&str, Value)> {
    if event.event_type != EventType::LlmToolCall {
        return None;
    }
    let tool = event
        .metadata
        .get("tool_name")?
        .as_str()?
        .strip_prefix(SERVER)?
        .strip_prefix('.')?;
    let arguments = serde_json::from_str(&event.content).unwrap_or_default();
    Some((tool, arguments))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use serde_json::json;

    use super::*;
    use tarsy_core::ids::SessionId;
    use tarsy_core::timeline::EventStatus;

    const EVIDENCE: &str = "
tools:
  look: {description: Looks., read_only: true, schema: {type: object}, answers: []}
  mend: {description: Mends., read_only: false, schema: {type: object}, answers: []}
";

    fn event(
        session_seq: u32,
        seconds: i64,
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
            iteration: None,
            attempt: None,
            event_type,
            status: EventStatus::Completed,
            content: content.to_owned(),
            metadata,
            created_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds),
            truncated: false,
        }
    }

    fn request(tool: &str, arguments: Value) -> ToolRequest {
        ToolRequest {
            tool: tool.to_owned(),
            arguments,
        }
    }

    fn story() -> Vec<TimelineEvent> {
        let call = |seq, tool, content: &str| {
            event(
                seq,
                1,
                EventType::LlmToolCall,
                content,
                json!({"tool_name": tool}),
            )
        };
        vec![
            event(1, 0, EventType::SessionStarted, "", json!({"worker": "w1"})),
            call(2, "drill.look", r#"{"pod":"a"}"#),
            call(3, "drill.look", r#"{"pod":"a"}"#),
            call(4, "drill.mend", r#"{"key":"[masked]"}"#),
            event(5, 4, EventType::SessionResumed, "", json!({"worker": "w2"})),
            event(6, 5, EventType::SessionCompleted, "", Value::Null),
        ]
    }

    fn sent() -> Vec<ToolRequest> {
        let look = || request("look", json!({"pod": "a"}));
        vec![
            look(),
            look(),
            look(),
            request("mend", json!({"key": "k1"})),
        ]
    }

    fn lines_and_faults(
        events: &[TimelineEvent],
        sent: &[ToolRequest],
    ) -> (Vec<String>, Vec<String>) {
        let evidence = Evidence::parse(EVIDENCE, |_| Ok(String::new())).unwrap();
        let kill = Kill {
            worker: "w1".to_owned(),
            after: 3,
        };
        let model = |index| ModelRequest {
            execution_id: "e".to_owned(),
            index,
        };
        let facts = Facts {
            events,
            evidence: &evidence,
            kill: Some(&kill),
            decided: &[],
            lease: Duration::from_secs(3),
            tool_requests: sent,
            model_requests: Some(&[model(0), model(1), model(1)]),
        };
        (facts.lines(), facts.faults())
    }

    #[test]
    fn the_summary_counts_what_arrived_and_not_what_was_asked() {
        let (lines, faults) = lines_and_faults(&story(), &sent());
        let expected = [
            "Measured in this run:",
            "  killed       worker w1 with SIGKILL after event 3",
            "  taken over   by w2 after 3.0 s (event 5; the lease is 3 s)",
            "  sent again   1 of 4 tool calls, read-only: drill.look; 1 of 3 model calls",
            "  changes      1 call sent that may change something, 0 of them twice",
            "  timeline     6 events, numbered without a gap, 1 end",
        ];
        assert_eq!(
            (lines, faults),
            (expected.map(str::to_owned).to_vec(), Vec::new())
        );
        let (lines, _) = lines_and_faults(&story(), &[]);
        assert_eq!(
            lines[3],
            "  sent again   0 of 0 tool calls; 1 of 3 model calls"
        );
        assert_eq!(
            lines[4],
            "  changes      0 calls sent that may change something"
        );
    }

    #[test]
    fn a_change_that_was_sent_twice_and_a_gap_are_faults() {
        let mut events = story();
        events.remove(0);
        let twice = [sent(), vec![request("mend", json!({"key": "k1"}))]].concat();
        let (lines, faults) = lines_and_faults(&events, &twice);
        assert_eq!(
            lines[3],
            "  sent again   2 of 5 tool calls: drill.look, drill.mend; 1 of 3 model calls"
        );
        assert_eq!(
            lines[4],
            "  changes      2 calls sent that may change something, 1 of them twice"
        );
        assert_eq!(
            lines[5],
            "  timeline     5 events, numbered with gaps, 1 end"
        );
        assert_eq!(
            faults,
            [
                "drill.mend may change something and was sent twice",
                "the stored timeline has gaps"
            ]
        );
    }

    #[test]
    fn requests_are_read_from_their_files_which_end_with_the_counters() {
        let counters = Counters::new().unwrap();
        assert_eq!(counters.tool_requests().unwrap(), Vec::new());
        std::fs::write(
            counters.tools(),
            "{\"tool\":\"look\",\"arguments\":{},\"traceparent\":\"00\"}\n",
        )
        .unwrap();
        assert_eq!(
            counters.tool_requests().unwrap(),
            [request("look", json!({}))]
        );
        let folder = counters.folder.clone();
        drop(counters);
        assert!(!folder.exists());
    }
}
