//! The names of streams and subjects, which other programs see; priorities and kinds of messages.

use std::fmt;
use std::str::FromStr;

use tarsy_core::alert::Severity;
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_engine::ports::DeadReason;

/// The queue of alerts and of questions.
pub const ALERTS: &str = "TARSY_ALERTS";
/// The stream of timeline events.
pub const TIMELINE: &str = "TARSY_TIMELINE";
/// The stream of dead letters.
pub const DEAD_LETTERS: &str = "TARSY_DEAD_LETTERS";
/// The stream of cancel requests.
pub const CONTROL: &str = "TARSY_CONTROL";

/// The stream of what people send: decisions, freezes and verdicts.
pub const PEOPLE: &str = "TARSY_PEOPLE";
/// The consumer of [`PEOPLE`], which all workers share.
pub(super) const RECORDER: &str = "recorder";

/// The kind of a message of the queue. Only the subject decides it, because the broker's permissions are by subject: it
/// can allow a program to publish alerts and no questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Data from monitoring: `tarsy.alerts.<priority>`.
    Alert,
    /// A question of a person about an investigation that has ended: `tarsy.questions.<priority>`.
    Question,
}

impl MessageKind {
    const ALL: [Self; 2] = [Self::Alert, Self::Question];

    fn prefix(self) -> &'static str {
        match self {
            Self::Alert => "tarsy.alerts",
            Self::Question => "tarsy.questions",
        }
    }

    /// The kind of a message on this subject; an alert, which permits less, for a subject outside of the queue.
    pub fn of_subject(subject: &str) -> Self {
        Subject::parse(subject).map_or(Self::Alert, |subject| subject.kind)
    }
}

/// The suffix of a question that a person asked in a thread of Slack.
pub const SLACK: &str = "slack";

/// A parsed subject of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    pub kind: MessageKind,
    pub priority: Priority,
    /// The tokens after the priority; empty for none. A foreign producer may use more characters than
    /// [`SubjectSuffix`].
    pub suffix: &'a str,
}

impl<'a> Subject<'a> {
    /// Parses a subject on which a message of the queue can be published; `None` for any other.
    pub fn parse(subject: &'a str) -> Option<Self> {
        let (kind, rest) = MessageKind::ALL.into_iter().find_map(|kind| {
            let rest = subject.strip_prefix(kind.prefix())?.strip_prefix('.')?;
            Some((kind, rest))
        })?;
        let (word, suffix) = rest
            .split_once('.')
            .map_or((rest, None), |(word, suffix)| (word, Some(suffix)));
        let priority = Priority::parse(word)?;
        if suffix.is_some_and(|suffix| !suffix.split('.').all(is_plain_token)) {
            return None;
        }
        Some(Self {
            kind,
            priority,
            suffix: suffix.unwrap_or_default(),
        })
    }

    /// Whether it is one of the subjects of questions from threads of Slack: `tarsy.questions.<priority>.slack`.
    pub fn is_of_slack(&self) -> bool {
        self.kind == MessageKind::Question && self.suffix == SLACK
    }
}

/// Whether a message can be published on a subject with this token: a wildcard only subscribes.
fn is_plain_token(token: &str) -> bool {
    !matches!(token, "" | "*" | ">")
        && !token.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// A suffix that a publisher may append to a subject of the queue, after the priority: `disk-full`,
/// `alertmanager.eu-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectSuffix(String);

/// A text that is not a [`SubjectSuffix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "accepted: words of letters, digits, `-` and `_`, separated by single dots, at most {MAX_SUFFIX_BYTES} bytes"
)]
pub struct InvalidSuffix;

const MAX_SUFFIX_BYTES: usize = 200;

impl FromStr for SubjectSuffix {
    type Err = InvalidSuffix;

    fn from_str(text: &str) -> Result<Self, InvalidSuffix> {
        if text.len() <= MAX_SUFFIX_BYTES && text.split('.').all(is_suffix_word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidSuffix)
        }
    }
}

fn is_suffix_word(word: &str) -> bool {
    let mut characters = word.chars();
    !word.is_empty() && characters.all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

impl fmt::Display for SubjectSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The queue that an alert waits in. The severity of the alert is a different thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Priority {
    Critical,
    High,
    Normal,
    /// One slot in eight goes to the lowest priority that has alerts, so it does not starve.
    Low,
}

tarsy_core::words!(pub Priority, pub ALL);

impl Priority {
    /// The name of its consumer with that of the stream, for people: `TARSY_ALERTS/critical`.
    pub(super) fn consumer(self) -> String {
        format!("{ALERTS}/{}", self.as_str())
    }

    /// The priority with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|priority| priority.as_str() == word)
    }

    /// The priority of a subject on which a message of the queue can be published; `None` for any other.
    pub fn of_subject(subject: &str) -> Option<Self> {
        Subject::parse(subject).map(|subject| subject.priority)
    }

    /// `tarsy.alerts.<priority>` or `tarsy.questions.<priority>`: the subject without a suffix.
    pub fn subject(self, kind: MessageKind) -> String {
        format!("{}.{}", kind.prefix(), self.as_str())
    }

    /// The filters of its consumer: the subjects of alerts and of questions, without and with a suffix.
    pub fn filters(self) -> Vec<String> {
        let subjects = MessageKind::ALL.map(|kind| self.subject(kind));
        subjects
            .into_iter()
            .flat_map(|subject| [subject.clone(), format!("{subject}.>")])
            .collect()
    }
}

impl From<Severity> for Priority {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::Critical,
            Severity::High => Self::High,
            Severity::Normal => Self::Normal,
            Severity::Low => Self::Low,
        }
    }
}

impl From<Priority> for Severity {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Critical => Self::Critical,
            Priority::High => Self::High,
            Priority::Normal => Self::Normal,
            Priority::Low => Self::Low,
        }
    }
}

pub(super) const ALL_TIMELINES: &str = "tarsy.timeline.*";
pub(super) const ALL_DEAD_LETTERS: &str = "tarsy.dead.*.*";
pub(super) const ALL_CONTROL: &str = "tarsy.control.*";
pub(super) const ALL_DECISIONS: &str = "tarsy.decisions.>";
pub(super) const ALL_VERDICTS: &str = "tarsy.verdicts.>";
pub(super) const ALL_WORKERS: &str = "tarsy.workers.*";
pub(super) const ALL_SYSTEMS: &str = "tarsy.systems.*";

/// The subject of a session's timeline events.
pub fn timeline_subject(session: SessionId) -> String {
    format!("tarsy.timeline.{session}")
}

/// The subject of a session's deltas (core NATS, no stream).
pub fn live_subject(session: SessionId) -> String {
    format!("tarsy.live.{session}")
}

/// The subject of cancel requests to a session.
pub fn control_subject(session: SessionId) -> String {
    format!("tarsy.control.{session}")
}

/// The subject of the dead letter of an alert.
pub fn dead_letter_subject(reason: DeadReason, alert: SessionId) -> String {
    format!("tarsy.dead.{}.{alert}", reason.as_str())
}

/// The subject of a worker's status (core NATS, no stream).
pub fn worker_subject(worker: WorkerId) -> String {
    format!("tarsy.workers.{worker}")
}

/// The subject of a worker's report about itself (core NATS, no stream).
pub fn system_subject(worker: WorkerId) -> String {
    format!("tarsy.systems.{worker}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_alone_decides_between_an_alert_and_a_question() {
        let parsed = |kind, priority, suffix| {
            Some(Subject {
                kind,
                priority,
                suffix,
            })
        };
        let cases = [
            (
                "tarsy.alerts.high",
                parsed(MessageKind::Alert, Priority::High, ""),
            ),
            (
                "tarsy.alerts.low.disk-full.eu",
                parsed(MessageKind::Alert, Priority::Low, "disk-full.eu"),
            ),
            (
                "tarsy.questions.critical",
                parsed(MessageKind::Question, Priority::Critical, ""),
            ),
            (
                "tarsy.questions.high.question",
                parsed(MessageKind::Question, Priority::High, "question"),
            ),
            (
                "tarsy.alerts.high.tarsy.questions.high",
                parsed(MessageKind::Alert, Priority::High, "tarsy.questions.high"),
            ),
            ("tarsy.questionshigh", None),
            ("tarsy.questions", None),
            ("tarsy.questions.high.", None),
            ("tarsy.questions.urgent", None),
        ];
        for (subject, expected) in cases {
            assert_eq!(Subject::parse(subject), expected, "{subject}");
            let kind = expected.map_or(MessageKind::Alert, |subject| subject.kind);
            assert_eq!(MessageKind::of_subject(subject), kind, "{subject}");
            assert!(
                !expected.is_some_and(|subject| subject.is_of_slack()),
                "{subject}"
            );
        }
        for (subject, is_of_slack) in [
            ("tarsy.questions.high.slack", true),
            ("tarsy.questions.low.slack", true),
            ("tarsy.questions.high.slack.eu", false),
            ("tarsy.questions.high.eu.slack", false),
            ("tarsy.alerts.high.slack", false),
        ] {
            let parsed = Subject::parse(subject).unwrap();
            assert_eq!(parsed.is_of_slack(), is_of_slack, "{subject}");
        }
        assert_eq!(
            Priority::Low.filters(),
            [
                "tarsy.alerts.low",
                "tarsy.alerts.low.>",
                "tarsy.questions.low",
                "tarsy.questions.low.>"
            ]
        );
    }

    #[test]
    fn a_suffix_consists_of_words_separated_by_single_dots() {
        for text in ["disk-full.eu_1", "question", "alertmanager.eu-1"] {
            assert_eq!(
                text.parse::<SubjectSuffix>()
                    .map(|suffix| suffix.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a b",
            "*",
            "a.*",
            "a.>",
            "a/b",
            "ü",
            &"a".repeat(201),
        ] {
            assert_eq!(text.parse::<SubjectSuffix>(), Err(InvalidSuffix), "{text}");
        }
    }

    #[test]
    fn only_a_subject_of_the_queue_has_a_priority() {
        assert_eq!(
            Priority::of_subject("tarsy.alerts.high"),
            Some(Priority::High)
        );
        assert_eq!(
            Priority::of_subject("tarsy.alerts.low.disk-full.eu"),
            Some(Priority::Low)
        );
        let others = [
            "tarsy.alerts",
            "tarsy.alerts.",
            "tarsy.alerts.urgent",
            "tarsy.alerts.high.",
            "tarsy.alerts.high.>",
        ];
        for other in others.into_iter().chain([
            "tarsy.alerts.high.a b",
            "tarsy.alerts.high..a",
            "tarsy.timeline.high",
            "",
        ]) {
            assert_eq!(Priority::of_subject(other), None, "{other}");
        }
    }
}
