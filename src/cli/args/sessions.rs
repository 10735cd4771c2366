//! Arguments about sessions and dead letters.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::values::{duration, header_value, since, until};
use crate::cli::session_ref::SessionRef;
use crate::cli::view::ViewArgs;
use tarsy_core::alert::Severity;
use tarsy_core::clock::Moment;
use tarsy_core::past::{DEFAULT_DAYS, MAX_DAYS};
use tarsy_engine::ports::RunStatus;
use tarsy_reports::Label;
use tarsy_reports::calls::CallNumber;

/// A list shows at most so many rows.
const MAX_LIST: i64 = 1000;

/// Arguments of `ask`.
#[derive(Args, Clone, Debug)]
pub struct AskArgs {
    /// The investigation, or a question about it: the id, or at least six characters of its beginning or end
    pub session: SessionRef,
    /// The question; - reads standard input
    #[arg(required = true, num_args = 1..)]
    pub question: Vec<String>,
    /// Which queue it waits in: critical, high, normal or low [default: high, or critical as the alert]
    #[arg(long, short, value_name = "PRIORITY")]
    pub priority: Option<Severity>,
    /// The chain whose agent answers [default: that of the investigation]
    #[arg(long, value_name = "CHAIN", value_parser = header_value)]
    pub chain: Option<String>,
    /// Print the id of the question's session and do not wait for the answer
    #[arg(long)]
    pub no_watch: bool,
    #[command(flatten)]
    pub view: ViewArgs,
}

/// The commands about sessions.
#[derive(Clone, Debug, Subcommand)]
pub enum SessionsCommand {
    /// List sessions, the newest first
    #[command(alias = "ls")]
    List(SessionsListArgs),
    /// Show one session: what it did, what it used, what came of it
    Show(SessionsShowArgs),
    /// Show the earlier investigations of the alert of a session
    Past(SessionsPastArgs),
    /// Find the events of a session that contain a text
    Search(SessionsSearchArgs),
    /// Investigate the alert of a session again, as a new session
    Rerun(SessionsRerunArgs),
    /// Ask for a session to be cancelled
    Cancel(SessionsCancelArgs),
}

/// Arguments of `sessions list`.
#[derive(Args, Clone, Debug)]
pub struct SessionsListArgs {
    /// The largest number of rows
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_LIST))]
    pub limit: u32,
    #[arg(
        long,
        help = status_help(),
        value_name = "STATUS",
        hide_possible_values = true,
        value_delimiter = ',',
        value_parser = status()
    )]
    pub status: Vec<RunStatus>,
    /// Only those with this severity: critical, high, normal, low; several with commas
    #[arg(
        long,
        value_name = "SEVERITY",
        hide_possible_values = true,
        value_delimiter = ','
    )]
    pub severity: Vec<Severity>,
    /// Only those of this chain; several with commas
    #[arg(long, value_name = "CHAIN", value_delimiter = ',', value_parser = header_value)]
    pub chain: Vec<String>,
    /// Only those whose alert came from this source, such as alertmanager; several with commas
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', value_parser = header_value)]
    pub source: Vec<String>,
    /// Only those whose alert has this label; repeated: each of them
    #[arg(long, value_name = "KEY=VALUE", value_parser = Label::from_str)]
    pub label: Vec<Label>,
    /// Only those that were opened since then: 30m, 24h, 7d, today, yesterday, 2026-11-27, 2026-11-27T10:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Moment>,
    /// Only those that were opened before then; of a day: up to its end
    #[arg(long, value_name = "TIME", value_parser = until)]
    pub until: Option<Moment>,
    /// Only those with these words in alert or analysis; "two words" for a phrase, -word for one that must not be there
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub search: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// A status as users write it.
fn status_word(status: RunStatus) -> &'static str {
    if status == RunStatus::TimedOut {
        "timed-out"
    } else {
        status.as_str()
    }
}

fn status_help() -> String {
    let words = RunStatus::ALL.map(status_word).join(", ");
    format!("Only those with this status: {words}; several with commas")
}

fn status_meaning(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "Being investigated",
        RunStatus::Completed => "With an analysis",
        RunStatus::Failed => "Without one",
        RunStatus::Cancelled => "On request",
        RunStatus::TimedOut => "Past its deadline",
        RunStatus::Limited => "Lists alerts above the limit of their route",
        RunStatus::Unknown(_) => "Of a later version",
    }
}

/// Reads a status as users write it, or as it is stored.
fn status() -> impl TypedValueParser<Value = RunStatus> {
    let words = RunStatus::ALL.map(|status| {
        PossibleValue::new(status_word(status))
            .help(status_meaning(status))
            .alias(status.as_str())
    });
    PossibleValuesParser::new(words).try_map(|given| {
        RunStatus::ALL
            .into_iter()
            .find(|status| given == status_word(*status) || given == status.as_str())
            .ok_or("no status")
    })
}

/// Arguments of `sessions show`.
#[derive(Args, Clone, Debug)]
pub struct SessionsShowArgs {
    /// The id, or at least six characters of its beginning or end
    pub session: SessionRef,
    /// As Markdown, for the ticket
    #[arg(long, conflicts_with = "json")]
    pub report: bool,
    /// List its model calls, each with its number
    #[arg(long, conflicts_with_all = ["report", "prompt"])]
    pub prompts: bool,
    /// Show what the model saw in the call with this number, or in the last one: 7, last
    #[arg(long, value_name = "CALL", conflicts_with = "report")]
    pub prompt: Option<CallNumber>,
    /// As one JSON object; with --prompts one a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `sessions past`.
#[derive(Args, Clone, Debug)]
pub struct SessionsPastArgs {
    /// The id, or at least six characters of its beginning or end
    pub session: SessionRef,
    /// How many days before the session began
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_DAYS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DAYS)))]
    pub days: u32,
    /// The largest number of rows
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_LIST))]
    pub limit: u32,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `sessions search`.
#[derive(Args, Clone, Debug)]
pub struct SessionsSearchArgs {
    /// The id, or at least six characters of its beginning or end
    pub session: SessionRef,
    /// The text as it is, in any case: no pattern; at most 200 bytes
    #[arg(required = true, num_args = 1..)]
    pub text: Vec<String>,
    /// Only events after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub after: u32,
    /// The largest number of rows
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_LIST))]
    pub limit: u32,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `sessions rerun`.
#[derive(Args, Clone, Debug)]
pub struct SessionsRerunArgs {
    /// The id, or at least six characters of its beginning or end
    pub session: SessionRef,
    /// The chain of agents to use [default: the chain of the first investigation]
    #[arg(long, value_name = "CHAIN", value_parser = header_value)]
    pub chain: Option<String>,
    /// Follow the new investigation to its end
    #[arg(long, short)]
    pub watch: bool,
    #[command(flatten)]
    pub view: ViewArgs,
}

/// Arguments of `sessions cancel`.
#[derive(Args, Clone, Debug)]
pub struct SessionsCancelArgs {
    /// The id, or at least six characters of its beginning or end
    pub session: SessionRef,
    /// Wait until it has ended; exit code 1 if it was not cancelled
    #[arg(long)]
    pub wait: bool,
    /// Give up waiting after this time, with exit code 3; the request stays
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "wait", default_value = "60s")]
    pub timeout: Duration,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The commands about dead letters.
#[derive(Clone, Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List undeliverable alerts, the newest first
    #[command(alias = "ls")]
    List(DeadLettersListArgs),
    /// Show one of them, and why it is undeliverable
    Show(DeadLettersShowArgs),
    /// Queue one again, as a new session
    Retry(DeadLettersRetryArgs),
    /// Remove one for good
    Drop(DeadLettersDropArgs),
}

/// Arguments of `dead-letters list`.
#[derive(Args, Clone, Debug)]
pub struct DeadLettersListArgs {
    /// The largest number of rows
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MAX_LIST))]
    pub limit: u32,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `dead-letters show`.
#[derive(Args, Clone, Debug)]
pub struct DeadLettersShowArgs {
    /// The alert's id or a part of it, or @ and the number of the dead letter
    pub letter: LetterRef,
    /// Print the alert itself, and nothing else
    #[arg(long, conflicts_with = "json")]
    pub body: bool,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `dead-letters retry`.
#[derive(Args, Clone, Debug)]
pub struct DeadLettersRetryArgs {
    /// The alert's id or a part of it, or @ and the number of the dead letter
    pub letter: LetterRef,
    /// The chain of agents to use [default: the chain that the alert names]
    #[arg(long, value_name = "CHAIN", value_parser = header_value)]
    pub chain: Option<String>,
    /// Follow the investigation to its end
    #[arg(long, short)]
    pub watch: bool,
    #[command(flatten)]
    pub view: ViewArgs,
}

/// Arguments of `dead-letters drop`.
#[derive(Args, Clone, Debug)]
pub struct DeadLettersDropArgs {
    /// The alert's id or a part of it, or @ and the number of the dead letter
    pub letter: LetterRef,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

/// A reference to a dead letter: to its alert, or to its own number if the alert has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LetterRef {
    /// The alert's id or a part of it.
    Alert(SessionRef),
    /// Its sequence in the stream of dead letters.
    Number(u64),
}

impl FromStr for LetterRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix('@') {
            Some(number) => number
                .parse()
                .map(Self::Number)
                .map_err(|_| "accepted: @ and a number".to_owned()),
            None => text.parse().map(Self::Alert),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_the_list_names_every_status() {
        let mut command = SessionsListArgs::augment_args(clap::Command::new("list"));
        let help = command.render_help().to_string().replace('\n', " ");
        let words: Vec<&str> = help.split_whitespace().collect();
        let named = "this status: running, completed, failed, cancelled, timed-out, limited;";
        assert!(words.join(" ").contains(named), "{help}");
    }

    #[test]
    fn a_dead_letter_is_named_by_its_alert_or_by_its_number() {
        assert_eq!("@12".parse(), Ok(LetterRef::Number(12)));
        assert!(matches!("0d4be6c1".parse(), Ok(LetterRef::Alert(_))));
        for wrong in ["@", "@x", "12"] {
            assert!(wrong.parse::<LetterRef>().is_err(), "{wrong}");
        }
    }
}
