//! What goes wrong in each run.

use super::properties::{
    END_IS_LAST, GOOD_END_AHEAD, HANDED_BACK_IS_FREE, JOB_KEPT, NO_GAP, NO_LATE_JOIN, NO_LETTER_LOST, ONE_OPEN,
    ONE_PLACE, ONE_WRITER, ONLY_DEATHS, SETTLED_IS_PUBLISHED, STREAM_IS_COPY,
};
use super::rules::{Bounds, Rule};
use super::state::{Faults, WORKERS};

/// A run with every rule.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) name: &'static str,
    pub(super) bounds: Bounds,
}

const NOTHING: Faults = Faults {
    crashes: 0,
    stalls: 0,
    hand_backs: 0,
    redeliveries: 0,
    lost_acks: 0,
    late_acks: 0,
    late_publishes: 0,
    late_commits: 0,
    timeline_losses: 0,
    job_losses: 0,
    cancels: 0,
    deadlines: 0,
};

fn bounds(alerts: u8, attempts: u8, faults: Faults) -> Bounds {
    Bounds { alerts, workers: WORKERS, poison: None, attempts, faults }
}

/// Set by whoever wants to look further: every fault that may happen in a run may happen so many times more.
const DEPTH: &str = "TARSY_PROTOCOL_DEPTH";

/// All runs.
pub(super) fn profiles() -> Vec<Profile> {
    let more = std::env::var(DEPTH).map_or(0, |depth| depth.parse().expect("TARSY_PROTOCOL_DEPTH is a small number"));
    let mut profiles = small();
    for faults in profiles.iter_mut().map(|profile| &mut profile.bounds.faults) {
        for count in [
            &mut faults.crashes,
            &mut faults.stalls,
            &mut faults.hand_backs,
            &mut faults.redeliveries,
            &mut faults.lost_acks,
            &mut faults.late_acks,
            &mut faults.late_publishes,
            &mut faults.late_commits,
            &mut faults.cancels,
        ] {
            *count += if *count > 0 { more } else { 0 };
        }
    }
    profiles
}

fn small() -> Vec<Profile> {
    let run = |name, bounds| Profile { name, bounds };
    vec![
        run("nothing goes wrong", bounds(2, 2, NOTHING)),
        run("crash", bounds(2, 2, Faults { crashes: 1, ..NOTHING })),
        run("crash and given up", bounds(2, 1, Faults { crashes: 1, ..NOTHING })),
        run("stall", bounds(2, 2, Faults { stalls: 1, ..NOTHING })),
        run("redelivery, lost ack", bounds(2, 2, Faults { redeliveries: 1, lost_acks: 1, ..NOTHING })),
        run("late publish", bounds(2, 2, Faults { late_publishes: 1, ..NOTHING })),
        run("late commit", bounds(2, 2, Faults { late_commits: 1, ..NOTHING })),
        run("hand-back", bounds(2, 1, Faults { hand_backs: 1, ..NOTHING })),
        run("timeline lost", bounds(2, 2, Faults { timeline_losses: 1, ..NOTHING })),
        run("jobs lost", bounds(2, 2, Faults { job_losses: 1, ..NOTHING })),
        run("cancel", bounds(2, 2, Faults { cancels: 1, ..NOTHING })),
        run("deadline", bounds(2, 2, Faults { deadlines: 1, ..NOTHING })),
        run("poison, crash", Bounds { poison: Some(0), ..bounds(2, 2, Faults { crashes: 1, ..NOTHING }) }),
        run("crashes, late publish", bounds(1, 2, Faults { crashes: 2, late_publishes: 1, ..NOTHING })),
        run("crashes, stall, given up", bounds(1, 1, Faults { crashes: 2, stalls: 1, ..NOTHING })),
        run("late commit, stall, crash", bounds(1, 2, Faults { late_commits: 1, stalls: 1, crashes: 1, ..NOTHING })),
        run("late commit, hand-backs", bounds(1, 1, Faults { late_commits: 1, hand_backs: 2, ..NOTHING })),
        run(
            "hand-back, crash, redelivery",
            bounds(1, 1, Faults { hand_backs: 1, crashes: 1, redeliveries: 1, ..NOTHING }),
        ),
        run(
            "timeline lost, late publish, crash",
            bounds(1, 2, Faults { timeline_losses: 1, late_publishes: 1, crashes: 1, ..NOTHING }),
        ),
        run("jobs lost, late ack, crash", bounds(1, 2, Faults { job_losses: 1, late_acks: 1, crashes: 1, ..NOTHING })),
        run("jobs lost, deadline, crash", bounds(1, 2, Faults { job_losses: 1, deadlines: 1, crashes: 1, ..NOTHING })),
        run("jobs lost, late ack, crash of two", bounds(2, 2, Faults { job_losses: 1, late_acks: 1, ..NOTHING })),
        run("cancel, stall, crash", bounds(1, 2, Faults { cancels: 1, stalls: 1, crashes: 1, ..NOTHING })),
    ]
}

/// What breaks without a rule, and the least that has to go wrong for it.
pub(super) fn fate(rule: Rule) -> (&'static str, Bounds) {
    let crash = Faults { crashes: 1, ..NOTHING };
    match rule {
        Rule::InsertFirst => (GOOD_END_AHEAD, Bounds { poison: Some(0), ..bounds(1, 2, NOTHING) }),
        Rule::JoinLocksTarget => (END_IS_LAST, bounds(2, 2, NOTHING)),
        Rule::OneOpenSession => (ONE_OPEN, bounds(2, 2, NOTHING)),
        Rule::JoinedHasPlace => (ONE_PLACE, bounds(2, 2, crash)),
        Rule::ClosingTakesNothing => (NO_LATE_JOIN, bounds(2, 2, Faults { cancels: 1, ..NOTHING })),
        Rule::WaitingIsNoAttempt => (ONLY_DEATHS, bounds(2, 2, Faults { cancels: 1, ..NOTHING })),
        Rule::ClaimWaits => (ONLY_DEATHS, bounds(1, 1, Faults { redeliveries: 1, ..NOTHING })),
        Rule::Fence => (ONE_WRITER, bounds(1, 2, Faults { stalls: 1, ..NOTHING })),
        Rule::AtomicNumbers => (NO_GAP, bounds(1, 2, Faults { late_commits: 1, ..NOTHING })),
        Rule::HandBackEndsEpoch => {
            (HANDED_BACK_IS_FREE, bounds(1, 2, Faults { hand_backs: 1, late_commits: 1, ..NOTHING }))
        }
        Rule::HandBackIsNoAttempt => (ONLY_DEATHS, bounds(1, 1, Faults { hand_backs: 1, ..NOTHING })),
        Rule::PublishFromTable => (STREAM_IS_COPY, bounds(2, 2, NOTHING)),
        Rule::RefusalIsNoVerdict => (ONLY_DEATHS, bounds(1, 1, Faults { late_publishes: 1, ..NOTHING })),
        Rule::SettleBeforeAck => (JOB_KEPT, bounds(1, 2, crash)),
        Rule::PublishBeforeSettled => (SETTLED_IS_PUBLISHED, bounds(1, 2, NOTHING)),
        Rule::DeadLetterBeforeSettled => (NO_LETTER_LOST, bounds(1, 1, crash)),
        Rule::SweepLostJobs => (GOOD_END_AHEAD, bounds(1, 2, Faults { job_losses: 1, crashes: 1, ..NOTHING })),
        Rule::SweepComparesIds => {
            let faults = Faults { job_losses: 1, crashes: 1, cancels: 1, ..NOTHING };
            (GOOD_END_AHEAD, Bounds { workers: 1, ..bounds(2, 2, faults) })
        }
        Rule::SweepUnsettled => (GOOD_END_AHEAD, bounds(1, 2, Faults { job_losses: 1, crashes: 1, ..NOTHING })),
    }
}
