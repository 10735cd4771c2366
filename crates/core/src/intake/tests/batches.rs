//! Lists of bodies, one bad member among good ones, and too many alerts.

use super::*;

fn alerts(body: &Value) -> Vec<(String, Severity, AlertStatus)> {
    let parts = Intake::default()
        .read(body.to_string().as_bytes(), &Hints::default())
        .unwrap();
    parts
        .into_iter()
        .map(|part| (part.alert.title, part.alert.severity, part.alert.status))
        .collect()
}

fn firing(title: &str, severity: Severity) -> (String, Severity, AlertStatus) {
    (title.to_owned(), severity, AlertStatus::Firing)
}

#[test]
fn each_body_of_a_list_is_an_alert_and_keeps_its_status() {
    let disk =
        json!({"title": "Disk full", "host": "db-3", "state": "down", "severity": "critical"});
    let cpu = json!({"title": "CPU", "host": "db-3", "state": "ok"});
    let expected = [
        firing("Disk full", Severity::Critical),
        ("CPU".to_owned(), Severity::Normal, AlertStatus::Resolved),
    ];
    let bodies = [
        json!([disk, cpu]),
        json!([null, disk, 7, {}, cpu, ""]),
        json!({"alerts": [disk, cpu], "version": 2}),
        json!({"title": "2 problems", "problems": [disk, cpu, null]}),
        json!({"events": [disk, cpu]}),
    ];
    for body in bodies {
        assert_eq!(alerts(&body), expected, "{body}");
    }
    let lines = format!("{disk}\n{cpu}\n");
    let parts = Intake::default()
        .read(lines.as_bytes(), &Hints::default())
        .unwrap();
    assert_eq!(
        parts
            .iter()
            .map(|part| part.alert.status)
            .collect::<Vec<_>>(),
        [expected[0].2, expected[1].2]
    );
}

#[test]
fn an_alert_with_a_history_or_with_pairs_is_one_alert() {
    for body in [
        json!({"title": "Disk full", "status": "open", "events": [
            {"name": "created", "status": "open"}, {"name": "notified", "status": "open"}]}),
        json!([{"name": "host", "value": "db-3"}, {"name": "status", "value": "down"}]),
        json!({"title": "x", "items": [{"name": "a"}, {"name": "b"}]}),
        json!(["disk full", "on db-3"]),
        json!([1, 2]),
    ] {
        assert_eq!(alerts(&body).len(), 1, "{body}");
    }
}

#[test]
fn a_member_that_is_no_alert_costs_only_itself_and_is_noted() {
    let good = json!({"labels": {"alertname": "A", "severity": "critical"}, "status": "firing"});
    for bad in [
        json!({"annotations": {"summary": "s"}}),
        json!({"labels": null, "status": "firing"}),
        json!(null),
        json!(7),
        json!([]),
    ] {
        for alerts in [json!([good, bad]), json!([bad, good])] {
            let body = json!({"status": "firing", "groupKey": "{}:{}", "alerts": alerts});
            let alert = read_json(&body);
            let expected = (
                "alertmanager@:{}:{}",
                "A",
                Severity::Critical,
                AlertStatus::Firing,
            );
            let found = (
                alert.fingerprint.as_str(),
                alert.alert_type.as_str(),
                alert.severity,
                alert.status,
            );
            assert_eq!(found, expected, "{body}");
        }
    }
    let unlabelled = json!({"status": "firing", "name": "B", "severity": "critical"});
    let body = json!({"status": "firing", "groupKey": "k", "alerts": [unlabelled, null]});
    let part = Intake::default()
        .part(body.to_string().as_bytes(), &Hints::default())
        .unwrap();
    assert_eq!(
        (part.alert.title.as_str(), part.alert.severity),
        ("B", Severity::Critical)
    );
    assert_eq!(part.notes, [Note::NoAlerts(1)]);
    let over = json!({"status": "resolved", "groupKey": "k", "alerts": [null]});
    assert_eq!(read_json(&over).status, AlertStatus::Resolved);
    let [one, other] = [
        json!({"annotations": {"summary": "a"}}),
        json!({"annotations": {"summary": "b"}}),
    ];
    let both = read_json(&json!({"groupKey": "k", "status": "firing", "alerts": [one, other]}));
    assert_eq!(both.members.len(), 2, "{both:?}");
}

#[test]
fn of_too_many_alerts_the_worst_are_kept_and_the_rest_is_named() {
    let alert = |number: usize, severity: &str, state: &str| json!({"title": format!("Problem {number}"), "host": format!("h-{number}"), "severity": severity, "status": state});
    for count in [40, 3_000] {
        let mut list: Vec<Value> = (0..count)
            .map(|number| alert(number, "info", "down"))
            .collect();
        list[0] = alert(0, "critical", "ok");
        list[count - 2] = alert(count - 2, "high", "down");
        list[count - 1] = alert(count - 1, "critical", "down");
        let body = Value::from(list);
        let parts = Intake::default()
            .read(body.to_string().as_bytes(), &Hints::default())
            .unwrap();
        assert_eq!(parts.len(), MAX_PARTS);
        let worst = parts.last().unwrap();
        assert_eq!(
            (worst.alert.severity, worst.alert.status),
            (Severity::Critical, AlertStatus::Firing)
        );
        assert_eq!(parts[parts.len() - 2].alert.severity, Severity::High);
        assert!(
            parts
                .iter()
                .all(|part| part.alert.status == AlertStatus::Firing),
            "an end gives way to what fires"
        );
        assert!(
            worst
                .alert
                .text
                .contains("more alerts of this message were left out"),
            "{}",
            worst.alert.text
        );
        for part in &parts {
            let hints = Hints {
                part: Some(part.index),
                ..Hints::default()
            };
            let again = Intake::default()
                .normalise(body.to_string().as_bytes(), &hints)
                .unwrap();
            assert_eq!(
                again.fingerprint, part.alert.fingerprint,
                "its place leads to it"
            );
        }
    }
}

#[test]
fn a_body_in_a_list_of_its_source_keeps_source_key_and_place() {
    let body = |id: u32| json!({"shop": 1, "events": [{"id": id, "title": "[down] a"}, {"id": id + 1, "title": "[up] b"}]});
    let list = json!([body(1), body(5), {"title": "another", "status": "down"}]).to_string();
    let parts = parts::intake()
        .read(list.as_bytes(), &Hints::default())
        .unwrap();
    let seen: Vec<(u32, String, AlertStatus)> = parts
        .into_iter()
        .map(|part| (part.index, part.alert.source, part.alert.status))
        .collect();
    let shop = |index: u32, status| (index, "shop".to_owned(), status);
    let up = AlertStatus::Resolved;
    let down = AlertStatus::Firing;

    let expected = [
        shop(0, down),
        shop(1 << 20, up),
        shop(1, down),
        shop((1 << 20) + 1, up),
        (2, "json".to_owned(), down),
    ];
    assert_eq!(seen, expected);
    let alone = parts::intake()
        .normalise(body(5).to_string().as_bytes(), &Hints::default())
        .unwrap();
    let in_list = parts::intake()
        .normalise(
            list.as_bytes(),
            &Hints {
                part: Some(1),
                source: Some("shop".to_owned()),
                ..Hints::default()
            },
        )
        .unwrap();
    assert_eq!(in_list.fingerprint, alone.fingerprint);
}

#[test]
fn a_repaired_body_keeps_its_source_and_says_what_was_repaired() {
    let body =
        "{\"shop\": 1, \"prio\": 1, \"events\": [{\"id\": 1, \"title\": \"[up] C:\\Temp\n\", },],}";
    for (bytes, hints) in [
        (body.as_bytes().to_vec(), Hints::default()),
        (
            body.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Hints {
                content_type: Some("x; charset=utf-16".to_owned()),
                ..Hints::default()
            },
        ),
    ] {
        let part = parts::intake().part(&bytes, &hints).unwrap();
        let alert = &part.alert;
        assert_eq!(
            (alert.source.as_str(), alert.severity, alert.status),
            ("shop", Severity::Critical, AlertStatus::Resolved)
        );
        for repair in [Repair::Escapes, Repair::Controls, Repair::Commas] {
            assert!(
                part.notes.contains(&Note::Repaired(repair)),
                "{:?}",
                part.notes
            );
        }
    }
}

proptest! {
    #[test]
    fn a_list_has_the_alerts_of_its_bodies(bodies in prop::collection::vec(("[a-z]{3,8}", "[a-z]{3,8}", any::<bool>()), 1..20), bad in prop_oneof![Just(json!(null)), Just(json!(3)), Just(json!({}))]) {
        let body = |(title, host, is_up): &(String, String, bool)| {
            json!({"title": title, "host": host, "status": if *is_up { "up" } else { "down" }})
        };
        let mut list: Vec<Value> = bodies.iter().map(body).collect();
        list.insert(list.len() / 2, bad);
        let parts = Intake::default().read(Value::from(list.clone()).to_string().as_bytes(), &Hints::default()).unwrap();
        let found: std::collections::BTreeSet<String> = parts.into_iter().map(|part| part.alert.fingerprint).collect();
        let alone: std::collections::BTreeSet<String> = bodies.iter().map(|each| read_json(&body(each)).fingerprint).collect();
        prop_assert_eq!(found, alone);
    }
}
