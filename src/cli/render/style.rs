//! Output style: width, character set and colours.

use tarsy_core::timeline::rows::Tone;

pub use tarsy_core::readable::text::Charset;

/// The appearance of a timeline or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    pub charset: Charset,
    /// Colours carry meaning only; nothing is coloured for decoration.
    pub color: bool,
    /// Shows all of the model's thinking instead of its first sentence.
    pub thinking: bool,
    /// Shows the tokens of each call and whole errors as well.
    pub verbose: bool,
    /// Shows absolute times instead of the time since the start.
    pub utc: bool,
    /// Lists the sources of searches.
    pub sources: bool,
    /// Shows tool results whole.
    pub full: bool,
    pub prose: Prose,
    /// The terminal is known to understand links (OSC 8).
    pub hyperlinks: bool,
}

/// The display of a model's texts, which are Markdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prose {
    /// Line by line as the model wrote it: for a file or a pipe.
    #[default]
    Raw,
    /// Laid out within the width: for a terminal.
    Rendered,
}

impl Default for Style {
    /// The style for a file or a pipe: 120 columns and no colour.
    fn default() -> Self {
        Self {
            width: 120,
            charset: Charset::Unicode,
            color: false,
            thinking: false,
            verbose: false,
            utc: false,
            sources: false,
            full: false,
            prose: Prose::Raw,
            hyperlinks: false,
        }
    }
}

/// A colour, by its meaning.
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
    /// `text` in this colour, unless the style has no colours.
    pub(super) fn over(self, text: &str, style: &Style) -> String {
        let code = match self {
            Self::Plain => "",
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Green => "32",
        };
        if !style.color || code.is_empty() || text.trim().is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

impl From<Tone> for Paint {
    fn from(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Quiet => Self::Dim,
            Tone::Strong => Self::Bold,
            Tone::Bad => Self::Red,
            Tone::Caution => Self::Yellow,
            Tone::Good => Self::Green,
        }
    }
}
