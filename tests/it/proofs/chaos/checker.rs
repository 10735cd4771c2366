//! Checks the guarantees of `docs/guarantees.md` against the facts of a run. Pure: facts in, broken guarantees out.

mod calls;
mod delivery;
mod journal;
mod tests;
mod timeline;

use tarsy::investigation::ids::SessionId;
use tarsy::investigation::timeline::EventType;

use super::facts::{Event, Facts};

pub(super) use self::calls::repeated;

/// A violation of a guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// Its number in `docs/guarantees.md`; 0 for a process that failed by itself.
    pub(super) guarantee: u8,
    /// The session whose history shows it.
    pub(super) session: Option<SessionId>,
    pub(super) what: String,
}

/// The guarantees in short, for the report.
pub(super) const GUARANTEES: [(u8, &str); 8] = [
    (1, "every acknowledged alert is over: investigated, joined or a dead letter"),
    (2, "one owner: nothing of a superseded epoch, nothing published that is not in the table"),
    (3, "a resume repeats one model call or the read-only calls in flight"),
    (4, "a call that changes something is sent once"),
    (5, "what a provider wants back comes back byte for byte"),
    (6, "deadline, iterations and token totals survive"),
    (7, "one order without gap or repetition, in the table, on the stream, for watchers"),
    (8, "poison ends with its reason, and nothing else for it"),
];

/// All violations.
pub(super) fn check(facts: &Facts) -> Vec<Broken> {
    let mut broken: Vec<Broken> =
        facts.wrong.iter().map(|what| Broken { guarantee: 0, session: None, what: what.clone() }).collect();
    delivery::every_alert_is_over(facts, &mut broken);
    journal::one_owner_writes(facts, &mut broken);
    calls::a_resume_repeats_what_was_in_flight(facts, &mut broken);
    calls::what_changes_something_is_sent_once(facts, &mut broken);
    journal::provider_data_comes_back(facts, &mut broken);
    journal::bounds_survive(facts, &mut broken);
    timeline::one_order(facts, &mut broken);
    delivery::poison_ends(facts, &mut broken);
    broken.sort_by_key(|broken| (broken.guarantee, broken.session));
    broken
}

fn add(broken: &mut Vec<Broken>, guarantee: u8, session: SessionId, what: impl Into<String>) {
    broken.push(Broken { guarantee, session: Some(session), what: what.into() });
}

/// Takeovers whose event has a number between these two, both excluded.
fn resumes(events: &[Event], after: u32, before: u32) -> u32 {
    let between = |event: &&Event| (after + 1..before).contains(&event.event.session_seq);
    let resumed = events.iter().filter(between).filter(|event| event.event.event_type == EventType::SessionResumed);
    u32::try_from(resumed.count()).unwrap_or(u32::MAX)
}
