//! A reduced body is the same alert as the whole one, whatever its form is.

use std::io::Write as _;

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::alert::aggregate::Aggregate;
use crate::alert::{Alert, AlertStatus, Severity};
use crate::intake::Part;

const LIMIT: usize = 8 * 1024;

fn reduced(body: &[u8], hints: &Hints) -> Reduced {
    let reduced = Intake::default()
        .reduced(body, hints, LIMIT)
        .unwrap()
        .expect("a body that is too large");
    assert!(
        reduced.body.len() <= LIMIT,
        "{} bytes of {}: {}",
        reduced.body.len(),
        body.len(),
        reduced.body
    );
    reduced
}

/// The alerts of the whole body and of the reduced one.
fn both(body: &[u8]) -> [Vec<Part>; 2] {
    let intake = Intake::default();
    let hints = Hints {
        received_at: "2026-11-27T03:00:00Z".parse().ok(),
        ..Hints::default()
    };
    let reduced = reduced(body, &hints);
    let short = intake
        .read(reduced.body.as_bytes(), &reduced.hints(hints.clone()))
        .unwrap();
    [intake.read(body, &hints).unwrap(), short]
}

/// The fields that must not depend on the size.
fn essence(alert: &Alert) -> (&str, &str, &str, AlertStatus, Severity) {
    (
        &alert.fingerprint,
        &alert.title,
        &alert.alert_type,
        alert.status,
        alert.severity,
    )
}

fn only([whole, short]: &[Vec<Part>; 2]) -> &Alert {
    let ([whole], [short]) = (whole.as_slice(), short.as_slice()) else {
        panic!("{whole:?} {short:?}")
    };
    assert_eq!(essence(&short.alert), essence(&whole.alert));
    &short.alert
}

fn alert(number: usize, severity: &str, status: &str) -> Value {
    json!({
        "status": status,
        "labels": {"alertname": "PodNotReady", "severity": severity, "pod": format!("checkout-{number}"), "cluster": "prod"},
        "annotations": {"description": format!("Pod checkout-{number} is not ready. {}", "x".repeat(200))},
        "startsAt": "2026-11-27T02:00:31Z", "endsAt": "0001-01-01T00:00:00Z",
    })
}

fn group(alerts: &[Value]) -> Value {
    json!({"version": "4", "status": "firing", "groupKey": "{}:{a=\"b\"}", "commonLabels": {}, "alerts": alerts})
}

#[test]
fn the_only_critical_alert_of_a_large_group_is_in_the_text() {
    let mut alerts: Vec<Value> = (0..900)
        .map(|number| alert(number, "warning", "firing"))
        .collect();
    alerts[617] = alert(617, "critical", "firing");
    let short = both(group(&alerts).to_string().as_bytes());
    let alert = only(&short);
    assert_eq!(alert.severity, Severity::Critical);
    assert!(alert.text.contains("checkout-617"), "{}", alert.text);
    let left_out = "firing, are only counted: PodNotReady (";
    assert!(
        alert.text.contains(left_out) && alert.text.contains("severity=warning ("),
        "{}",
        alert.text
    );
    assert_eq!(
        Aggregate::total(&alert.members),
        900,
        "each of the group is counted"
    );
}

#[test]
fn every_form_of_a_large_body_is_the_same_alert() {
    let list: Vec<Value> = (0..200)
        .map(|number| alert(number, "low", "firing"))
        .collect();
    let group = group(&list).to_string();
    let long = "The disk is full and the database does not start. ".repeat(1_000);
    let single =
        json!({"host": "db-3", "check": "disk", "status": "critical", "output": long, "n": 1});
    let broken = single.to_string().replacen("disk is", "C:\\Temp is\n", 3);
    let rows: Vec<Value> = (0..2_000)
        .map(|row| json!({"at": row, "used": 94}))
        .collect();
    let push = json!({"message": {"data": BASE64.encode(group.as_bytes()), "messageId": "1"}, "subscription": "s"});
    let sns = json!({"Type": "Notification", "TopicArn": "arn:aws:sns:eu:1:a", "Message": group})
        .to_string();
    let encoded: String = url::form_urlencoded::byte_serialize(group.as_bytes()).collect();
    let wide: Value = (0..4_000)
        .map(|at| (format!("field_{at}_value"), json!({"count": at})))
        .collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(group.as_bytes()).unwrap();
    for body in [
        group.clone().into_bytes(),
        gzip.finish().unwrap(),
        group.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        json!(group).to_string().into_bytes(),
        push.to_string().into_bytes(),
        sns.into_bytes(),
        format!("payload={encoded}").into_bytes(),
        single.to_string().into_bytes(),
        broken.into_bytes(),
        json!({"host": "db-3", "check": "disk", "state": "down", "detail": {"more": {"rows": rows}}})
            .to_string()
            .into_bytes(),
        json!({"host": "db-3", "check": "disk", "state": "down", "values": wide}).to_string().into_bytes(),
        json!({"host": "db-3", "check": "disk", "a": rows, "b": rows, "c": rows, "d": rows}).to_string().into_bytes(),
        format!("CRITICAL: disk full on db-3\n{long}").into_bytes(),
        format!("[RESOLVED] disk full on db-3\n{long}").into_bytes(),
    ] {
        let parts = both(&body);
        let text = &only(&parts).text;
        assert!(text.contains("[tarsy: "), "{text}");
    }
}

#[test]
fn the_worst_of_a_list_of_bodies_stay_and_one_of_them_may_be_large() {
    let body = |number: usize, severity: &str| json!({"host": format!("db-{number}"), "check": "disk", "status": "firing", "severity": severity, "info": "y".repeat(300)});
    let mut bodies: Vec<Value> = (0..300).map(|number| body(number, "warning")).collect();
    bodies[123] = body(123, "critical");
    bodies[200] = json!({"host": "db-200", "check": "disk", "status": "firing", "severity": "critical", "info": "z".repeat(20_000)});
    let lines: Vec<String> = bodies.iter().map(ToString::to_string).collect();
    for body in [
        json!(bodies).to_string(),
        lines.join("\n"),
        format!("{}\nno JSON", lines.join("\r\n")),
    ] {
        let [whole, short] = both(body.as_bytes());
        for part in whole
            .iter()
            .filter(|part| part.alert.severity == Severity::Critical)
        {
            let same = short
                .iter()
                .find(|other| other.alert.fingerprint == part.alert.fingerprint)
                .expect("a worst one");
            assert_eq!(essence(&same.alert), essence(&part.alert));
        }
        assert!(short.len() > 8, "{}", short.len());
    }
}

#[test]
fn a_small_body_is_not_reduced_and_texts_that_differ_in_the_middle_have_two_keys() {
    assert_eq!(
        Intake::default().reduced(b"{\"a\":1}", &Hints::default(), LIMIT),
        Ok(None)
    );
    let key = |word: &str| {
        let text = format!("{}{word}{}", "a b ".repeat(9_000), "c d ".repeat(9_000));
        only(&both(text.as_bytes())).fingerprint.clone()
    };
    assert_ne!(key("one"), key("two"));
}

#[test]
fn what_is_left_out_is_a_header_of_one_line() {
    let left_out = LeftOut {
        firing: 7,
        notes: vec!["größer \"a\"".to_owned()],
        key: Some("k\nl".to_owned()),
    };
    let header = left_out.header().unwrap();
    assert!(!header.contains('\n'), "{header}");
    assert_eq!(LeftOut::parse(&header), Some(left_out));
    assert_eq!(
        (LeftOut::default().header(), LeftOut::parse("7")),
        (None, None)
    );
    let long = LeftOut {
        notes: vec!["n".repeat(90_000); 90],
        ..LeftOut::default()
    };
    assert!(
        LeftOut::parse(&long.header().unwrap())
            .unwrap()
            .header()
            .unwrap()
            .len()
            < 40_000
    );
}

fn any_alert() -> impl Strategy<Value = Value> {
    let severity = prop_oneof![Just("critical"), Just("warning"), Just("info"), Just("")];
    let status = prop_oneof![8 => Just("firing"), 2 => Just("resolved"), 1 => Just("")];
    let end = prop_oneof![8 => Just(""), 1 => Just("2026-11-27T02:00:00Z")];
    let parts = (
        severity,
        status,
        end,
        0..4_u8,
        0..3_u8,
        0..6_u8,
        0..700_usize,
    );
    parts.prop_map(|(severity, status, end, name, zone, pod, size)| {
        let mut alert = json!({
            "labels": {"alertname": format!("Alert{name}"), "zone": format!("z{zone}"), "pod": format!("p{pod}"), "job": "j"},
            "annotations": {"summary": "s".repeat(size)},
        });
        if !severity.is_empty() {
            alert["labels"]["severity"] = severity.into();
        }
        if !status.is_empty() {
            alert["status"] = status.into();
        }
        if !end.is_empty() {
            alert["endsAt"] = end.into();
        }
        if pod == 0 {
            alert["labels"].as_object_mut().unwrap().remove("pod");
        }
        alert
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_reduced_group_is_the_same_alert_as_the_whole_one(
        alerts in prop::collection::vec(any_alert(), 45..140),
        root in prop_oneof![Just(""), Just("firing"), Just("resolved")],
        has_key in any::<bool>(),
        is_resolved in prop::bool::weighted(0.2),
    ) {
        let mut body = json!({"version": "4", "alerts": alerts, "externalURL": "x".repeat(LIMIT / 4)});
        if is_resolved {
            body["alerts"].as_array_mut().unwrap().iter_mut().for_each(|alert| alert["status"] = "resolved".into());
        }
        if !root.is_empty() {
            body["status"] = root.into();
        }
        if has_key {
            body["groupKey"] = "{}:{}".into();
        }
        let body = body.to_string();
        prop_assume!(body.len() > LIMIT);
        let parts = both(body.as_bytes());
        let whole = &parts[0][0].alert;
        let short = only(&parts);
        let worst = |alert: &Alert| alert.text.contains("critical");
        prop_assert_eq!(worst(short), worst(whole), "{}", &short.text);
    }

    #[test]
    fn any_json_is_reduced_to_its_limit(seed in prop::collection::vec(("[a-z]{3,6}", 0..400_usize, 0..4_u8), 1..60)) {
        let mut value = json!({"host": "db-3", "filler": "z".repeat(LIMIT)});
        for (key, size, kind) in seed {
            value = match kind {
                0 => json!([value, "x".repeat(size)]),
                1 => json!({key: value, "n": size, "t": "y".repeat(size * 20)}),
                2 => json!({key: vec![json!({"a": size}); size], "inner": value}),
                _ => json!({key: value.to_string()}),
            };
            if value.to_string().len() > 300_000 {
                break;
            }
        }
        let body = value.to_string();
        let reduced = reduced(body.as_bytes(), &Hints::default());
        prop_assert!(!reduced.left_out.notes.is_empty() || reduced.left_out.key.is_some());
    }
}
