//! The facts about calls that waited for a person: who decided, which worker woke, and how often the tool server got
//! the call. The times are those of the stored timeline, the counts those of the tool server.

use std::time::Duration;

use serde_json::{Map, Value};

use super::proof::{Kill, ToolRequest};
use crate::admin::drill::SERVER;
use crate::cli::render::format;
use tarsy_core::approvals::{CallHash, Choice};
use tarsy_core::timeline::{EventType, TimelineEvent};

/// A decision that the drill has sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decided {
    /// The full name, `server.tool`.
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) choice: Choice,
    /// The person, as votes name them.
    pub(super) person: String,
    /// The call that the person saw.
    pub(super) call: CallHash,
    /// The number of the event that asks.
    pub(super) request: u32,
    /// The number of times that the tool server had the call when the person decided.
    pub(super) sent_before: usize,
}

/// The decisions of a run, with what the timeline and the tool server have of them.
#[derive(Debug)]
pub(super) struct Approvals<'f> {
    pub(super) decided: &'f [Decided],
    pub(super) events: &'f [TimelineEvent],
    pub(super) tool_requests: &'f [ToolRequest],
    pub(super) kill: Option<&'f Kill>,
}

/// A line of the summary.
pub(super) struct Line {
    pub(super) what: &'static str,
    pub(super) text: String,
}

impl Decided {
    /// The number of times that the tool server got this call.
    pub(super) fn sends(&self, requests: &[ToolRequest]) -> usize {
        let own = self.tool.strip_prefix(SERVER);
        let own = own.and_then(|rest| rest.strip_prefix('.'));
        let requests = requests.iter().filter(|request| {
            Some(request.tool.as_str()) == own
                && request.arguments.as_object() == Some(&self.arguments)
        });
        requests.count()
    }

    fn is_about(&self, other: &Self) -> bool {
        self.tool == other.tool && self.arguments == other.arguments
    }

    /// Recognises an approval of the call that another decision is about.
    fn approves(&self, other: &Self) -> bool {
        self.choice == Choice::Approve && self.is_about(other)
    }

    fn verb(&self) -> &'static str {
        match self.choice {
            Choice::Approve => "approved",
            Choice::Deny | Choice::DenySession => "denied",
        }
    }
}

impl Approvals<'_> {
    /// The lines of the summary.
    pub(super) fn lines(&self) -> Vec<Line> {
        self.decided
            .iter()
            .flat_map(|decided| self.lines_about(decided))
            .collect()
    }

    fn lines_about(&self, decided: &Decided) -> Vec<Line> {
        let tool = &decided.tool;
        let mut lines = Vec::new();
        let mut add = |what, text| lines.push(Line { what, text });
        if let Some(decision) = self.decision(decided) {
            let mut events = self.events.iter();
            let asked = events.find(|event| event.session_seq == decided.request);
            let waited = asked.map_or_else(String::new, |asked| {
                format!(" {} after it asked", between(asked, decision))
            });
            let person = &decided.person;
            let seq = decision.session_seq;
            add(
                decided.verb(),
                format!("by {person}{waited} (event {seq}): {tool}"),
            );
            add("call", decided.call.to_string());
            if let Some(woken) = self.woken(decision) {
                let worker = worker(woken).unwrap_or("?");
                let after = between(decision, woken);
                let seq = woken.session_seq;
                add(
                    "woken",
                    format!("at {worker}, {after} after the decision (event {seq})"),
                );
            }
        }
        let sends = decided.sends(self.tool_requests);
        let before = format::count(decided.sent_before, "time");
        let after = format::count(sends.saturating_sub(decided.sent_before), "time");
        add(
            "sent",
            match sends {
                0 => "never: the tool server got no such call".to_owned(),
                _ => format!(
                    "{before} before the decision, {after} after it, as the tool server counted"
                ),
            },
        );
        lines
    }

    /// The violations of what is promised about calls that need a person.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (place, decided) in self.decided.iter().enumerate() {
            faults.extend(self.fault_of_order(place, decided));
            faults.extend(self.fault_of_count(place, decided));
            let person = &decided.person;
            let Some(decision) = self.decision(decided) else {
                faults.push(format!("the timeline has no decision of {person}"));
                continue;
            };
            let woken = self.woken(decision).and_then(worker);
            match (woken, self.kill) {
                (None, _) => {
                    faults.push("no worker took the session after the decision".to_owned())
                }
                (Some(woken), Some(kill)) if woken == kill.worker => {
                    faults.push(format!("{woken} took the session after it was killed"));
                }
                (Some(_), _) => {}
            }
        }
        faults
    }

    /// A send before a decision that no earlier approval of the same call explains.
    fn fault_of_order(&self, place: usize, decided: &Decided) -> Option<String> {
        let earlier = self.decided.iter().take(place);
        let approved = earlier.filter(|other| other.approves(decided)).count();
        let Decided { tool, person, .. } = decided;
        (decided.sent_before > approved).then(|| format!("{tool} was sent before {person} decided"))
    }

    /// A count of sends that differs from the approvals of the same call. It is judged with the first decision about
    /// the call, because each of them may be asked about several times.
    fn fault_of_count(&self, place: usize, decided: &Decided) -> Option<String> {
        let mut earlier = self.decided.iter().take(place);
        if earlier.any(|other| other.is_about(decided)) {
            return None;
        }
        let all = self.decided.iter();
        let approved = all.filter(|other| other.approves(decided)).count();
        let sends = decided.sends(self.tool_requests);
        let tool = &decided.tool;
        match (approved, sends) {
            (0, 0) => None,
            (0, _) => Some(format!("{tool} was denied, and sent")),
            (_, 0) => Some(format!("{tool} was approved, and never sent")),
            (approved, sends) if approved == sends => None,
            (approved, sends) => Some(format!(
                "{tool} was approved {}, and sent {}",
                times(approved),
                times(sends)
            )),
        }
    }

    /// The event of a decision.
    fn decision(&self, decided: &Decided) -> Option<&TimelineEvent> {
        let mut events = self.events.iter();
        events.find(|event| {
            event.event_type == EventType::ApprovalDecided
                && event.metadata.get("request").and_then(Value::as_u64)
                    == Some(u64::from(decided.request))
                && event.metadata.get("by").and_then(Value::as_str) == Some(&decided.person)
        })
    }

    /// The event of the worker that took the session after a decision.
    fn woken(&self, decision: &TimelineEvent) -> Option<&TimelineEvent> {
        let mut events = self.events.iter();
        events.find(|event| {
            event.session_seq > decision.session_seq
                && event.event_type == EventType::SessionResumed
        })
    }
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format::count(count, "time"),
    }
}

fn worker(event: &TimelineEvent) -> Option<&str> {
    event.metadata.get("worker")?.as_str()
}

fn between(first: &TimelineEvent, second: &TimelineEvent) -> String {
    let passed = (second.created_at - first.created_at).to_std();
    format::span(passed.unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use tarsy_core::ids::SessionId;
    use tarsy_core::timeline::EventStatus;

    fn event(session_seq: u32, event_type: EventType, metadata: Value) -> TimelineEvent {
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
            content: String::new(),
            metadata,
            created_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(session_seq.into()),
            truncated: false,
        }
    }

    fn story() -> Vec<TimelineEvent> {
        vec![
            event(1, EventType::SessionStarted, json!({"worker": "w1"})),
            event(2, EventType::ApprovalRequested, Value::Null),
            event(3, EventType::SessionWaiting, Value::Null),
            event(
                5,
                EventType::ApprovalDecided,
                json!({"request": 2, "by": "drill:ben"}),
            ),
            event(6, EventType::SessionResumed, json!({"worker": "w2"})),
        ]
    }

    fn decided(choice: Choice) -> Decided {
        Decided {
            tool: "drill.mend".to_owned(),
            arguments: Map::from_iter([("pod".to_owned(), json!("a"))]),
            choice,
            person: "drill:ben".to_owned(),
            call: CallHash([0xab; 32]),
            request: 2,
            sent_before: 0,
        }
    }

    fn request(arguments: Value) -> ToolRequest {
        ToolRequest {
            tool: "mend".to_owned(),
            arguments,
        }
    }

    /// The lines and the faults of a decision after which the tool server has these requests.
    fn judged(decided: &Decided, requests: &[ToolRequest]) -> [Vec<String>; 2] {
        let events = story();
        let approvals = Approvals {
            decided: std::slice::from_ref(decided),
            events: &events,
            tool_requests: requests,
            kill: None,
        };
        let lines = approvals.lines().into_iter();
        let lines = lines.map(|Line { what, text }| format!("{what}: {text}"));
        [lines.collect(), approvals.faults()]
    }

    #[test]
    fn an_approval_is_shown_with_its_person_its_call_and_the_counts_of_the_tool_server() {
        let sent = [request(json!({"pod": "a"})), request(json!({"pod": "b"}))];
        let [lines, faults] = judged(&decided(Choice::Approve), &sent);
        let call = format!("call: {}", "ab".repeat(32));
        assert_eq!(
            lines,
            [
                "approved: by drill:ben 3.0 s after it asked (event 5): drill.mend",
                call.as_str(),
                "woken: at w2, 1.0 s after the decision (event 6)",
                "sent: 0 times before the decision, 1 time after it, as the tool server counted",
            ]
        );
        assert_eq!(faults, Vec::<String>::new());
    }

    #[test]
    fn a_call_that_is_sent_twice_never_or_before_its_approval_is_a_fault() {
        let approved = decided(Choice::Approve);
        let early = Decided {
            sent_before: 1,
            ..approved.clone()
        };
        let denied = decided(Choice::Deny);
        let sent = || request(json!({"pod": "a"}));
        for (decided, requests, expected) in [
            (&approved, vec![], "drill.mend was approved, and never sent"),
            (
                &approved,
                vec![sent(), sent()],
                "drill.mend was approved once, and sent 2 times",
            ),
            (
                &early,
                vec![sent()],
                "drill.mend was sent before drill:ben decided",
            ),
            (&denied, vec![sent()], "drill.mend was denied, and sent"),
        ] {
            let [_, faults] = judged(decided, &requests);
            assert_eq!(faults, [expected]);
        }
        let [lines, faults] = judged(&denied, &[]);
        assert!(lines[0].starts_with("denied: by drill:ben "), "{lines:?}");
        assert_eq!(lines[3], "sent: never: the tool server got no such call");
        assert_eq!(faults, Vec::<String>::new());
    }

    #[test]
    fn a_call_that_is_asked_twice_may_be_sent_once_for_each_approval() {
        let first = decided(Choice::Approve);
        let second = Decided {
            sent_before: 1,
            ..first.clone()
        };
        let early = Decided {
            sent_before: 2,
            ..first.clone()
        };
        let denied = Decided {
            choice: Choice::Deny,
            ..second.clone()
        };
        let events = story();
        let faults_of = "drill.mend was approved";
        for (second, sends, expected) in [
            (&second, 2, vec![]),
            (&denied, 1, vec![]),
            (
                &second,
                1,
                vec![format!("{faults_of} 2 times, and sent once")],
            ),
            (
                &second,
                3,
                vec![format!("{faults_of} 2 times, and sent 3 times")],
            ),
            (
                &denied,
                2,
                vec![format!("{faults_of} once, and sent 2 times")],
            ),
            (
                &early,
                2,
                vec!["drill.mend was sent before drill:ben decided".to_owned()],
            ),
        ] {
            let decided = [first.clone(), second.clone()];
            let requests = vec![request(json!({"pod": "a"})); sends];
            let approvals = Approvals {
                decided: &decided,
                events: &events,
                tool_requests: &requests,
                kill: None,
            };
            assert_eq!(approvals.faults(), expected);
        }
    }

    #[test]
    fn a_decision_that_no_timeline_has_and_a_killed_worker_that_wakes_are_faults() {
        let events = story();
        let other = Decided {
            person: "drill:eve".to_owned(),
            ..decided(Choice::Deny)
        };
        let kill = Kill {
            worker: "w2".to_owned(),
            after: 3,
        };
        let decided = [decided(Choice::Deny), other];
        let approvals = Approvals {
            decided: &decided,
            events: &events,
            tool_requests: &[],
            kill: Some(&kill),
        };
        assert_eq!(
            approvals.faults(),
            [
                "w2 took the session after it was killed",
                "the timeline has no decision of drill:eve"
            ]
        );
        let asleep = Approvals {
            decided: &decided[..1],
            events: &events[..4],
            tool_requests: &[],
            kill: None,
        };
        assert_eq!(
            asleep.faults(),
            ["no worker took the session after the decision"]
        );
    }
}
