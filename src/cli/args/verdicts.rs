//! Arguments of `verdict` and `verdicts`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::approvals::{PersonArgs, person_text};
use super::values::since;
use crate::cli::session_ref::SessionRef;
use tarsy_core::clock::Moment;
use tarsy_core::verdicts::Rating;

/// Arguments of `verdict`.
#[derive(Args, Clone, Debug)]
pub struct VerdictArgs {
    /// The investigation, which is over: the id, or at least six characters of its beginning or end
    pub session: SessionRef,
    /// The verdict: right, partly or wrong
    #[arg(value_name = "VERDICT", hide_possible_values = true, value_parser = rating())]
    pub rating: Rating,
    /// The real cause
    #[arg(long, value_name = "TEXT", value_parser = person_text)]
    pub cause: Option<String>,
    /// The words about what you did
    #[arg(long, value_name = "TEXT", value_parser = person_text)]
    pub action: Option<String>,
    #[command(flatten)]
    pub person: PersonArgs,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The commands about verdicts of people.
#[derive(Clone, Debug, Subcommand)]
pub enum VerdictsCommand {
    /// Print every judged investigation with its newest verdict, for an evaluation
    Export(VerdictsExportArgs),
}

/// Arguments of `verdicts export`.
#[derive(Args, Clone, Debug)]
pub struct VerdictsExportArgs {
    /// Only those whose newest verdict came since then: 30m, 24h, 30d, today, yesterday, 2026-11-27, 2026-11-27T10:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Moment>,
    /// One JSON object a line, the only form
    #[arg(long, required = true)]
    pub jsonl: bool,
}

fn rating() -> impl TypedValueParser<Value = Rating> {
    PossibleValuesParser::new(Rating::ALL.map(Rating::as_str)).try_map(|given| {
        Rating::ALL
            .into_iter()
            .find(|rating| given == rating.as_str())
            .ok_or("no verdict")
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn read(words: &[&str]) -> Option<VerdictArgs> {
        let line = [&["tarsy", "verdict"][..], words].concat();
        let cli = Cli::read(line.iter().map(OsString::from)).ok()?;
        let Command::Verdict(args) = cli.command else {
            panic!("{line:?}")
        };
        Some(args)
    }

    #[test]
    fn a_verdict_is_one_of_three_words() {
        for rating in Rating::ALL {
            let args = read(&["7f3a9c12", rating.as_str()]).unwrap();
            assert_eq!(args.rating, rating);
        }
        for words in [
            &["7f3a9c12"][..],
            &["7f3a9c12", "good"],
            &["7f3a9c12", "Right"],
            &["7f3a", "right"],
        ] {
            assert!(read(words).is_none(), "{words:?}");
        }
    }

    #[test]
    fn cause_and_action_are_two_texts_and_neither_is_empty() {
        let args = read(&["7f3a9c12", "wrong", "--cause", " a leak ", "--as", "ana"]).unwrap();
        assert_eq!(
            (args.cause.as_deref(), args.action.as_deref()),
            (Some("a leak"), None)
        );
        let long = "a".repeat(2_001);
        for text in ["", " ", long.as_str()] {
            assert!(read(&["7f3a9c12", "wrong", "--action", text]).is_none());
        }
    }
}
