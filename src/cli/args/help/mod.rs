//! The text below the options in each command's help: examples, then notes.

mod table;

use clap::Command;

use table::{HELPS, Help};

/// The command line with examples and notes in the help of every command.
pub(super) fn with_help(root: Command) -> Command {
    HELPS
        .iter()
        .fold(root, |root, help| placed(root, help.command, &text(help)))
}

fn text(help: &Help) -> String {
    let examples: String = help
        .examples
        .iter()
        .map(|line| format!("\n  {line}"))
        .collect();
    let notes = if help.notes.is_empty() {
        String::new()
    } else {
        format!("\n\n{}", help.notes)
    };
    let word = if help.examples.len() == 1 {
        "Example"
    } else {
        "Examples"
    };
    format!("{word}:{examples}{notes}")
}

fn placed(command: Command, words: &[&str], text: &str) -> Command {
    match words {
        [] => command.after_help(text.to_owned()),
        [first, rest @ ..] => command.mut_subcommand(first, |command| placed(command, rest, text)),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::args::{Cli, ParseError};

    /// The commands that do something, each with the words that lead to it.
    fn leaves(command: &Command, words: &[String], found: &mut Vec<Vec<String>>) {
        if !command.is_subcommand_required_set() {
            found.push(words.to_vec());
        }
        for inner in command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
        {
            leaves(
                inner,
                &[words, &[inner.get_name().to_owned()]].concat(),
                found,
            );
        }
    }

    #[test]
    fn every_command_has_examples_and_each_is_a_command_line_of_it() {
        let mut commands = Vec::new();
        leaves(&Cli::shown(), &[], &mut commands);
        assert!(commands.len() > 30, "{commands:?}");
        for words in &commands {
            let help = HELPS.iter().find(|help| help.command == words.as_slice());
            let help = help.unwrap_or_else(|| panic!("no examples of {words:?}"));
            for example in help.examples {
                let line = words_of(example.split_once("tarsy ").unwrap().1);
                assert!(line.starts_with(words), "{example}");
                let line = [vec!["tarsy".to_owned()], line].concat();
                if let Err(ParseError::Clap(error)) = Cli::read(line.iter().map(OsString::from)) {
                    panic!("{example}: {error}");
                }
            }
        }
    }

    /// The words of a shell's command line, without what it redirects.
    fn words_of(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut word = String::new();
        let mut quote = false;

        for c in line.chars() {
            match c {
                '\'' => quote = !quote,
                ' ' if !quote => words.push(std::mem::take(&mut word)),
                ')' if !quote => {}
                other => word.push(other),
            }
        }
        words.push(word);
        let redirected = words
            .iter()
            .position(|word| word.starts_with(['<', '>', '|']));
        words.truncate(redirected.unwrap_or(words.len()));
        words
    }

    #[test]
    fn a_help_fits_a_narrow_terminal_and_has_one_layout() {
        let root = Cli::shown().term_width(60);
        for help in &HELPS {
            let printed = |option| {
                let words = [&["tarsy"], help.command, &[option]].concat();
                root.clone()
                    .try_get_matches_from(words)
                    .unwrap_err()
                    .to_string()
            };
            let short = printed("-h");
            let long = printed("--help");

            let differing: Vec<_> = short
                .lines()
                .zip(long.lines())
                .filter(|(short, long)| short != long)
                .collect();
            assert!(
                differing.is_empty(),
                "{:?}: -h and --help differ: {differing:#?}",
                help.command
            );
            let wide: Vec<&str> = long
                .lines()
                .filter(|line| line.chars().count() > 72 && line.contains(' '))
                .collect();
            assert!(wide.is_empty(), "{:?}: {wide:#?}", help.command);
        }
    }
}
