//! The faults of each run.

use super::properties::{
    END_IS_LAST, GOOD_END_AHEAD, JOB_KEPT, NO_DEAD_LETTER_LOST, NO_GAP, NO_LATE_JOIN,
    ONE_DISPOSITION, ONE_OPEN, ONE_WRITER, ONLY_DEATHS, RELEASED_IS_FREE, SETTLED_IS_PUBLISHED,
    STREAM_IS_COPY,
};
use super::rules::{Bounds, Rule};
use super::state::{Faults, WORKERS};
use crate::support::figures::is_proof;

/// A run with every rule.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) name: &'static str,
    pub(super) bounds: Bounds,
}

const NOTHING: Faults = Faults {
    crashes: 0,
    stalls: 0,
    releases: 0,
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
    Bounds {
        alerts,
        workers: WORKERS,
        poison: None,
        attempts,
        faults,
    }
}

/// A variable for a deeper search: every fault of a run may happen that many times more.
const DEPTH: &str = "TARSY_PROTOCOL_DEPTH";

/// The runs with few states, and in the proof those with many as well.
pub(super) fn profiles() -> Vec<Profile> {
    let more = std::env::var(DEPTH).map_or(0, |depth| {
        depth
            .parse()
            .expect("TARSY_PROTOCOL_DEPTH is a small number")
    });
    let mut profiles = small();
    if is_proof() || more > 0 {
        profiles.extend(large());
    }
    for faults in profiles
        .iter_mut()
        .map(|profile| &mut profile.bounds.faults)
    {
        for count in [
            &mut faults.crashes,
            &mut faults.stalls,
            &mut faults.releases,
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

/// A run with one alert.
fn one(name: &'static str, attempts: u8, faults: Faults) -> Profile {
    Profile {
        name,
        bounds: bounds(1, attempts, faults),
    }
}

/// A run with two alerts of one fingerprint.
fn two(name: &'static str, attempts: u8, faults: Faults) -> Profile {
    Profile {
        name,
        bounds: bounds(2, attempts, faults),
    }
}

/// The faults of each run, with one alert and with two, and the deaths after which an alert is given up. With two
/// alerts there are joins, so fewer faults are possible before there are too many states. These runs have up to 30,000.
fn small() -> Vec<Profile> {
    let poison = |profile: Profile| Profile {
        bounds: Bounds {
            poison: Some(0),
            ..profile.bounds
        },
        ..profile
    };
    vec![
        one(
            "stall, 2 crashes, given up",
            1,
            Faults {
                stalls: 1,
                crashes: 2,
                ..NOTHING
            },
        ),
        one(
            "late commit, 2 releases",
            1,
            Faults {
                late_commits: 1,
                releases: 2,
                ..NOTHING
            },
        ),
        one(
            "release, redelivery, crash",
            1,
            Faults {
                releases: 1,
                redeliveries: 1,
                crashes: 1,
                ..NOTHING
            },
        ),
        one(
            "jobs lost, late ack, crash",
            2,
            Faults {
                job_losses: 1,
                late_acks: 1,
                crashes: 1,
                ..NOTHING
            },
        ),
        one(
            "jobs lost, deadline, crash",
            2,
            Faults {
                job_losses: 1,
                deadlines: 1,
                crashes: 1,
                ..NOTHING
            },
        ),
        two("nothing", 2, NOTHING),
        two(
            "cancel",
            2,
            Faults {
                cancels: 1,
                ..NOTHING
            },
        ),
        two(
            "deadline",
            2,
            Faults {
                deadlines: 1,
                ..NOTHING
            },
        ),
        two(
            "late commit",
            2,
            Faults {
                late_commits: 1,
                ..NOTHING
            },
        ),
        two(
            "late publish",
            2,
            Faults {
                late_publishes: 1,
                ..NOTHING
            },
        ),
        poison(two(
            "poison, crash",
            2,
            Faults {
                crashes: 1,
                ..NOTHING
            },
        )),
    ]
}

/// The runs that take most of the time.
fn large() -> Vec<Profile> {
    vec![
        one(
            "late publish, 2 crashes",
            2,
            Faults {
                late_publishes: 1,
                crashes: 2,
                ..NOTHING
            },
        ),
        one(
            "late commit, stall, crash",
            2,
            Faults {
                late_commits: 1,
                stalls: 1,
                crashes: 1,
                ..NOTHING
            },
        ),
        one("timeline lost, late publish, crash", 2, {
            Faults {
                timeline_losses: 1,
                late_publishes: 1,
                crashes: 1,
                ..NOTHING
            }
        }),
        one(
            "cancel, stall, crash",
            2,
            Faults {
                cancels: 1,
                stalls: 1,
                crashes: 1,
                ..NOTHING
            },
        ),
        two(
            "stall",
            2,
            Faults {
                stalls: 1,
                ..NOTHING
            },
        ),
        two(
            "jobs lost",
            2,
            Faults {
                job_losses: 1,
                ..NOTHING
            },
        ),
        two(
            "timeline lost",
            2,
            Faults {
                timeline_losses: 1,
                ..NOTHING
            },
        ),
        two(
            "redelivery, lost ack",
            2,
            Faults {
                redeliveries: 1,
                lost_acks: 1,
                ..NOTHING
            },
        ),
        two(
            "release",
            1,
            Faults {
                releases: 1,
                ..NOTHING
            },
        ),
        two(
            "crash",
            2,
            Faults {
                crashes: 1,
                ..NOTHING
            },
        ),
        two(
            "crash, given up",
            1,
            Faults {
                crashes: 1,
                ..NOTHING
            },
        ),
        two(
            "jobs lost, late ack",
            2,
            Faults {
                job_losses: 1,
                late_acks: 1,
                ..NOTHING
            },
        ),
    ]
}

/// The property that breaks without a rule, and the fewest faults that break it.
pub(super) fn counterexample(rule: Rule) -> (&'static str, Bounds) {
    let crash = Faults {
        crashes: 1,
        ..NOTHING
    };
    match rule {
        Rule::InsertFirst => (
            GOOD_END_AHEAD,
            Bounds {
                poison: Some(0),
                ..bounds(1, 2, NOTHING)
            },
        ),
        Rule::JoinLocksTarget => (END_IS_LAST, bounds(2, 2, NOTHING)),
        Rule::OneOpenSession => (ONE_OPEN, bounds(2, 2, NOTHING)),
        Rule::JoinedIsDecided => (ONE_DISPOSITION, bounds(2, 2, crash)),
        Rule::CancellingTakesNothing => (
            NO_LATE_JOIN,
            bounds(
                2,
                2,
                Faults {
                    cancels: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::WaitingIsNoAttempt => (
            ONLY_DEATHS,
            bounds(
                2,
                2,
                Faults {
                    cancels: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::ClaimWaits => (
            ONLY_DEATHS,
            bounds(
                1,
                1,
                Faults {
                    redeliveries: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::InheritFromDead => (ONLY_DEATHS, bounds(1, 1, NOTHING)),
        Rule::Fence => (
            ONE_WRITER,
            bounds(
                1,
                2,
                Faults {
                    stalls: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::AtomicNumbers => (
            NO_GAP,
            bounds(
                1,
                2,
                Faults {
                    late_commits: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::ReleaseEndsEpoch => (
            RELEASED_IS_FREE,
            bounds(
                1,
                2,
                Faults {
                    releases: 1,
                    late_commits: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::ReleaseIsNoAttempt => (
            ONLY_DEATHS,
            bounds(
                1,
                1,
                Faults {
                    releases: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::PublishFromTable => (STREAM_IS_COPY, bounds(2, 2, NOTHING)),
        Rule::RefusalIsNoVerdict => (
            ONLY_DEATHS,
            bounds(
                1,
                1,
                Faults {
                    late_publishes: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::SettleBeforeAck => (JOB_KEPT, bounds(1, 2, crash)),
        Rule::PublishBeforeSettled => (SETTLED_IS_PUBLISHED, bounds(1, 2, NOTHING)),
        Rule::DeadLetterBeforeSettled => (NO_DEAD_LETTER_LOST, bounds(1, 1, crash)),
        Rule::SweepLostJobs => (
            GOOD_END_AHEAD,
            bounds(
                1,
                2,
                Faults {
                    job_losses: 1,
                    crashes: 1,
                    ..NOTHING
                },
            ),
        ),
        Rule::SweepComparesIds => {
            let faults = Faults {
                job_losses: 1,
                crashes: 1,
                cancels: 1,
                ..NOTHING
            };
            (
                GOOD_END_AHEAD,
                Bounds {
                    workers: 1,
                    ..bounds(2, 2, faults)
                },
            )
        }
        Rule::SweepUnsettled => (
            GOOD_END_AHEAD,
            bounds(
                1,
                2,
                Faults {
                    job_losses: 1,
                    crashes: 1,
                    ..NOTHING
                },
            ),
        ),
    }
}
