//! Guarantees 2, 5 and 6: the written rows and their owners.

use std::collections::BTreeSet;

use chrono::Duration;
use sha2::{Digest as _, Sha256};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use super::{Violation, add, lossy};
use crate::proofs::chaos::facts::{Entry, Facts};
use crate::proofs::chaos::load::Kind;

/// Tolerance between the database's clock and the statement's.
const CLOCKS: Duration = Duration::seconds(2);
/// The timeout of the policies.
const LONGEST_WAIT: Duration = Duration::minutes(3);
/// Answers that a model is asked for again, beyond its iterations.
const ASKED_AGAIN: i32 = 4;
const TOTALS: [&str; 4] = [
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "thinking_tokens",
];

pub(super) fn one_owner_writes(facts: &Facts, violations: &mut Vec<Violation>) {
    for (id, session) in &facts.sessions {
        let events = facts.events_of(*id);
        let mut newest = 0;
        let mut claimed = BTreeSet::new();
        for event in events {
            let (seq, epoch) = (event.event.session_seq, event.epoch);
            if epoch < newest {
                add(
                    violations,
                    2,
                    *id,
                    format!("event {seq} is of epoch {epoch}, after one of epoch {newest}"),
                );
            }
            newest = newest.max(epoch);
            if matches!(
                event.event.event_type,
                EventType::SessionStarted | EventType::SessionResumed
            ) {
                claimed.insert(epoch);
            }
            if event.event.execution_id.is_some() && !claimed.contains(&epoch) {
                add(
                    violations,
                    2,
                    *id,
                    format!("event {seq} is of epoch {epoch}, which nobody has claimed"),
                );
            }
        }
        if newest > session.lease_epoch {
            add(
                violations,
                2,
                *id,
                format!(
                    "an event of epoch {newest}, while the session has {}",
                    session.lease_epoch
                ),
            );
        }
    }
    for (id, shown) in &facts.shown {
        let events = facts.events_of(*id);
        for shown in shown {
            let seq = shown.event.session_seq;
            let stored = events.iter().find(|event| event.event.session_seq == seq);
            let is_stored =
                stored.is_some_and(|stored| lossy::is_same(facts, &stored.event, &shown.event));
            if !is_stored {
                add(
                    violations,
                    2,
                    *id,
                    format!(
                        "event {seq} was published at {} and is not the table's",
                        shown.at
                    ),
                );
            }
        }
    }
}

pub(super) fn provider_data_comes_back(facts: &Facts, violations: &mut Vec<Violation>) {
    for (id, session) in facts
        .entries
        .iter()
        .filter_map(|(id, entries)| Some((id, entries.first()?.session_id)))
    {
        let session = SessionId(session);
        if facts.is_odd(session) {
            // Its provider keeps no state that could be computed again.
            continue;
        }
        let entries = &facts.entries[id];
        // An answer without a recording has no state.
        let without = facts
            .ledger
            .sent
            .get(&session)
            .is_some_and(|sent| sent.kind == Kind::Question);
        for (index, answer) in entries
            .iter()
            .filter(|entry| entry.kind == "answer")
            .enumerate()
        {
            let stored = answer.provider_data.as_deref();
            if stored != Some(sent_state(*id, index).as_slice()) && !(without && stored.is_none()) {
                let what = format!(
                    "answer {index} of execution {id} has other provider data than was sent"
                );
                add(violations, 5, session, what);
            }
        }
        for refused in entries
            .iter()
            .filter(|entry| entry.kind == "failed" && entry.body["code"] == "provider_state")
        {
            let what = format!(
                "entry {} of execution {id}: {}",
                refused.entry_no, refused.body
            );
            add(violations, 5, session, what);
        }
    }
}

/// The provider data of the scripted service, computed again.
pub(super) fn sent_state(execution: Uuid, index: usize) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(execution.to_string());
    hash.update(index.to_string());
    [&[0x00, 0xff, 0xfe][..], hash.finalize().as_slice()].concat()
}

/// The time for which a session waited for people without a worker, at most. A wait that no worker has ended may be as
/// long as a request is open.
fn waited(facts: &Facts, session: SessionId) -> Duration {
    let mut waited = Duration::zero();
    let mut since = None;
    for event in facts.events_of(session) {
        match event.event.event_type {
            EventType::SessionWaiting => since = Some(event.event.created_at),
            EventType::SessionResumed => {
                waited += since
                    .take()
                    .map_or_else(Duration::zero, |since| event.event.created_at - since);
            }
            _ => {}
        }
    }
    waited + since.map_or_else(Duration::zero, |_| LONGEST_WAIT)
}

pub(super) fn bounds_survive(facts: &Facts, violations: &mut Vec<Violation>) {
    let limits = facts.limits;
    for (id, session) in &facts.sessions {
        let given = session.deadline_at - session.created_at;
        // The deadline does not count while the session waits for people.
        let most = limits.session_timeout + waited(facts, *id);
        if given < limits.session_timeout - CLOCKS || given > most + CLOCKS {
            let what = format!(
                "its deadline is {} s after its beginning",
                given.num_seconds()
            );
            add(violations, 6, *id, what);
        }
        let late = session.finished_at.unwrap_or_default() - session.deadline_at;
        if late > limits.grace {
            add(
                violations,
                6,
                *id,
                format!("it ended {} s behind its deadline", late.num_seconds()),
            );
        }
        // The conclusion is one more iteration.
        let asked_again = if facts.is_odd(*id) { ASKED_AGAIN } else { 0 };
        let most = i32::try_from(limits.iterations).unwrap_or(i32::MAX) + 1 + asked_again;
        for (execution, entries) in facts.journals_of(*id) {
            let reached = entries
                .iter()
                .map(|entry| entry.iteration)
                .max()
                .unwrap_or_default();
            if reached > most {
                add(
                    violations,
                    6,
                    *id,
                    format!("execution {execution} came to iteration {reached}"),
                );
            }
        }
        let Some(end) = facts
            .events_of(*id)
            .last()
            .filter(|event| event.event.event_type.is_end())
        else {
            continue;
        };
        for total in TOTALS {
            let answers = facts
                .journals_of(*id)
                .flat_map(|(_, entries)| entries)
                .filter(|entry| entry.kind == "answer");
            let sum: u64 = answers
                .map(|answer: &Entry| answer.body["usage"][total].as_u64().unwrap_or(0))
                .sum();
            if end.event.metadata[total]
                .as_u64()
                .is_some_and(|told| told != sum)
            {
                let what = format!(
                    "its end tells {total} {}, the journals have {sum}",
                    end.event.metadata[total]
                );
                add(violations, 6, *id, what);
            }
        }
    }
}
