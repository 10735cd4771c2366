//! The script of a sender: its problems in the order of time, and the messages about them.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, TimeDelta, TimeZone as _, Utc};
use uuid::Uuid;

use super::ProblemId;
use super::profile::{Profile, filled};

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Firing,
    Escalated,
    Acknowledged,
    Ended,
    Tested,
}

/// A message that arrives.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) problem: ProblemId,
    pub(super) told: Told,
    pub(super) at: DateTime<Utc>,
    pub(super) body: String,
}

/// The next step of the script.
#[derive(Clone, Debug)]
pub(super) enum Delivery {
    Message(Message),
    /// The cooldown of the investigation before is over.
    AfterCooldown(Message),
    /// The investigation of a problem ends.
    Completed(ProblemId),
}

/// All that happens, and the number of sessions of each problem. A problem that comes back after the cooldown is a new
/// one.
pub(super) struct Script {
    pub(super) deliveries: Vec<Delivery>,
    pub(super) expected: BTreeMap<ProblemId, usize>,
}

impl Told {
    /// Whether the message says that something is wrong.
    pub(super) fn is_problem(self) -> bool {
        match self {
            Self::Firing | Self::Escalated | Self::Acknowledged => true,
            Self::Ended | Self::Tested => false,
        }
    }
}

impl Delivery {
    pub(super) fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) | Self::AfterCooldown(message) => Some(message),
            Self::Completed(_) => None,
        }
    }
}

/// The time when the first problem begins, in seconds since 1970.
const BEGIN: i64 = 1_795_824_000;
/// Between two messages about one problem, in seconds.
const GAP: std::ops::Range<i64> = 40..400;
const COOLDOWN_SECONDS: i64 = 4_000;
/// Senders that have an id for each opening of a problem, and no other key: when one flaps, that is a new problem for
/// them.
const NEW_AT_EACH_OPENING: [&str; 4] = ["dynatrace", "newrelic", "pagerduty", "pagerduty-v2"];
/// Senders whose test is one of their alerts in every field, so that it is investigated.
const TESTS_LIKE_ALERTS: [&str; 1] = ["site24x7"];

/// One problem of a sender, with what has happened to it so far.
struct Problem<'p> {
    profile: &'p Profile,
    id: ProblemId,
    random: fastrand::Rng,
    now: i64,
    episode: Episode,
    severity: usize,
    happened: Vec<(i64, Delivery)>,
    /// The next message is behind the cooldown.
    is_new: bool,
    sessions: usize,
}

/// From the first message about a problem to its end.
#[derive(Clone, Copy, Debug)]
struct Episode {
    number: u64,
    started: i64,
    messages: u64,
}

/// The same for one seed: the place of a problem in its sender.
pub(super) fn script(profile: &Profile, count: usize) -> Script {
    let mut expected = BTreeMap::new();
    let mut happened: Vec<(i64, Delivery)> = Vec::new();
    for id in 0..count {
        let mut problem = Problem::new(profile, id);
        problem.happen();
        expected.insert(id, problem.sessions);
        happened.append(&mut problem.happened);
    }
    happened.sort_by_key(|(at, _)| *at);
    Script {
        deliveries: happened.into_iter().map(|(_, delivery)| delivery).collect(),
        expected,
    }
}

impl<'p> Problem<'p> {
    fn new(profile: &'p Profile, id: ProblemId) -> Self {
        let name = profile.name.bytes().fold(7_u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut random = fastrand::Rng::with_seed(name ^ (u64::try_from(id).unwrap() << 20));
        let now = BEGIN + random.i64(0..7_200);
        let episode = Episode {
            number: 1,
            started: now,
            messages: 0,
        };
        let happened = Vec::new();
        Self {
            profile,
            id,
            random,
            now,
            episode,
            severity: 0,
            happened,
            is_new: false,
            sessions: 1,
        }
    }

    /// One episode, perhaps one more after an end that was no end, and perhaps one after the cooldown.
    fn happen(&mut self) {
        if self.random.u8(0..10) == 0 && !TESTS_LIKE_ALERTS.contains(&self.profile.name.as_str()) {
            self.send(Told::Tested, "test");
        }
        self.first();
        self.escalates();
        let completes_before_end = self.random.bool();
        if completes_before_end {
            self.complete();
        }
        self.repeats(2);
        let flaps = self.random.u8(0..4) == 0;
        if self.end() && flaps {
            self.begin();
            self.sessions += usize::from(NEW_AT_EACH_OPENING.contains(&self.profile.name.as_str()));
            self.send(Told::Firing, "fire");
            self.repeats(1);
            self.end();
        }
        self.complete();
        self.repeats_of_end();
        if self.random.u8(0..4) == 0 {
            self.now += COOLDOWN_SECONDS;
            self.is_new = true;
            self.sessions += 1;
            self.begin();
            self.send(Told::Firing, "fire");
            self.repeats(2);
            self.end();
            self.complete();
        }
    }

    /// The first message, which may be lost if the sender sends it again, or come twice.
    fn first(&mut self) {
        let is_lost = self.profile.repeats && self.random.u8(0..10) == 0;
        let sent = self.message(Told::Firing, "fire");
        if is_lost {
            self.again();
            return;
        }
        if let Some(message) = sent {
            let is_doubled = self.random.u8(0..8) == 0;
            self.happened.extend(std::iter::repeat_n(
                (self.now, message),
                if is_doubled { 2 } else { 1 },
            ));
        }
        self.repeats(3);
        if self.random.u8(0..4) == 0 {
            self.send(Told::Acknowledged, "acknowledge");
            self.repeats(1);
        }
    }

    fn escalates(&mut self) {
        let has_worse = self.severity + 1 < self.profile.severities.len();
        if self.random.u8(0..4) != 0 || !(has_worse || self.profile.template("escalate").is_some())
        {
            return;
        }
        self.severity = (self.severity + 1).min(self.profile.severities.len().saturating_sub(1));
        let kind = if self.profile.template("escalate").is_some() {
            "escalate"
        } else {
            "fire"
        };
        self.send(Told::Escalated, kind);
    }

    fn repeats(&mut self, most: u8) {
        if self.profile.repeats {
            for _ in 0..self.random.u8(0..=most) {
                self.again();
            }
        }
    }

    fn again(&mut self) {
        self.send(
            Told::Firing,
            if self.profile.template("repeat").is_some() {
                "repeat"
            } else {
                "fire"
            },
        );
    }

    /// Whether an end was told; it may be lost.
    fn end(&mut self) -> bool {
        let is_lost = self.random.u8(0..20) == 0;
        !is_lost && self.send(Told::Ended, "end")
    }

    fn repeats_of_end(&mut self) {
        if self.random.u8(0..8) == 0 {
            self.send(Told::Ended, "end");
        }
    }

    fn begin(&mut self) {
        self.now += self.random.i64(GAP);
        self.severity = 0;
        self.episode = Episode {
            number: self.episode.number + 1,
            started: self.now,
            messages: 0,
        };
    }

    fn complete(&mut self) {
        self.now += 1;
        self.happened.push((self.now, Delivery::Completed(self.id)));
    }

    /// Whether the sender has such a message.
    fn send(&mut self, told: Told, kind: &str) -> bool {
        let Some(message) = self.message(told, kind) else {
            return false;
        };
        self.happened.push((self.now, message));
        true
    }

    fn message(&mut self, told: Told, kind: &str) -> Option<Delivery> {
        let template = self.profile.template(kind)?;
        self.now += self.random.i64(GAP);
        self.episode.messages += 1;
        let body = filled(template, &self.values());
        let message = Message {
            problem: self.id,
            told,
            at: time(self.now),
            body,
        };
        let is_first = told.is_problem() && std::mem::take(&mut self.is_new);
        Some(if is_first {
            Delivery::AfterCooldown(message)
        } else {
            Delivery::Message(message)
        })
    }

    /// The values of all placeholders.
    fn values(&mut self) -> BTreeMap<String, String> {
        let kinds = self.profile.kinds.len();
        let host = u64::try_from(self.id / kinds).unwrap();
        let problem = u64::try_from(self.id).unwrap();
        let Episode {
            number,
            started,
            messages,
        } = self.episode;
        let episode = 4_000_000 + problem * 100 + number;
        let message = self.random.u64(10_000_000..99_999_999);
        let minutes = (self.now - started) / 60;
        let severity = self
            .profile
            .severities
            .get(self.severity)
            .cloned()
            .unwrap_or_default();
        let mut values = self
            .profile
            .kinds
            .get(self.id % kinds)
            .cloned()
            .unwrap_or_default();
        values.extend(times("started", started));
        values.extend(times("now", self.now));
        let own = [
            ("host", host_name(host)),
            ("host_id", (20_000 + host * 7).to_string()),
            ("ip", format!("10.4.{}.{}", host / 200, 10 + host % 200)),
            ("problem_id", (300_000 + problem * 13).to_string()),
            ("problem_uuid", uuid("problem", problem)),
            ("episode_id", episode.to_string()),
            ("episode_uuid", uuid("episode", episode)),
            ("message_id", message.to_string()),
            ("message_uuid", uuid("message", message)),
            (
                "value",
                format!("{}.{}", self.random.u8(80..99), self.random.u8(1..9)),
            ),
            ("count", messages.to_string()),
            ("minutes", minutes.to_string()),
            ("severity", severity),
        ];
        values.extend(own.map(|(name, value)| (name.to_owned(), value)));
        values
    }
}

/// Names of hosts of several kinds.
fn host_name(host: u64) -> String {
    match host % 4 {
        0 => format!("db-prod-{host:02}"),
        1 => format!(
            "ip-10-4-{}-{}.eu-west-1.compute.internal",
            host / 200,
            10 + host % 200
        ),
        2 => format!("web{host}.example.com"),
        _ => format!("checkout-7d9f8b6c5-x{host}q"),
    }
}

fn uuid(kind: &str, number: u64) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{kind} {number}").as_bytes()).to_string()
}

fn time(seconds: i64) -> DateTime<Utc> {
    Utc.timestamp_opt(seconds, 0).unwrap() + TimeDelta::milliseconds(250)
}

fn times(name: &str, seconds: i64) -> [(String, String); 4] {
    let at = Utc.timestamp_opt(seconds, 0).unwrap();
    [
        (
            format!("{name}_rfc3339"),
            at.to_rfc3339_opts(SecondsFormat::Secs, true),
        ),
        (format!("{name}_epoch"), seconds.to_string()),
        (format!("{name}_ms"), (seconds * 1000).to_string()),
        (
            format!("{name}_text"),
            at.format("%Y-%m-%d %H:%M:%S").to_string(),
        ),
    ]
}
