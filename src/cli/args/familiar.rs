//! Commands that people know from other programs: a word with one meaning runs the command of tarsy, the others print
//! a tip.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words for one command each.
const ALIASES: [(&str, &[&str]); 9] = [
    ("list", &["sessions", "list"]),
    ("ls", &["sessions", "list"]),
    ("show", &["sessions", "show"]),
    ("get", &["sessions", "show"]),
    ("describe", &["sessions", "show"]),
    ("rerun", &["sessions", "rerun"]),
    ("cancel", &["sessions", "cancel"]),
    ("follow", &["watch"]),
    ("version", &["--version"]),
];

/// Words that could mean several commands.
const TIPS: [(&str, &str); 18] = [
    (
        "status",
        "tarsy queue shows what waits and the workers, tarsy sessions show <id> an investigation, tarsy doctor the system",
    ),
    ("logs", LOGS),
    ("log", LOGS),
    (
        "run",
        "tarsy submit <file> --watch investigates an alert, tarsy worker runs a worker, tarsy drill a recorded incident",
    ),
    (
        "investigate",
        "tarsy submit <file> --watch investigates an alert; - for standard input",
    ),
    ("serve", ROLES),
    ("start", ROLES),
    (
        "retry",
        "tarsy sessions rerun <id> repeats an investigation, tarsy dead-letters retry <id> an alert that was given up",
    ),
    (
        "source",
        "tarsy sources list shows the sources of alerts, tarsy sources show <name> one of them",
    ),
    (
        "hooks",
        "tarsy sources list shows the sources; tarsy receive takes their alerts at /hooks/<source>",
    ),
    (
        "integrations",
        "tarsy sources list shows the systems whose alerts tarsy knows",
    ),
    (
        "report",
        "tarsy sessions show <id> --report prints it as Markdown",
    ),
    (
        "ps",
        "tarsy queue shows the workers and what waits, tarsy sessions list the investigations",
    ),
    (
        "info",
        "tarsy doctor checks the system, tarsy sessions show <id> shows an investigation",
    ),
    (
        "stop",
        "tarsy sessions cancel <id> ends an investigation; Ctrl-C or SIGTERM ends a worker",
    ),
    ("delete", DELETE),
    ("rm", DELETE),
    ("remove", DELETE),
];
const LOGS: &str = "tarsy watch <id> shows an investigation; each role logs to standard error";
const ROLES: &str =
    "tarsy worker, tarsy llm-service, tarsy receive and tarsy web are the processes of tarsy";
const DELETE: &str = "tarsy prune deletes old investigations and alerts, tarsy dead-letters drop <id> an alert that was given up";
/// The tip for a text without quotes.
const QUOTE: &str = "quote the text: tarsy submit 'disk full on db-3'";

/// Commands with free words, among which `-o json` is text.
const FREE_WORDS: [&str; 1] = ["ask"];

/// The arguments with the command that an alias means, and with `--json` instead of `-o json`.
pub(super) fn translated(arguments: Vec<OsString>) -> Vec<OsString> {
    // After `help` comes the command that it is about.
    let is_help = arguments.get(1).is_some_and(|word| word == "help");
    let before = if is_help { 2 } else { 1 };
    let alias = arguments
        .get(before)
        .and_then(|word| ALIASES.iter().find(|(alias, _)| word == alias));
    let mut arguments = arguments.into_iter();
    let mut translated: Vec<OsString> = arguments.by_ref().take(before).collect();
    if let Some((_, command)) = alias {
        translated.extend(command.iter().map(OsString::from));
        arguments.next();
    }
    let mut rest = arguments.peekable();
    let command = rest.peek().and_then(|word| word.to_str());
    if command.is_some_and(|command| FREE_WORDS.contains(&command)) {
        translated.extend(rest);
        return translated;
    }
    while let Some(word) = rest.next() {
        if word == "--" {
            translated.push(word);
            break;
        }
        let is_option = word == "-o" || word == "--output";
        if is_option && rest.next_if(|value| value == "json").is_some()
            || word == "-ojson"
            || word == "--output=json"
        {
            translated.push("--json".into());
        } else {
            translated.push(word);
        }
    }
    translated.extend(rest);
    translated
}

/// Adds the tip for an unknown command, or for an alert in several words. `command` has the error.
pub(super) fn with_tip(mut error: clap::Error, command: &str) -> clap::Error {
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && command == "submit"
        && !word.starts_with('-')
    {
        suggest(&mut error, QUOTE);
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let tip = TIPS.iter().find(|(known, _)| known == word);
    if let (ErrorKind::InvalidSubcommand, Some((_, tip))) = (error.kind(), tip) {
        error.remove(ContextKind::SuggestedSubcommand);
        suggest(&mut error, tip);
    }
    error
}

fn suggest(error: &mut clap::Error, tip: &'static str) {
    let tips = ContextValue::StyledStrs(vec![tip.into()]);
    error.insert(ContextKind::Suggested, tips);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn words_from_other_programs_mean_one_command_each() {
        for (given, expected) in [
            ("tarsy list -n 3", "tarsy sessions list -n 3"),
            (
                "tarsy get 77d0b3aa -o json",
                "tarsy sessions show 77d0b3aa --json",
            ),
            ("tarsy queue --output=json", "tarsy queue --json"),
            ("tarsy version", "tarsy --version"),
            ("tarsy help list", "tarsy help sessions list"),
            ("tarsy describe 77d0b3aa", "tarsy sessions show 77d0b3aa"),
            ("tarsy sessions list", "tarsy sessions list"),
            ("tarsy submit -o yaml", "tarsy submit -o yaml"),
            ("tarsy submit -- -o json", "tarsy submit -- -o json"),
            (
                "tarsy ask 77d0b3aa what does -o json do",
                "tarsy ask 77d0b3aa what does -o json do",
            ),
            ("tarsy watch list", "tarsy watch list"),
        ] {
            assert_eq!(translated(words(given)), words(expected), "{given}");
        }
    }
}
