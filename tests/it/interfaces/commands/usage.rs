//! The binary's own words: help, versions, wrong usage.

use std::process::{Command, Output};

const COMMANDS: [&[&str]; 27] = [
    &["worker"],
    &["llm-service"],
    &["receive"],
    &["migrate"],
    &["submit"],
    &["watch"],
    &["drill"],
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
    &["dead-letters"],
    &["dead-letters", "list"],
    &["dead-letters", "show"],
    &["dead-letters", "retry"],
    &["dead-letters", "drop"],
    &["doctor"],
    &["tools"],
    &["inspect", "alert"],
    &["inspect", "reply"],
    &["completions"],
];

fn tarsy(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsy"));
    command.args(arguments).env_clear();
    command.env("DATABASE_URL", "postgres://user:hidden-word@db/tarsy").env("NATS_URL", "nats://hidden-word@nats");
    command.output().unwrap()
}

fn help(command: &[&str]) -> String {
    let output = tarsy(&[command, &["--help"]].concat());
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_says_what_it_does_and_no_secret() {
    for command in COMMANDS {
        let help = help(command);
        let about = help.lines().next().unwrap_or_default();
        assert!(!about.starts_with("Usage") && about.len() > 10, "{command:?}: {help}");
        assert!(!help.contains("hidden-word"), "{command:?}: {help}");
    }
}

#[test]
fn the_help_is_what_people_read_first() {
    insta::assert_snapshot!("help", help(&[]));
    insta::assert_snapshot!("help_submit", help(&["submit"]));
    insta::assert_snapshot!("help_worker", help(&["worker"]));
}

#[test]
fn an_empty_alert_is_refused_before_anything_is_published() {
    let output = tarsy(&["submit", "-"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), said.as_str()),
        (Some(1), "tarsy: standard input is empty: nothing was published\n")
    );
}

#[test]
fn wrong_usage_exits_with_two_and_says_what_is_accepted() {
    for (arguments, word) in [
        (&["wacth"][..], "watch"),
        (&[], "Investigates alerts"),
        (&["sessions"], "List, show, repeat or cancel"),
        (&["submit", "-", "--priority", "urgent"], "critical, high, normal, low"),
        (&["submit", "-", "--session-id", "c0ffee"], "version 7"),
        (&["submit", "-", "--suffix", "a.>"], "words"),
        (&["watch", "abc"], "6 characters"),
        (&["watch", "--timeout", "30"], "500ms"),
        (&["worker", "--slots", "0"], "1..=1024"),
        (&["submit"], "<FILE>"),
        (&["sessions", "list", "--limit", "0"], "1..=1000"),
        (&["sessions", "list", "--since", "yesterday"], "not a duration"),
        (&["sessions", "list", "--status", "done"], "timed-out"),
        (&["dead-letters", "show", "@x"], "number"),
        (&["watch", "--all", "77d0b3aa"], "--all"),
    ] {
        let output = tarsy(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
        assert_eq!(said.starts_with("error: "), !said.contains("Commands:"), "{arguments:?}: {said}");
        assert!(!said.contains("hidden-word"), "{arguments:?}: {said}");
    }
}
