//! Streams, subjects and priorities: every name that another program could see.

use std::fmt;
use std::str::FromStr;

use crate::engine::ports::DeadReason;
use crate::investigation::alert::Severity;
use crate::investigation::ids::{SessionId, WorkerId};

/// The queue of alerts and of questions.
pub const ALERTS: &str = "TARSY_ALERTS";
/// The fan-out of timeline events.
pub const TIMELINE: &str = "TARSY_TIMELINE";
/// Alerts that were given up.
pub const DEAD_LETTERS: &str = "TARSY_DEAD_LETTERS";
/// Requests to a running session.
pub const CONTROL: &str = "TARSY_CONTROL";

/// What a message of the queue is, by its subject alone. A broker's permissions are by subject, so they tell programs
/// that ask from programs that monitor; no header changes the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Data: something fires, or is resolved. `tarsy.alerts.<priority>`.
    Alert,
    /// A person's task: a question about an investigation that is over. `tarsy.questions.<priority>`.
    Question,
}

impl MessageKind {
    /// Both of them.
    const ALL: [Self; 2] = [Self::Alert, Self::Question];

    fn prefix(self) -> &'static str {
        match self {
            Self::Alert => "tarsy.alerts",
            Self::Question => "tarsy.questions",
        }
    }

    /// The kind of a message on this subject. What is on no subject of the queue is an alert: data that allows nothing.
    pub fn of_subject(subject: &str) -> Self {
        Subject::parse(subject).map_or(Self::Alert, |subject| subject.kind)
    }
}

/// A subject of the queue, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// What its messages are.
    pub kind: MessageKind,
    /// How they are queued.
    pub priority: Priority,
    /// What follows the priority, without the dot between them; empty for nothing.
    pub suffix: &'a str,
}

impl<'a> Subject<'a> {
    /// Takes a subject apart that a message of the queue can be published on; `None` for any other.
    pub fn parse(subject: &'a str) -> Option<Self> {
        let is_plain = |word: &str| {
            !word.is_empty() && word != "*" && word != ">" && !word.chars().any(|c| c.is_whitespace() || c.is_control())
        };
        let of = |kind: MessageKind| Some((kind, subject.strip_prefix(kind.prefix())?.strip_prefix('.')?));
        let (kind, rest) = MessageKind::ALL.into_iter().find_map(of)?;
        let (word, suffix) = rest.split_once('.').map_or((rest, None), |(word, suffix)| (word, Some(suffix)));
        let priority = Priority::parse(word)?;
        let is_sound = suffix.is_none_or(|suffix| suffix.split('.').all(is_plain));
        is_sound.then(|| Self { kind, priority, suffix: suffix.unwrap_or_default() })
    }
}

/// What a publisher may append to a subject of the queue, behind the priority: `disk-full`, `alertmanager.eu-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectSuffix(String);

/// A text that is not a [`SubjectSuffix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("accepted: words of letters, digits, `-` and `_`, separated by single dots, at most {MAX_SUFFIX_BYTES} bytes")]
pub struct InvalidSuffix;

const MAX_SUFFIX_BYTES: usize = 200;

impl FromStr for SubjectSuffix {
    type Err = InvalidSuffix;

    fn from_str(text: &str) -> Result<Self, InvalidSuffix> {
        let is_word =
            |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let is_suffix = text.len() <= MAX_SUFFIX_BYTES && text.split('.').all(is_word);
        if is_suffix { Ok(Self(text.to_owned())) } else { Err(InvalidSuffix) }
    }
}

impl fmt::Display for SubjectSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How an alert is queued. Has nothing to do with how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Priority {
    /// First.
    Critical,
    /// Second.
    High,
    /// Third; the default of `submit`.
    Normal,
    /// Last, but never starved.
    Low,
}

impl Priority {
    /// All of them, the highest first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// The word in subjects; the name of its consumer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// The priority of a word; `None` for one that names none.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.as_str() == word)
    }

    /// The priority of a subject that a message of the queue can be published on; `None` for any other.
    pub fn of_subject(subject: &str) -> Option<Self> {
        Subject::parse(subject).map(|subject| subject.priority)
    }

    /// `tarsy.alerts.<priority>` or `tarsy.questions.<priority>`: messages without a suffix.
    pub fn subject(self, kind: MessageKind) -> String {
        format!("{}.{}", kind.prefix(), self.as_str())
    }

    /// Every form of its subjects, as its consumer filters them: of alerts and of questions, without and with a suffix.
    pub fn filters(self) -> Vec<String> {
        let forms = |kind| [self.subject(kind), format!("{}.>", self.subject(kind))];
        MessageKind::ALL.into_iter().flat_map(forms).collect()
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

/// Every session's events.
pub(super) const ALL_TIMELINES: &str = "tarsy.timeline.*";
/// Every alert that was given up.
pub(super) const ALL_DEAD_LETTERS: &str = "tarsy.dead.*.*";
/// Every request to a session.
pub(super) const ALL_CONTROL: &str = "tarsy.control.*";
/// Every worker that says that it is there.
pub(super) const ALL_WORKERS: &str = "tarsy.workers.*";

/// Where a session's events are published.
pub fn timeline_subject(session: SessionId) -> String {
    format!("tarsy.timeline.{session}")
}

/// Where a session's deltas are shown (core NATS, no stream).
pub fn live_subject(session: SessionId) -> String {
    format!("tarsy.live.{session}")
}

/// Where requests to a session are kept.
pub fn control_subject(session: SessionId) -> String {
    format!("tarsy.control.{session}")
}

/// Where an alert that was given up is kept.
pub fn dead_letter_subject(reason: DeadReason, alert: SessionId) -> String {
    format!("tarsy.dead.{}.{alert}", reason.as_str())
}

/// Where a worker says that it is there (core NATS, no stream).
pub fn worker_subject(worker: WorkerId) -> String {
    format!("tarsy.workers.{worker}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_alone_says_whether_its_message_is_an_alert_or_a_question() {
        let parsed = |kind, priority, suffix| Some(Subject { kind, priority, suffix });
        let cases = [
            ("tarsy.alerts.high", parsed(MessageKind::Alert, Priority::High, "")),
            ("tarsy.alerts.low.disk-full.eu", parsed(MessageKind::Alert, Priority::Low, "disk-full.eu")),
            ("tarsy.questions.critical", parsed(MessageKind::Question, Priority::Critical, "")),
            ("tarsy.questions.high.question", parsed(MessageKind::Question, Priority::High, "question")),
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
        }
        assert_eq!(
            Priority::Low.filters(),
            ["tarsy.alerts.low", "tarsy.alerts.low.>", "tarsy.questions.low", "tarsy.questions.low.>"]
        );
    }

    #[test]
    fn a_suffix_consists_of_words_separated_by_single_dots() {
        for text in ["disk-full.eu_1", "question", "alertmanager.eu-1"] {
            assert_eq!(text.parse::<SubjectSuffix>().map(|suffix| suffix.to_string()), Ok(text.to_owned()));
        }
        for text in ["", ".", "a.", ".a", "a..b", "a b", "*", "a.*", "a.>", "a/b", "ü", &"a".repeat(201)] {
            assert_eq!(text.parse::<SubjectSuffix>(), Err(InvalidSuffix), "{text}");
        }
    }

    #[test]
    fn only_a_subject_of_the_queue_has_a_priority() {
        assert_eq!(Priority::of_subject("tarsy.alerts.high"), Some(Priority::High));
        assert_eq!(Priority::of_subject("tarsy.alerts.low.disk-full.eu"), Some(Priority::Low));
        let others =
            ["tarsy.alerts", "tarsy.alerts.", "tarsy.alerts.urgent", "tarsy.alerts.high.", "tarsy.alerts.high.>"];
        for other in
            others.into_iter().chain(["tarsy.alerts.high.a b", "tarsy.alerts.high..a", "tarsy.timeline.high", ""])
        {
            assert_eq!(Priority::of_subject(other), None, "{other}");
        }
    }
}
