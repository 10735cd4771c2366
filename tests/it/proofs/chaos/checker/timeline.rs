//! Guarantee 7: one order, in the table, on the stream and for every watcher.

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;

use super::{Violation, add, lossy};
use crate::proofs::chaos::facts::{Facts, Shown, Watched};

pub(super) fn one_order(facts: &Facts, violations: &mut Vec<Violation>) {
    for id in facts.alerts.keys() {
        let events = facts.events_of(*id);
        let numbers = events.iter().map(|event| event.event.session_seq);
        if !numbers
            .clone()
            .eq(1..=u32::try_from(events.len()).unwrap_or(u32::MAX))
        {
            add(
                violations,
                7,
                *id,
                format!(
                    "the table has the numbers {:?}",
                    numbers.collect::<Vec<_>>()
                ),
            );
        }
        let ends = events
            .iter()
            .filter(|event| event.event.event_type.is_end())
            .count();
        if ends != 1
            || !events
                .last()
                .is_some_and(|event| event.event.event_type.is_end())
        {
            add(
                violations,
                7,
                *id,
                format!("the table has {ends} ends among {} events", events.len()),
            );
        }
        on_stream(facts, *id, violations);
    }
    for (id, shown) in &facts.shown {
        in_order(facts, *id, shown, violations);
    }
    for watched in &facts.watched {
        saw_all(facts, watched, violations);
    }
}

/// Checks that the stream has all events, or none if it was emptied after the end.
fn on_stream(facts: &Facts, id: SessionId, violations: &mut Vec<Violation>) {
    let stored: Vec<&TimelineEvent> = facts
        .events_of(id)
        .iter()
        .map(|event| &event.event)
        .collect();
    let found: Vec<&TimelineEvent> = facts.on_stream.get(&id).into_iter().flatten().collect();
    let ended = stored
        .last()
        .map(|event| event.created_at)
        .unwrap_or_default();
    let emptied = facts.emptied.iter().any(|(_, until)| *until >= ended);
    let are_same = found.len() == stored.len()
        && std::iter::zip(&found, &stored).all(|(one, other)| lossy::is_same(facts, one, other));
    if !(are_same || found.is_empty() && emptied) {
        let numbers: Vec<u32> = found.iter().map(|event| event.session_seq).collect();
        add(
            violations,
            7,
            id,
            format!("the stream has {numbers:?} of {} events", stored.len()),
        );
    }
}

/// Checks the published sequence: each number follows the previous one, or starts again after a loss.
fn in_order(facts: &Facts, id: SessionId, shown: &[Shown], violations: &mut Vec<Violation>) {
    for pair in shown.windows(2) {
        let [one, two] = pair else { continue };
        let (first, second) = (one.event.session_seq, two.event.session_seq);
        let lost = facts
            .emptied
            .iter()
            .any(|(from, until)| *until >= one.at && *from <= two.at);
        if second != first + 1 && !lost {
            add(
                violations,
                7,
                id,
                format!(
                    "event {second} was published behind event {first} at {}",
                    two.at
                ),
            );
        }
    }
}

fn saw_all(
    facts: &Facts,
    Watched {
        by,
        session,
        after,
        seen,
    }: &Watched,
    violations: &mut Vec<Violation>,
) {
    let stored = facts.events_of(*session).iter().map(|event| &event.event);
    let is_whole = seen
        .iter()
        .eq(stored.filter(|event| event.session_seq > *after));
    // A watcher may have read the table before the lost events were restored in front of what it saw.
    if !is_whole && !lossy::is_touched(facts, *session) {
        let numbers: Vec<u32> = seen.iter().map(|event| event.session_seq).collect();
        let all = facts.events_of(*session).len();
        add(
            violations,
            7,
            *session,
            format!("{by} (from {}) saw {numbers:?} of {all} events", after + 1),
        );
    }
}
