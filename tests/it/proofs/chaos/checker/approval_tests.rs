//! Tests of the rules about people: a call that was approved breaks none, and each change of its history breaks
//! guarantee 12 or 4.

use std::collections::BTreeSet;

use serde_json::json;
use tarsy_core::approvals::{Channel, Choice};
use tarsy_core::timeline::{EventType, TimelineEvent};
use uuid::Uuid;

use super::tests::{ALERT, RUN, at, entry, event, usage, whole};
use super::{Least, check, lacks};
use crate::proofs::chaos::facts::{Entry, Event, Facts, Shown, ToolSent};
use crate::proofs::chaos::faults::InjectedFault;
use crate::proofs::chaos::people::{Cast, Intent, People, Request, Vote};
use crate::proofs::chaos::plan::Fault;

const VOTE: Uuid = Uuid::from_u128(20);
const HASH: [u8; 32] = [3; 32];
const REQUEST: i32 = 4;

fn sent() -> ToolSent {
    ToolSent {
        execution: RUN,
        tool: "drain".to_owned(),
        step: 2,
    }
}

fn vote(person: &str, verdict: &str) -> Vote {
    Vote {
        vote_id: VOTE,
        session_id: ALERT.0,
        event_seq: REQUEST,
        person: person.to_owned(),
        verdict: verdict.to_owned(),
        seen_sha256: HASH.to_vec(),
        refused: None,
    }
}

/// The call `b` of the complete history needs a person, who has approved it.
fn approved() -> Facts {
    let mut facts = whole();
    let entries = facts.entries.get_mut(&RUN).unwrap();
    let call = |id: &str, tool: &str, step: u32| json!({"id": id, "tool": tool, "arguments": json!({"step": step}).to_string()});
    entries[1].body = json!({"usage": usage(5), "calls": [call("a", "chaos.look", 1), call("b", "guarded.drain", 2)]});
    let ended = json!({"call_id": "b", "outcome": "approved", "by": ["ana"]});
    entries.splice(
        3..3,
        [
            entry(3, 1, "approval_requested", Some("b"), json!({})),
            entry(3, 1, "approval_ended", Some("b"), ended),
        ],
    );
    facts.tool_calls.remove(&ToolSent {
        tool: "restart".to_owned(),
        ..sent()
    });
    facts.tool_calls.insert(sent(), 1);
    let events = facts.events.get_mut(&ALERT).unwrap();
    let metadata = json!({"by": "ana", "choice": "approve", "outcome": "approved", "call_id": "b", "request": REQUEST});
    let decided = event(ALERT, 5, EventType::ApprovalDecided, metadata);
    events[4..]
        .iter_mut()
        .for_each(|one| one.event.session_seq += 1);
    events.insert(
        4,
        Event {
            epoch: 1,
            event: decided,
        },
    );
    facts.people.requests.push(Request {
        session_id: ALERT.0,
        event_seq: REQUEST,
        execution_id: RUN,
        call_id: "b".to_owned(),
        tool: "guarded.drain".to_owned(),
        arguments: json!({"step": 2}).to_string(),
        call_sha256: HASH.to_vec(),
        quorum: 1,
        outcome: Some("approved".to_owned()),
        channel: Some("cli".to_owned()),
        closed_as: Some("approved".to_owned()),
    });
    facts.people.votes.insert(VOTE, vote("ana", "approve"));
    facts.people.casts.push(Cast {
        id: VOTE,
        acknowledged: Some(at(4)),
        session: ALERT.0,
        event: REQUEST,
        execution: RUN,
        call: "b".to_owned(),
        who: "ana",
        channel: Channel::Cli,
        choice: Choice::Approve,
        intent: Intent::Counts,
        is_again: false,
    });
    publish(&mut facts);
    facts
}

/// Puts the events of the table on the stream and before the watchers.
fn publish(facts: &mut Facts) {
    let events: Vec<TimelineEvent> = facts.events[&ALERT]
        .iter()
        .map(|one| one.event.clone())
        .collect();
    let shown = |event: &TimelineEvent| Shown {
        at: event.created_at,
        event: event.clone(),
    };
    facts
        .shown
        .insert(ALERT, events.iter().map(shown).collect());
    facts.watched[0].seen = events[3..].to_vec();
    facts.on_stream.insert(ALERT, events);
}

/// The guarantees that are broken after a change to the approved history.
fn broken(change: impl FnOnce(&mut Facts)) -> BTreeSet<u8> {
    let mut facts = approved();
    change(&mut facts);
    check(&facts)
        .into_iter()
        .map(|broken| broken.guarantee)
        .collect()
}

fn request(facts: &mut Facts) -> &mut Request {
    &mut facts.people.requests[0]
}

fn recorded(facts: &mut Facts) -> &mut Vote {
    facts.people.votes.get_mut(&VOTE).unwrap()
}

fn journal(facts: &mut Facts) -> &mut Vec<Entry> {
    facts.entries.get_mut(&RUN).unwrap()
}

fn fail_over(facts: &mut Facts) {
    facts.faults.push(InjectedFault {
        fault: Fault::FailOver,
        from: at(2),
        until: at(6),
        recovery: None,
    });
}

#[test]
fn an_approved_call_breaks_no_guarantee() {
    assert_eq!(check(&approved()), []);
}

#[test]
fn a_call_without_a_recorded_approval_of_its_hash_is_found() {
    let of_twelve = BTreeSet::from([12]);
    let denied = |f: &mut Facts| recorded(f).verdict = "deny".to_owned();
    assert!(broken(denied).contains(&12), "the person has denied it");
    let other_hash = |f: &mut Facts| recorded(f).seen_sha256 = vec![4; 32];
    assert_eq!(broken(other_hash), of_twelve, "the person saw another call");
    assert_eq!(broken(|f| request(f).quorum = 2), of_twelve);
    assert_eq!(
        broken(|f| request(f).arguments = json!({"step": 3}).to_string()),
        of_twelve,
        "other arguments were approved"
    );
    let misnamed = |f: &mut Facts| f.people.misnamed = f.people.requests.clone();
    assert_eq!(broken(misnamed), of_twelve);
    let without = |f: &mut Facts| {
        f.people.requests.clear();
        f.people.votes.clear();
        f.people.casts.clear();
    };
    assert_eq!(broken(without), of_twelve, "no row speaks for it");
    let lost = |f: &mut Facts| {
        without(f);
        fail_over(f);
    };
    assert_eq!(
        broken(lost),
        BTreeSet::new(),
        "the stream kept the approval that a failover lost"
    );
}

#[test]
fn an_approved_call_that_is_sent_twice_or_started_elsewhere_is_found() {
    assert_eq!(
        broken(|f| *f.tool_calls.get_mut(&sent()).unwrap() = 2),
        BTreeSet::from([4, 12])
    );
    let apart = |f: &mut Facts| {
        let ended = journal(f).remove(4);
        journal(f).insert(3, ended);
    };
    assert_eq!(broken(apart), BTreeSet::from([12]), "an entry lies between");
    let refused =
        |f: &mut Facts| journal(f)[4].body = json!({"call_id": "b", "outcome": "expired"});
    assert_eq!(broken(refused), BTreeSet::from([12]));
}

#[test]
fn a_decision_with_another_outcome_or_without_an_end_is_found() {
    let of_twelve = BTreeSet::from([12]);
    let undecided = |f: &mut Facts| request(f).outcome = None;
    assert_eq!(broken(undecided), of_twelve, "the vote decided nothing");
    let closed = |f: &mut Facts| request(f).closed_as = Some("expired".to_owned());
    assert_eq!(broken(closed), of_twelve);
    let no_end = |f: &mut Facts| journal(f).retain(|entry| entry.kind != "approval_ended");
    assert_eq!(broken(no_end), of_twelve);
    let not_shown = |f: &mut Facts| {
        let events = f.events.get_mut(&ALERT).unwrap();
        events[4].event.metadata["by"] = json!("ben");
        publish(f);
    };
    assert_eq!(broken(not_shown), of_twelve, "the timeline names another");
}

#[test]
fn a_vote_that_is_lost_or_must_not_count_is_found() {
    let of_twelve = BTreeSet::from([12]);
    for intent in [
        Intent::OtherCall,
        Intent::Stale,
        Intent::Stranger,
        Intent::Forged,
    ] {
        assert_eq!(broken(|f| f.people.casts[0].intent = intent), of_twelve);
    }
    let another = |f: &mut Facts| {
        let mut cast = f.people.casts[0].clone();
        cast.id = Uuid::from_u128(21);
        f.people.casts.push(cast);
    };
    assert_eq!(broken(another), of_twelve, "it has no row");
    let unsent = |f: &mut Facts| {
        another(f);
        f.people.casts[1].acknowledged = None;
    };
    assert_eq!(broken(unsent), BTreeSet::new());
    let lost = |f: &mut Facts| {
        another(f);
        fail_over(f);
    };
    assert_eq!(broken(lost), BTreeSet::new(), "the call has its end");
    let unseen = |f: &mut Facts| {
        lost(f);
        f.people.casts[1].call = "c".to_owned();
    };
    assert_eq!(broken(unseen), of_twelve, "no later request, no report");
    assert_eq!(broken(|f| f.people.pending = 1), of_twelve);
}

#[test]
fn a_failover_explains_lost_rows_and_no_second_sending() {
    let twice = |f: &mut Facts| {
        fail_over(f);
        *f.tool_calls.get_mut(&sent()).unwrap() = 2;
    };
    assert_eq!(broken(twice), BTreeSet::from([4, 12]), "it was published");
    let unpublished = |f: &mut Facts| {
        twice(f);
        let shown = f.shown.get_mut(&ALERT).unwrap();
        shown.retain(|shown| shown.event.event_type != EventType::ApprovalDecided);
    };
    let left = broken(unpublished);
    assert!(!left.contains(&4) && !left.contains(&12), "{left:?}");
    let again = |f: &mut Facts| {
        fail_over(f);
        *f.model_calls.get_mut(&(RUN, 1)).unwrap() = 2;
    };
    assert_eq!(broken(again), BTreeSet::new(), "steps are taken again");
    let unnamed = |f: &mut Facts| {
        let shown = f.shown.get_mut(&ALERT).unwrap();
        shown[2].event.stage = Some("look".to_owned());
    };
    assert_eq!(broken(unnamed), BTreeSet::from([2]));
    let restored = |f: &mut Facts| {
        fail_over(f);
        unnamed(f);
    };
    assert_eq!(broken(restored), BTreeSet::new(), "its stage has no row");
    let gone = |f: &mut Facts| {
        fail_over(f);
        f.people = People::default();
        f.tool_calls.clear();
        f.model_calls.clear();
        f.entries.clear();
        f.alerts.remove(&ALERT);
        f.sessions.remove(&ALERT);
        f.events.remove(&ALERT);
        f.watched.clear();
    };
    assert_eq!(broken(gone), BTreeSet::new(), "no row of the alert is left");
    let late = |f: &mut Facts| {
        gone(f);
        f.faults[0].from = at(10);
        f.faults[0].until = at(11);
    };
    assert!(
        broken(late).contains(&1),
        "it came long before the failover"
    );
}

/// A second cast with its row.
fn refused(facts: &mut Facts, why: &str) {
    let id = Uuid::from_u128(21);
    let cast = Cast {
        id,
        ..facts.people.casts[0].clone()
    };
    facts.people.casts.push(cast);
    let row = Vote {
        vote_id: id,
        refused: Some(why.to_owned()),
        ..vote("ana", "approve")
    };
    facts.people.votes.insert(id, row);
}

#[test]
fn a_vote_that_may_count_is_refused_only_for_its_time() {
    for why in ["decided", "again", "ended", "expired", "changed", "late"] {
        assert_eq!(broken(|f| refused(f, why)), BTreeSet::new(), "{why}");
    }
    for why in ["no_right", "bad_signature", "frozen", "unknown"] {
        assert_eq!(broken(|f| refused(f, why)), BTreeSet::from([12]), "{why}");
    }
    let lost = |f: &mut Facts| {
        refused(f, "unknown");
        fail_over(f);
    };
    assert_eq!(broken(lost), BTreeSet::new(), "its request was lost");
}

#[test]
fn an_approval_after_which_nothing_is_sent_needs_a_reason() {
    let unsent = |f: &mut Facts, word: &str| {
        journal(f)[4].body = json!({"call_id": "b", "outcome": word});
        journal(f).remove(5);
        f.tool_calls.remove(&sent());
        request(f).closed_as = Some(word.to_owned());
    };
    for word in ["lapsed", "frozen", "tool_changed"] {
        assert_eq!(
            broken(|f| unsent(f, word)),
            BTreeSet::from([12]),
            "{word} without a reason"
        );
    }
    let died = |f: &mut Facts| {
        unsent(f, "tool_changed");
        f.faults.push(InjectedFault {
            fault: Fault::KillToolServer(0),
            from: at(3),
            until: at(3),
            recovery: None,
        });
    };
    assert_eq!(broken(died), BTreeSet::new());
}

/// A failover has lost all rows and events of the approval.
fn unrecorded(facts: &mut Facts) {
    fail_over(facts);
    facts.people.requests.clear();
    facts.people.votes.clear();
    let events = facts.events.get_mut(&ALERT).unwrap();
    events.retain(|one| one.event.event_type != EventType::ApprovalDecided);
    publish(facts);
}

#[test]
fn a_failover_explains_only_approvals_that_enough_people_have_sent() {
    assert!(!broken(unrecorded).contains(&12), "the stream took it");
    let unsent = |f: &mut Facts| {
        unrecorded(f);
        f.people.casts[0].acknowledged = None;
    };
    assert!(broken(unsent).contains(&12), "the stream never took it");
    let was_refused = |f: &mut Facts| {
        unrecorded(f);
        let row = Vote {
            refused: Some("changed".to_owned()),
            ..vote("ana", "approve")
        };
        f.people.votes.insert(VOTE, row);
    };
    assert!(broken(was_refused).contains(&12), "it did not count");
    let of_two = |f: &mut Facts| {
        unrecorded(f);
        let call = &mut journal(f)[1].body["calls"][1];
        call["tool"] = json!("guarded.reboot");
        f.tool_calls.remove(&sent());
        let reboot = ToolSent {
            tool: "reboot".to_owned(),
            ..sent()
        };
        f.tool_calls.insert(reboot, 1);
        let again = Cast {
            id: Uuid::from_u128(21),
            ..f.people.casts[0].clone()
        };
        f.people.casts.push(again);
    };
    assert!(broken(of_two).contains(&12), "one person is one voice");
    let both = |f: &mut Facts| {
        of_two(f);
        f.people.casts[1].who = "ben";
    };
    assert!(!broken(both).contains(&12));
}

#[test]
fn a_call_whose_journal_is_lost_needs_an_approval_too() {
    let no_journal = |f: &mut Facts| {
        unrecorded(f);
        f.entries.clear();
    };
    assert!(!broken(no_journal).contains(&4));
    let unasked = |f: &mut Facts| {
        no_journal(f);
        f.people.casts.clear();
    };
    assert!(broken(unasked).contains(&4));
    let shown = |f: &mut Facts| {
        unasked(f);
        let shown = f.shown.get_mut(&ALERT).unwrap();
        let of = |event_type: EventType| Shown {
            at: at(4),
            event: TimelineEvent {
                execution_id: Some(tarsy_core::ids::ExecutionId(RUN)),
                ..event(
                    ALERT,
                    5,
                    event_type,
                    json!({"call_id": "b", "outcome": "approved"}),
                )
            },
        };
        shown.push(of(EventType::ApprovalRequested));
        shown.push(of(EventType::ApprovalDecided));
    };
    assert!(!broken(shown).contains(&4), "its decision was published");
}

#[test]
fn a_vote_is_shown_for_its_own_request_and_only_a_loss_closes_as_lost() {
    let of_twelve = BTreeSet::from([12]);
    let of_another = |f: &mut Facts| {
        let events = f.events.get_mut(&ALERT).unwrap();
        events[4].event.metadata["request"] = json!(9);
        publish(f);
    };
    assert_eq!(broken(of_another), of_twelve);
    let closed = |f: &mut Facts| request(f).closed_as = Some("lost".to_owned());
    assert_eq!(broken(closed), of_twelve);
    let after_a_loss = |f: &mut Facts| {
        closed(f);
        fail_over(f);
    };
    assert_eq!(broken(after_a_loss), BTreeSet::new());
}

#[test]
fn a_lost_vote_is_explained_by_a_failover_of_its_session_and_shown() {
    let another = |f: &mut Facts| {
        let cast = Cast {
            id: Uuid::from_u128(21),
            who: "ben",
            ..f.people.casts[0].clone()
        };
        f.people.casts.push(cast);
        fail_over(f);
    };
    assert_eq!(broken(another), BTreeSet::new());
    let later = |f: &mut Facts| {
        another(f);
        f.faults[0].from = at(10);
        f.faults[0].until = at(11);
    };
    assert_eq!(broken(later), BTreeSet::from([12]), "the session had ended");
    let published = |f: &mut Facts| {
        another(f);
        let shown = f.shown.get_mut(&ALERT).unwrap();
        let mut decided = shown[4].clone();
        decided.event.metadata["by"] = json!("ben");
        shown.push(decided);
    };
    assert!(broken(published).contains(&12), "the timeline has no loss");
    let reported = |f: &mut Facts| {
        published(f);
        let events = f.events.get_mut(&ALERT).unwrap();
        events[5].event.metadata["kind"] = json!("lost_commits");
    };
    assert!(!broken(reported).contains(&12));
}

#[test]
fn a_run_without_decisions_calls_or_failovers_is_too_little() {
    let least = Least {
        asking: 1,
        channels: 1,
        fail_overs: 0,
    };
    let missing = |least: Least, change: &dyn Fn(&mut Facts)| {
        let mut facts = approved();
        change(&mut facts);
        lacks(&facts, least).len()
    };
    assert_eq!(missing(least, &|_| {}), 0);
    assert_eq!(missing(least, &|f| f.people.requests.clear()), 1);
    assert_eq!(missing(least, &|f| f.tool_calls.clear()), 1);
    assert_eq!(
        missing(least, &|f| recorded(f).refused = Some("late".to_owned())),
        1
    );
    let all_channels = Least {
        channels: 3,
        ..least
    };
    assert_eq!(missing(all_channels, &|_| {}), 1);
    let failing_over = Least {
        fail_overs: 1,
        ..least
    };
    assert_eq!(missing(failing_over, &|_| {}), 1);
    assert_eq!(missing(failing_over, &fail_over), 0);
}
