//! Help and usage errors of the binary.

use std::process::{Command, Output};

const COMMANDS: [&[&str]; 39] = [
    &["worker"],
    &["llm-service"],
    &["receive"],
    &["migrate"],
    &["submit"],
    &["watch"],
    &["queue"],
    &["drill"],
    &["init"],
    &["models"],
    &["config"],
    &["config", "check"],
    &["config", "show"],
    &["config", "example"],
    &["evidence-server"],
    &["sessions"],
    &["sessions", "list"],
    &["sessions", "show"],
    &["sessions", "rerun"],
    &["sessions", "cancel"],
    &["verdict"],
    &["verdicts", "export"],
    &["dead-letters"],
    &["dead-letters", "list"],
    &["dead-letters", "show"],
    &["dead-letters", "retry"],
    &["dead-letters", "drop"],
    &["doctor"],
    &["health"],
    &["tools"],
    &["sources"],
    &["sources", "list"],
    &["sources", "show"],
    &["sources", "test"],
    &["sources", "init"],
    &["inspect", "alert"],
    &["inspect", "reply"],
    &["completions"],
    &["man"],
];

fn tarsy(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsy"));
    command.args(arguments).env_clear();
    command
        .env("DATABASE_URL", "postgres://user:hidden-word@db/tarsy")
        .env("NATS_URL", "nats://hidden-word@nats");
    command.output().unwrap()
}

fn help(command: &[&str]) -> String {
    let output = tarsy(&[command, &["--help"]].concat());
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_has_a_help_text_without_secrets() {
    for command in COMMANDS {
        let help = help(command);
        let about = help.lines().next().unwrap_or_default();
        assert!(
            !about.starts_with("Usage") && about.len() > 10,
            "{command:?}: {help}"
        );
        assert!(!help.contains("hidden-word"), "{command:?}: {help}");
    }
}

#[test]
fn the_help_equals_its_reviewed_text() {
    insta::assert_snapshot!("help", help(&[]));
    insta::assert_snapshot!("help_submit", help(&["submit"]));
    insta::assert_snapshot!("help_worker", help(&["worker"]));
}

#[test]
fn the_help_of_a_word_from_other_programs_is_that_of_the_command() {
    for (word, command) in [
        ("list", &["sessions", "list"][..]),
        ("get", &["sessions", "show"]),
    ] {
        let found = tarsy(&["help", word]);
        assert_eq!(found.status.code(), Some(0), "{found:?}");
        assert_eq!(
            found.stdout,
            tarsy(&[&["help"], command].concat()).stdout,
            "{word}"
        );
    }
}

#[test]
fn an_empty_alert_is_refused_before_it_is_published() {
    let output = tarsy(&["submit", "-"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), message.as_str()),
        (
            Some(1),
            "tarsy: standard input is empty: nothing was published\n"
        )
    );
}

#[test]
fn wrong_usage_exits_with_two_and_names_the_accepted_values() {
    for (arguments, word) in [
        (&["wacth"][..], "watch"),
        (&[], "Investigates alerts"),
        (&["status"], "tip: tarsy queue shows"),
        (&["logs", "77d0b3aa"], "tip: tarsy watch <id>"),
        (&["run"], "tip: tarsy submit <file> --watch"),
        (
            &["investigate", "alert.json"],
            "tip: tarsy submit <file> --watch",
        ),
        (&["serve"], "tip: tarsy worker, tarsy llm-service"),
        (&["ps"], "tip: tarsy queue shows the workers"),
        (&["info"], "tip: tarsy doctor checks"),
        (&["stop", "77d0b3aa"], "tip: tarsy sessions cancel <id>"),
        (&["delete", "77d0b3aa"], "tip: tarsy prune deletes"),
        (&["help", "status"], "tip: tarsy queue shows"),
        (
            &["submit", "disk", "full"],
            "tip: quote the text: tarsy submit 'disk full on db-3'",
        ),
        (&["list", "--limit", "0"], "1..=1000"),
        (&["sessions", "ls", "--limit", "0"], "1..=1000"),
        (&["sessions"], "List, show, rerun or cancel"),
        (
            &["submit", "-", "--priority", "urgent"],
            "critical, high, normal, low",
        ),
        (&["submit", "-", "--session-id", "c0ffee"], "version 7"),
        (&["submit", "-", "--suffix", "a.>"], "words"),
        (&["watch", "abc"], "6 characters"),
        (&["watch", "--timeout", "30"], "500ms"),
        (&["worker", "--slots", "0"], "1..=1024"),
        (
            &["llm-service", "--allow-base-url", "llm.example.com"],
            "scheme://host",
        ),
        (&["submit"], "<FILE>"),
        (&["sessions", "list", "--limit", "0"], "1..=1000"),
        (&["sessions", "list", "--since", "soon"], "today, yesterday"),
        (&["sessions", "list", "--status", "done"], "timed-out"),
        (&["dead-letters", "show", "@x"], "number"),
        (&["watch", "--all", "77d0b3aa"], "--all"),
    ] {
        let output = tarsy(arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(word), "{arguments:?}: {message}");
        assert_eq!(
            message.starts_with("error: "),
            !message.contains("Commands:"),
            "{arguments:?}: {message}"
        );
        assert!(!message.contains("hidden-word"), "{arguments:?}: {message}");
    }
}
