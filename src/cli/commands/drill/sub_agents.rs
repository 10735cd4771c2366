//! The sub-agents of a drill, as its timeline shows them: which ones were at work when the worker was killed, and in
//! which order their results stand.

use serde_json::Value;

use super::proof::Kill;
use tarsy_core::ids::ExecutionId;
use tarsy_core::timeline::{EventType, TimelineEvent};

/// The sub-agents that a timeline names, in the order of their calls.
#[derive(Debug)]
pub(super) struct SubAgents<'e> {
    events: &'e [TimelineEvent],
    dispatched: Vec<Dispatch>,
}

/// A sub-agent that has begun.
#[derive(Debug)]
struct Dispatch {
    agent: String,
    call_id: String,
    execution: ExecutionId,
    parent: ExecutionId,
}

impl<'e> SubAgents<'e> {
    /// `None` for a timeline without any.
    pub(super) fn new(events: &'e [TimelineEvent]) -> Option<Self> {
        let dispatched: Vec<Dispatch> = events.iter().filter_map(dispatch).collect();
        (!dispatched.is_empty()).then_some(Self { events, dispatched })
    }

    /// Whether each has the result of a tool, and none has ended.
    pub(super) fn have_looked(&self) -> bool {
        self.dispatched.iter().all(|dispatch| {
            let has = |event_type| self.of_agent(dispatch, event_type).next().is_some();
            has(EventType::ToolResult) && !has(EventType::FinalAnalysis)
        })
    }

    /// The facts in one line.
    pub(super) fn sentence(&self, kill: Option<&Kill>) -> String {
        let names = self.names(&self.dispatched.iter().collect::<Vec<_>>());
        let killed = kill.map_or_else(String::new, |kill| {
            format!(
                "; {} at work when the worker was killed",
                self.at_work(kill).len()
            )
        });
        let ended = self.names(&self.by_end());
        let results = self.names(&self.by_result());
        format!("dispatched: {names}{killed}; ended: {ended}; results: {results}")
    }

    /// The violations of what is promised about sub-agents.
    pub(super) fn faults(&self, kill: Option<&Kill>) -> Vec<String> {
        let mut faults = Vec::new();
        for dispatch in &self.dispatched {
            let ends = self.of_agent(dispatch, EventType::FinalAnalysis).count();
            let results = self.results(dispatch).count();
            if ends != 1 || results != 1 {
                let agent = &dispatch.agent;
                faults.push(format!(
                    "the sub-agent {agent} has {ends} answers and {results} results, expected one of each"
                ));
            }
        }
        let calls = self.names(&self.dispatched.iter().collect::<Vec<_>>());
        let results = self.names(&self.by_result());
        if results != calls {
            faults.push(format!(
                "the results of sub-agents stand in the order {results}, and their calls in the order {calls}"
            ));
        }
        if let Some(kill) = kill
            && self.at_work(kill).len() < self.dispatched.len()
        {
            faults.push("not all sub-agents were at work when the worker was killed".to_owned());
        }
        faults
    }

    /// Those that had begun and not ended when the worker was killed.
    fn at_work(&self, kill: &Kill) -> Vec<&Dispatch> {
        let mut at_work = Vec::new();
        for dispatch in &self.dispatched {
            let mut ends = self.of_agent(dispatch, EventType::FinalAnalysis);
            let has_begun = self.events.iter().any(|event| {
                event.execution_id == Some(dispatch.execution) && event.session_seq <= kill.after
            });
            if has_begun && ends.all(|end| end.session_seq > kill.after) {
                at_work.push(dispatch);
            }
        }
        at_work
    }

    fn by_end(&self) -> Vec<&Dispatch> {
        self.sorted(|dispatch| {
            let mut ends = self.of_agent(dispatch, EventType::FinalAnalysis);
            ends.next().map(|end| end.session_seq)
        })
    }

    fn by_result(&self) -> Vec<&Dispatch> {
        self.sorted(|dispatch| self.results(dispatch).next())
    }

    fn sorted(&self, key: impl Fn(&Dispatch) -> Option<u32>) -> Vec<&Dispatch> {
        let mut sorted: Vec<&Dispatch> = self.dispatched.iter().collect();
        sorted.sort_by_key(|dispatch| key(dispatch).unwrap_or(u32::MAX));
        sorted
    }

    /// The numbers of the results of its call.
    fn results(&self, dispatch: &Dispatch) -> impl Iterator<Item = u32> {
        let results = self.events.iter().filter(|event| {
            event.event_type == EventType::ToolResult
                && event.execution_id == Some(dispatch.parent)
                && text(event, "call_id") == Some(&dispatch.call_id)
        });
        results.map(|event| event.session_seq)
    }

    fn of_agent(
        &self,
        dispatch: &Dispatch,
        event_type: EventType,
    ) -> impl Iterator<Item = &TimelineEvent> {
        self.events.iter().filter(move |event| {
            event.execution_id == Some(dispatch.execution) && event.event_type == event_type
        })
    }

    fn names(&self, dispatched: &[&Dispatch]) -> String {
        let names: Vec<&str> = dispatched.iter().map(|one| one.agent.as_str()).collect();
        names.join(", ")
    }
}

fn dispatch(event: &TimelineEvent) -> Option<Dispatch> {
    if event.event_type != EventType::AgentDispatched {
        return None;
    }
    Some(Dispatch {
        agent: text(event, "agent")?.to_owned(),
        call_id: text(event, "call_id")?.to_owned(),
        parent: event.execution_id?,
        execution: serde_json::from_value(event.metadata.get("execution_id")?.clone()).ok()?,
    })
}

fn text<'e>(event: &'e TimelineEvent, key: &str) -> Option<&'e str> {
    event.metadata.get(key).and_then(Value::as_str)
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
        execution: u128,
        event_type: EventType,
        metadata: Value,
    ) -> TimelineEvent {
        TimelineEvent {
            session_id: SessionId(Uuid::nil()),
            session_seq,
            execution_id: Some(ExecutionId(Uuid::from_u128(execution))),
            sequence_number: None,
            stage: None,
            agent: None,
            iteration: None,
            attempt: None,
            event_type,
            status: EventStatus::Completed,
            content: String::new(),
            metadata,
            created_at: DateTime::UNIX_EPOCH,
            truncated: false,
        }
    }

    /// Two sub-agents, of which the second ends first; the results stand in the order `results`.
    fn story(results: [&str; 2]) -> Vec<TimelineEvent> {
        let begun = |seq, agent: &str, call: &str, child| {
            let child = ExecutionId(Uuid::from_u128(child));
            let metadata = json!({"agent": agent, "call_id": call, "execution_id": child});
            event(seq, 1, EventType::AgentDispatched, metadata)
        };
        let result = |seq, execution, call: &str| {
            event(
                seq,
                execution,
                EventType::ToolResult,
                json!({"call_id": call}),
            )
        };
        vec![
            begun(1, "logs", "c1", 2),
            begun(2, "db", "c2", 3),
            // A call of a sub-agent may have the id of a call of its parent.
            result(3, 2, "c1"),
            result(4, 3, "c1"),
            event(5, 3, EventType::FinalAnalysis, Value::Null),
            event(6, 2, EventType::FinalAnalysis, Value::Null),
            result(7, 1, results[0]),
            result(8, 1, results[1]),
        ]
    }

    fn kill(after: u32) -> Kill {
        Kill {
            worker: "w1".to_owned(),
            after,
        }
    }

    #[test]
    fn the_results_stand_in_the_order_of_the_calls_whichever_ends_first() {
        let events = story(["c1", "c2"]);
        let sub_agents = SubAgents::new(&events).unwrap();
        assert_eq!(
            sub_agents.sentence(Some(&kill(4))),
            "dispatched: logs, db; 2 at work when the worker was killed; ended: db, logs; results: logs, db"
        );
        assert_eq!(sub_agents.faults(Some(&kill(4))), Vec::<String>::new());
        assert_eq!(
            sub_agents.faults(Some(&kill(3))),
            ["not all sub-agents were at work when the worker was killed"]
        );
    }

    #[test]
    fn another_order_and_a_missing_end_are_faults() {
        let swapped = story(["c2", "c1"]);
        let faults = SubAgents::new(&swapped).unwrap().faults(None);
        assert!(
            faults.iter().any(|fault| fault.contains("in the order")),
            "{faults:?}"
        );
        let cut: Vec<TimelineEvent> = story(["c1", "c2"]).into_iter().take(5).collect();
        let faults = SubAgents::new(&cut).unwrap().faults(None);
        assert!(
            faults[0].starts_with("the sub-agent logs has 0 answers"),
            "{faults:?}"
        );
        assert!(SubAgents::new(&cut[2..]).is_none());
    }

    #[test]
    fn the_worker_is_killed_when_each_has_looked_and_none_has_ended() {
        let events = story(["c1", "c2"]);
        let is_due: Vec<bool> = (2..=5)
            .map(|count| SubAgents::new(&events[..count]).unwrap().have_looked())
            .collect();
        assert_eq!(is_due, [false, false, true, false]);
    }
}
