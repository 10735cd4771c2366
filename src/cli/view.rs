//! The options that show a timeline, combined with what the terminal can do.

use std::io::IsTerminal;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::args::values::duration;
use crate::cli::render::timeline::{Charset, Prose, Style};
use crate::cli::terminal::Live;
use crate::cli::watch::Options;

/// Columns of an output that is not a terminal.
const DEFAULT_WIDTH: usize = 120;
/// Narrower tables are not readable: there the terminal may wrap.
const MIN_WIDTH: usize = 40;

/// The options of every command that shows a timeline.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Timeline")]
pub struct ViewArgs {
    /// One JSON object a line, as on the stream
    #[arg(long)]
    pub json: bool,
    /// Show answers while they are being written: always, never, or on a terminal only
    #[arg(
        long,
        hide_possible_values = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub live: When,
    /// Give up watching after this time, with exit code 3; the investigation continues
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Show all of the model's thinking, not only its first sentence
    #[arg(long, short)]
    pub thinking: bool,
    /// Also show the tokens of each call and whole errors
    #[arg(long, short)]
    pub verbose: bool,
    /// List the sources of searches
    #[arg(long, short)]
    pub sources: bool,
    /// Show tool results whole, not only their first line
    #[arg(long)]
    pub full: bool,
    /// Print only ASCII characters [default: if the locale is not UTF-8]
    #[arg(long)]
    pub ascii: bool,
    /// Colours: always, never, or on a terminal only
    #[arg(
        long,
        hide_possible_values = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub color: When,
    /// Show absolute times instead of the time since the start
    #[arg(long)]
    pub utc: bool,
}

/// Whether to use something that suits terminals only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    #[default]
    Auto,
    /// On every output
    Always,
    /// On no output
    Never,
}

/// The terminal that shows standard output, as far as the environment describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalEnv {
    /// Standard output is a terminal.
    pub is_terminal: bool,
    /// The terminal cannot move its cursor or show colours.
    pub is_dumb: bool,
    /// `NO_COLOR` is set.
    pub no_color: bool,
    /// The locale is UTF-8.
    pub is_utf8: bool,
    /// Columns; `None` if they are unknown.
    pub width: Option<usize>,
    /// The terminal understands links (OSC 8).
    pub has_hyperlinks: bool,
}

impl TerminalEnv {
    pub fn of_process() -> Self {
        let columns = variable("COLUMNS").and_then(|columns| columns.parse().ok());
        Self {
            is_terminal: std::io::stdout().is_terminal(),
            is_dumb: variable("TERM").is_some_and(|term| term == "dumb"),
            no_color: variable("NO_COLOR").is_some(),
            // The first of them that is set decides, as in the C library.
            is_utf8: ["LC_ALL", "LC_CTYPE", "LANG"]
                .into_iter()
                .find_map(variable)
                .is_some_and(|locale| is_utf8(&locale)),
            width: terminal_size::terminal_size()
                .map(|(width, _)| usize::from(width.0))
                .or(columns),
            has_hyperlinks: has_hyperlinks(variable),
        }
    }

    /// The style of tables and lists.
    pub fn style(&self) -> Style {
        Style {
            width: self.width.unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH),
            charset: if self.is_utf8 {
                Charset::Unicode
            } else {
                Charset::Ascii
            },
            color: self.is_terminal && !self.is_dumb && !self.no_color,
            prose: if self.is_terminal {
                Prose::Rendered
            } else {
                Prose::Raw
            },
            hyperlinks: self.is_terminal && !self.is_dumb && self.has_hyperlinks,
            ..Style::default()
        }
    }
}

impl ViewArgs {
    /// The options for following a timeline in this terminal.
    pub fn options(&self, terminal: &TerminalEnv) -> Options {
        let live = match (self.live, self.json) {
            (When::Never, _) | (When::Auto, true) => Live::Off,
            (When::Auto, false) if !terminal.is_terminal || terminal.is_dumb => Live::Off,
            (When::Always, false) if terminal.is_terminal && !terminal.is_dumb => Live::Redraw,
            (When::Auto, false) => Live::Redraw,
            (When::Always, _) => Live::Lines,
        };
        Options {
            style: self.style(terminal),
            agent: None,
            json: self.json,
            live,
            timeout: self.timeout,
            ends_with_us: false,
        }
    }

    fn style(&self, terminal: &TerminalEnv) -> Style {
        let common = terminal.style();
        Style {
            charset: if self.ascii {
                Charset::Ascii
            } else {
                common.charset
            },
            color: match self.color {
                When::Auto => common.color,
                When::Always => true,
                When::Never => false,
            },
            thinking: self.thinking,
            verbose: self.verbose,
            utc: self.utc,
            sources: self.sources,
            full: self.full,
            ..common
        }
    }
}

/// A variable; an empty one counts as not set.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the variables name a terminal that shows links. Within tmux and screen they name the one outside.
fn has_hyperlinks(variable: impl Fn(&str) -> Option<String>) -> bool {
    const PROGRAMS: [&str; 4] = ["iTerm.app", "WezTerm", "vscode", "ghostty"];
    const TERMS: [&str; 4] = ["xterm-kitty", "xterm-ghostty", "alacritty", "foot"];
    if variable("TMUX").is_some() || variable("STY").is_some() {
        return false;
    }
    let text = |name| variable(name).unwrap_or_default();
    let number = |name| text(name).parse::<u32>().unwrap_or_default();
    PROGRAMS.contains(&text("TERM_PROGRAM").as_str())
        || TERMS.contains(&text("TERM").as_str())
        || variable("WT_SESSION").is_some()
        || number("VTE_VERSION") >= 5000
        || number("KONSOLE_VERSION") >= 201_200
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        view: ViewArgs,
    }

    fn options(arguments: &[&str], terminal: &TerminalEnv) -> Options {
        let arguments = ["tarsy"].iter().chain(arguments);
        Only::try_parse_from(arguments)
            .unwrap()
            .view
            .options(terminal)
    }

    fn terminal() -> TerminalEnv {
        TerminalEnv {
            is_terminal: true,
            is_utf8: true,
            width: Some(80),
            ..TerminalEnv::default()
        }
    }

    #[test]
    fn a_terminal_gets_colours_symbols_and_a_live_line() {
        let expected = Options {
            style: Style {
                width: 80,
                color: true,
                prose: Prose::Rendered,
                ..Style::default()
            },
            agent: None,
            json: false,
            live: Live::Redraw,
            timeout: None,
            ends_with_us: false,
        };
        assert_eq!(options(&[], &terminal()), expected);
        let thirty = Options {
            timeout: Some(Duration::from_secs(30)),
            ..expected
        };
        assert_eq!(options(&["--timeout", "30s"], &terminal()), thirty);
    }

    #[test]
    fn a_pipe_gets_neither_colours_nor_live_lines_unless_asked_for() {
        let pipe = TerminalEnv {
            is_terminal: false,
            width: None,
            ..terminal()
        };
        let style = Style::default();
        let expected = Options {
            style: style.clone(),
            agent: None,
            json: false,
            live: Live::Off,
            timeout: None,
            ends_with_us: false,
        };
        assert_eq!(options(&[], &pipe), expected);
        let asked = Options {
            style: Style {
                color: true,
                ..style
            },
            live: Live::Lines,
            ..expected
        };
        assert_eq!(
            options(&["--live", "always", "--color", "always"], &pipe),
            asked
        );
    }

    #[test]
    fn deltas_are_printed_as_json_only_when_asked_for() {
        assert_eq!(options(&["--json"], &terminal()).live, Live::Off);
        assert_eq!(
            options(&["--json", "--live", "always"], &terminal()).live,
            Live::Lines
        );
    }

    #[test]
    fn no_color_a_dumb_terminal_and_another_locale_are_respected() {
        let plain = TerminalEnv {
            no_color: true,
            is_dumb: true,
            is_utf8: false,
            ..terminal()
        };
        let found = options(&[], &plain);
        assert_eq!(
            (found.style.color, found.style.charset, found.live),
            (false, Charset::Ascii, Live::Off)
        );
        assert!(options(&["--color", "always"], &plain).style.color);
        assert_eq!(
            ["de_DE.UTF-8", "C.utf8", "C", "en_US.ISO-8859-1"].map(is_utf8),
            [true, true, false, false]
        );
    }
}
