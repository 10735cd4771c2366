//! The guessed sources are read by the configuration, and give alerts with a stable fingerprint.

use serde_json::json;

use super::*;
use tarsy_config::samples;
use tarsy_core::alert::Alert;

/// The alert of a body for the source that is guessed from `first`.
fn read(first: &Value, body: &Value) -> Alert {
    let text = yaml("guessed", &Guess::new(first));
    let config = Config::parse("tarsy.yaml", &format!("sources:\n{text}"), &|_| None);
    let config = config.unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    let hints = Hints {
        source: Some("guessed".to_owned()),
        ..Hints::default()
    };
    Intake::new(config.sources.all())
        .part(body.to_string().as_bytes(), &hints)
        .unwrap()
        .alert
}

#[test]
fn a_guessed_source_reads_the_next_body_as_the_same_alert() {
    let body = |state: &str, value: u32| {
        json!({"monitor": {"name": "checkout", "id": 4}, "status": state, "value": value, "id": value,
               "it's": 1, "at": format!("2026-11-25T10:00:{value}Z")})
    };
    let first = read(&body("down", 10), &body("down", 10));
    assert_eq!(
        (first.alert_type.as_str(), first.status.as_str()),
        ("checkout", "firing")
    );
    let over = read(&body("down", 10), &body("up", 20));
    assert_eq!(
        (over.status.as_str(), &over.fingerprint),
        ("resolved", &first.fingerprint)
    );
}

#[test]
fn every_body_gives_a_source_without_a_fault() {
    let strange = [
        json!({}),
        json!([]),
        json!({"a|b": 1, "c\nd": 2, "{x}": "y", "'": "it's # odd: [x]", "": {"": ""}, "state": "'#: {"}),
        json!({"status": true, "level": 2, "links": {"on": "https://x.example"}, "tags": ["a=b"], "labels": [{"name": "a", "value": "b"}]}),
        json!({"resolved": false, "name": "x", "host": "h"}),
    ];
    let recorded = samples::builtin()
        .into_iter()
        .filter_map(|sample| serde_json::from_slice(&sample.body).ok());
    for body in strange.into_iter().chain(recorded) {
        let text = yaml("guessed", &Guess::new(&body));
        let config = Config::parse("tarsy.yaml", &format!("sources:\n{text}"), &|_| None);
        assert!(config.is_ok(), "{body}\n{text}\n{}", config.unwrap_err());
    }
}

#[test]
fn keys_that_are_not_found_leave_a_remark() {
    insta::assert_snapshot!(yaml("shop-watch", &Guess::new(&json!({"host": "db-1", "code": 5}))), @r"
      shop-watch:
        recognise: {has: [/host, /code]}
        # type: not found: the name of the rule or check; the title is taken
        # title: not found: the type and what the labels name are taken
        # severity: not found: the priority of the queue is taken
        # status: not found: every body fires, and none ends an alert
        key: [/host]
        # runbook: not found: an address of a runbook
        # at: not found: the time of the change
    ");
}
