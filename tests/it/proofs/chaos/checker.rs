//! Checks the guarantees of `docs/guarantees.md` against the facts of a run: a pure function from facts to violations.

mod approval_tests;
mod approvals;
mod calls;
mod delivery;
mod journal;
mod lossy;
mod minimums;
mod odd;
mod sub_agents;
mod tests;
mod timeline;

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use super::facts::{Event, Facts};

pub(super) use self::calls::repeated;
pub(super) use self::lossy::touched;
pub(super) use self::minimums::{Least, lacks};

/// A violation of a guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// The number of the guarantee in `docs/guarantees.md`; 0 for a process that failed without a fault.
    pub(super) guarantee: u8,
    /// The session whose history shows the violation.
    pub(super) session: Option<SessionId>,
    pub(super) what: String,
}

/// The guarantees in short, for the report.
pub(super) const GUARANTEES: [(u8, &str); 10] = [
    (
        1,
        "every acknowledged alert is over: investigated, joined or a dead letter",
    ),
    (
        2,
        "one owner: nothing of a superseded epoch, nothing published that is not in the table",
    ),
    (
        3,
        "a resume repeats one model call or the read-only calls in flight",
    ),
    (4, "a call that changes something is sent once"),
    (5, "what a provider wants back comes back byte for byte"),
    (6, "deadline, iterations and token totals survive"),
    (
        7,
        "one order without gap or repetition, in the table, on the stream, for watchers",
    ),
    (8, "poison ends with its reason, and nothing else for it"),
    (
        11,
        "what was cut off, guessed or thought is no call and no analysis",
    ),
    (
        12,
        "a call that needs a person is sent once, after their recorded approval of its hash; no vote is lost unseen",
    ),
];

/// All violations.
pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut violations: Vec<Violation> = facts
        .wrong
        .iter()
        .map(|what| Violation {
            guarantee: 0,
            session: None,
            what: what.clone(),
        })
        .collect();
    delivery::every_alert_has_ended(facts, &mut violations);
    journal::one_owner_writes(facts, &mut violations);
    calls::a_resume_repeats_only_calls_in_flight(facts, &mut violations);
    sub_agents::each_has_one_journal_and_one_result(facts, &mut violations);
    calls::changing_calls_are_sent_once(facts, &mut violations);
    journal::provider_data_comes_back(facts, &mut violations);
    journal::bounds_survive(facts, &mut violations);
    timeline::one_order(facts, &mut violations);
    delivery::poison_ends(facts, &mut violations);
    odd::nothing_is_guessed(facts, &mut violations);
    approvals::only_approved_calls_are_sent(facts, &mut violations);
    violations.retain(|violation| !lossy::explains(facts, violation));
    violations.sort_by_key(|violation| (violation.guarantee, violation.session));
    violations
}

fn add(
    violations: &mut Vec<Violation>,
    guarantee: u8,
    session: SessionId,
    what: impl Into<String>,
) {
    violations.push(Violation {
        guarantee,
        session: Some(session),
        what: what.into(),
    });
}

/// Takeovers whose event has a number between these two, both excluded.
fn resumes(events: &[Event], after: u32, before: u32) -> u32 {
    let between = |event: &&Event| (after + 1..before).contains(&event.event.session_seq);
    let resumed = events
        .iter()
        .filter(between)
        .filter(|event| event.event.event_type == EventType::SessionResumed);
    u32::try_from(resumed.count()).unwrap_or(u32::MAX)
}
