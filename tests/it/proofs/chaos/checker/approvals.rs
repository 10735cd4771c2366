//! Guarantee 12: calls that wait for people, and what became of each vote.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Duration;
use serde_json::Value;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, LOST_COMMITS, TimelineEvent};

use super::calls::{Journalled, journalled};
use super::{Violation, add, lossy};
use crate::proofs::chaos::facts::{Entry, Event, Facts, ToolSent};
use crate::proofs::chaos::people::{Cast, GUARDED, Intent, Request, Vote};
use crate::proofs::chaos::plan::Fault;

/// The longest time from a vote to its record: a recorder may die with it, and its server may be unavailable.
const RECORDED_WITHIN: Duration = Duration::seconds(75);
const APPROVED: &str = "approved";
const DENIED_SESSION: &str = "denied_session";
/// The end of the request of a call that was sent before a loss of commits.
const LOST: &str = "lost";

/// Checks all rules.
pub(super) fn only_approved_calls_are_sent(facts: &Facts, violations: &mut Vec<Violation>) {
    each_call_has_its_approval(facts, violations);
    a_start_follows_its_approval(facts, violations);
    for request in &facts.people.misnamed {
        let what = format!("request {} has the hash of another call", request.event_seq);
        add(violations, 12, SessionId(request.session_id), what);
    }
    for request in &facts.people.requests {
        let session = SessionId(request.session_id);
        if let Err(what) = is_what_people_decided(facts, request) {
            add(violations, 12, session, what);
        }
        if let Err(what) = has_its_end(facts, request) {
            add(violations, 12, session, what);
        }
    }
    for vote in facts.people.votes.values() {
        if let Err(what) = is_shown(facts, vote) {
            add(violations, 12, SessionId(vote.session_id), what);
        }
    }
    for cast in &facts.people.casts {
        if let Err(what) = is_answered(facts, cast) {
            add(violations, 12, SessionId(cast.session), what);
        }
    }
    if facts.people.pending > 0 {
        let pending = facts.people.pending;
        violations.push(Violation {
            guarantee: 12,
            session: None,
            what: format!("{pending} messages of people are in the stream at the end"),
        });
    }
}

/// Each line of the tool server has a request with an approval of its hash, or the kept event of one.
fn each_call_has_its_approval(facts: &Facts, violations: &mut Vec<Violation>) {
    let guarded = facts
        .tool_calls
        .iter()
        .filter(|(sent, _)| sent.is_guarded());
    for (sent, count) in guarded {
        let Some(call) = journalled(facts, sent) else {
            // Guarantee 4 has a rule for it.
            continue;
        };
        if *count > 1 && !lossy::was_unpublished(facts, call.session, call.id) {
            let what = format!("call {} was sent {count} times after its approval", call.id);
            add(violations, 12, call.session, what);
        }
        let request =
            facts.people.requests.iter().find(|request| {
                request.execution_id == call.execution && request.call_id == call.id
            });
        let is_recorded = request.is_some_and(|request| {
            let step = arguments(&request.arguments)["step"].as_i64();
            let tool = request.tool.rsplit('.').next();
            request.outcome.as_deref() == Some(APPROVED)
                && step == Some(sent.step)
                && tool == Some(sent.tool.as_str())
                && approvers(facts, request).len() >= usize::try_from(request.quorum).unwrap_or(2)
        });
        if !is_recorded && !has_kept_approval(facts, sent, &call) {
            let what = format!(
                "call {} of execution {} was sent without a recorded approval",
                call.id, call.execution
            );
            add(violations, 12, call.session, what);
        }
    }
}

fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The people whose approvals count, each of the hash of the request.
fn approvers<'a>(facts: &'a Facts, request: &Request) -> BTreeSet<&'a str> {
    counted(facts, request)
        .filter(|vote| vote.verdict == "approve" && vote.seen_sha256 == request.call_sha256)
        .map(|vote| vote.person.as_str())
        .collect()
}

fn counted<'a>(facts: &'a Facts, request: &Request) -> impl Iterator<Item = &'a Vote> {
    let key = (request.session_id, request.event_seq);
    facts
        .people
        .votes
        .values()
        .filter(move |vote| vote.refused.is_none() && (vote.session_id, vote.event_seq) == key)
}

/// Whether a failover lost the rows of an approval whose event was kept, or of one that a person has given.
fn has_kept_approval(facts: &Facts, sent: &ToolSent, call: &Journalled<'_>) -> bool {
    let is_one = |event: &TimelineEvent| {
        event.event_type == EventType::ApprovalDecided
            && event.metadata["call_id"] == call.id
            && event.metadata["outcome"] == APPROVED
    };
    let mut events = facts.events_of(call.session).iter();
    lossy::is_touched(facts, call.session)
        && (events.any(|one| is_one(&one.event)) || lossy::was_approved(facts, sent, call.id))
}

/// The calls of a journal that need a person, by their ids.
fn guarded_calls(entries: &[Entry]) -> BTreeMap<&str, &Value> {
    let answers = entries.iter().filter(|entry| entry.kind == "answer");
    let calls = answers
        .filter_map(|answer| answer.body["calls"].as_array())
        .flatten();
    calls
        .filter(|call| {
            let tool = call["tool"].as_str().and_then(|name| name.split_once('.'));
            tool.is_some_and(|(_, tool)| GUARDED.contains(&tool))
        })
        .filter_map(|call| Some((call["id"].as_str()?, call)))
        .collect()
}

/// The start of a call stands behind the end of its request, and nothing lies between them.
fn a_start_follows_its_approval(facts: &Facts, violations: &mut Vec<Violation>) {
    for (execution, entries) in &facts.entries {
        let guarded = guarded_calls(entries);
        let mut before: Option<&Entry> = None;
        for entry in entries {
            let call = entry.tool_call_id.as_deref();
            let is_start =
                entry.kind == "started" && call.is_some_and(|id| guarded.contains_key(id));
            let is_approved = before.is_some_and(|before| {
                before.kind == "approval_ended"
                    && before.body["outcome"] == APPROVED
                    && before.tool_call_id == entry.tool_call_id
            });
            if is_start && !is_approved {
                let what = format!(
                    "entry {} of execution {execution} starts a call without its approval before it",
                    entry.entry_no
                );
                add(violations, 12, SessionId(entry.session_id), what);
            }
            before = Some(entry);
        }
    }
}

/// The outcome of a request is that of its votes, which are in the database.
fn is_what_people_decided(facts: &Facts, request: &Request) -> Result<(), String> {
    let denial = counted(facts, request).find(|vote| vote.verdict != "approve");
    let approvals = approvers(facts, request).len();
    let due = match denial.map(|vote| vote.verdict.as_str()) {
        Some("deny_session") => Some(DENIED_SESSION),
        Some(_) => Some("denied"),
        None => (approvals >= usize::try_from(request.quorum).unwrap_or(2)).then_some(APPROVED),
    };
    let outcome = request.outcome.as_deref();
    // A tool that was denied for the session is denied without a vote.
    let inherited = outcome == Some(DENIED_SESSION) && due.is_none();
    if outcome == due || inherited {
        return Ok(());
    }
    let event = request.event_seq;
    Err(format!(
        "request {event} has the outcome {outcome:?}, and its votes give {due:?}"
    ))
}

/// The journal has the outcome that people decided, or the session ended before.
fn has_its_end(facts: &Facts, request: &Request) -> Result<(), String> {
    let session = SessionId(request.session_id);
    let entries = facts.entries.get(&request.execution_id);
    let ended = entries.into_iter().flatten().find(|entry| {
        entry.kind == "approval_ended" && entry.tool_call_id.as_deref() == Some(&request.call_id)
    });
    let event = request.event_seq;
    let outcome = request.outcome.as_deref();
    let Some(ended) = ended else {
        let completed = facts
            .sessions
            .get(&session)
            .is_some_and(|session| session.status == "completed");
        return if completed && !lossy::is_touched(facts, session) {
            Err(format!(
                "request {event} ({outcome:?}) has no end in the journal"
            ))
        } else {
            Ok(())
        };
    };
    let word = ended.body["outcome"].as_str().unwrap_or_default();
    // A denial for the session decides about the other calls of the tool, too.
    let is_denied_elsewhere = word == DENIED_SESSION
        && facts.people.requests.iter().any(|other| {
            other.execution_id == request.execution_id
                && other.tool == request.tool
                && other.outcome.as_deref() == Some(DENIED_SESSION)
        });
    // An approval that comes when the time for tools is over sends nothing.
    let is_too_late = word == "withdrawn"
        && entries
            .into_iter()
            .flatten()
            .any(|entry| entry.kind == "stopped" && entry.body["reason"] == "time_budget");
    let fits = match outcome {
        Some(APPROVED) => {
            word == APPROVED || word == "tool_changed" && tool_server_died(facts, ended)
        }
        Some(decided) => decided == word,
        None => ["expired", "withdrawn"].contains(&word),
    } || is_denied_elsewhere
        || is_too_late;
    if !fits {
        return Err(format!(
            "request {event} was decided as {outcome:?}, and its end is {word}"
        ));
    }
    match request.closed_as.as_deref() {
        Some(LOST) if lossy::is_touched(facts, session) => Ok(()),
        Some(closed) if closed != word => Err(format!(
            "request {event} is closed as {closed}, and its end is {word}"
        )),
        Some(_) | None => Ok(()),
    }
}

/// Whether a tool server was killed before the end of a request, so that its tools were listed again.
fn tool_server_died(facts: &Facts, ended: &Entry) -> bool {
    facts.faults.iter().any(|one| {
        matches!(one.fault, Fault::KillToolServer(_))
            && one.from <= ended.created_at
            && one.until + RECORDED_WITHIN >= ended.created_at
    })
}

/// A vote that counts is on the timeline, with the request that it is about.
fn is_shown(facts: &Facts, vote: &Vote) -> Result<(), String> {
    let by_person = |one: &Event| {
        one.event.event_type == EventType::ApprovalDecided
            && one.event.metadata["by"] == vote.person
            && one.event.metadata["choice"] == vote.verdict
            && one.event.metadata["request"] == vote.event_seq
    };
    let events = facts.events_of(SessionId(vote.session_id));
    // A restored end removes what came behind it.
    let explained = lossy::is_touched(facts, SessionId(vote.session_id));
    if vote.refused.is_none() && !events.iter().any(by_person) && !explained {
        return Err(format!(
            "vote {} of {} counts and is not on the timeline",
            vote.vote_id, vote.person
        ));
    }
    Ok(())
}

/// The reasons for which a vote that may count does not.
const REFUSALS: [&str; 6] = ["decided", "again", "ended", "expired", "changed", "late"];

/// A message that the stream acknowledged is recorded, or a loss explains why it is not; one that must not count does
/// not, and one that may count is refused for a reason of its time only.
fn is_answered(facts: &Facts, cast: &Cast) -> Result<(), String> {
    let id = cast.id;
    let session = SessionId(cast.session);
    let touched = lossy::is_touched(facts, session);
    if let Some(vote) = facts.people.votes.get(&id) {
        return match (vote.refused.as_deref(), cast.intent) {
            (None, Intent::Counts) => Ok(()),
            (None, intent) => Err(format!("vote {id} counts, and it is {intent:?}")),
            (Some(why), Intent::Counts) if !REFUSALS.contains(&why) => {
                let explained = why == "unknown" && touched;
                explained
                    .then_some(())
                    .ok_or_else(|| format!("vote {id} is refused as {why}, and it may count"))
            }
            (Some(_), _) => Ok(()),
        };
    }
    let Some(at) = cast.acknowledged else {
        return Ok(());
    };
    let explains =
        |fault: Fault| fault == Fault::LoseStreams || fault == Fault::FailOver && touched;
    let is_lost = facts
        .faults
        .iter()
        .any(|one| explains(one.fault) && one.until >= at && one.from <= at + RECORDED_WITHIN);
    // A person saw the request before a failover lost it.
    let has_row =
        |request: &Request| (request.session_id, request.event_seq) == (cast.session, cast.event);
    let is_unknown = touched && !facts.people.requests.iter().any(has_row);
    if !is_lost && !is_unknown {
        return Err(format!("vote {id} was acknowledged and is not recorded"));
    }
    is_decided_again(facts, cast)
}

/// The call of a lost decision has an end of its own, and the timeline says that there was a loss if the decision was
/// published.
fn is_decided_again(facts: &Facts, cast: &Cast) -> Result<(), String> {
    let id = cast.id;
    let session = SessionId(cast.session);
    let completed = facts.sessions.get(&session);
    if completed.is_none_or(|completed| completed.status != "completed") {
        return Ok(());
    }
    let has_loss = facts
        .events_of(session)
        .iter()
        .any(|one| one.event.metadata["kind"] == LOST_COMMITS);
    let entries = facts
        .entries
        .get(&cast.execution)
        .map_or(&[][..], Vec::as_slice);
    let mut own = entries
        .iter()
        .filter(|entry| entry.tool_call_id.as_deref() == Some(&cast.call));
    let has_end = own.any(|entry| {
        ["approval_ended", "tool_result", "observation", "lost"].contains(&entry.kind.as_str())
    });
    let is_closed = facts.people.requests.iter().any(|request| {
        request.execution_id == cast.execution
            && request.call_id == cast.call
            && request.closed_as.is_some()
    });
    // The end of the session was restored from the stream, and the end of the journal was not.
    let is_cut = has_loss && !entries.iter().any(|entry| entry.kind == "ended");
    if !is_closed && !has_end && !is_cut {
        return Err(format!("decision {id} is lost, and its call has no end"));
    }
    if !has_loss && was_published(facts, cast) {
        return Err(format!(
            "decision {id} was published and is lost, and the timeline does not say so"
        ));
    }
    Ok(())
}

/// Whether the event of a vote was on the stream before a failover, and is not in the table.
fn was_published(facts: &Facts, cast: &Cast) -> bool {
    let session = SessionId(cast.session);
    let is_own = |event: &TimelineEvent| {
        event.event_type == EventType::ApprovalDecided
            && event.metadata["by"] == cast.who
            && event.metadata["call_id"] == cast.call.as_str()
    };
    let mut shown = facts.shown.get(&session).into_iter().flatten();
    let mut kept = facts.events_of(session).iter();
    shown.any(|one| is_own(&one.event)) && !kept.any(|one| is_own(&one.event))
}
