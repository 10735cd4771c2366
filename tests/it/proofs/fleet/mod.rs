//! A fleet of senders: each has many problems at once, several on each host, and tells of them as its product does,
//! with repetitions, escalations, acknowledgements, ends, flaps, tests, and deliveries that are lost or come twice. The
//! reader of alerts and the store together make one session of each problem, and none of an end or a test.
//!
//! `tests/fixtures/fleet` has a profile per sender. Those in `vendors` were written from the documents of the vendors,
//! without a look at the rules of the reader, and are not changed.

mod profile;
mod script;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tarsy_config::ConfiguredSources;
use tarsy_core::alert::{Alert, AlertStatus};
use tarsy_core::ids::SessionId;
use tarsy_core::intake::{Hints, Intake};
use tarsy_engine::ports::{Journal as _, OpenRequest, Opened, Sessions as _};
use tarsy_store::Store;

use self::profile::Profile;
use self::script::{Delivery, Message, script};
use crate::adapters::store::fixture::{completed, new_id, open_request, received};
use crate::support::figures::by_depth;
use crate::support::postgres::TestDatabase;

const COOLDOWN: Duration = Duration::from_secs(3600);
/// Wrong problems that are shown of one sender.
const SHOWN: usize = 3;

/// A problem of one sender.
type ProblemId = usize;

/// The outcome of one sender's problems.
#[derive(Debug, Default)]
struct Outcome {
    problems: usize,
    messages: usize,
    sessions: usize,
    missed: usize,
    merged: usize,
    doubled: usize,
    recoveries: usize,
    examples: Vec<String>,
}

/// The investigations of one sender.
struct Fleet<'f> {
    store: &'f Store,
    database: &'f TestDatabase,
    intake: &'f Intake,
    profile: &'f Profile,
    /// The problem that opened each session.
    opened: BTreeMap<SessionId, ProblemId>,
    /// The open session of each problem.
    running: BTreeMap<ProblemId, tarsy_engine::ports::Lease>,
    sessions: BTreeMap<ProblemId, usize>,
    outcome: Outcome,
}

impl Outcome {
    fn is_right(&self) -> bool {
        self.missed + self.merged + self.doubled + self.recoveries == 0
    }

    fn wrong(&mut self, kind: &str, message: &Message) {
        if self.examples.len() < SHOWN {
            let Message {
                problem,
                told,
                body,
                ..
            } = message;
            self.examples
                .push(format!("{kind}: problem {problem}, {told:?}\n{body}"));
        }
    }
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.problems += other.problems;
        self.messages += other.messages;
        self.sessions += other.sessions;
        self.missed += other.missed;
        self.merged += other.merged;
        self.doubled += other.doubled;
        self.recoveries += other.recoveries;
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            problems,
            messages,
            sessions,
            missed,
            merged,
            doubled,
            recoveries,
            ..
        } = self;
        write!(
            f,
            "{problems:>8} {messages:>8} {sessions:>8} {missed:>6} {merged:>6} {doubled:>7} {recoveries:>10}"
        )
    }
}

impl Fleet<'_> {
    fn read(&self, message: &Message) -> Vec<Alert> {
        let header = |name: &str| self.profile.header(name).map(str::to_owned);
        let hints = Hints {
            source: self.profile.source().map(str::to_owned),
            received_at: Some(message.at),
            suffix: "http".to_owned(),
            content_type: header("content-type"),
            content_encoding: header("content-encoding"),
            ..Hints::default()
        };
        let parts = self.intake.read(message.body.as_bytes(), &hints).unwrap();
        parts.into_iter().map(|part| part.alert).collect()
    }

    async fn deliver(&mut self, message: &Message, cooldown: Duration) {
        self.outcome.messages += 1;
        for alert in self.read(message) {
            if alert.status == AlertStatus::Test || alert.status == AlertStatus::Ignored {
                continue;
            }
            let id = new_id();
            self.store
                .receive(received(id, id.to_string().as_bytes()))
                .await
                .unwrap();
            let base = open_request(id, &alert.fingerprint);
            let request = OpenRequest {
                alert,
                cooldown,
                lease: COOLDOWN,
                ..base
            };
            match self.store.open(request).await.unwrap() {
                Opened::Session(claimed) => {
                    self.opened.insert(id, message.problem);
                    self.outcome.sessions += 1;
                    if message.told.is_problem() {
                        self.running.insert(message.problem, claimed.lease);
                        *self.sessions.entry(message.problem).or_default() += 1;
                    } else {
                        self.outcome.recoveries += 1;
                        self.outcome
                            .wrong("an end or a test was investigated", message);
                    }
                }
                Opened::Joined(target) | Opened::CoveredByCooldown(target) => {
                    self.belongs(target, message)
                }
                Opened::Updated { session, .. } => self.belongs(session, message),
                Opened::NotInvestigated => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn belongs(&mut self, target: SessionId, message: &Message) {
        if self.opened.get(&target) != Some(&message.problem) {
            self.outcome.merged += 1;
            self.outcome.wrong("merged into another problem", message);
        }
    }

    /// The investigation of a problem ends, and knew all that its alerts had told.
    async fn complete(&mut self, problem: ProblemId) {
        let Some(lease) = self.running.remove(&problem) else {
            return;
        };
        let updates = format!(
            "SELECT updates::bigint FROM alert_sessions WHERE session_id = '{}'",
            lease.session_id
        );
        let mut end = completed();
        end.covered_updates = self.database.number(&updates).try_into().unwrap();
        self.store.finish(lease, end).await.unwrap();
    }

    async fn run(mut self, count: usize) -> Outcome {
        let script = script(self.profile, count);
        self.outcome.problems = script.expected.values().sum();
        for delivery in &script.deliveries {
            match delivery {
                Delivery::Message(message) => self.deliver(message, COOLDOWN).await,
                Delivery::AfterCooldown(message) => self.deliver(message, Duration::ZERO).await,
                Delivery::Completed(problem) => self.complete(*problem).await,
            }
        }
        for (problem, expected) in script.expected {
            let sessions = self.sessions.get(&problem).copied().unwrap_or_default();
            self.outcome.missed += expected.saturating_sub(sessions);
            self.outcome.doubled += sessions.saturating_sub(expected);
            if sessions != expected && self.outcome.examples.len() < SHOWN {
                let of = |delivery: &&Delivery| {
                    delivery
                        .message()
                        .is_some_and(|message| message.problem == problem)
                };
                let told = script
                    .deliveries
                    .iter()
                    .filter(of)
                    .filter_map(Delivery::message);
                let told: Vec<String> = told
                    .map(|message| {
                        let keys: Vec<String> = self
                            .read(message)
                            .iter()
                            .map(|alert| format!("{} {}", alert.status.as_str(), alert.fingerprint))
                            .collect();
                        format!("{:?} {} {}", message.told, keys.join(", "), message.body)
                    })
                    .collect();
                let example = format!(
                    "problem {problem}: {sessions} sessions for {expected}\n{}",
                    told.join("\n")
                );
                self.outcome.examples.push(example);
            }
        }
        self.outcome
    }
}

/// `TARSY_FLEET_PROBLEMS` sets the number of problems of each sender.
#[tokio::test]
async fn a_fleet_of_senders_has_one_session_per_problem_and_none_per_recovery() {
    let count = by_depth("TARSY_FLEET_PROBLEMS", 8, 125);
    let profiles = Profile::all();
    let database = TestDatabase::create().await;
    let store = database.store();
    let intake = Intake::new(ConfiguredSources::default().all());
    let mut wrong = Vec::new();
    let mut total = Outcome::default();
    println!(
        "{:<28} problems messages sessions missed merged doubled recoveries",
        "sender"
    );
    for profile in &profiles {
        let fleet = Fleet {
            store: &store,
            database: &database,
            intake: &intake,
            profile,
            opened: BTreeMap::new(),
            running: BTreeMap::new(),
            sessions: BTreeMap::new(),
            outcome: Outcome::default(),
        };
        let outcome = fleet.run(count).await;
        println!("{:<28} {outcome}", profile.name);
        if !outcome.is_right() {
            wrong.push(format!(
                "{}:\n{}",
                profile.name,
                outcome.examples.join("\n")
            ));
        }
        total.add(&outcome);
    }
    println!("{:<28} {total}", "all");
    assert!(profiles.len() >= 40, "{}", profiles.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(total.sessions, total.problems);
}
