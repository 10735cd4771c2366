//! Commands without a server: `inspect`, `completions`, `config`.

use std::path::Path;

use serde_json::{Value, json};

use super::run_with;

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/alerts")
        .join(name)
        .display()
        .to_string()
}

#[tokio::test]
async fn an_alert_is_shown_as_the_intake_normalises_it() {
    let file = fixture("01_alertmanager_v4_firing_truncated.json");
    let ran = run_with(&[], &["inspect", "alert", &file], b"")
        .await
        .exits(0);
    let alert: Value = serde_json::from_str(&ran.out).unwrap();
    let keys: Vec<&String> = alert.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "fingerprint",
            "type",
            "severity",
            "status",
            "title",
            "source",
            "runbook",
            "text",
            "refs"
        ]
    );
    assert_eq!(
        (&alert["type"], &alert["source"], &alert["status"]),
        (
            &json!("TargetDown"),
            &json!("alertmanager"),
            &json!("firing")
        )
    );

    let args = [
        "inspect",
        "alert",
        "--priority",
        "high",
        "-H",
        "tarsy-fingerprint: f1",
        "-H",
        "Tarsy-Alert-Type: disk",
        "-H",
        "Tarsy-Runbook-Url: https://example.com/disk",
    ];
    let ran = run_with(&[], &args, b"disk 94 % full on db-3, password=hunter22\n")
        .await
        .exits(0);
    let alert: Value = serde_json::from_str(&ran.out).unwrap();
    let expected = json!({
        "fingerprint": "header@:f1", "type": "disk", "severity": "high", "status": "firing",
        "title": alert["title"], "source": "text", "runbook": "https://example.com/disk", "text": alert["text"],
    });
    assert_eq!(alert, expected);
    assert!(
        alert["text"].as_str().unwrap().contains("disk 94 %") && !ran.out.contains("hunter22"),
        "{}",
        ran.out
    );
}

#[tokio::test]
async fn an_invalid_alert_is_refused_with_the_reason() {
    for (body, reason) in [
        (
            &b"\x00\xff"[..],
            "body is no text, and not compressed with gzip or deflate",
        ),
        (b" {} ", "body has no content"),
        (b"", "body has no content"),
    ] {
        let ran = run_with(&[], &["inspect", "alert"], body).await.exits(1);
        assert_eq!(
            (ran.out.as_str(), ran.err),
            (
                "",
                format!("tarsy: standard input is not an alert: {reason}\n")
            )
        );
    }
    run_with(&[], &["inspect", "alert", "-H", "none"], b"x")
        .await
        .exits(2);
}

#[tokio::test]
async fn completions_of_every_shell_name_no_hidden_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run_with(&[], &["completions", shell], b"").await.exits(0);
        assert!(
            script.out.contains("TARSY_COMPLETE") && script.out.contains("tarsy"),
            "{shell}: {}",
            script.out
        );
        let asks = [("TARSY_COMPLETE", shell), ("_CLAP_COMPLETE_INDEX", "1")];
        let ran = run_with(&asks, &["--", "tarsy", ""], b"").await.exits(0);
        assert!(
            ran.out.contains("dead-letters") && !ran.out.contains("evidence-server"),
            "{shell}: {}",
            ran.out
        );
    }
    run_with(&[], &["completions", "csh"], b"").await.exits(2);
}

#[tokio::test]
async fn faults_of_a_configuration_are_printed_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tarsy.yaml");
    std::fs::write(&file, "worker:\n  lease: soon\n").unwrap();
    let args = [
        "config",
        "check",
        "--json",
        "--config",
        file.to_str().unwrap(),
    ];
    let found = run_with(&[], &args, b"").await.exits(78).json().remove(0);
    assert_eq!(
        (&found["faults"][0]["key"], &found["faults"][0]["line"]),
        (&json!("worker.lease"), &json!(2))
    );
    std::fs::write(&file, "").unwrap();
    assert_eq!(
        run_with(&[], &args, b"").await.exits(0).json()[0]["faults"],
        json!([])
    );
}

#[tokio::test]
async fn the_example_is_free_of_faults_without_any_variable() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tarsy.yaml");
    std::fs::write(
        &file,
        run_with(&[], &["config", "example"], b"")
            .await
            .exits(0)
            .out,
    )
    .unwrap();
    run_with(
        &[],
        &["config", "check", "--config", file.to_str().unwrap()],
        b"",
    )
    .await
    .exits(0);
}

#[tokio::test]
async fn wrong_usage_prints_the_usage_and_a_missing_command_the_help() {
    let env = [
        ("NATS_URL", "nats://a"),
        ("DATABASE_URL", "postgres://a/b"),
        ("TARSY_LLM_ADDR", "127.0.0.1:1"),
    ];
    let ran = run_with(&env, &["submit"], b"").await.exits(2);
    assert!(
        ran.err.contains("Usage: tarsy submit [OPTIONS] <FILE>\n"),
        "{}",
        ran.err
    );
    let ran = run_with(&env, &["sessions", "show", "zz"], b"")
        .await
        .exits(2);
    assert!(ran.err.contains("at least 6 characters"), "{}", ran.err);
    for (args, line) in [
        (&[][..], "Usage: tarsy [OPTIONS] <COMMAND>"),
        (&["sessions"], "  rerun   Investigate"),
    ] {
        let ran = run_with(&env, args, b"").await.exits(2);
        assert!(
            ran.out.is_empty() && ran.err.contains(line) && ran.err.contains("Commands:"),
            "{ran:#?}"
        );
    }
}

#[tokio::test]
async fn a_wrong_command_suggests_no_hidden_command() {
    for word in ["evidence", "evidence-serve", "help-me"] {
        let ran = run_with(&[], &[word], b"").await.exits(2);
        assert!(!ran.err.contains("evidence-server"), "{}", ran.err);
    }
}
