//! What always holds, and what a good end is.

use stateright::Property;

use super::model::Protocol;
use super::state::{CHECKPOINTS, Event, Id, Place, State};

pub(super) const ONE_WRITER: &str = "one owner writes: no epoch goes back, no checkpoint is written twice";
pub(super) const NO_GAP: &str = "the store's timeline has no gap";
pub(super) const END_IS_LAST: &str = "the end is the last event";
pub(super) const STREAM_IS_COPY: &str = "the stream has the store's events from the first on, without a gap";
pub(super) const ONE_PLACE: &str = "an alert is in one place";
pub(super) const ONE_OPEN: &str = "a fingerprint has one open investigation";
pub(super) const NO_LATE_JOIN: &str = "no alert joins an investigation that is being cancelled";
pub(super) const ONLY_DEATHS: &str = "only deaths use up attempts";
pub(super) const HANDED_BACK_IS_FREE: &str = "a session that was released is free";
pub(super) const SETTLED_IS_PUBLISHED: &str = "what is settled is published";
pub(super) const NO_LETTER_LOST: &str = "what is settled owes no dead letter";
pub(super) const JOB_KEPT: &str = "what is not settled has its job, unless the broker lost it";
/// Not a property of one state: see [`super::walk`].
pub(super) const GOOD_END_AHEAD: &str = "from everywhere a good end can be reached without another fault";

/// Properties of every reachable state.
pub(super) fn always() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ONE_WRITER, |_, state: &State| state.rows.iter().all(|row| one_writer(&row.events))),
        Property::always(NO_GAP, |_, state: &State| {
            state.rows.iter().all(|row| row.events.iter().all(|(event, _)| *event != Event::Missing))
        }),
        Property::always(END_IS_LAST, |_, state: &State| {
            state.rows.iter().all(|row| row.events.iter().rev().skip(1).all(|(event, _)| *event != Event::Ended))
        }),
        Property::always(STREAM_IS_COPY, |model, state: &State| model.alerts().all(|id| is_copy(state, id))),
        Property::always(ONE_PLACE, |model, state: &State| model.alerts().all(|id| places(state, id) <= 1)),
        Property::always(ONE_OPEN, |_, state: &State| state.rows.iter().filter(|row| row.open).count() <= 1),
        Property::always(NO_LATE_JOIN, |_, state: &State| state.rows.iter().all(|row| !row.joined_too_late)),
        Property::always(ONLY_DEATHS, only_deaths),
        Property::always(HANDED_BACK_IS_FREE, |_, state: &State| {
            state.rows.iter().all(|row| !(row.released && row.leased))
        }),
        Property::always(SETTLED_IS_PUBLISHED, |model, state: &State| {
            lost_timeline(model, state) || model.alerts().all(|id| !state.row(id).settled || state.published(id))
        }),
        Property::always(NO_LETTER_LOST, |_, state: &State| {
            state.rows.iter().zip(state.dead_letters).all(|(row, stored)| !(row.settled && row.owes && !stored))
        }),
        Property::always(JOB_KEPT, |model, state: &State| {
            let lost = state.left.since(model.bounds.faults).job_losses > 0;
            lost || model.alerts().all(|id| state.row(id).settled || has_job(state, id))
        }),
    ]
}

fn one_writer(events: &[(Event, u8)]) -> bool {
    let count = |wanted| events.iter().filter(|(event, _)| *event == wanted).count();
    events.windows(2).all(|pair| pair[0].1 <= pair[1].1) && (1..CHECKPOINTS).all(|n| count(Event::Work(n)) <= 1)
}

fn is_copy(state: &State, id: Id) -> bool {
    let rows = (1_u8..).zip(&state.row(id).events).map(|(number, (event, _))| (number, *event));
    let messages = &state.subject(id).messages;
    messages.len() <= state.row(id).events.len()
        && messages.iter().copied().zip(rows).all(|(message, row)| message == row)
}

fn places(state: &State, id: Id) -> usize {
    let joined =
        state.rows.iter().flat_map(|row| &row.events).filter(|(event, _)| *event == Event::AlertJoined(id)).count();
    joined + usize::from(matches!(state.row(id).place, Place::Opened | Place::Dead))
}

/// An alert is given up only when at least so many workers died, or stood still for as long as if they had.
fn only_deaths(model: &Protocol, state: &State) -> bool {
    let gone = state.left.since(model.bounds.faults);
    model.alerts().all(|id| {
        let row = state.row(id);
        let deaths = match row.place {
            Place::Opened => gone.crashes + gone.stalls,
            Place::Dead if model.bounds.poison == Some(id) => return true,
            // A reader whose message comes again, or is queued again by the sweeper, counts like one that died.
            Place::Dead => gone.crashes + gone.redeliveries + gone.job_losses,
            Place::Unknown | Place::Undecided | Place::Joined(_) => return true,
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

/// Everything is settled and acknowledged. The one way out: until the first statement the stream alone knows the alert,
/// and the stream was lost.
pub(super) fn good_end(model: &Protocol, state: &State) -> bool {
    let never_known = |id: Id| {
        let lost = state.left.since(model.bounds.faults).job_losses > 0;
        let reads = state.workers.iter().any(|worker| worker.step.sequence().is_some());
        lost && state.row(id).place == Place::Unknown && !reads
    };
    state.jobs.iter().all(Option::is_none) && model.alerts().all(|id| state.row(id).settled || never_known(id))
}
