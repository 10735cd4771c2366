//! Messages with several alerts, named sources, answers of Alertmanager's API, and arbitrary JSON in any source.

use std::sync::Arc;

use super::*;
use crate::sources::*;

fn expression(text: &str) -> Option<Expression> {
    Some(Expression::parse(text).unwrap())
}

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).unwrap()
}

fn words<T: Copy + Default>(from: &str, pairs: &[(&str, T)]) -> Words<T> {
    let mut map = WordTable::default();
    pairs
        .iter()
        .for_each(|(word, value)| map.insert(word, *value));
    Words {
        from: expression(from),
        map,
        default: None,
    }
}

/// Two rules, a list of events, JSON in a text, and a capture.
fn source() -> Source {
    let has = |texts: &[&str]| Rule {
        has: texts.iter().map(|text| pointer(text)).collect(),
        ..Rule::default()
    };
    Source {
        recognise: vec![
            has(&["/shop", "/events"]),
            has(&["/wrapped/shop", "/events"]),
        ],
        ignore: vec![Condition {
            pointer: pointer("@/kind"),
            words: ["note".to_owned()].into_iter().collect(),
        }],
        parse: vec![pointer("/wrapped")],
        parse_element: vec![pointer("@/inner")],
        each: Some(pointer("/events")),
        capture: Some(
            Capture::new(
                expression("@/title").unwrap(),
                r"^\[(?<state>\w+)\] (?<name>.*)$",
            )
            .unwrap(),
        ),
        alert_type: expression("@/inner/name | $name"),
        severity: words("@/prio | /prio", &[("1", Severity::Critical)]),
        status: words("@/state | $state", &[("blue", AlertStatus::Resolved)]),
        test: vec![TestSign {
            pointer: pointer("@/probe"),
            signs: vec![Sign::Is(json!(1)), Sign::Equals("x".into())],
        }],
        key: vec![vec![expression("@/id").unwrap()]],
        labels: vec![LabelSource::Object(pointer("@/labels"))],
        links: vec![LinkSource {
            name: "graph".into(),
            url: expression("https://g.example/{@/id}").unwrap(),
        }],
        at: expression("@/at"),
        ..Source::default()
    }
}

pub(super) fn intake() -> Intake {
    let named = |name: &str, reader| NamedSource {
        name: name.to_owned(),
        reader,
    };
    let users = vec![
        named("shop", Reader::Declared(Box::new(source()))),
        named("east", Reader::Alertmanager(Vec::new())),
    ];
    Intake::new(Arc::new(Sources::new(users, Vec::new())))
}

fn parts(body: &Value, hints: &Hints) -> Vec<Part> {
    intake().read(body.to_string().as_bytes(), hints).unwrap()
}

#[test]
fn each_element_of_a_list_is_an_alert() {
    let body = json!({"shop": 1, "prio": "low", "events": [
        {"id": 1, "title": "[down] disk", "at": "2026-11-25T10:00:00Z", "labels": {"host": "db-1"}},
        {"id": 2, "kind": "note"},
        {"id": 3, "inner": "{\"name\": \"inner\"}", "prio": 1, "state": "blue"},
        {"id": 1, "title": "[up] disk"},
        {"id": 4, "title": "[ack] cpu", "probe": 1},
    ]});
    let seen: Vec<_> = parts(&body, &Hints::default())
        .into_iter()
        .map(|part| {
            let Alert {
                alert_type,
                severity,
                status,
                ..
            } = part.alert;
            (part.index, alert_type, severity, status)
        })
        .collect();
    let expected = [
        (
            2,
            "inner".to_owned(),
            Severity::Critical,
            AlertStatus::Resolved,
        ),
        (3, "disk".to_owned(), Severity::Low, AlertStatus::Resolved),
        (4, "cpu".to_owned(), Severity::Low, AlertStatus::Test),
    ];
    assert_eq!(
        seen, expected,
        "of one key the last counts, and a note is left out"
    );
    let of = |part| {
        intake().part(
            body.to_string().as_bytes(),
            &Hints {
                part: Some(part),
                ..Hints::default()
            },
        )
    };
    let first = of(0).unwrap();
    assert_eq!(
        (first.alert.title.as_str(), first.alert.status),
        ("disk  db-1", AlertStatus::Firing)
    );
    assert_eq!(first.links["graph"], "https://g.example/1");
    assert_eq!(
        first.alert.at.unwrap().to_rfc3339(),
        "2026-11-25T10:00:00+00:00"
    );
    assert_eq!(
        of(1).unwrap().alert.ignored_because.as_deref(),
        Some("kind is note")
    );
    assert_eq!(of(9), Err(IntakeError::Empty));
}

#[test]
fn a_message_without_an_alert_is_ignored_and_one_with_too_many_is_cut() {
    for events in [json!([]), json!(null), json!("x")] {
        let [part] = parts(&json!({"shop": 1, "events": events}), &Hints::default())
            .try_into()
            .unwrap();
        assert_eq!(
            part.alert.ignored_because.as_deref(),
            Some("no alert in it"),
            "{events}"
        );
    }
    let notes = json!({"shop": 1, "events": [{"id": 1, "kind": "note"}]});
    assert_eq!(
        parts(&notes, &Hints::default())[0].alert.status,
        AlertStatus::Ignored
    );
    let many: Vec<Value> = (0..40)
        .map(|id| json!({"id": id, "title": "[down] x"}))
        .collect();
    let many = parts(&json!({"shop": 1, "events": many}), &Hints::default());
    assert_eq!(many.len(), MAX_PARTS);
    let note = "[8 more alerts of this message were left out, none of them worse: x (8)]";
    assert!(many[0].alert.text.ends_with(note), "{}", many[0].alert.text);
}

#[test]
fn headers_about_one_alert_do_not_count_for_several() {
    let hints = Hints {
        fingerprint: Some("f".into()),
        title: Some("t".into()),
        ..Hints::default()
    };
    let of = |ids: &[u32]| {
        let events: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "title": "[down] x"}))
            .collect();
        let parts = parts(&json!({"shop": 1, "events": events}), &hints);
        parts
            .into_iter()
            .map(|part| (part.alert.title, part.alert.fingerprint))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&[1]), [("t".to_owned(), "header@:f".to_owned())]);
    assert!(
        of(&[1, 2])
            .iter()
            .all(|(title, print)| title == "x" && print.starts_with("shop@:sha256:"))
    );
}

#[test]
fn a_named_source_reads_a_body_that_another_would_recognise() {
    let named = |source: &str| Hints {
        source: Some(source.to_owned()),
        suffix: "http".into(),
        ..Hints::default()
    };
    let alert = |source: &str| intake().normalise(FIRING, &named(source)).unwrap();
    assert_eq!(
        alert("east").fingerprint,
        r#"east@http:{}:{alertname="TargetDown", job="checkout"}"#
    );
    assert_eq!(
        alert("nowhere").source,
        "alertmanager",
        "an unknown name is no name"
    );
    let part = intake().part(FIRING, &named("nowhere")).unwrap();
    assert!(
        part.notes
            .contains(&Note::UnknownSource("nowhere".to_owned()))
    );
    let json = json!({"id": 1, "message": "m"}).to_string();
    assert_eq!(
        intake()
            .normalise(json.as_bytes(), &named("east"))
            .unwrap()
            .source,
        "east"
    );
    assert_eq!(
        intake().normalise(b"{}", &named("shop")),
        Err(IntakeError::Empty)
    );
    let again = Hints {
        fingerprint: Some(alert("east").fingerprint),
        ..named("shop")
    };
    assert_eq!(
        intake().normalise(FIRING, &again).unwrap().fingerprint,
        alert("east").fingerprint
    );
}

#[test]
fn the_trace_names_the_pointer_of_each_field() {
    let body = json!({"wrapped": "{\"shop\": 2}", "prio": 1, "events": [{"title": "[down] disk"}]});
    let part = parts(&body, &Hints::default()).remove(0);
    let trace: Vec<_> = part
        .trace
        .iter()
        .map(|line: &Traced| (line.field, line.origin.to_string(), line.shown()))
        .collect();
    let expected = [
        ("status", "$state", "firing (down)"),
        ("type", "$name", "disk"),
        ("key", "@/id", ""),
        ("severity", "/prio", "critical (1)"),
        ("at", "no time at @/at", ""),
    ];
    let owned = expected.map(|(field, from, value)| (field, from.to_owned(), value.to_owned()));
    assert_eq!(trace.get(..5), Some(&owned[..]));
    assert_eq!(part.notes, [Note::NoKey]);
}

#[test]
fn answers_of_the_api_of_alertmanager_are_an_alert_for_each_group() {
    let alert = |name: &str, state: &str| {
        json!({"labels": {"alertname": name, "severity": "page"}, "fingerprint": name,
        "status": {"state": state}, "startsAt": "2026-11-25T10:00:00Z", "endsAt": "2099-01-01T00:00:00Z"})
    };
    let group = |name: &str, alerts: Value| json!({"labels": {"job": name}, "receiver": {"name": "r"}, "alerts": alerts});
    let body = json!([
        group("a", json!([alert("A", "active"), alert("A", "suppressed")])),
        group("b", json!([alert("B", "active")])),
        group("c", json!([alert("C", "suppressed")]))
    ]);
    let of = |body: &Value| {
        let seen = parts(body, &Hints::default()).into_iter();
        seen.map(|part| {
            (
                part.alert.alert_type,
                part.alert.severity,
                part.alert.status,
            )
        })
        .collect::<Vec<_>>()
    };
    let firing = |name: &str| (name.to_owned(), Severity::Critical, AlertStatus::Firing);
    assert_eq!(of(&body), [firing("A"), firing("B")]);
    assert_eq!(
        of(&json!([alert("X", "active"), alert("Y", "active")])),
        [firing("X"), firing("Y")]
    );
    assert_eq!(
        of(&json!([alert("X", "suppressed")]))[0].2,
        AlertStatus::Ignored
    );
}

#[test]
fn the_test_button_of_grafana_is_a_test() {
    let alert =
        json!({"labels": {"alertname": "TestAlert", "instance": "Grafana"}, "status": "firing"});
    let body = json!({"orgId": 1, "groupKey": "webhook-1", "status": "firing", "alerts": [alert]});
    assert_eq!(read_json(&body).status, AlertStatus::Test);
    assert_eq!(read_json(&body).members, Vec::<uuid::Uuid>::new());
}

#[test]
fn recognition_of_a_large_body_is_short() {
    let big = json!({"message": "x".repeat(1024 * 1024), "list": vec![json!({"a": 1}); 1_000]});
    let intake = intake();
    let started = std::time::Instant::now();
    for _ in 0..20 {
        assert!(intake.sources().fitting(&big).is_empty());
    }
    assert!(
        started.elapsed().as_millis() < 20,
        "a millisecond each, even without optimisation"
    );
}

#[test]
fn a_key_of_control_characters_alone_does_not_depend_on_the_order_of_fields() {
    let key = |body: &str| read(body.as_bytes()).fingerprint;
    let alert = json!({"labels": {"alertname": "Disk"}});
    let body = |group_key: &str| {
        json!({"alerts": [alert], "groupKey": group_key, "receiver": "a"}).to_string()
    };
    let reordered = json!({"receiver": "a", "groupKey": "\u{0}", "alerts": [alert]}).to_string();
    assert_eq!(key(&body("\u{0}")), key(&reordered));
    assert_ne!(key(&body("\u{0}")), key(&body("{}:{}")));
}

fn any_shop() -> impl Strategy<Value = Value> {
    let part = prop_oneof![
        any_json(),
        Just(json!("{\"shop\": [1]}")),
        Just(json!([{"id": 1}, {"kind": "note"}, 7]))
    ];
    (part.clone(), part.clone(), part).prop_map(
        |(shop, events, wrapped)| json!({"shop": shop, "events": events, "wrapped": wrapped}),
    )
}

proptest! {
    #[test]
    fn arbitrary_json_through_a_source_gives_sound_alerts(body in any_shop(), name in prop_oneof![Just("shop"), Just("east")]) {
        let hints = Hints { source: Some(name.to_owned()), ..Hints::default() };
        if let Ok(parts) = intake().read(body.to_string().as_bytes(), &hints) {
            prop_assert!(!parts.is_empty() && parts.len() <= MAX_PARTS);
            for part in parts {
                prop_assert!(is_sound(&part.alert), "{part:?}");
            }
        }
    }

    #[test]
    fn the_order_of_keys_changes_no_fingerprint(body in any_shop()) {
        fn reversed(value: &Value) -> Value {
            match value {
                Value::Object(fields) => fields.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect(),
                Value::Array(items) => items.iter().map(reversed).collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
            }
        }
        let of = |body: &Value| intake().read(body.to_string().as_bytes(), &Hints::default()).map(|parts| {
            parts.into_iter().map(|part| part.alert.fingerprint).collect::<Vec<_>>()
        });
        prop_assert_eq!(of(&body), of(&reversed(&body)));
    }
}

#[test]
fn references_come_from_the_declaration_the_group_and_the_tags() {
    let refs = |intake: &Intake, body: &Value| {
        let alert = intake
            .normalise(body.to_string().as_bytes(), &Hints::default())
            .unwrap();
        serde_json::to_value(alert.refs).unwrap()
    };
    let group = json!({"groupKey": "{}:{job=\"x\"}", "status": "firing", "alerts": [
        {"labels": {"alertname": "A", "ticket": "OPS-7"}, "annotations": {"slack_channel": "C1"}},
        {"labels": {"alertname": "A", "ticket": "OPS-7"}, "annotations": {"slack_channel": "C2", "slack_ts": "1700000000.000100"},
         "dashboardURL": "https://grafana.example.com/d/fgKkRkDMk?orgId=1"},
    ]});
    let tag = |name: &str, tag: Tag| TagRef {
        name: name.to_owned(),
        tag,
    };
    let named = vec![
        tag("ticket", Tag::Label("ticket".to_owned())),
        tag("absent", Tag::Annotation("x".to_owned())),
    ];
    let sources = Sources::new(
        vec![NamedSource {
            name: "alertmanager".to_owned(),
            reader: Reader::Alertmanager(named),
        }],
        Vec::new(),
    );
    let found = refs(&Intake::new(Arc::new(sources)), &group);
    assert_eq!(found["ticket"], "OPS-7");
    assert_eq!(
        found["slack"], "C1/1700000000.000100",
        "of each tag the first alert's"
    );
    assert_eq!(found["dashboard"], "fgKkRkDMk");
    assert_eq!(found["am_group"].as_str().map(str::len), Some(64));
    let json = json!({"title": "disk full", "slack_thread": "https://a.slack.com/archives/C1/p1700000000000100"});
    assert_eq!(
        refs(&Intake::default(), &json),
        json!({"slack": "C1/1700000000.000100"})
    );
    let source = Source {
        refs: vec![RefSource {
            name: "incident".to_owned(),
            id: Expression::parse("/id").unwrap(),
        }],
        ..Source::default()
    };
    let sources = Sources::new(
        vec![NamedSource {
            name: "shop".to_owned(),
            reader: Reader::Declared(Box::new(source)),
        }],
        Vec::new(),
    );
    let hints = Hints {
        source: Some("shop".to_owned()),
        ..Hints::default()
    };
    let alert = Intake::new(Arc::new(sources))
        .normalise(br#"{"id": "PGR0VU2", "name": "x"}"#, &hints)
        .unwrap();
    assert_eq!(alert.refs.get("incident"), Some("PGR0VU2"));
}

#[test]
fn equal_groups_of_two_tenants_and_of_two_organisations_of_grafana_are_two_problems() {
    let group = json!({"groupKey": "{}:{alertname=\"A\"}", "status": "firing",
        "alerts": [{"status": "firing", "labels": {"alertname": "A"}}]});
    let of = |body: &Value, tenant: Option<&str>| {
        let hints = Hints {
            tenant: tenant.map(str::to_owned),
            suffix: "http".to_owned(),
            ..Hints::default()
        };
        normalise(body.to_string().as_bytes(), &hints)
            .unwrap()
            .fingerprint
    };
    assert_eq!(of(&group, None), "alertmanager@http:{}:{alertname=\"A\"}");
    assert_eq!(
        of(&group, Some("team-a")),
        "alertmanager@http+team-a:{}:{alertname=\"A\"}"
    );
    let organisation = |id: u32| {
        let mut body = group.clone();
        body["orgId"] = json!(id);
        of(&body, None)
    };
    assert_eq!(organisation(1), "grafana@http:{}:{alertname=\"A\"}");
    assert_eq!(organisation(2), "grafana@http+org-2:{}:{alertname=\"A\"}");
}
