//! `tarsy completions` and `tarsy man`: shell completions and manual pages.
//!
//! A shell asks the program at each Tab, so that it proposes the sessions that there are.

mod proposals;
mod requests;
mod sessions;

use std::io::Write as _;

use anyhow::{Context as _, bail};
use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::Shells;
use clap_mangen::Man;

use super::output::note;
use crate::cli::args::{Cli, CompletionsArgs, ManArgs};
use crate::cli::exit::Exit;

/// The variable with which a shell asks. Its value is the name of the shell.
const VARIABLE: &str = "TARSY_COMPLETE";
const PROGRAM: &str = "tarsy";
/// The argument that names a session, in every command that has one.
const SESSION: &str = "session";
/// The argument that names a call that waits for a person.
const REQUEST: &str = "request";

/// Answers the question of a shell and ends the process; does nothing if no shell asks.
pub fn answer_shell() {
    CompleteEnv::with_factory(proposing)
        .var(VARIABLE)
        .bin(PROGRAM)
        .completer(PROGRAM)
        .complete();
}

/// The command line as a shell completes it.
fn proposing() -> Command {
    with_sessions(Cli::shown())
}

fn with_sessions(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        if argument.get_id() == SESSION {
            argument.add(ArgValueCompleter::new(sessions::named))
        } else if argument.get_id() == REQUEST {
            argument.add(ArgValueCompleter::new(requests::named))
        } else {
            argument
        }
    });
    command.mut_subcommands(with_sessions)
}

pub(super) fn completions(args: CompletionsArgs) -> anyhow::Result<Exit> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&args.shell.to_string())
        .context("no completions for this shell")?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}

pub(super) fn man(args: ManArgs) -> anyhow::Result<Exit> {
    if let Some(directory) = &args.directory {
        let shown = directory.display();
        std::fs::create_dir_all(directory).with_context(|| format!("cannot create {shown}"))?;
        clap_mangen::generate_to(Cli::shown(), directory)
            .with_context(|| format!("cannot write to {shown}"))?;
        note(&format!(
            "Wrote a page for each command: man {shown}/tarsy.1"
        ))?;
        return Ok(Exit::Done);
    }
    let mut root = Cli::shown().disable_help_subcommand(true);
    root.build();
    let found = args
        .command
        .iter()
        .try_fold(&root, |command, word| command.find_subcommand(word));
    let Some(command) = found else {
        bail!("no command \"tarsy {}\"", args.command.join(" "))
    };
    let mut page = Vec::new();
    let version = root.get_version().unwrap_or_default();
    Man::new(command.clone())
        .source(format!("{PROGRAM} {version}"))
        .render(&mut page)?;
    std::io::stdout().write_all(&page)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_that_names_a_session_proposes_some() {
        let proposes = |words: &[&str]| {
            let root = proposing();
            let command = words
                .iter()
                .try_fold(&root, |command, word| command.find_subcommand(word))
                .unwrap();
            let mut arguments = command.get_arguments();
            arguments.any(|argument| {
                argument.get_id() == SESSION && argument.get::<ArgValueCompleter>().is_some()
            })
        };
        for words in [
            &["watch"][..],
            &["ask"],
            &["sessions", "show"],
            &["sessions", "rerun"],
            &["sessions", "cancel"],
            &["verdict"],
        ] {
            assert!(proposes(words), "{words:?}");
        }
        assert!(!proposes(&["submit"]));
    }
}
