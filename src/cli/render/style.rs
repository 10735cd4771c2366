//! What a timeline looks like: width, symbols, colours.

/// How a timeline is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// No character above 127.
    pub ascii: bool,
    /// Colours, for meaning only.
    pub color: bool,
    /// The whole thinking, not only its first sentence.
    pub thinking: bool,
    /// Stages of single-stage chains and the tokens of each call, too.
    pub verbose: bool,
    /// Absolute times.
    pub utc: bool,
    /// The sources of searches.
    pub sources: bool,
}

impl Default for Style {
    /// 120 columns, no colour: what a file or a pipe gets.
    fn default() -> Self {
        Self { width: 120, ascii: false, color: false, thinking: false, verbose: false, utc: false, sources: false }
    }
}

/// What a line is about, as one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
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
    End,
    Unknown,
}

impl Symbol {
    pub(super) fn glyph(self, ascii: bool) -> &'static str {
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
            Self::End => ("■", "."),
            Self::Unknown => ("·", "-"),
        };
        if ascii { plain } else { glyph }
    }
}

/// What a colour means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Paint {
    #[default]
    Plain,
    /// Thinking, time.
    Dim,
    /// Names of tools.
    Bold,
    /// Errors, failed ends.
    Red,
    /// Resumed, fallback, cut, unknown.
    Yellow,
    /// Analysis, completed.
    Green,
}

impl Paint {
    pub(super) fn over(self, text: &str, color: bool) -> String {
        let code = match self {
            Self::Plain => "",
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Green => "32",
        };
        if !color || code.is_empty() || text.trim().is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
