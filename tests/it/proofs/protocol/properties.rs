//! The invariants, and the definition of a good end.

use stateright::Property;

use super::model::Protocol;
use super::state::{CHECKPOINTS, Disposition, Event, Id, State};

pub(super) const ONE_WRITER: &str =
    "one owner writes: no epoch goes back, no checkpoint is written twice";
pub(super) const NO_GAP: &str = "the store's timeline has no gap";
pub(super) const END_IS_LAST: &str = "the end is the last event";
pub(super) const STREAM_IS_COPY: &str =
    "the stream has the store's events from the first on, without a gap";
pub(super) const ONE_DISPOSITION: &str = "an alert has one disposition";
pub(super) const ONE_OPEN: &str = "a fingerprint has one open investigation";
pub(super) const NO_LATE_JOIN: &str = "no alert joins an investigation that is being cancelled";
pub(super) const ONLY_DEATHS: &str = "only deaths use up attempts";
pub(super) const RELEASED_IS_FREE: &str = "a session that was released is free";
pub(super) const SETTLED_IS_PUBLISHED: &str = "all events of a settled alert are published";
pub(super) const NO_DEAD_LETTER_LOST: &str = "a settled alert owes no dead letter";
pub(super) const JOB_KEPT: &str = "an unsettled alert has its job, unless the broker lost it";
/// Not a property of one state: see [`super::walk`].
pub(super) const GOOD_END_AHEAD: &str =
    "a good end can be reached from every state without another fault";

/// Properties of every reachable state.
pub(super) fn always() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ONE_WRITER, |_, state: &State| {
            state.rows.iter().all(|row| one_writer(&row.events))
        }),
        Property::always(NO_GAP, |_, state: &State| {
            state
                .rows
                .iter()
                .all(|row| row.events.iter().all(|(event, _)| *event != Event::Missing))
        }),
        Property::always(END_IS_LAST, |_, state: &State| {
            state.rows.iter().all(|row| {
                row.events
                    .iter()
                    .rev()
                    .skip(1)
                    .all(|(event, _)| *event != Event::Ended)
            })
        }),
        Property::always(STREAM_IS_COPY, |model, state: &State| {
            model.alerts().all(|id| is_copy(state, id))
        }),
        Property::always(ONE_DISPOSITION, |model, state: &State| {
            model.alerts().all(|id| dispositions(state, id) <= 1)
        }),
        Property::always(ONE_OPEN, |_, state: &State| {
            state.rows.iter().filter(|row| row.open).count() <= 1
        }),
        Property::always(NO_LATE_JOIN, |_, state: &State| {
            state.rows.iter().all(|row| !row.joined_too_late)
        }),
        Property::always(ONLY_DEATHS, only_deaths),
        Property::always(RELEASED_IS_FREE, |_, state: &State| {
            state.rows.iter().all(|row| !(row.released && row.leased))
        }),
        Property::always(SETTLED_IS_PUBLISHED, |model, state: &State| {
            lost_timeline(model, state)
                || model
                    .alerts()
                    .all(|id| !state.row(id).settled || state.published(id))
        }),
        Property::always(NO_DEAD_LETTER_LOST, |_, state: &State| {
            state
                .rows
                .iter()
                .zip(state.dead_letters)
                .all(|(row, stored)| !(row.settled && row.owes && !stored))
        }),
        Property::always(JOB_KEPT, |model, state: &State| {
            let lost = state.left.since(model.bounds.faults).job_losses > 0;
            lost || model
                .alerts()
                .all(|id| state.row(id).settled || has_job(state, id))
        }),
    ]
}

fn one_writer(events: &[(Event, u8)]) -> bool {
    let count = |wanted| events.iter().filter(|(event, _)| *event == wanted).count();
    events.windows(2).all(|pair| pair[0].1 <= pair[1].1)
        && (1..CHECKPOINTS).all(|n| count(Event::Work(n)) <= 1)
}

fn is_copy(state: &State, id: Id) -> bool {
    let rows = (1_u8..)
        .zip(&state.row(id).events)
        .map(|(number, (event, _))| (number, *event));
    let messages = &state.subject(id).messages;
    messages.len() <= state.row(id).events.len()
        && messages
            .iter()
            .copied()
            .zip(rows)
            .all(|(message, row)| message == row)
}

fn dispositions(state: &State, id: Id) -> usize {
    let joined = state
        .rows
        .iter()
        .flat_map(|row| &row.events)
        .filter(|(event, _)| *event == Event::AlertJoined(id))
        .count();
    joined
        + usize::from(matches!(
            state.row(id).disposition,
            Disposition::Opened | Disposition::Dead
        ))
}

/// An alert is given up only when at least `attempts` workers died, or stalled for as long as if they had died.
fn only_deaths(model: &Protocol, state: &State) -> bool {
    let gone = state.left.since(model.bounds.faults);
    model.alerts().all(|id| {
        let row = state.row(id);
        let deaths = match row.disposition {
            Disposition::Opened => gone.crashes + gone.stalls,
            Disposition::Dead if model.bounds.poison == Some(id) => return true,
            // A worker whose message is delivered or queued again while it prepares the alert counts like a dead one.
            Disposition::Dead => gone.crashes + gone.redeliveries + gone.job_losses,
            Disposition::Unknown | Disposition::Undecided | Disposition::Joined(_) => return true,
        };
        !row.owes || deaths >= model.bounds.attempts
    })
}

fn has_job(state: &State, id: Id) -> bool {
    state.jobs.iter().flatten().any(|job| job.alert == id)
}

fn lost_timeline(model: &Protocol, state: &State) -> bool {
    state.left.since(model.bounds.faults).timeline_losses > 0
}

/// Everything is settled and acknowledged. The one exception: before the first statement only the stream has the alert,
/// and the stream was lost.
pub(super) fn good_end(model: &Protocol, state: &State) -> bool {
    let never_known = |id: Id| {
        let lost = state.left.since(model.bounds.faults).job_losses > 0;
        let reads = state
            .workers
            .iter()
            .any(|worker| worker.step.sequence().is_some());
        lost && state.row(id).disposition == Disposition::Unknown && !reads
    };
    state.jobs.iter().all(Option::is_none)
        && model
            .alerts()
            .all(|id| state.row(id).settled || never_known(id))
}
