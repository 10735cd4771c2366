//! The summary of an investigation for a notification. Its texts are masked, because the store has only masked texts.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::request::Request;
use crate::alert::Severity;
use crate::alert::refs::Refs;
use crate::chain::RunStatus;
use crate::execution::cited_events::cited;
use crate::execution::entry::Mark;
use crate::review::Review;
use crate::summary::{Fields, fields};

/// The outcome of an investigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The investigation has ended with an analysis.
    Completed,
    Failed,
    TimedOut,
    Cancelled,
    /// Nothing was investigated: the session lists alerts above the limit of their route.
    Limited,
    /// The alert was given up, before or after a session was opened.
    DeadLetter,
}

crate::words!(pub Outcome, pub ALL);

impl Outcome {
    /// The outcome of a session; `None` while it runs.
    pub fn from_status(status: RunStatus) -> Option<Self> {
        match status {
            RunStatus::Unknown(_) | RunStatus::Running => None,
            RunStatus::Completed => Some(Self::Completed),
            RunStatus::Failed => Some(Self::Failed),
            RunStatus::TimedOut => Some(Self::TimedOut),
            RunStatus::Cancelled => Some(Self::Cancelled),
            RunStatus::Limited => Some(Self::Limited),
        }
    }
}

/// An investigation, as a notification shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub title: String,
    pub severity: Option<Severity>,
    /// `None` for an alert without a session.
    pub chain: Option<String>,
    /// `None` while the investigation runs.
    pub outcome: Option<Outcome>,
    pub analysis: Option<String>,
    /// The mark on the analysis, a warning for its readers.
    pub mark: Option<Mark>,
    /// The outcome of the review, if one was due.
    pub review: Option<Review>,
    /// The reason why there is no analysis.
    pub error: Option<String>,
    /// The sender's ids of what the alerts are about.
    pub refs: Refs,
    pub began_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    /// The earlier investigations of the alert, if there are any.
    pub seen_before: Option<Seen>,
    /// The call that waits or has waited for a person, of a message about one.
    pub request: Option<Request>,
}

/// The number of investigations of an alert before this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub times: u32,
    /// The days in which they ended.
    pub days: u32,
}

impl Seen {
    /// `4th time in 30 days`, this investigation included.
    pub fn in_words(self) -> String {
        let time = self.times.saturating_add(1);
        let ending = match (time % 10, time % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            (_, _) => "th",
        };
        let days = if self.days == 1 { "day" } else { "days" };
        format!("{time}{ending} time in {} {days}", self.days)
    }
}

impl Summary {
    /// The cause in a line: that of the analysis, else its first line, else the error. The mark of the analysis stands
    /// before it.
    pub fn cause(&self) -> Option<String> {
        let Some(analysis) = &self.analysis else {
            return self.error.clone();
        };
        let mark = self
            .mark
            .map(|mark| format!("({}) ", mark.word()))
            .unwrap_or_default();
        self.fields()
            .cause
            .or_else(|| {
                analysis
                    .lines()
                    .map(str::trim)
                    .find(|line| !line.is_empty())
                    .map(str::to_owned)
            })
            .map(|cause| format!("{mark}{cause}"))
    }

    /// The fields of the analysis; all are empty without one.
    pub fn fields(&self) -> Fields {
        self.analysis.as_deref().map(fields).unwrap_or_default()
    }

    /// The number of events that the analysis cites.
    pub fn cited_events(&self) -> usize {
        self.analysis
            .as_deref()
            .map(|analysis| cited(analysis).len())
            .unwrap_or_default()
    }

    /// The duration of the investigation.
    pub fn took(&self) -> Option<Duration> {
        (self.ended_at? - self.began_at?).to_std().ok()
    }
}

/// A duration for people: `450 ms`, `6.1 s`, `12 min`, `1 h 5 min`.
pub fn spelled(duration: Duration) -> String {
    let secs = duration.as_secs();
    match secs {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3_600 => format!("{} min", secs / 60),
        3_600.. => format!("{} h {} min", secs / 3_600, secs % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::tests::summary;

    #[test]
    fn the_cause_is_that_of_the_analysis_or_the_error() {
        assert_eq!(
            summary().cause().as_deref(),
            Some("the heap limit leaves no room [5]")
        );
        let plain = Summary {
            analysis: Some("\n The disk is full.\nmore".into()),
            ..summary()
        };
        assert_eq!(plain.cause().as_deref(), Some("The disk is full."));
        let cut = Summary {
            mark: Some(Mark::Incomplete),
            ..summary()
        };
        assert_eq!(
            cut.cause().as_deref(),
            Some("(incomplete) the heap limit leaves no room [5]")
        );
        let failed = Summary {
            analysis: None,
            error: Some("no model answered".into()),
            ..summary()
        };
        assert_eq!(
            (failed.cause().as_deref(), failed.cited_events()),
            (Some("no model answered"), 0)
        );
    }

    #[test]
    fn a_repeated_alert_is_counted_in_words() {
        for (times, text) in [
            (1, "2nd time in 30 days"),
            (2, "3rd time in 30 days"),
            (3, "4th time in 30 days"),
            (10, "11th time in 30 days"),
            (20, "21st time in 30 days"),
            (111, "112th time in 30 days"),
        ] {
            assert_eq!(Seen { times, days: 30 }.in_words(), text);
        }
        assert_eq!(Seen { times: 1, days: 1 }.in_words(), "2nd time in 1 day");
    }

    #[test]
    fn cited_events_are_counted_once_each() {
        assert_eq!(summary().cited_events(), 2);
        assert_eq!(summary().took(), Some(Duration::from_millis(6_100)));
    }

    #[test]
    fn a_duration_is_spelled_in_its_largest_units() {
        for (ms, text) in [
            (450, "450 ms"),
            (6_100, "6.1 s"),
            (725_000, "12 min"),
            (3_900_000, "1 h 5 min"),
        ] {
            assert_eq!(spelled(Duration::from_millis(ms)), text);
        }
    }
}
