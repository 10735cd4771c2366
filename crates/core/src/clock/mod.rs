//! The time in prompts. A request states the time of its entries, never the present of the worker that makes it, so
//! every worker makes the same request from a journal.

#[cfg(test)]
mod tests;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::alert::Alert;

/// The longest pause between two messages that the model is not informed of.
const SHORT_PAUSE: TimeDelta = TimeDelta::minutes(10);
/// An older time in an alert is stated without its age: many senders have a placeholder there.
const LONGEST_AGE: TimeDelta = TimeDelta::days(400);
/// The number of turns before the last one from which on results state the turns that are left.
const LAST_TURNS: u32 = 5;
/// The sources whose time is the one since which the alert fires.
const SOURCES_WITH_FIRING_TIME: [&str; 2] = ["alertmanager", "grafana"];

/// A moment that a list begins or ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A duration before the present of the clock that stamps the rows.
    Ago(std::time::Duration),
    At(DateTime<Utc>),
}

/// The times that the first message of an agent refers to, frozen with its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPlan {
    pub subject: Subject,
    /// Seconds to add to the clock of the workers: that of a drill is set to the time of its evidence.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset_s: i64,
}

/// The subject of an agent: an alert or a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Alert {
        /// The time when the queue stored it.
        received_at: DateTime<Utc>,
        /// The change and its time, by the clock of the sender.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
    /// A question about an investigation.
    Question {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<DateTime<Utc>>,
    },
}

/// The time in an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The alert has been firing since this time.
    FiringSince(DateTime<Utc>),
    /// The time of a status change, in the words of other sources.
    ChangedAt(DateTime<Utc>),
}

/// serde passes a reference.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is that of `skip_serializing_if`"
)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The time that a message states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatedTime {
    /// The time is stated at the end of the first user message.
    Opening { clock: ClockPlan, at: DateTime<Utc> },
    /// The time is stated in the first line of a result.
    Heading {
        at: DateTime<Utc>,
        /// Turns before the conclusion is forced, if they are few.
        turns_left: Option<u32>,
    },
    /// The time is the first line of the message.
    FirstLine { at: DateTime<Utc> },
}

impl ClockPlan {
    /// The clock of an investigation of this alert.
    pub fn of_alert(alert: &Alert, received_at: DateTime<Utc>) -> Self {
        let has_firing_time = SOURCES_WITH_FIRING_TIME.contains(&alert.source.as_str());
        let change = alert.at.map(if has_firing_time {
            Change::FiringSince
        } else {
            Change::ChangedAt
        });
        Self {
            subject: Subject::Alert {
                received_at,
                change,
            },
            offset_s: 0,
        }
    }

    /// The clock of a question about an investigation.
    pub fn of_question(ended_at: Option<DateTime<Utc>>) -> Self {
        Self {
            subject: Subject::Question { ended_at },
            offset_s: 0,
        }
    }

    /// The time of an entry as this clock shows it.
    pub fn shown(self, at: DateTime<Utc>) -> DateTime<Utc> {
        TimeDelta::try_seconds(self.offset_s)
            .and_then(|offset| at.checked_add_signed(offset))
            .unwrap_or(at)
    }

    /// The message after a long pause; `None` after a short one.
    pub fn after_pause(self, last: DateTime<Utc>, now: DateTime<Utc>) -> Option<String> {
        let pause = now - last;
        let now = line(self.shown(now)).trim_end_matches('.').to_owned();
        (pause > SHORT_PAUSE).then(|| {
            format!(
                "{now}, {} after the message above; what it shows may have changed.",
                in_words(pause)
            )
        })
    }

    /// The times of the alert and the investigation, relative to `now`.
    fn past(self, now: DateTime<Utc>) -> String {
        match self.subject {
            Subject::Alert {
                received_at,
                change,
            } => {
                let changed = change
                    .map(|change| change.seen_from(now))
                    .unwrap_or_default();
                format!("{changed}{}", received(self.shown(received_at), now))
            }
            Subject::Question { ended_at } => ended_at
                .map(|at| ended(self.shown(at), now))
                .unwrap_or_default(),
        }
    }
}

impl StatedTime {
    /// The text of a message with its time.
    pub fn added_to(self, content: &str) -> String {
        match self {
            Self::Opening { clock, at } => {
                let now = format!(
                    "It is now {}, {} (epoch {}).",
                    date(at),
                    at.format("%A"),
                    at.timestamp()
                );
                format!(
                    "{content}\n\n{}",
                    [now, clock.past(at)].join("\n").trim_end()
                )
            }
            Self::FirstLine { at } => format!("{}\n\n{content}", line(at)),
            Self::Heading { .. } => content.to_owned(),
        }
    }

    /// The day of a result.
    pub fn day(self) -> Option<NaiveDate> {
        match self {
            Self::Heading { at, .. } => Some(at.date_naive()),
            Self::Opening { .. } | Self::FirstLine { .. } => None,
        }
    }

    /// The text after the number of the event in the first line of a result.
    pub fn in_heading(self) -> String {
        let Self::Heading { at, turns_left } = self else {
            return String::new();
        };
        let left = match turns_left {
            None | Some(0) => String::new(),
            Some(1) => ", 1 turn left".to_owned(),
            Some(turns) => format!(", {turns} turns left"),
        };
        format!(" {}{left}", at.format("%H:%M:%S"))
    }

    /// The time of a result; `turns` are left before the conclusion is forced.
    pub fn of_result(at: DateTime<Utc>, turns: u32) -> Self {
        Self::Heading {
            at,
            turns_left: (turns <= LAST_TURNS).then_some(turns),
        }
    }
}

fn line(at: DateTime<Utc>) -> String {
    format!("It is now {}.", date(at))
}

fn date(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

impl Change {
    fn seen_from(self, now: DateTime<Utc>) -> String {
        let (Self::FiringSince(at) | Self::ChangedAt(at)) = self;
        let age = now - at;
        if age < TimeDelta::zero() || age > LONGEST_AGE {
            return format!("The time in the alert is {}. ", at.format("%+"));
        }
        let at = date(at);
        let age = in_words(age);

        match self {
            Self::FiringSince(_) => format!(
                "The alert has been firing since {at}, for {age}; the fault is older by the time for which its rule \
                 waits. "
            ),
            Self::ChangedAt(_) => {
                format!("Its sender says that its status changed at {at}, {age} ago. ")
            }
        }
    }
}

fn received(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let age = now - at;
    if age < TimeDelta::seconds(1) {
        "tarsy received it just now.".to_owned()
    } else {
        format!("tarsy received it {} ago.", in_words(age))
    }
}

fn ended(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let age = now - at;
    let when = if age < TimeDelta::seconds(1) {
        "just now".to_owned()
    } else {
        format!("{} ago", in_words(age))
    };
    format!("The investigation ended {when}.")
}

/// A length of time in its two largest units.
pub(crate) fn in_words(length: TimeDelta) -> String {
    const UNITS: [(&str, &str, i64); 4] = [
        ("day", "days", 86_400),
        ("h", "h", 3_600),
        ("min", "min", 60),
        ("s", "s", 1),
    ];
    let mut rest = length.num_seconds().max(0);
    let mut parts = Vec::new();
    for (one, many, size) in UNITS {
        let count = rest / size;
        rest %= size;
        if count > 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
        if (count == 0 && !parts.is_empty()) || parts.len() == 2 {
            break;
        }
    }
    // Seconds beside minutes are noise.
    match parts.as_slice() {
        [] => "0 s".to_owned(),
        [first, second] if !second.ends_with(" s") => format!("{first} {second}"),
        [first, ..] => first.clone(),
    }
}
