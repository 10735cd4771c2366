//! A body with several alerts becomes several messages: at the receiver, at a worker, and with `tarsy submit`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Queue as _, Received};
use uuid::Uuid;

use super::Receiver;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const SOURCE: &str = "sources:\n  shop-list:\n    recognise: {has: [/shop, /events]}\n    each: /events\n    \
                      type: '@/name'\n    severity: '@/severity'\n    key: ['@/id']\n";

fn body(ids: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let event = |id: u32| json!({"id": id, "name": format!("Check{id}"), "severity": if id == 2 { "critical" } else { "low" }});
    json!({"shop": "main", "events": ids.into_iter().map(event).collect::<Vec<_>>()})
        .to_string()
        .into_bytes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_alert_of_a_body_is_a_message_and_of_one_key_the_last_counts() {
    let (receiver, _directory) = Receiver::configured(SOURCE, &[]).await;
    for (path, source) in [("/hooks/shop-list", Some("shop-list")), ("/alert", None)] {
        let body = body([1, 2, 1, 3]);
        let answer = receiver.post(path, &[], &body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let answer = answer.json();
        let alerts = answer["alerts"].as_array().expect("several alerts");
        let mut seen = Vec::new();
        for alert in alerts {
            let sequence = alert["stream_sequence"].as_u64().unwrap();
            let message = receiver
                .stream()
                .await
                .get_raw_message(sequence)
                .await
                .unwrap();
            let header = |name: &str| {
                message
                    .headers
                    .get(name)
                    .map(|value| value.as_str().to_owned())
            };
            assert_eq!(
                (message.payload.as_ref(), header("Tarsy-Source").as_deref()),
                (body.as_slice(), source)
            );
            assert_eq!(header(SESSION_ID).as_deref(), alert["session_id"].as_str());
            seen.push(format!(
                "{} {}",
                header("Tarsy-Part").unwrap(),
                message.subject.split('.').nth(2).unwrap()
            ));
        }
        assert_eq!(seen, ["1 critical", "2 low", "3 low"]);
        assert_eq!(answer["session_id"], alerts[0]["session_id"]);
        let ids: BTreeSet<&str> = alerts
            .iter()
            .map(|alert| alert["session_id"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), 3);
    }
    let many = receiver.post("/hooks/shop-list", &[], &body(1..=40)).await;
    assert_eq!(many.json()["alerts"].as_array().unwrap().len(), 32);
    let one = receiver.post("/hooks/shop-list", &[], &body([7])).await;
    assert_eq!(one.json().get("alerts"), None);
}

/// The alerts of the database, by their type, with their number.
fn alerts(system: &TestSystem) -> String {
    let all = "SELECT coalesce(string_agg(alert_type || ' ' || place, ', ' ORDER BY alert_type), '') FROM alerts";
    system.database.text(all)
}

const THREE: &str = "Check1 opened, Check2 opened, Check3 opened";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_publishes_the_other_alerts_of_a_body_once_although_one_was_killed() {
    let system = TestSystem::start_with(Setup {
        sections: SOURCE,
        ..Setup::default()
    })
    .await;
    let nats = system.connect().await;
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let subject = "tarsy.alerts.high.foreign";
    // A worker that was killed has published one of the others already.
    let received = Received {
        alert_id: session,
        body_sha256: [0; 32],
        body: Some(body([1, 2, 3])),
        headers: headers.clone(),
        subject: subject.to_owned(),
        stream_sequence: 1,
        queued_at: chrono::Utc::now(),
    };
    nats.publish_part(&received, 1).await.unwrap();
    let suffix = Some("foreign".parse().unwrap());
    nats.publish_alert(NewAlert {
        priority: Priority::High,
        suffix,
        body: body([1, 2, 3]),
        headers,
    })
    .await
    .unwrap();
    // Another one is killed as soon as it has recorded an alert.
    let (mut first, _) = system.worker("w1").await;
    eventually("an alert is recorded", async || {
        system.database.number("SELECT count(*) FROM alerts") > 0
    })
    .await;
    first.kill().await;
    let (_second, _) = system.worker("w2").await;
    eventually("three alerts have a session", async || {
        alerts(&system) == THREE
    })
    .await;
    let ended = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NOT NULL";
    eventually("all of them end", async || {
        system.database.number(ended) == 3
    })
    .await;
    assert_eq!(system.database.number("SELECT count(*) FROM alerts"), 3);
    let subjects = "SELECT count(*) FROM alerts WHERE subject = 'tarsy.alerts.high.foreign'";
    assert_eq!(
        system.database.number(subjects),
        3,
        "a part waits in the queue of its message"
    );
    let own = format!("SELECT alert_type FROM alerts WHERE alert_id = '{session}'");
    assert_eq!(system.database.text(&own), "Check1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submit_publishes_every_alert_of_a_file() {
    let system = TestSystem::start_with(Setup {
        sections: SOURCE,
        ..Setup::default()
    })
    .await;
    let file = system.file("alert.json");
    std::fs::write(&file, body([1, 2, 3])).unwrap();
    let mut submit = system.tarsy("submit", &["submit", file.to_str().unwrap(), "--json"]);
    let (code, out) = submit.finished().await;
    assert_eq!(code, 0, "{}", submit.log());
    let printed = serde_json::Deserializer::from_str(&out)
        .into_iter::<Value>()
        .map(Result::unwrap);
    let subjects: Vec<String> = printed
        .map(|alert| alert["subject"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        subjects,
        [
            "tarsy.alerts.low",
            "tarsy.alerts.critical",
            "tarsy.alerts.low"
        ]
    );
    let (_worker, _) = system.worker("w1").await;
    eventually("three alerts have a session", async || {
        alerts(&system) == THREE
    })
    .await;

    std::fs::write(&file, json!({"shop": "main", "events": []}).to_string()).unwrap();
    let mut submit = system.tarsy("submit", &["submit", file.to_str().unwrap()]);
    assert_eq!(submit.finished().await.0, 1);
    assert!(
        submit
            .log()
            .contains("no alert in it; nothing was published"),
        "{}",
        submit.log()
    );
}
