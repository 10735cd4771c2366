//! The content of one row: words without a layout.

use super::code::Code;
use super::footnotes::Footnotes;
use crate::readable::format;
use crate::readable::text::Charset;

/// The content of an event's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub kind: Kind,
    /// A few words, such as the name of the tool.
    pub name: String,
    pub name_tone: Tone,
    pub took_ms: Option<u64>,
    pub body: Body,
    pub body_tone: Tone,
    pub marks: Vec<Mark>,
    /// The pages that a search found, one line each.
    pub sources: Vec<String>,
    /// The pages that the provider could not read, with the reason, one line each.
    pub unread: Vec<String>,
    /// The tokens of the model call.
    pub tokens: Option<String>,
    /// The totals of a session at its end.
    pub totals: String,
    /// The number of the event of the call that a result belongs to.
    pub call: Option<u32>,
    /// The numbers of the events of the calls that had no result yet when another worker took the session over.
    pub open_calls: Vec<u32>,
    /// The number of the event that began the sub-agent of this row; `None` for any other row.
    pub branch: Option<u32>,
}

impl Row {
    /// A row with one line of text.
    pub(super) fn line(kind: Kind, name: &str, content: &str) -> Self {
        let words: Vec<&str> = content.split_whitespace().collect();
        Self::new(kind, name, Body::Line(words.join(" ")))
    }

    pub(super) fn new(kind: Kind, name: impl Into<String>, body: Body) -> Self {
        Self {
            kind,
            name: name.into(),
            name_tone: Tone::Plain,
            took_ms: None,
            body,
            body_tone: Tone::Plain,
            marks: Vec::new(),
            sources: Vec::new(),
            unread: Vec::new(),
            tokens: None,
            totals: String::new(),
            call: None,
            open_calls: Vec::new(),
            branch: None,
        }
    }

    /// The same row in one tone.
    pub(super) fn toned(self, tone: Tone) -> Self {
        Self {
            name_tone: tone,
            body_tone: tone,
            ..self
        }
    }
}

/// The text of a row. Texts of models ([`Footnotes`]) and whole results are not cleaned, all others are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Line(String),
    /// A text of a model of which the first sentence is shown first.
    Folded(Footnotes),
    /// A text of a model that is shown whole; where there is little room, so many lines of it.
    Prose {
        text: Footnotes,
        limit: Option<usize>,
    },
    /// A text that is shown whole; where there is little room, so many lines of it.
    Whole {
        text: String,
        limit: Option<usize>,
    },
    /// The result of a tool: what it says in one line, and all of it.
    Result {
        line: String,
        whole: String,
    },
    /// A program that the provider ran.
    Code(Code),
}

/// A remark about the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub long: String,
    /// The text for a narrow column.
    pub short: String,
    pub tone: Tone,
}

impl Mark {
    /// A remark that is short enough.
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        let text = text.into();
        Self {
            short: text.clone(),
            long: text,
            tone,
        }
    }

    /// The size of a result.
    pub(super) fn bytes(bytes: u64) -> Self {
        Self::new(format::bytes(bytes), Tone::Quiet)
    }
}

/// The tone of a text: plain, quiet, strong, bad, caution or good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    /// Thinking, time, sizes.
    Quiet,
    /// Names of tools.
    Strong,
    /// Errors, failed ends.
    Bad,
    /// A takeover, a fallback, a cut result, an unknown event.
    Caution,
    /// The analysis, a completed end.
    Good,
}

/// The kind of a row; shown as one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Start,
    Thinking,
    Call,
    Result,
    Search,
    Code,
    Analysis,
    Error,
    Resumed,
    Fallback,
    Joined,
    Wait,
    End,
    Unknown,
}

impl Kind {
    /// The character of the kind.
    pub fn glyph(self, charset: Charset) -> &'static str {
        let (glyph, plain) = match self {
            Self::Start => ("●", "*"),
            Self::Thinking => ("∴", "~"),
            Self::Call => ("→", ">"),
            Self::Result => ("←", "<"),
            Self::Search => ("⌕", "?"),
            Self::Code => ("λ", "="),
            Self::Analysis => ("✔", "#"),
            Self::Error => ("!", "!"),
            Self::Resumed => ("↻", "@"),
            Self::Fallback => ("⇄", "%"),
            Self::Joined => ("+", "+"),
            Self::Wait => ("◷", ":"),
            Self::End => ("■", "."),
            Self::Unknown => ("·", "-"),
        };
        charset.pick(glyph, plain)
    }
}
