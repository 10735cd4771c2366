//! The queue as the sweeper uses it: which alert a message belongs to, and requeuing lost alerts.

use std::time::Duration;

use serde_json::{Value, json};
use tarsy_bus::{
    CHAIN, FINGERPRINT, FORCE, Nats, NewAlert, Priority, RETRY_OF, SESSION_ID, TITLE,
    TopologySettings,
};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{IdleAlert, Queue};

use super::claims::{next, start};
use super::table::new_session;
use super::{outsider, prepared, within};
use crate::support::nats::NatsServer;

async fn publish(nats: &Nats, headers: Value) -> u64 {
    let alert = NewAlert {
        priority: Priority::High,
        suffix: "disk-full".parse().ok(),
        body: b"disk".to_vec(),
        headers,
    };
    nats.publish_alert(alert).await.unwrap().sequence
}

fn idle(alert_id: SessionId, subject: &str, headers: Value) -> IdleAlert {
    let body = Some(vec![0xff, 0, b'\n']);
    IdleAlert {
        alert_id,
        undecided: true,
        subject: subject.into(),
        headers,
        body,
        stream_sequence: 1,
        woken_by: None,
    }
}

async fn stored(
    server: &NatsServer,
    sequence: u64,
) -> async_nats::jetstream::message::StreamMessage {
    let (_, jetstream) = outsider(server).await;
    jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .get_raw_message(sequence)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_message_belongs_to_its_own_alert_and_to_no_other() {
    let (server, nats) = prepared().await;
    let chosen = new_session();
    let plain = publish(&nats, json!({})).await;
    let with_id = publish(&nats, json!({SESSION_ID: chosen.to_string()})).await;
    let with_bad_id = publish(&nats, json!({SESSION_ID: "c0ffee"})).await;
    let mut claims = start(&nats, 3);
    for sequence in [plain, with_id, with_bad_id] {
        let claimed = next(&mut claims).await;
        assert_eq!(claimed.job.received.stream_sequence, sequence);
        assert!(
            nats.holds(claimed.job.received.alert_id, sequence)
                .await
                .unwrap(),
            "{:?}",
            claimed.job.received
        );
        assert!(
            nats.holds(claimed.job.derived_id, sequence).await.unwrap(),
            "a dead letter whose id is taken is stored under the derived id"
        );
        assert!(!nats.holds(new_session(), sequence).await.unwrap());
        assert!(
            !nats
                .holds(claimed.job.received.alert_id, sequence + 1)
                .await
                .unwrap()
        );
    }
    assert!(!nats.holds(chosen, plain).await.unwrap());
    assert!(!nats.holds(chosen, 0).await.unwrap());
    claims.stop().await;

    // The stream was lost, and the sequence belongs to another alert.
    let (_, jetstream) = outsider(&server).await;
    jetstream.delete_stream("TARSY_ALERTS").await.unwrap();
    let unavailable = nats.holds(chosen, with_id).await.unwrap_err();
    assert!(
        unavailable.to_string().contains("TARSY_ALERTS"),
        "{unavailable}"
    );
    nats.ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    assert!(!nats.holds(chosen, with_id).await.unwrap());
    publish(&nats, json!({SESSION_ID: chosen.to_string()})).await;
    assert_eq!(
        publish(&nats, json!({SESSION_ID: new_session().to_string()})).await,
        with_id
    );
    assert!(!nats.holds(chosen, with_id).await.unwrap());
    assert!(nats.holds(chosen, 1).await.unwrap());
}

#[tokio::test]
async fn a_requeued_alert_has_its_body_and_its_allowed_headers() {
    let (server, nats) = prepared().await;
    let id = new_session();
    let headers = json!({
        SESSION_ID: new_session().to_string(), FINGERPRINT: "f", CHAIN: "two\nlines", "Nats-Msg-Id": "once",
        "Nats-Expected-Stream": "OTHER", "X-Other": "x",
    });
    publish(&nats, json!({})).await;
    let (_, jetstream) = outsider(&server).await;
    jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .purge()
        .await
        .unwrap();
    let lost = idle(id, "tarsy.alerts.low.disk-full", headers);
    // The server stores both, although they come within its duplicate window.
    let sequences = [
        nats.requeue(&lost).await.unwrap(),
        nats.requeue(&lost).await.unwrap(),
    ];
    assert_eq!(sequences, [2, 3]);
    let message = stored(&server, 2).await;
    let mut headers: Vec<(String, String)> = message
        .headers
        .iter()
        .map(|(name, values)| (name.to_string(), values[0].to_string()))
        .collect();
    headers.sort();
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        headers,
        [
            (CHAIN, "two lines"),
            (FINGERPRINT, "f"),
            (SESSION_ID, &id.to_string())
        ]
    );
    assert_eq!(
        (message.subject.as_str(), &message.payload[..]),
        ("tarsy.alerts.low.disk-full", &[0xff, 0, b'\n'][..])
    );

    let mut claims = start(&nats, 1);
    let claimed = next(&mut claims).await;
    assert_eq!(
        (claimed.job.received.alert_id, claimed.priority),
        (id, Priority::Low)
    );
    assert!(nats.holds(id, 2).await.unwrap());
    claims.stop().await;
}

#[tokio::test]
async fn a_requeued_question_is_a_question() {
    let (server, nats) = prepared().await;
    let lost = idle(
        new_session(),
        "tarsy.questions.critical.question",
        json!({}),
    );
    assert_eq!(nats.requeue(&lost).await.unwrap(), 1);
    assert_eq!(
        stored(&server, 1).await.subject.as_str(),
        "tarsy.questions.critical.question"
    );
}

#[tokio::test]
async fn an_alert_of_an_unknown_subject_is_requeued_with_normal_priority() {
    let (server, nats) = prepared().await;
    for (sequence, subject) in [
        (1, ""),
        (2, "tarsy.alerts.urgent"),
        (3, "tarsy.alerts.high.>"),
        (4, "tarsy.control.x"),
    ] {
        assert_eq!(
            nats.requeue(&idle(new_session(), subject, json!({})))
                .await
                .unwrap(),
            sequence
        );
        assert_eq!(
            stored(&server, sequence).await.subject.as_str(),
            "tarsy.alerts.normal",
            "{subject}"
        );
    }
}

#[tokio::test]
async fn an_alert_that_cannot_be_requeued_is_an_error() {
    let (mut server, nats) = prepared().await;
    let id = new_session();
    let bodiless = IdleAlert {
        body: None,
        ..idle(id, "tarsy.alerts.low", json!({}))
    };
    let error = nats.requeue(&bodiless).await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!("broker is unavailable: alert {id} cannot be queued again: its body was not kept")
    );

    server.kill();
    let mut connection = nats.watch_connection();
    within("the loss", connection.wait_for(|state| !state.connected))
        .await
        .unwrap();
    let limit = Duration::from_secs(15);
    let unavailable = idle(id, "tarsy.alerts.low", json!({}));
    let both = async { tokio::join!(nats.requeue(&unavailable), nats.holds(id, 1)) };
    let (requeued, held) = tokio::time::timeout(limit, both)
        .await
        .expect("an answer in bounded time");
    assert!(requeued.is_err() && held.is_err(), "{requeued:?} {held:?}");
}

#[tokio::test]
async fn the_headers_of_a_retry_reach_the_worker() {
    let (_server, nats) = prepared().await;
    let headers =
        json!({TITLE: "Disk is full on db-1", RETRY_OF: new_session().to_string(), FORCE: "true"});
    publish(&nats, headers.clone()).await;
    let mut claims = start(&nats, 1);
    assert_eq!(next(&mut claims).await.job.received.headers, headers);
    claims.stop().await;
}
