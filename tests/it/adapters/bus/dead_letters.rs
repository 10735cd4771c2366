//! Dead letters: listed, dropped and retried.

use std::sync::Arc;

use serde_json::{Value, json};
use tarsy_bus::{
    CHAIN, Error, FINGERPRINT, FORCE, FeedSettings, JetStreamFeed, Nats, NewAlert, Priority,
    Published, RETRY_OF, SESSION_ID, StoredDeadLetter,
};
use tarsy_engine::ports::{DeadLetter, DeadReason, Feed};

use super::claims::{next, start};
use super::table::{Table, new_session};
use super::{connect, outsider, prepared};
use crate::support::nats::NatsServer;
use crate::support::nats::topology::full_at;

async fn publish_all(nats: &Nats, letters: impl IntoIterator<Item = DeadLetter>) {
    let feed = JetStreamFeed::new(nats, Arc::new(Table::default()), FeedSettings::default());
    for letter in letters {
        feed.publish_dead_letter(letter).await.unwrap();
    }
    feed.close().await;
}

fn letter(number: u64) -> DeadLetter {
    DeadLetter {
        alert_id: new_session(),
        reason: DeadReason::AttemptsExhausted,
        detail: "three workers died".into(),
        body: format!("body {number}").into_bytes(),
        headers: json!({FINGERPRINT: "f", CHAIN: "old", SESSION_ID: new_session().to_string()}),
        subject: "tarsy.alerts.low.disk-full".into(),
        stream_sequence: number,
        deliveries: 3,
    }
}

#[tokio::test]
async fn dead_letters_are_listed_completely_the_newest_first() {
    let (server, nats) = prepared().await;
    assert_eq!(nats.dead_letters().await.unwrap(), []);
    let given_up: Vec<DeadLetter> = (1..=100).map(letter).collect();
    publish_all(&nats, given_up.clone()).await;
    let (_, jetstream) = outsider(&server).await;
    jetstream
        .publish("tarsy.dead.what.ever", "a foreign message".into())
        .await
        .unwrap()
        .await
        .unwrap();

    let found = nats.dead_letters().await.unwrap();
    let expected: Vec<StoredDeadLetter> = given_up
        .into_iter()
        .zip(found.iter().rev())
        .map(|(given_up, found)| StoredDeadLetter {
            alert_id: given_up.alert_id,
            reason: "attempts_exhausted".into(),
            detail: given_up.detail,
            subject: given_up.subject,
            alert_sequence: given_up.stream_sequence,
            deliveries: 3,
            stored_at: found.stored_at,
            sequence: given_up.stream_sequence,
            headers: given_up.headers,
            body: given_up.body,
        })
        .rev()
        .collect();
    assert_eq!(found, expected);
    assert!(
        found
            .iter()
            .rev()
            .map(|letter| letter.stored_at)
            .is_sorted()
    );
    let age = chrono::Utc::now() - found[0].stored_at;
    assert!(age.num_seconds().abs() < 60, "{age}");

    let json = serde_json::to_value(&found[0]).unwrap();
    assert_eq!(
        (&json["alert_id"], &json["body"]),
        (&json!(found[0].alert_id), &Value::Null)
    );
}

#[tokio::test]
async fn a_dead_letter_is_dropped_once() {
    let (_server, nats) = prepared().await;
    publish_all(&nats, [letter(1), letter(2)]).await;
    assert!(nats.drop_dead_letter(1).await.unwrap());
    assert!(!nats.drop_dead_letter(1).await.unwrap());
    assert!(!nats.drop_dead_letter(0).await.unwrap());
    assert!(!nats.drop_dead_letter(99).await.unwrap());
    let left: Vec<u64> = nats
        .dead_letters()
        .await
        .unwrap()
        .iter()
        .map(|letter| letter.sequence)
        .collect();
    assert_eq!(left, [2]);
}

#[tokio::test]
async fn a_retry_is_a_new_session_that_names_the_earlier_one() {
    let (_server, nats) = prepared().await;
    let given_up = letter(1);
    publish_all(&nats, [given_up.clone()]).await;
    let stored = nats.dead_letters().await.unwrap().remove(0);
    let (session, published) = nats
        .retry_dead_letter(&stored, Some("database"))
        .await
        .unwrap();
    assert_eq!(
        published,
        Published {
            subject: "tarsy.alerts.low.disk-full".into(),
            sequence: 1
        }
    );
    assert_eq!(nats.dead_letters().await.unwrap(), []);
    let mut claims = start(&nats, 1);
    let claimed = next(&mut claims).await;
    assert_eq!(claimed.job.received.alert_id, session);
    assert_ne!(session, given_up.alert_id);
    assert_eq!(claimed.job.received.body, Some(given_up.body));
    assert_eq!(
        claimed.job.received.headers,
        json!({
            FINGERPRINT: "f", CHAIN: "database", SESSION_ID: session.to_string(),
            RETRY_OF: given_up.alert_id.to_string(), FORCE: "true",
        })
    );
    claims.stop().await;
}

#[tokio::test]
async fn a_question_is_retried_on_its_own_subject() {
    let (_server, nats) = prepared().await;
    publish_all(
        &nats,
        [DeadLetter {
            subject: "tarsy.questions.high.question".into(),
            ..letter(1)
        }],
    )
    .await;
    let stored = nats.dead_letters().await.unwrap().remove(0);
    let (_, published) = nats.retry_dead_letter(&stored, None).await.unwrap();
    assert_eq!(
        published,
        Published {
            subject: "tarsy.questions.high.question".into(),
            sequence: 1
        }
    );
}

#[tokio::test]
async fn a_retry_without_a_chain_keeps_the_original_one() {
    let (_server, nats) = prepared().await;
    publish_all(&nats, [letter(1)]).await;
    let stored = nats.dead_letters().await.unwrap().remove(0);
    nats.retry_dead_letter(&stored, None).await.unwrap();
    let mut claims = start(&nats, 1);
    assert_eq!(next(&mut claims).await.job.received.headers[CHAIN], "old");
    claims.stop().await;
}

#[tokio::test]
async fn a_dead_letter_that_cannot_be_queued_is_kept() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    nats.ensure_topology(&full_at(1000)).await.unwrap();
    let too_large = DeadLetter {
        reason: DeadReason::TooLarge,
        body: Vec::new(),
        ..letter(1)
    };
    let no_room = DeadLetter {
        body: vec![b'x'; 5000],
        ..letter(2)
    };
    publish_all(&nats, [too_large.clone(), no_room]).await;

    let stored = nats.dead_letters().await.unwrap();
    let error = nats.retry_dead_letter(&stored[1], None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "alert {} cannot be retried: its body was too large to be kept, submit it again",
            too_large.alert_id
        )
    );
    let error = nats.retry_dead_letter(&stored[0], None).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    let error = nats
        .retry_dead_letter(&stored[0], Some("a\nb"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Header(_)), "{error}");
    assert_eq!(nats.dead_letters().await.unwrap(), stored);
    let alert = NewAlert {
        priority: Priority::Low,
        suffix: None,
        body: b"x".to_vec(),
        headers: json!({}),
    };
    assert_eq!(
        nats.publish_alert(alert).await.unwrap().sequence,
        1,
        "no retry was queued"
    );
}
