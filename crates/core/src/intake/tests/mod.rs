//! Tests of the intake: captured bodies, every kind of body, the order of fingerprints, and arbitrary bytes.

mod batches;
mod generic;
mod parts;
mod senders;
mod titles;

use crate::alert::refs::Refs;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::alert::{Alert, AlertStatus, MemberReport, Severity};
use crate::intake::*;
use crate::sources::{Note, Repair};

const FIRING: &[u8] =
    include_bytes!("../../../../../tests/fixtures/alerts/01_alertmanager_v4_firing_truncated.json");
const MIXED: &[u8] = include_bytes!(
    "../../../../../tests/fixtures/alerts/02_alertmanager_v4_mixed_firing_resolved.json"
);
const RESOLVED: &[u8] =
    include_bytes!("../../../../../tests/fixtures/alerts/03_alertmanager_v4_resolved.json");
const GRAFANA: &[u8] =
    include_bytes!("../../../../../tests/fixtures/alerts/04_grafana_unified_firing.json");

fn read(body: &[u8]) -> Alert {
    normalise(body, &Hints::default()).unwrap()
}

fn read_json(body: &Value) -> Alert {
    read(body.to_string().as_bytes())
}

fn of_body(form: &str, body: &str) -> String {
    format!("{form}@:{}", fingerprint::of_body(body.as_bytes()))
}

fn without_text(alert: Alert) -> Alert {
    Alert {
        refs: Refs::default(),
        text: String::new(),
        members: Vec::new(),
        reports: Vec::new(),
        at: None,
        ..alert
    }
}

const RUNBOOK: &str = "https://runbooks.prometheus-operator.dev/runbooks/general/targetdown";

fn target_down(status: AlertStatus) -> Alert {
    Alert {
        source: "alertmanager".to_owned(),
        alert_type: "TargetDown".to_owned(),
        title: "TargetDown  shop/checkout".to_owned(),
        severity: Severity::Critical,
        severity_word: None,
        status,
        ignored_because: None,
        at: None,
        fingerprint: r#"alertmanager@:{}:{alertname="TargetDown", job="checkout"}"#.to_owned(),
        members: Vec::new(),
        reports: Vec::new(),
        runbook_url: Some(RUNBOOK.to_owned()),
        refs: Refs::default(),
        text: String::new(),
    }
}

#[test]
fn the_captured_bodies_are_understood() {
    assert_eq!(without_text(read(FIRING)), target_down(AlertStatus::Firing));
    assert_eq!(without_text(read(MIXED)), target_down(AlertStatus::Firing));
    assert_eq!(
        without_text(read(RESOLVED)),
        target_down(AlertStatus::Resolved)
    );
}

#[test]
fn a_truncated_group_reads_well() {
    insta::assert_snapshot!(read(FIRING).text);
}

#[test]
fn firing_alerts_come_first_and_resolved_ones_are_context() {
    insta::assert_snapshot!(read(MIXED).text);
}

#[test]
fn a_grafana_body_is_understood() {
    let alert = read(GRAFANA);
    insta::assert_snapshot!(alert.text);
    let expected = Alert {
        source: "grafana".to_owned(),
        alert_type: "DiskAlmostFull".to_owned(),
        title: "DiskAlmostFull  db-2.example.com".to_owned(),
        severity: Severity::Normal,
        severity_word: Some("warning".to_owned()),
        status: AlertStatus::Firing,
        ignored_because: None,
        at: None,
        members: Vec::new(),
        reports: Vec::new(),
        fingerprint: "grafana@+org-3:{}/{team=\"storage\"}:{alertname=\"DiskAlmostFull\"}"
            .to_owned(),
        runbook_url: Some("https://wiki.example.com/runbooks/disk".to_owned()),
        refs: Refs::default(),
        text: String::new(),
    };
    assert_eq!(without_text(alert), expected);
}

#[test]
fn any_json_is_an_outline() {
    let alert = read_json(&json!({
        "alert_name": "CertExpiry", "severity": "error", "runbook": "https://r.example/cert",
        "labels": {"host": "edge-1"}, "checks": [{"days": 3}, "tls"], "note": "first\nsecond", "none": null, "no": []
    }));
    insta::assert_snapshot!(alert.text, @r"
    alert_name: CertExpiry
    checks:
      1:
        days: 3
      2: tls
    labels:
      host: edge-1
    note:
      first
      second
    runbook: https://r.example/cert
    severity: error
    ");
    assert_eq!(
        (alert.source.as_str(), alert.alert_type.as_str()),
        ("json", "CertExpiry")
    );
    assert_eq!(
        (alert.title.as_str(), alert.severity),
        ("CertExpiry  edge-1", Severity::High)
    );
    assert_eq!(alert.runbook_url.as_deref(), Some("https://r.example/cert"));
}

#[test]
fn each_alert_of_a_group_has_a_line() {
    let item = |node: &str, status: &str| json!({"labels": {"alertname": "NodeDown", "instance": node}, "status": status, "annotations": {"summary": "no\nreply"}});
    let group = json!({"alerts": [item("n1", "resolved"), item("n\u{1b}[31m2", "firing")], "truncatedAlerts": 7});
    let alert = read(group.to_string().as_bytes());
    let lines: Vec<_> = alert
        .reports
        .iter()
        .map(|report| (report.status, report.text.as_str()))
        .collect();
    let expected = [
        (AlertStatus::Firing, "NodeDown instance=\"n2\": no reply"),
        (AlertStatus::Resolved, "NodeDown instance=\"n1\": no reply"),
        (AlertStatus::Firing, "7 alerts that the sender left out"),
    ];
    assert_eq!(lines, expected);
    assert!(
        [0, 2]
            .iter()
            .all(|at| alert.members.contains(&alert.reports[*at].member)),
        "{alert:?}"
    );
    let large: Vec<_> = (0..300)
        .map(|number| item(&format!("n{number}"), "firing"))
        .collect();
    let alert = read(json!({"alerts": large}).to_string().as_bytes());
    let [only] = alert.reports.as_slice() else {
        panic!("{:?}", alert.reports)
    };
    assert_eq!(
        (&alert.members[..], only.text.as_str()),
        (
            &[only.member][..],
            "a group of 300 alerts, too many to compare one by one"
        )
    );
}

#[test]
fn any_other_text_is_an_alert() {
    let alert = read("\n disk full on db-1\n\u{1b}[31m{not json\n".as_bytes());
    let words = "disk full on db-1\nnot json";
    let member = fingerprint::member_of_key("text", &fingerprint::of_body(words.as_bytes()));
    let expected = Alert {
        source: "text".to_owned(),
        alert_type: "generic".to_owned(),
        title: "disk full on db-1".to_owned(),
        severity: Severity::Normal,
        severity_word: None,
        status: AlertStatus::Firing,
        ignored_because: None,
        at: None,
        fingerprint: of_body("text", words),
        members: vec![member],
        reports: vec![MemberReport {
            member,
            status: AlertStatus::Firing,
            text: "disk full on db-1 {not json".to_owned(),
        }],
        runbook_url: None,
        refs: Refs::default(),
        text: "\n disk full on db-1\n{not json".to_owned(),
    };
    assert_eq!(alert, expected);
    assert_eq!(read(b"\"quoted text\"").text, "quoted text");
    assert_eq!(read(b"404").text, "404");
}

#[test]
fn a_body_without_content_is_no_alert() {
    for body in [
        "",
        " \n\t ",
        "\"\"",
        "\" \"",
        "null",
        " {} ",
        "[]",
        "\u{feff}",
        "\u{0}\u{7}",
        "{\"a\": null}",
    ] {
        assert_eq!(
            normalise(body.as_bytes(), &Hints::default()),
            Err(IntakeError::Empty),
            "{body:?}"
        );
    }
    assert!(
        read(b"ok \xff\xfe")
            .text
            .starts_with("ok ÿþ\n[tarsy: the body was not UTF-8"),
        "of Windows"
    );
    assert_eq!(
        normalise(b"\x89PNG\r\n\x1a\n\0\0\0\r", &Hints::default()),
        Err(IntakeError::Undecodable)
    );
}

#[test]
fn the_fingerprint_is_the_first_key_of_the_body() {
    let alert = |extra: Value| {
        let mut alert = json!({"labels": {"alertname": "A", "x": "1"}});
        alert
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        alert
    };
    let labels = |pairs: &[(&str, &str)]| {
        fingerprint::of_labels(
            "A",
            &pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    };
    let own = alert(json!({"fingerprint": "f1"}));
    let cases = [
        (json!({"alerts": [own], "groupKey": "g"}), "g".to_owned()),
        (json!({"alerts": [own]}), "f1".to_owned()),
        (own.clone(), "f1".to_owned()),
        (json!([own]), "f1".to_owned()),
        (
            json!({"alerts": [alert(json!({}))]}),
            labels(&[("alertname", "A"), ("x", "1")]),
        ),
        (
            json!({"alerts": [own, alert(json!({}))], "groupLabels": {"x": "1"}}),
            labels(&[("x", "1")]),
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(
            read_json(&body).fingerprint,
            format!("alertmanager@:{expected}"),
            "{body}"
        );
    }
    let hints = Hints {
        fingerprint: Some("h".to_owned()),
        ..Hints::default()
    };
    assert_eq!(normalise(FIRING, &hints).unwrap().fingerprint, "header@:h");
    let plain = json!({"value": 1});
    assert_eq!(
        read_json(&plain).fingerprint,
        of_body("json", &plain.to_string())
    );
}

#[test]
fn a_group_key_counts_only_for_its_subject_and_its_form() {
    let of = |body: &[u8], suffix: &str| {
        normalise(
            body,
            &Hints {
                suffix: suffix.to_owned(),
                ..Hints::default()
            },
        )
        .unwrap()
        .fingerprint
    };
    let real = of(FIRING, "alertmanager");
    assert_eq!(
        real,
        r#"alertmanager@alertmanager:{}:{alertname="TargetDown", job="checkout"}"#
    );
    let forged = json!({"groupKey": r#"{}:{alertname="TargetDown", job="checkout"}"#, "message": "nothing to see"});
    for suffix in ["http", "", "alertmanager"] {
        assert_ne!(of(forged.to_string().as_bytes(), suffix), real, "{suffix}");
    }
    assert_ne!(of(FIRING, "http"), real);
    assert_eq!(
        of(RESOLVED, "alertmanager"),
        real,
        "a resolved alert has the fingerprint of the firing one"
    );
}

#[test]
fn members_stay_the_same_until_another_alert_fires() {
    let alert = |pod: &str, status: &str, severity: &str| {
        json!({"labels": {"alertname": "A", "pod": pod, "severity": severity}, "status": status,
               "annotations": {"value": status}})
    };
    let of = |alerts: Value, left_out: u64| {
        read_json(&json!({"alerts": alerts, "truncatedAlerts": left_out})).members
    };
    let one = of(json!([alert("p", "firing", "page")]), 0);
    assert_eq!(one.len(), 1);
    assert_eq!(
        of(
            json!([alert("q", "resolved", "page"), alert("p", "firing", "info")]),
            0
        ),
        one
    );
    let two = of(
        json!([alert("q", "firing", "page"), alert("p", "firing", "page")]),
        0,
    );
    assert!(two.len() == 2 && two.contains(&one[0]), "{two:?}");
    assert!(
        !of(json!([alert("p", "firing", "page")]), 3)
            .iter()
            .all(|member| one.contains(member))
    );
    assert!(of(json!([alert("p", "resolved", "page")]), 0).is_empty());

    let labelled = |note: &str| {
        read_json(&json!({"alertname": "A", "labels": {"pod": "p"}, "note": note})).members
    };
    assert_eq!(labelled("first"), labelled("second"));
    assert_eq!(
        read(b"disk 94 % full").members,
        read(b"disk 95 % full").members
    );
    assert_ne!(
        read(b"disk 94 % full").members,
        read(b"nothing to see").members
    );
    assert_ne!(
        read_json(&json!({"groupKey": "g", "message": "nothing to see"})).members,
        one
    );
}

#[test]
fn hints_win_over_the_body_but_a_priority_does_not() {
    let hints = Hints {
        alert_type: Some("disk".to_owned()),
        fingerprint: Some(" f ".to_owned()),
        runbook_url: Some("https://r.example".to_owned()),
        title: Some("disk of db-1\nis full".to_owned()),
        priority: Some(Severity::Low),
        suffix: "eu".to_owned(),
        ..Hints::default()
    };
    let expected = Alert {
        alert_type: "disk".to_owned(),
        title: "disk of db-1 is full".to_owned(),
        fingerprint: "header@eu:f".to_owned(),
        runbook_url: Some("https://r.example".to_owned()),
        ..target_down(AlertStatus::Firing)
    };
    assert_eq!(without_text(normalise(FIRING, &hints).unwrap()), expected);
    assert_eq!(normalise(b"text", &hints).unwrap().severity, Severity::Low);
}

#[test]
fn the_severity_is_that_of_the_worst_firing_alert() {
    let alert =
        |severity: &str, status: &str| json!({"labels": {"severity": severity}, "status": status});
    let cases = [
        (
            vec![alert("warning", "firing"), alert("CRITICAL", "resolved")],
            Severity::Normal,
        ),
        (
            vec![alert("info", "firing"), alert("error", "firing")],
            Severity::High,
        ),
        (vec![alert("page", "firing")], Severity::Critical),
        (vec![alert("none", "firing")], Severity::Low),
        (vec![alert("purple", "firing")], Severity::Normal),
    ];
    for (alerts, expected) in cases {
        assert_eq!(
            read_json(&json!({"alerts": alerts})).severity,
            expected,
            "{alerts:?}"
        );
    }
}

#[test]
fn a_body_is_resolved_only_if_no_part_of_it_fires() {
    let alert = |status: &str| json!({"labels": {"alertname": "A"}, "status": status});
    let cases = [
        (
            json!({"status": "resolved", "alerts": [alert("resolved")]}),
            AlertStatus::Resolved,
        ),
        (
            json!({"status": "firing", "alerts": [alert("resolved")], "truncatedAlerts": 2}),
            AlertStatus::Firing,
        ),
        (
            json!({"status": "resolved", "alerts": [{"labels": {}}]}),
            AlertStatus::Resolved,
        ),
        (
            json!({"alerts": [alert("resolved"), alert("firing")]}),
            AlertStatus::Firing,
        ),
        (
            json!({"message": "m", "status": "resolved"}),
            AlertStatus::Resolved,
        ),
        (json!({"message": "m"}), AlertStatus::Firing),
    ];
    for (body, expected) in cases {
        assert_eq!(read_json(&body).status, expected, "{body}");
    }
}

#[test]
fn json_that_is_nested_too_deeply_is_text() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(read(deep.as_bytes()).source, "text");
    let allowed = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    assert_eq!(read(allowed.as_bytes()).source, "json");
}

#[test]
fn a_value_cannot_look_like_a_line_of_tarsy() {
    let alert =
        json!({"labels": {"alertname": "A", "x": "1\nfiring alert 2 of 2"}, "status": "firing"});
    let text = read_json(&json!({"alerts": [alert]})).text;
    assert!(
        !text.lines().any(|line| line == "firing alert 2 of 2"),
        "{text}"
    );
}

#[test]
fn a_title_names_the_smallest_object() {
    let cases = [
        (
            json!({"alertname": "A", "namespace": "n", "pod": "p", "service": "s"}),
            "A  n/p",
        ),
        (json!({"alertname": "A", "namespace": "n"}), "A  n"),
        (
            json!({"alertname": "A", "instance": "i:9100", "job": "j"}),
            "A  i:9100",
        ),
        (json!({"alertname": "A"}), "A"),
        (json!({"alertname": "A", "pod": ""}), "A"),
    ];
    for (labels, expected) in cases {
        assert_eq!(
            read_json(&json!({"alerts": [{"labels": labels}]})).title,
            expected
        );
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        "alerts",
        "labels",
        "annotations",
        "status",
        "alertname",
        "groupKey",
        "severity",
        ".{0,6}"
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn is_sound(alert: &Alert) -> bool {
    let lines = [&alert.title, &alert.alert_type, &alert.fingerprint];
    lines
        .iter()
        .all(|line| !line.is_empty() && !line.contains(char::is_control))
        && !alert.text.trim().is_empty()
        && !alert
            .text
            .contains(|c: char| c.is_control() && c != '\n' && c != '\t')
        && alert.text.len() <= MAX_TEXT_BYTES + 100
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(alert) = normalise(&body, &Hints::default()) {
            prop_assert!(is_sound(&alert), "{alert:?}");
        }
    }

    #[test]
    fn arbitrary_json_gives_a_sound_alert(body in any_json()) {
        if let Ok(alert) = normalise(body.to_string().as_bytes(), &Hints::default()) {
            prop_assert!(is_sound(&alert), "{alert:?}");
        }
    }
}
