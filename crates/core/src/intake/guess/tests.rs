//! Tests of the guess, with bodies of systems that no source knows.

use serde_json::json;

use crate::intake::guess::*;

#[test]
fn the_fields_of_a_body_are_found_by_their_names() {
    let body = json!({
        "check": {"id": 7, "name": "disk"}, "state": "PROBLEM", "prio": "P2", "host": "db-1", "labels": {"team": "shop"},
        "summary": "94 % full", "graph_url": "https://x.example/g", "runbook": "https://x.example/r",
        "event_id": "e-17", "value": 94, "changed_at": "2026-11-25T10:00:00Z",
    });
    let text = |text: &str| Some(text.to_owned());
    let words = |from: &str| {
        Some(GuessedWords {
            from: from.to_owned(),
            map: Vec::new(),
        })
    };
    let expected = Guess {
        recognise: vec![
            "/check/id".to_owned(),
            "/host".to_owned(),
            "/graph_url".to_owned(),
        ],
        alert_type: text("/check/name"),
        title: text("/summary"),
        severity: words("/prio"),
        status: words("/state"),
        key: vec!["/check/id".to_owned(), "/host".to_owned()],
        labels: vec![GuessedLabels::Object("/labels".to_owned())],
        links: vec![GuessedLink {
            name: "graph".to_owned(),
            url: "/graph_url".to_owned(),
        }],
        runbook: text("/runbook"),
        at: text("/changed_at"),
        ..Guess::default()
    };
    assert_eq!(Guess::new(&body), expected);
}

#[test]
fn a_time_a_value_and_the_id_of_an_event_are_no_part_of_a_key() {
    for body in [
        json!({"id": "e1", "event_id": 5, "incident": {"id": 9}, "value": 3, "ts": 1_795_600_800, "title": "x 94 %"}),
        json!({"alert_id": "a-1", "uuid": "5f1c", "status": "down", "created_at": "2026-11-25T10:00:00Z"}),
        json!({"service": "2026-11-25T10:00:00Z", "host": "https://x.example/1"}),
    ] {
        assert_eq!(Guess::new(&body).key, Vec::<String>::new(), "{body}");
    }
}

#[test]
fn lists_of_alerts_and_texts_that_are_json_are_opened() {
    let list = Guess::new(
        &json!({"events": [{"rule": "disk", "host": "db-1", "state": "open"}, {"rule": "cpu"}]}),
    );
    assert_eq!(
        (list.each.as_deref(), list.alert_type.as_deref()),
        (Some("/events"), Some("@/rule"))
    );
    assert_eq!(list.recognise[..2], ["/events/0/rule", "/events/0/host"]);
    let text = Guess::new(&json!({"Message": "{\"alarm\": \"disk\"}", "Topic": "t"}));
    assert_eq!(
        (text.parse, text.alert_type.as_deref()),
        (vec!["/Message".to_owned()], Some("/Message/alarm"))
    );
}
