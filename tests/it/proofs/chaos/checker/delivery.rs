//! Guarantees 1 and 8: dispositions of alerts.

use chrono::{DateTime, Utc};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use super::{Violation, add, lossy};
use crate::proofs::chaos::facts::{Alert, Event, Facts, Session};
use crate::proofs::chaos::load::Kind;
use crate::proofs::chaos::plan::Fault;

const EXHAUSTED: &str = "attempts_exhausted";

pub(super) fn every_alert_has_ended(facts: &Facts, violations: &mut Vec<Violation>) {
    for (id, sent) in &facts.ledger.sent {
        match facts.alerts.get(id) {
            Some(_) => {}
            None if facts.ledger.lost_with_the_stream.contains(id) => {}
            None if lossy::lost_alert(facts, *id) => {}
            None => add(
                violations,
                1,
                *id,
                format!(
                    "the stream acknowledged it at {}, no worker knows of it",
                    sent.at
                ),
            ),
        }
    }
    for (id, alert) in &facts.alerts {
        if let Err(what) = over(facts, *id, alert) {
            add(violations, 1, *id, what);
        }
    }
    for (id, session) in &facts.sessions {
        if let Err(what) = ended(*id, Some(session)) {
            add(violations, 1, *id, what);
        }
    }
}

fn over(facts: &Facts, id: SessionId, alert: &Alert) -> Result<(), String> {
    let Some(settled) = alert.settled_at else {
        return Err(format!("it is not settled ({})", alert.place));
    };
    let kind = facts.ledger.sent.get(&id).map(|sent| sent.kind);
    match (
        alert.place.as_str(),
        alert.joined_session_id,
        &alert.dead_reason,
    ) {
        ("opened", _, _) => ended(id, facts.sessions.get(&id)),
        ("joined", Some(joined), _) => {
            ended(SessionId(joined), facts.sessions.get(&SessionId(joined)))
        }
        ("ended", _, _) => Ok(()),
        ("dead", _, Some(reason)) => {
            let due = if kind == Some(Kind::Undecodable) {
                "undecodable"
            } else {
                EXHAUSTED
            };
            let lost = facts
                .faults
                .iter()
                .any(|one| one.fault == Fault::LoseStreams && settled <= one.until);
            match facts.letters.contains(&(reason.clone(), id)) || lost {
                true if reason != due => {
                    Err(format!("it is a dead letter for another reason: {reason}"))
                }
                true => Ok(()),
                false => Err(format!("there is no dead letter ({reason})")),
            }
        }
        (place, ..) => Err(format!("nothing has become of it: {place}")),
    }
}

fn ended(id: SessionId, session: Option<&Session>) -> Result<(), String> {
    match session {
        None => Err(format!("there is no session {id}")),
        Some(session) if session.status == "running" || session.finished_at.is_none() => {
            Err(format!("session {id} still runs"))
        }
        Some(_) => Ok(()),
    }
}

pub(super) fn poison_ends(facts: &Facts, violations: &mut Vec<Violation>) {
    for (id, alert) in &facts.alerts {
        let kind = facts.ledger.sent.get(id).map(|sent| sent.kind);
        let exhausted = alert.dead_reason.as_deref() == Some(EXHAUSTED);
        if kind == Some(Kind::Poison) && !exhausted {
            add(
                violations,
                8,
                *id,
                format!(
                    "it kills who reads it, and became: {} {:?}",
                    alert.place, alert.dead_reason
                ),
            );
        }
        if exhausted && kind != Some(Kind::Poison) {
            let deaths = deaths_between(
                facts,
                alert.received_at,
                alert.settled_at.unwrap_or_default(),
            );
            if deaths < facts.limits.attempts {
                add(
                    violations,
                    8,
                    *id,
                    format!("given up as poison, while {deaths} workers died"),
                );
            }
        }
    }
    for (id, session) in &facts.sessions {
        let kind = facts.ledger.sent.get(id).map(|sent| sent.kind);
        let exhausted = session.stop_reason.as_deref() == Some(EXHAUSTED);
        if kind == Some(Kind::Deadly) {
            let letter = session.dead_letter.as_deref() == Some(EXHAUSTED);
            if exhausted != letter || !(exhausted || session.status == "timed_out") {
                let Session {
                    status,
                    stop_reason,
                    dead_letter,
                    ..
                } = session;
                let what = format!(
                    "it kills who investigates it: {status} {stop_reason:?}, letter {dead_letter:?}"
                );
                add(violations, 8, *id, what);
            }
        }
        let deaths = deaths_at_the_end(facts.events_of(*id));
        if exhausted && deaths < facts.limits.attempts {
            add(
                violations,
                8,
                *id,
                format!("given up after {deaths} deaths at its last checkpoint"),
            );
        }
    }
}

/// Workers that were dead or stopped at a time.
fn deaths_between(facts: &Facts, from: DateTime<Utc>, until: DateTime<Utc>) -> u32 {
    let killed = facts.faults.iter().filter(|one| {
        matches!(one.fault, Fault::KillWorker(_) | Fault::StopWorker(_))
            && one.from <= until
            && one.until >= from
    });
    let died = facts.deaths.iter().filter(|at| (from..=until).contains(at));
    u32::try_from(killed.count() + died.count()).unwrap_or(u32::MAX)
}

/// Owners that were lost since the last event of an execution.
fn deaths_at_the_end(events: &[Event]) -> u32 {
    let tail = events
        .iter()
        .rev()
        .take_while(|event| event.event.execution_id.is_none());
    let lost = tail.filter(|event| {
        let reason = event.event.metadata["reason"].as_str().unwrap_or_default();
        event.event.event_type == EventType::SessionResumed
            && ["lease_expired", "restarted"].contains(&reason)
    });
    u32::try_from(lost.count()).unwrap_or(u32::MAX)
}
