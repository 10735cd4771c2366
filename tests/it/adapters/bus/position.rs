//! The length of the queue and the position of an alert in it.

use std::time::Duration;

use serde_json::json;
use tarsy_bus::{Backlog, Nats, NewAlert, Priority, QueuePosition};
use tarsy_engine::ports::Delivery;

use super::claims::{next, start};
use super::prepared;

async fn publish(nats: &Nats, priority: Priority, suffix: Option<&str>) -> u64 {
    let alert = NewAlert {
        priority,
        suffix: suffix.map(|suffix| suffix.parse().unwrap()),
        body: b"x".to_vec(),
        headers: json!({}),
    };
    nats.publish_alert(alert).await.unwrap().sequence
}

async fn ask(nats: &Nats, priority: Priority) -> u64 {
    let question = NewAlert {
        priority,
        suffix: "question".parse().ok(),
        body: b"x".to_vec(),
        headers: json!({}),
    };
    nats.publish_question(question).await.unwrap().sequence
}

fn ahead(ahead: u64) -> QueuePosition {
    QueuePosition::Waiting { ahead, exact: true }
}

#[tokio::test]
async fn an_alert_waits_behind_those_of_its_priority_until_it_is_claimed() {
    let (_server, nats) = prepared().await;
    let mut sequences = Vec::new();
    for round in 0..5 {
        let suffix = (round % 2 == 0).then_some("disk-full");
        sequences.push(publish(&nats, Priority::Low, suffix).await);
        publish(&nats, Priority::Normal, suffix).await;
    }
    for (before, sequence) in (0..).zip(&sequences) {
        assert_eq!(
            nats.queue_position(Priority::Low, *sequence).await.unwrap(),
            ahead(before)
        );
        assert_eq!(
            nats.queue_position(Priority::Normal, *sequence + 1)
                .await
                .unwrap(),
            ahead(before)
        );
    }
    let foreign = nats
        .queue_position(Priority::Critical, sequences[0])
        .await
        .unwrap();
    assert_eq!(
        foreign,
        QueuePosition::Gone,
        "the sequence belongs to another priority"
    );
    assert_eq!(
        nats.queue_position(Priority::Low, 99).await.unwrap(),
        QueuePosition::Gone
    );
    assert_eq!(
        nats.queue_position(Priority::Low, 0).await.unwrap(),
        QueuePosition::Gone
    );

    // The worker claims five normal alerts first, then two low ones.
    let mut claims = start(&nats, 7);
    let mut held = Vec::new();
    while held.len() < 7 {
        held.push(next(&mut claims).await);
    }
    claims.stop().await;
    let low: Vec<u64> = held
        .iter()
        .filter(|claimed| claimed.priority == Priority::Low)
        .map(|claimed| claimed.job.received.stream_sequence)
        .collect();
    assert_eq!(low, sequences[..2]);
    assert_eq!(
        nats.queue_position(Priority::Low, sequences[1])
            .await
            .unwrap(),
        QueuePosition::Claimed
    );
    assert_eq!(
        nats.queue_position(Priority::Low, sequences[4])
            .await
            .unwrap(),
        ahead(2)
    );
    for claimed in held {
        claimed.job.delivery.ack().await.unwrap();
    }
    assert_eq!(
        nats.queue_position(Priority::Low, sequences[1])
            .await
            .unwrap(),
        QueuePosition::Gone
    );
    assert_eq!(
        nats.queue_position(Priority::Low, sequences[2])
            .await
            .unwrap(),
        ahead(0)
    );
}

#[tokio::test]
async fn questions_and_alerts_of_one_priority_wait_in_one_queue() {
    let (_server, nats) = prepared().await;
    let sequences = [
        publish(&nats, Priority::High, None).await,
        ask(&nats, Priority::High).await,
        publish(&nats, Priority::High, Some("disk-full")).await,
    ];
    ask(&nats, Priority::Low).await;
    for (before, sequence) in (0..).zip(sequences) {
        assert_eq!(
            nats.queue_position(Priority::High, sequence).await.unwrap(),
            ahead(before)
        );
    }
    let pending: Vec<u64> = nats
        .backlog()
        .await
        .unwrap()
        .iter()
        .map(|backlog| backlog.pending)
        .collect();
    assert_eq!(pending, [0, 3, 0, 1]);
    let mut claims = start(&nats, 3);
    for (subject, sequence) in [
        "tarsy.alerts.high",
        "tarsy.questions.high.question",
        "tarsy.alerts.high.disk-full",
    ]
    .into_iter()
    .zip(sequences)
    {
        let claimed = next(&mut claims).await;
        let (priority, received) = (claimed.priority, &claimed.job.received);
        assert_eq!(
            (
                priority,
                received.subject.as_str(),
                received.stream_sequence
            ),
            (Priority::High, subject, sequence)
        );
        claimed.job.delivery.ack().await.unwrap();
    }
    claims.stop().await;
}

#[tokio::test]
async fn behind_many_alerts_the_position_is_an_upper_bound() {
    let (_server, nats) = prepared().await;
    for _ in 0..201 {
        publish(&nats, Priority::Normal, None).await;
        publish(&nats, Priority::High, None).await;
    }
    let (counted, bounded) = (
        publish(&nats, Priority::Normal, None).await,
        publish(&nats, Priority::Normal, None).await,
    );
    let last_counted = nats
        .queue_position(Priority::Normal, counted - 2)
        .await
        .unwrap();
    assert_eq!(last_counted, ahead(200));
    assert_eq!(
        nats.queue_position(Priority::Normal, bounded)
            .await
            .unwrap(),
        QueuePosition::Waiting {
            ahead: 202,
            exact: false
        }
    );
}

#[tokio::test]
async fn the_backlog_counts_waiting_and_claimed_alerts_and_has_the_oldest_age() {
    let (_server, nats) = prepared().await;
    let empty = |priority| Backlog {
        priority,
        pending: 0,
        in_progress: 0,
        oldest: None,
    };
    assert_eq!(nats.backlog().await.unwrap(), Priority::ALL.map(empty));

    publish(&nats, Priority::High, Some("disk-full")).await;
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(50) {
        tokio::task::yield_now().await;
    }
    publish(&nats, Priority::High, None).await;
    let mut claims = start(&nats, 1);
    let claimed = next(&mut claims).await;
    publish(&nats, Priority::Low, None).await;
    let backlog = nats.backlog().await.unwrap();
    let ages: Vec<Duration> = backlog
        .iter()
        .filter_map(|backlog| backlog.oldest)
        .collect();
    assert!(
        ages[0] >= Duration::from_millis(50) && ages[0] < Duration::from_secs(30),
        "{ages:?}"
    );
    assert!(ages[1] < ages[0], "{ages:?}");
    let expected = [
        empty(Priority::Critical),
        Backlog {
            priority: Priority::High,
            pending: 1,
            in_progress: 1,
            oldest: Some(ages[0]),
        },
        empty(Priority::Normal),
        Backlog {
            priority: Priority::Low,
            pending: 1,
            in_progress: 0,
            oldest: Some(ages[1]),
        },
    ];
    assert_eq!(backlog, expected);
    claimed.job.delivery.ack().await.unwrap();
    claims.stop().await;
}
