//! `tarsy sources`, and `tarsy inspect alert` with a source, on the real program.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::run_with;

const SHOP: &str = "\
sources:
  shop:
    like: pagerduty
    severity: {default: low}
    auth: {header: {name: X-Token, secret_env: SHOP_TOKEN}}
  watch:
    recognise: {has: [/check/id, /check/state]}
    type: /check/name
    status: {from: /check/state, map: {note: ignored}}
    key: [/check/id]
  batch:
    each: ''
    type: '@/check/name'
    status: '@/check/state'
    key: ['@/check/id']
";

fn config(folder: &Path, text: &str) -> String {
    let file = folder.join("tarsy.yaml");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn builtin(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates/config/sources")
        .join(path)
}

#[tokio::test]
async fn sources_of_the_program_and_of_the_file_are_listed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), SHOP);
    let listed = run_with(
        &[],
        &["sources", "list", "--json", "--config", &config],
        b"",
    )
    .await
    .exits(0)
    .json();
    let of = |name: &str| {
        listed
            .iter()
            .find(|source| source["name"] == name)
            .cloned()
            .unwrap()
    };
    let expected = json!({
        "name": "shop", "from": "tarsy.yaml", "recognised": false, "proof": "header X-Token",
        "statuses": ["firing", "resolved", "acknowledged", "test", "ignored"],
    });
    assert_eq!(of("shop"), expected);
    assert_eq!(
        (&of("graylog")["from"], &of("graylog")["statuses"]),
        (&json!("built in"), &json!(["firing", "test"]))
    );
    let table = run_with(&[], &["sources", "ls", "--config", &config], b"")
        .await
        .exits(0)
        .out;
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("pagerduty ") && line.contains("firing, resolved, ack")),
        "{table}"
    );
    let shown = run_with(&[], &["sources", "show", "shop", "--config", &config], b"")
        .await
        .exits(0)
        .out;
    assert!(shown.starts_with("  shop:\n    type: "), "{shown}");
    assert!(
        shown.contains("default: low")
            && shown.contains("incident.triggered")
            && !shown.contains("recognise")
    );
    let wrong = run_with(&[], &["sources", "show", "pagerdut"], b"")
        .await
        .exits(1)
        .err;
    assert!(wrong.contains("did you mean pagerduty?"), "{wrong}");
}

#[tokio::test]
async fn every_shown_source_is_a_source_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let listed = run_with(&[], &["sources", "list", "--json"], b"")
        .await
        .exits(0)
        .json();
    let mut text = "sources:\n".to_owned();
    for source in &listed {
        let name = source["name"].as_str().unwrap();
        text.push_str(
            &run_with(&[], &["sources", "show", name], b"")
                .await
                .exits(0)
                .out,
        );
    }
    let config = config(folder.path(), &text);
    run_with(&[], &["config", "check", "--config", &config], b"")
        .await
        .exits(0);
}

#[tokio::test]
async fn samples_are_compared_with_what_is_expected() {
    let ran = run_with(&[], &["sources", "test"], b"").await.exits(0);
    assert!(
        ran.out.lines().count() > 100 && ran.out.lines().all(|line| line.starts_with("ok ")),
        "{}",
        ran.out
    );
    let folder = tempfile::tempdir().unwrap();
    let incident = folder.path().join("watch/samples/disk");
    std::fs::create_dir_all(&incident).unwrap();
    std::fs::write(
        incident.join("01.json"),
        r#"{"check": {"id": 7, "state": "up", "name": "disk"}}"#,
    )
    .unwrap();
    let expected = "{title: disk, type: disk, severity: normal, status: firing}";
    std::fs::write(incident.join("01.expected.yaml"), expected).unwrap();
    let config = config(folder.path(), SHOP);
    let args = [
        "sources",
        "test",
        folder.path().to_str().unwrap(),
        "--config",
        &config,
    ];
    let ran = run_with(&[], &args, b"").await.exits(1);
    assert!(
        ran.out.starts_with("FAIL")
            && ran
                .out
                .contains(r#"status is "resolved"; expected "firing""#),
        "{}",
        ran.out
    );
    let empty = tempfile::tempdir().unwrap();
    run_with(
        &[],
        &["sources", "test", empty.path().to_str().unwrap()],
        b"",
    )
    .await
    .exits(1);
}

#[tokio::test]
async fn a_first_source_passes_the_check_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let body = br#"{"sensor": "Ping", "device": "router-1", "status": "Down", "datetime": "2026-11-25 10:00:00"}"#;
    let bodies = [
        "pagerduty/samples",
        "datadog/samples",
        "zabbix/samples",
        "cloudwatch/samples",
    ]
    .map(|samples| {
        let incident = std::fs::read_dir(builtin(samples))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        std::fs::read(incident.join("01.json")).unwrap()
    });
    for body in bodies
        .iter()
        .map(Vec::as_slice)
        .chain([&body[..], b"{}", b"[1]"])
    {
        let ran = run_with(&[], &["sources", "init", "--name", "mine"], body)
            .await
            .exits(0);
        let config = config(folder.path(), &format!("sources:\n{}", ran.out));
        run_with(&[], &["config", "check", "--config", &config], b"")
            .await
            .exits(0);
    }
    run_with(&[], &["sources", "init"], b"disk full")
        .await
        .exits(1);
    run_with(&[], &["sources", "init", "--name", "json"], b"{}")
        .await
        .exits(2);
}

#[tokio::test]
async fn several_alerts_of_a_body_are_a_list_and_why_names_the_pointers() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), SHOP);
    let inspect = |source| ["inspect", "alert", "--config", &config, "--source", source];
    let body = br#"[{"check": {"id": 1, "name": "disk", "state": "down"}}, {"check": {"id": 2, "name": "cpu", "state": "up"}}]"#;
    let several: Value =
        serde_json::from_str(&run_with(&[], &inspect("batch"), body).await.exits(0).out).unwrap();
    let titles: Vec<&Value> = several
        .as_array()
        .unwrap()
        .iter()
        .map(|alert| &alert["title"])
        .collect();
    assert_eq!(titles, [&json!("disk"), &json!("cpu")]);
    let note = br#"{"check": {"id": 1, "name": "disk", "state": "note"}}"#;
    let one: Value =
        serde_json::from_str(&run_with(&[], &inspect("watch"), note).await.exits(0).out).unwrap();
    assert_eq!(
        (&one["status"], &one["reason"]),
        (&json!("ignored"), &json!("state is note"))
    );
    let sample = builtin("pagerduty/samples");
    let incident = std::fs::read_dir(sample)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
        .join("01.json");
    let args = ["inspect", "alert", incident.to_str().unwrap(), "--why"];
    let why: Value = serde_json::from_str(&run_with(&[], &args, b"").await.exits(0).out).unwrap();
    let fields: Vec<&str> = why["why"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| line["field"].as_str())
        .collect();
    assert!(
        fields.contains(&"status") && fields.contains(&"key") && fields.contains(&"title"),
        "{why}"
    );
    let wrong = run_with(
        &[],
        &["inspect", "alert", "--source", "wacth", "--config", &config],
        b"{}",
    )
    .await
    .exits(1);
    assert!(wrong.err.contains("did you mean watch?"), "{}", wrong.err);
}
