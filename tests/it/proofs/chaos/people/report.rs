//! The lines of the report about people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tarsy_core::timeline::{EventType, LOST_COMMITS};

use super::{Cast, Intent};
use crate::proofs::chaos::facts::Facts;

/// Votes that the stream acknowledged and the database does not have.
fn lost(facts: &Facts) -> impl Iterator<Item = &Cast> {
    facts
        .people
        .casts
        .iter()
        .filter(|cast| cast.acknowledged.is_some() && !facts.people.votes.contains_key(&cast.id))
}

/// Adds the lines.
pub(in crate::proofs::chaos) fn page(page: &mut String, facts: &Facts) {
    let people = &facts.people;
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    let mut channels: BTreeMap<String, usize> = BTreeMap::new();
    for request in &people.requests {
        let decided = request.outcome.as_deref();
        let closed = request.closed_as.as_deref();
        let words = match (decided, closed) {
            (Some(decided), Some(closed)) if decided == closed => decided.to_owned(),
            (Some(decided), Some(closed)) => format!("{decided} and then {closed}"),
            (Some(decided), None) => format!("{decided} and then ended"),
            (None, Some(closed)) => closed.to_owned(),
            (None, None) => "ended with the session".to_owned(),
        };
        *outcomes.entry(words.replace('_', " ")).or_default() += 1;
        if let Some(channel) = &request.channel {
            *channels.entry(channel.clone()).or_default() += 1;
        }
    }
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    for refused in people
        .votes
        .values()
        .filter_map(|vote| vote.refused.as_ref())
    {
        *refusals.entry(refused.replace('_', " ")).or_default() += 1;
    }
    let sessions: BTreeSet<_> = people.requests.iter().map(|one| one.session_id).collect();
    let calls: u32 = facts
        .tool_calls
        .iter()
        .filter(|(sent, _)| sent.is_guarded())
        .map(|(_, count)| count)
        .sum();
    writeln!(
        page,
        "  approvals  {} requests of {} sessions, {calls} calls sent; {}",
        people.requests.len(),
        sessions.len(),
        count(outcomes)
    )
    .unwrap();
    let waits = facts
        .events
        .values()
        .flatten()
        .filter(|one| one.event.event_type == EventType::SessionWaiting);
    writeln!(
        page,
        "  decided    {}; {} waits without a worker",
        count(channels),
        waits.count()
    )
    .unwrap();
    let counted = people.votes.values().filter(|vote| vote.refused.is_none());
    writeln!(
        page,
        "  votes      {} sent, {} counted; refused: {}",
        people.casts.len(),
        counted.count(),
        count(refusals)
    )
    .unwrap();
    let gone: Vec<&Cast> = lost(facts).collect();
    let decisions: BTreeSet<_> = gone
        .iter()
        .filter(|cast| cast.intent == Intent::Counts)
        .map(|cast| (cast.execution, &cast.call))
        .collect();
    let again = decisions.iter().filter(|(execution, call)| {
        let mut requests = people.requests.iter();
        requests.any(|one| {
            one.execution_id == *execution && one.call_id == **call && one.outcome.is_some()
        })
    });
    let repeated = people.casts.iter().filter(|cast| cast.is_again);
    writeln!(
        page,
        "             {} acknowledged votes got lost, with decisions about {} calls, {} of which were decided again",
        gone.len(),
        decisions.len(),
        again.count()
    )
    .unwrap();
    let losses = facts
        .events
        .values()
        .flatten()
        .filter(|one| one.event.metadata["kind"] == LOST_COMMITS);
    let reopened = reopened(facts);
    writeln!(
        page,
        "             {} votes were given once more; {} sessions report lost commits, {reopened} calls were asked about again",
        repeated.count(),
        losses.count()
    )
    .unwrap();
}

/// Calls whose request or decision is on the timeline more than once, because a failover lost it.
fn reopened(facts: &Facts) -> usize {
    let mut times: BTreeMap<_, usize> = BTreeMap::new();
    let events = facts.events.values().flatten().map(|one| &one.event);
    for event in events {
        let asks = event.event_type == EventType::ApprovalRequested;
        let decides =
            event.event_type == EventType::ApprovalDecided && event.metadata["outcome"].is_string();
        if asks || decides {
            let call = event.metadata["call_id"].to_string();
            *times.entry((event.session_id, call, asks)).or_default() += 1;
        }
    }
    let again: BTreeSet<_> = times
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|((session, call, _), _)| (session, call))
        .collect();
    again.len()
}

fn count(of: BTreeMap<String, usize>) -> String {
    let words = of
        .into_iter()
        .map(|(what, count)| format!("{count} {what}"));
    words.collect::<Vec<_>>().join(", ")
}
