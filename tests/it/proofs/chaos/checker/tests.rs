//! Tests of the checker: a complete history breaks no guarantee, and each change of it breaks the expected one.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventStatus, EventType, TimelineEvent};
use uuid::Uuid;

use super::check;
use super::journal::sent_state;
use crate::proofs::chaos::facts::{
    Alert, Entry, Event, Facts, Limits, Session, Shown, ToolSent, Watched,
};
use crate::proofs::chaos::faults::InjectedFault;
use crate::proofs::chaos::load::{Kind, Ledger, Sent};
use crate::proofs::chaos::odd::{GUESSED, OddCall, OddFacts, RESTART, WHOLE};
use crate::proofs::chaos::people::People;
use crate::proofs::chaos::plan::Fault;

pub(super) const ALERT: SessionId =
    SessionId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));
const POISON: SessionId = SessionId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0002));
pub(super) const RUN: Uuid = Uuid::from_u128(9);

pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
}

pub(super) fn event(
    session: SessionId,
    seq: u32,
    event_type: EventType,
    metadata: Value,
) -> TimelineEvent {
    TimelineEvent {
        session_id: session,
        session_seq: seq,
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
        created_at: at(i64::from(seq)),
        truncated: false,
    }
}

/// Builds an event of the execution.
fn step(seq: u32, iteration: u32, event_type: EventType, metadata: Value) -> TimelineEvent {
    TimelineEvent {
        execution_id: Some(ExecutionId(RUN)),
        iteration: Some(iteration),
        ..event(ALERT, seq, event_type, metadata)
    }
}

pub(super) fn entry(
    entry_no: i32,
    iteration: i32,
    kind: &str,
    call: Option<&str>,
    body: Value,
) -> Entry {
    Entry {
        session_id: ALERT.0,
        execution_id: RUN,
        created_at: at(i64::from(entry_no)),
        entry_no,
        iteration,
        kind: kind.to_owned(),
        tool_call_id: call.map(str::to_owned),
        body,
        provider_data: None,
    }
}

pub(super) fn usage(input: u64) -> Value {
    json!({"input_tokens": input, "cached_tokens": 0, "output_tokens": 0, "thinking_tokens": 0})
}

/// The execution calls tools, loses its worker in the second answer, and concludes.
fn journal() -> Vec<Entry> {
    let call = |id: &str, tool: &str, step: u32| json!({"id": id, "tool": tool, "arguments": json!({"step": step}).to_string()});
    let asks = json!({"usage": usage(5), "calls": [call("a", "chaos.look", 1), call("b", "chaos.restart", 2)]});
    let mut entries = vec![
        entry(1, 0, "prompt", None, json!({})),
        entry(2, 1, "answer", None, asks),
        entry(3, 1, "tool_result", Some("a"), json!({})),
        entry(4, 1, "started", Some("b"), json!({})),
        entry(5, 1, "tool_result", Some("b"), json!({})),
        entry(
            6,
            2,
            "answer",
            None,
            json!({"usage": usage(7), "calls": []}),
        ),
        entry(7, 2, "ended", None, json!({})),
    ];
    entries[1].provider_data = Some(sent_state(RUN, 0));
    entries[5].provider_data = Some(sent_state(RUN, 1));
    entries
}

fn timeline() -> Vec<Event> {
    let totals =
        json!({"input_tokens": 12, "cached_tokens": 0, "output_tokens": 0, "thinking_tokens": 0});
    let of_call = |id: &str| json!({"call_id": id});
    [
        (1, event(ALERT, 1, EventType::SessionStarted, Value::Null)),
        (1, step(2, 1, EventType::LlmToolCall, of_call("a"))),
        (1, step(3, 1, EventType::LlmToolCall, of_call("b"))),
        (1, step(4, 1, EventType::ToolResult, of_call("a"))),
        (1, step(5, 1, EventType::ToolResult, of_call("b"))),
        (
            2,
            event(
                ALERT,
                6,
                EventType::SessionResumed,
                json!({"reason": "lease_expired", "epoch": 2}),
            ),
        ),
        (2, step(7, 2, EventType::FinalAnalysis, Value::Null)),
        (2, event(ALERT, 8, EventType::SessionCompleted, totals)),
    ]
    .map(|(epoch, event)| Event { epoch, event })
    .into()
}

/// Two alerts: one is investigated, one is poison.
pub(super) fn whole() -> Facts {
    let alert = |id: SessionId, place: &str, dead: Option<&str>| Alert {
        alert_id: id.0,
        place: place.to_owned(),
        received_at: at(0),
        settled_at: Some(at(20)),
        joined_session_id: None,
        dead_reason: dead.map(str::to_owned),
    };
    let session = Session {
        session_id: ALERT.0,
        created_at: at(0),
        deadline_at: at(40),
        finished_at: Some(at(8)),
        status: "completed".to_owned(),
        stop_reason: Some("final_answer".to_owned()),
        dead_letter: None,
        lease_epoch: 2,
        final_analysis: None,
        mark: None,
    };
    let end = Event {
        epoch: 0,
        event: event(POISON, 1, EventType::SessionFailed, Value::Null),
    };
    let events: BTreeMap<SessionId, Vec<Event>> = [(ALERT, timeline()), (POISON, vec![end])].into();
    let shown = |events: &Vec<Event>| {
        events
            .iter()
            .map(|event| Shown {
                at: event.event.created_at,
                event: event.event.clone(),
            })
            .collect()
    };
    let plain = |events: &Vec<Event>| {
        events
            .iter()
            .map(|event| event.event.clone())
            .collect::<Vec<_>>()
    };
    let tool = |tool: &str, step: i64| ToolSent {
        execution: RUN,
        tool: tool.to_owned(),
        step,
    };
    let sent = |kind: Kind| Sent { kind, at: at(0) };
    Facts {
        limits: Limits {
            attempts: 4,
            iterations: 8,
            session_timeout: Duration::seconds(40),
            grace: Duration::seconds(10),
        },
        ledger: Ledger {
            sent: [(ALERT, sent(Kind::Change)), (POISON, sent(Kind::Poison))].into(),
            ..Ledger::default()
        },
        alerts: [
            alert(ALERT, "opened", None),
            alert(POISON, "dead", Some("attempts_exhausted")),
        ]
        .map(|alert| (alert.id(), alert))
        .into(),
        sessions: [(ALERT, session)].into(),
        entries: [(RUN, journal())].into(),
        shown: events
            .iter()
            .map(|(id, events)| (*id, shown(events)))
            .collect(),
        on_stream: events
            .iter()
            .map(|(id, events)| (*id, plain(events)))
            .collect(),
        watched: vec![Watched {
            by: "a watcher",
            session: ALERT,
            after: 3,
            seen: plain(&events[&ALERT])[3..].to_vec(),
        }],
        events,
        emptied: Vec::new(),
        letters: BTreeSet::from([("attempts_exhausted".to_owned(), POISON)]),
        model_calls: [((RUN, 1), 1), ((RUN, 2), 2)].into(),
        tool_calls: [(tool("look", 1), 1), (tool("restart", 2), 1)].into(),
        faults: Vec::new(),
        deaths: Vec::new(),
        wrong: Vec::new(),
        odd: OddFacts::default(),
        people: People::default(),
    }
}

/// The guarantees that are broken after a change to the complete history.
fn broken(change: impl FnOnce(&mut Facts)) -> BTreeSet<u8> {
    let mut facts = whole();
    change(&mut facts);
    check(&facts)
        .into_iter()
        .map(|broken| broken.guarantee)
        .collect()
}

fn session(facts: &mut Facts) -> &mut Session {
    facts.sessions.get_mut(&ALERT).unwrap()
}

fn events(facts: &mut Facts) -> &mut Vec<Event> {
    facts.events.get_mut(&ALERT).unwrap()
}

fn entries(facts: &mut Facts) -> &mut Vec<Entry> {
    facts.entries.get_mut(&RUN).unwrap()
}

#[test]
fn a_complete_history_breaks_no_guarantee() {
    assert_eq!(check(&whole()), []);
}

#[test]
fn an_alert_that_does_not_end_is_found() {
    assert!(
        broken(|f| drop(f.alerts.remove(&ALERT))).contains(&1),
        "the alert has no row"
    );
    assert!(broken(|f| f.alerts.get_mut(&ALERT).unwrap().settled_at = None).contains(&1));
    assert!(
        broken(|f| f.letters.clear()).contains(&1),
        "the dead letter is missing"
    );
    assert!(broken(|f| session(f).status = "running".to_owned()).contains(&1));
    let refused = |f: &mut Facts| {
        f.alerts.get_mut(&POISON).unwrap().dead_reason = Some("undecodable".to_owned());
        f.letters.insert(("undecodable".to_owned(), POISON));
    };
    assert!(
        broken(refused).contains(&1),
        "the alert was given up for a wrong reason"
    );
    let joined = |f: &mut Facts| {
        let alert = f.alerts.get_mut(&POISON).unwrap();
        (alert.place, alert.joined_session_id) = ("joined".to_owned(), Some(POISON.0));
    };
    assert!(broken(joined).contains(&1), "the alert joined no session");
    let lost_with_the_stream = |f: &mut Facts| {
        f.ledger.sent.insert(
            SessionId(RUN),
            Sent {
                kind: Kind::Native,
                at: at(0),
            },
        );
        f.ledger.lost_with_the_stream.insert(SessionId(RUN));
    };
    assert_eq!(broken(lost_with_the_stream), BTreeSet::new());
}

#[test]
fn a_write_of_a_superseded_owner_is_found() {
    assert!(
        broken(|f| events(f)[6].epoch = 1).contains(&2),
        "a row of the first epoch behind the second"
    );
    assert!(
        broken(|f| events(f)[6].epoch = 3).contains(&2),
        "an epoch that no claim has begun"
    );
    let shown = |f: &mut Facts| {
        f.shown.get_mut(&ALERT).unwrap()[6].event.content = "of another owner".to_owned()
    };
    assert_eq!(
        broken(shown),
        BTreeSet::from([2]),
        "published, and not in the table"
    );
}

#[test]
fn a_call_that_is_repeated_without_a_takeover_is_found() {
    assert_eq!(
        broken(|f| *f.model_calls.get_mut(&(RUN, 1)).unwrap() = 2),
        BTreeSet::from([3])
    );
    assert_eq!(
        broken(|f| *f.model_calls.get_mut(&(RUN, 2)).unwrap() = 3),
        BTreeSet::from([3])
    );
    let updated_before_it = |f: &mut Facts| {
        events(f)[6..]
            .iter_mut()
            .for_each(|event| event.event.session_seq += 1);
        events(f).insert(
            6,
            Event {
                epoch: 2,
                event: step(7, 1, EventType::AlertUpdated, Value::Null),
            },
        );
    };
    assert!(
        !broken(updated_before_it).contains(&3),
        "the repetition of the lost call is due"
    );
    let look = ToolSent {
        execution: RUN,
        tool: "look".to_owned(),
        step: 1,
    };
    assert_eq!(
        broken(|f| *f.tool_calls.get_mut(&look).unwrap() = 2),
        BTreeSet::from([3])
    );
    let after_a_kill = |f: &mut Facts| {
        *f.tool_calls.get_mut(&look).unwrap() = 2;
        let fault = Fault::KillToolServer(0);
        f.faults.push(InjectedFault {
            fault,
            from: at(3),
            until: at(3),
            recovery: None,
        });
    };
    assert_eq!(broken(after_a_kill), BTreeSet::new());
}

#[test]
fn a_side_effect_that_is_sent_twice_or_not_journaled_is_found() {
    let restart = ToolSent {
        execution: RUN,
        tool: "restart".to_owned(),
        step: 2,
    };
    assert_eq!(
        broken(|f| *f.tool_calls.get_mut(&restart).unwrap() = 2),
        BTreeSet::from([4])
    );
    assert_eq!(
        broken(|f| entries(f).retain(|entry| entry.kind != "started")),
        BTreeSet::from([4])
    );
    let unknown = ToolSent { step: 3, ..restart };
    assert_eq!(
        broken(|f| f.tool_calls.extend([(unknown, 1)])),
        BTreeSet::from([4]),
        "no journal has the call"
    );
    let no_result =
        |f: &mut Facts| (entries(f)[4].kind, entries(f)[4].iteration) = ("lost".to_owned(), 1);
    assert_eq!(
        broken(no_result),
        BTreeSet::from([4]),
        "a lost call has no result for the model"
    );
}

#[test]
fn a_changed_byte_of_provider_data_is_found() {
    assert_eq!(
        broken(|f| entries(f)[5].provider_data.as_mut().unwrap()[7] ^= 1),
        BTreeSet::from([5])
    );
    assert_eq!(
        broken(|f| entries(f)[1].provider_data = None),
        BTreeSet::from([5])
    );
    let refused = |f: &mut Facts| {
        entries(f).push(entry(
            8,
            2,
            "failed",
            None,
            json!({"code": "provider_state"}),
        ))
    };
    assert_eq!(broken(refused), BTreeSet::from([5]));
}

#[test]
fn a_moved_deadline_an_exceeded_limit_and_a_wrong_total_are_found() {
    assert_eq!(
        broken(|f| session(f).deadline_at = at(46)),
        BTreeSet::from([6])
    );
    assert_eq!(
        broken(|f| session(f).finished_at = Some(at(51))),
        BTreeSet::from([6])
    );
    assert_eq!(
        broken(|f| entries(f)[6].iteration = 10),
        BTreeSet::from([6])
    );
    assert_eq!(
        broken(|f| entries(f)[1].body["usage"] = usage(6)),
        BTreeSet::from([6])
    );
}

#[test]
fn a_gap_a_repetition_and_a_second_end_are_found() {
    assert!(
        broken(|f| drop(events(f).remove(3))).contains(&7),
        "a gap in the table"
    );
    assert!(
        broken(|f| drop(events(f).pop())).contains(&7),
        "the end is missing"
    );
    assert_eq!(
        broken(|f| drop(f.on_stream.get_mut(&ALERT).unwrap().remove(2))),
        BTreeSet::from([7])
    );
    assert_eq!(
        broken(|f| drop(f.on_stream.remove(&ALERT))),
        BTreeSet::from([7]),
        "the stream has no event"
    );
    assert_eq!(
        broken(|f| drop(f.shown.get_mut(&ALERT).unwrap().remove(2))),
        BTreeSet::from([7])
    );
    assert_eq!(
        broken(|f| f.watched[0].seen.swap(0, 1)),
        BTreeSet::from([7])
    );
    assert_eq!(
        broken(|f| drop(f.watched[0].seen.pop())),
        BTreeSet::from([7]),
        "a watcher that misses the end"
    );
    let again = |f: &mut Facts| {
        let shown = f.shown.get_mut(&ALERT).unwrap();
        let later = |shown: &Shown| Shown {
            at: shown.at + Duration::seconds(10),
            ..shown.clone()
        };
        shown.extend(shown.iter().map(later).collect::<Vec<_>>());
    };
    assert_eq!(
        broken(again),
        BTreeSet::from([7]),
        "all events are published twice"
    );
    let emptied = |f: &mut Facts| {
        again(f);
        f.emptied.push((at(8), at(9)));
    };
    assert_eq!(
        broken(emptied),
        BTreeSet::new(),
        "a lost stream is filled again"
    );
}

#[test]
fn poison_that_does_not_end_and_a_wrongly_given_up_alert_are_found() {
    let investigated = |f: &mut Facts| {
        let alert = f.alerts.get_mut(&POISON).unwrap();
        (alert.place, alert.dead_reason) = ("ended".to_owned(), None);
    };
    assert_eq!(broken(investigated), BTreeSet::from([8]));
    assert_eq!(
        broken(|f| f.ledger.sent.get_mut(&POISON).unwrap().kind = Kind::Native),
        BTreeSet::from([8])
    );
    assert_eq!(
        broken(|f| session(f).stop_reason = Some("attempts_exhausted".to_owned())),
        BTreeSet::from([8])
    );
    let deadly = |f: &mut Facts| f.ledger.sent.get_mut(&ALERT).unwrap().kind = Kind::Deadly;
    assert_eq!(
        broken(deadly),
        BTreeSet::from([8]),
        "a deadly alert was investigated to its end"
    );
}

#[test]
fn a_call_that_no_model_wrote_and_a_half_analysis_are_found() {
    let call = OddCall {
        tool: RESTART.to_owned(),
        by: "a".to_owned(),
        step: 1,
    };
    let performed = |written: Option<OddCall>, count: u32| {
        broken(|f| {
            f.odd.written.extend(written);
            f.odd.performed.insert(call.clone(), count);
        })
    };
    assert_eq!(performed(None, 1), BTreeSet::from([11]));
    assert_eq!(performed(Some(call.clone()), 1), BTreeSet::new());
    assert_eq!(performed(Some(call.clone()), 2), BTreeSet::from([4]));
    let ends_with = |analysis: &str, mark: Option<&str>| {
        broken(|f| {
            for event in events(f)
                .iter_mut()
                .filter(|event| event.event.execution_id.is_some())
            {
                event.event.agent = Some("odd".to_owned());
            }
            f.shown.clear();
            f.on_stream.clear();
            (session(f).final_analysis, session(f).mark) =
                (Some(analysis.to_owned()), mark.map(str::to_owned));
        })
        .contains(&11)
    };
    let guessed = format!("{WHOLE} {GUESSED}");
    assert_eq!(
        [WHOLE, &guessed, "Cause: half"].map(|analysis| ends_with(analysis, None)),
        [false, true, true]
    );
    assert!(
        !ends_with("Cause: half", Some("incomplete")),
        "a mark says so"
    );
}

#[test]
fn a_call_that_a_soft_deadline_cuts_is_no_repetition() {
    let with = |reason: &str| {
        broken(|f| {
            *f.model_calls.get_mut(&(RUN, 2)).unwrap() = 3;
            let stopped = entry(6, 1, "stopped", None, json!({"reason": reason}));
            f.entries.get_mut(&RUN).unwrap().insert(5, stopped);
        })
        .contains(&3)
    };
    assert_eq!(["time_budget", "cancelled"].map(with), [false, true]);
}

#[test]
fn a_sub_agent_without_one_journal_and_one_result_is_found() {
    let child = Uuid::from_u128(10);
    let with = |dispatched: usize, results: usize, end: &str| {
        broken(|f| {
            let dispatch = || {
                let body = json!({"agent": "db", "execution_id": child.to_string()});
                entry(8, 2, "dispatched", Some("c"), body)
            };
            let ended = Entry {
                execution_id: child,
                ..entry(1, 1, end, None, json!({}))
            };
            let of_parent = f.entries.get_mut(&RUN).unwrap();
            let before = of_parent.pop().unwrap();
            of_parent.extend(std::iter::repeat_with(dispatch).take(dispatched));
            let result = || entry(9, 2, "tool_result", Some("c"), json!({}));
            of_parent.extend(std::iter::repeat_with(result).take(results));
            of_parent.push(before);
            f.entries.insert(child, vec![ended]);
        })
        .contains(&3)
    };
    let cases = [
        (1, 1, "ended"),
        (2, 1, "ended"),
        (1, 0, "ended"),
        (1, 2, "ended"),
        (1, 1, "answer"),
    ];
    assert_eq!(
        cases.map(|(dispatched, results, end)| with(dispatched, results, end)),
        [false, true, true, true, true]
    );
}

#[test]
fn a_failed_process_is_found() {
    assert_eq!(
        broken(|f| f.wrong.push("w1-1 panicked at …".to_owned())),
        BTreeSet::from([0])
    );
}
