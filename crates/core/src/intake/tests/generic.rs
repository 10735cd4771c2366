//! Bodies of vendors that have no source: they have a title, a status, and a fingerprint that a repetition keeps.

use super::*;

/// A body that fires, with the pointers that another message about the same condition changes.
struct Case {
    firing: Value,
    later: &'static [(&'static str, &'static str)],
    resolved: &'static [(&'static str, &'static str)],
    title: &'static str,
    alert_type: &'static str,
}

fn changed(body: &Value, changes: &[(&str, &str)]) -> Value {
    let mut body = body.clone();
    for (pointer, text) in changes {
        *body.pointer_mut(pointer).unwrap() = Value::from(*text);
    }
    body
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            firing: json!({"event": "alert.opened", "data": {"id": 991, "title": "Queue is long", "host": "mq-1", "state": "open",
                "opened_at": "2026-11-25T10:00:00Z", "value": 93.5}, "sent_at": 1_795_600_800}),
            later: &[("/data/opened_at", "2026-11-25T11:00:00Z")],
            resolved: &[("/data/state", "closed"), ("/event", "alert.closed")],
            title: "Queue is long",
            alert_type: "Queue is long",
        },
        Case {
            firing: json!({"alert": {"name": "Certificate expires", "domain": "shop.example.com", "status": "DOWN"}, "time": "10:00"}),
            later: &[("/time", "11:00")],
            resolved: &[("/alert/status", "UP")],
            title: "Certificate expires",
            alert_type: "Certificate expires",
        },
        Case {
            firing: json!({"monitor": {"name": "api", "url": "https://api.example.com/"}, "alert_state": "failed",
                "message": "503 after 1200 ms", "timestamp": "1795600800"}),
            later: &[
                ("/message", "504 after 900 ms"),
                ("/timestamp", "1795600900"),
            ],
            resolved: &[
                ("/alert_state", "recovered"),
                ("/message", "answers in 80 ms"),
            ],
            title: "api",
            alert_type: "api",
        },
        Case {
            firing: json!({"summary": "FAILED: backup of db-1", "priority": "P1", "dedup_key": "backup-db-1", "run": "a"}),
            later: &[
                ("/run", "b"),
                ("/summary", "FAILED: backup of db-1 (attempt 2)"),
            ],
            resolved: &[("/summary", "OK: backup of db-1")],
            title: "FAILED: backup of db-1",
            alert_type: "FAILED: backup of db-1",
        },
    ]
}

#[test]
fn a_body_of_an_unknown_vendor_has_a_title_and_a_stable_fingerprint() {
    for Case {
        firing,
        later,
        resolved,
        title,
        alert_type,
    } in cases()
    {
        let alert = read_json(&firing);
        assert_eq!(
            (alert.title.as_str(), alert.status),
            (title, AlertStatus::Firing),
            "{firing}"
        );
        if alert_type == title {
            assert_eq!(alert.alert_type, alert_type, "{firing}");
        }
        assert_eq!(
            read_json(&changed(&firing, later)).fingerprint,
            alert.fingerprint,
            "{firing}"
        );
        assert_eq!(
            read_json(&changed(&firing, resolved)).fingerprint,
            alert.fingerprint,
            "{firing}"
        );
    }
}

#[test]
fn the_words_of_a_state_decide_in_any_envelope() {
    for (body, expected) in [
        (json!({"status": "OK", "title": "x"}), AlertStatus::Resolved),
        (
            json!({"data": {"state": "closed", "title": "x"}}),
            AlertStatus::Resolved,
        ),
        (
            json!({"wrapper": {"name": "x", "current_state": "Up"}}),
            AlertStatus::Resolved,
        ),
        (
            json!({"event_type": "incident.acknowledged", "incident": {"title": "x"}}),
            AlertStatus::Acknowledged,
        ),
        (
            json!({"title": "x", "resolved": true}),
            AlertStatus::Resolved,
        ),
        (
            json!({"title": "x", "status": "purple"}),
            AlertStatus::Firing,
        ),
        (
            json!({"title": "x", "check": {"status": "recovered"}}),
            AlertStatus::Resolved,
        ),
        (
            json!([{"title": "x", "status": "ok"}]),
            AlertStatus::Resolved,
        ),
    ] {
        assert_eq!(read_json(&body).status, expected, "{body}");
    }
}

#[test]
fn another_object_is_another_alert() {
    for Case { firing, .. } in cases() {
        let text = firing.to_string();
        for (name, other) in [
            ("mq-1", "mq-2"),
            ("shop.example", "www.example"),
            ("api.example", "cdn.example"),
            ("db-1", "db-2"),
        ] {
            let changed = text.replace(name, other);
            let same = read(changed.as_bytes()).fingerprint == read_json(&firing).fingerprint;
            assert_eq!(same, changed == text, "{changed}");
        }
    }
}

#[test]
fn a_body_without_a_known_key_has_its_first_sentence_as_title() {
    let body = json!({"a": "x", "at": "2026-11-25 10:00:00", "problem": {"what": "No space is left"}, "z": 1});
    assert_eq!(read_json(&body).title, "No space is left");
    assert_eq!(read_json(&json!({"b": 1, "c": "x"})).title, "b");
}

#[test]
fn the_severity_is_found_in_an_envelope() {
    assert_eq!(
        read_json(&json!({"incident": {"title": "x", "urgency": "high"}})).severity,
        Severity::High
    );
    assert_eq!(
        read_json(&json!({"level": "purple", "event": {"severity": "crit", "name": "x"}})).severity,
        Severity::Critical
    );
}

#[test]
fn a_message_of_the_kind_test_that_names_a_thing_is_an_alert() {
    for (body, status) in [
        (
            json!({"event": "ping", "payload": {"message": "webhook works"}, "delivery_id": "x"}),
            AlertStatus::Test,
        ),
        (
            json!({"event_name": "test", "data": {"message": "This is a test payload."}}),
            AlertStatus::Test,
        ),
        (
            json!({"title": "Test notification", "token": "x"}),
            AlertStatus::Test,
        ),
        (
            json!({"text": "Test message queue is full"}),
            AlertStatus::Firing,
        ),
        (
            json!({"type": "ping", "host": "web-1", "message": "packet loss 100 %"}),
            AlertStatus::Firing,
        ),
        (
            json!({"check": {"type": "ping", "address": "10.0.0.1"}, "rtt": "timeout"}),
            AlertStatus::Firing,
        ),
        (
            json!({"kind": "test", "service": "checkout", "message": "the suite is red"}),
            AlertStatus::Firing,
        ),
        (
            json!({"event": "test", "message": "it broke", "severity": "high"}),
            AlertStatus::Firing,
        ),
    ] {
        assert_eq!(read_json(&body).status, status, "{body}");
    }
}
