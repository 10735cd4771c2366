//! The claim loop: jobs in the order of their priorities, each answered, none lost.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use tarsy_bus::{ClaimSettings, ClaimedJob, Claims, Flow, Nats, NewAlert, Priority};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{DeadReason, Delivery, Received, Refusal};
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::{connect, outsider, prepared, recorder, within};
use crate::support::nats::NatsServer;

pub(super) fn start(nats: &Nats, slots: usize) -> Claims {
    start_with(nats, slots, ClaimSettings::default())
}

fn start_with(nats: &Nats, slots: usize, settings: ClaimSettings) -> Claims {
    // The receiver keeps the last value after its sender was dropped.
    let (_, flow) = watch::channel(Flow::Claim);
    let settings = ClaimSettings {
        expires: Duration::from_millis(300),
        ..settings
    };
    Claims::start(nats, settings, Arc::new(Semaphore::new(slots)), flow)
}

async fn publish(nats: &Nats, priority: Priority, body: &str) -> u64 {
    let alert = NewAlert {
        priority,
        suffix: None,
        body: body.into(),
        headers: json!({}),
    };
    nats.publish_alert(alert).await.unwrap().sequence
}

pub(super) async fn next(claims: &mut Claims) -> ClaimedJob {
    within("a job", claims.next()).await.expect("a job")
}

fn body(claimed: &ClaimedJob) -> String {
    String::from_utf8(claimed.job.received.body.clone().unwrap()).unwrap()
}

async fn queued(server: &NatsServer) -> u64 {
    let (_, jetstream) = outsider(server).await;
    jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .cached_info()
        .state
        .messages
}

#[tokio::test]
async fn a_plain_message_becomes_a_job_with_a_derived_id_and_an_ack_removes_it() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let mut claims = start(&nats, 2);
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Tarsy-Fingerprint", "f1");
    headers.insert("X-Other", "x");
    jetstream
        .publish_with_headers("tarsy.alerts.high.disk-full", headers, "disk full".into())
        .await
        .unwrap()
        .await
        .unwrap();

    let claimed = next(&mut claims).await;
    let message = jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .get_raw_message(1)
        .await
        .unwrap();
    let stored_at_ms = u64::try_from(message.time.unix_timestamp_nanos() / 1_000_000).unwrap();
    let derived = SessionId::of_delivery("TARSY_ALERTS", 1, stored_at_ms);
    let expected = Received {
        alert_id: derived,
        body_sha256: Sha256::digest(b"disk full").into(),
        body: Some(b"disk full".to_vec()),
        headers: json!({"Tarsy-Fingerprint": "f1"}),
        subject: "tarsy.alerts.high.disk-full".into(),
        stream_sequence: 1,
        queued_at: chrono::DateTime::from_timestamp_nanos(
            i64::try_from(message.time.unix_timestamp_nanos()).unwrap(),
        ),
    };
    assert_eq!(
        (
            &claimed.job.received,
            claimed.job.derived_id,
            claimed.priority,
            &claimed.job.fault
        ),
        (&expected, derived, Priority::High, &None)
    );
    claimed.job.delivery.progress().await.unwrap();
    claimed.job.delivery.ack().await.unwrap();
    assert_eq!(queued(&server).await, 0);
    claims.stop().await;
}

#[tokio::test]
async fn a_released_alert_is_redelivered_under_its_id_and_a_terminated_one_is_not() {
    let (server, nats) = prepared().await;
    let (client, _) = outsider(&server).await;
    let mut advisories = client
        .subscribe("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.TARSY_ALERTS.*")
        .await
        .unwrap();
    client.flush().await.unwrap();
    let mut claims = start(&nats, 1);
    publish(&nats, Priority::Normal, "one").await;

    let first = next(&mut claims).await;
    let id = first.job.received.alert_id;
    first.job.delivery.nak(Duration::ZERO).await.unwrap();
    drop(first);
    let second = next(&mut claims).await;
    assert_eq!(second.job.received.alert_id, id);
    second
        .job
        .delivery
        .nak(Duration::from_millis(300))
        .await
        .unwrap();
    drop(second);
    let third = next(&mut claims).await;
    assert_eq!(third.job.received.alert_id, id);
    third
        .job
        .delivery
        .term("attempts_exhausted: three\nlines")
        .await
        .unwrap();
    drop(third);

    let advisory = within(
        "the advisory",
        futures_util::StreamExt::next(&mut advisories),
    )
    .await
    .unwrap();
    let advisory: serde_json::Value = serde_json::from_slice(&advisory.payload).unwrap();
    assert_eq!(advisory["reason"], "attempts_exhausted: three lines");
    assert_eq!(queued(&server).await, 0);
    claims.stop().await;
}

#[tokio::test]
async fn an_invalid_message_becomes_a_job_with_a_refusal() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let chosen = SessionId(Uuid::now_v7());
    for (id, bytes) in [
        ("c0ffee".to_owned(), 3),
        (chosen.to_string(), 3),
        (chosen.to_string(), 11),
    ] {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("tarsy-session-id", id);
        let publish =
            jetstream.publish_with_headers("tarsy.alerts.low", headers, vec![b'x'; bytes].into());
        publish.await.unwrap().await.unwrap();
    }
    let mut claims = start_with(
        &nats,
        3,
        ClaimSettings {
            max_body_bytes: 10,
            ..ClaimSettings::default()
        },
    );
    let (invalid, good, large) = (
        next(&mut claims).await,
        next(&mut claims).await,
        next(&mut claims).await,
    );

    assert_eq!(invalid.job.received.alert_id, invalid.job.derived_id);
    assert_eq!(
        invalid.job.fault,
        Some(Refusal {
            reason: DeadReason::InvalidId,
            detail: "Tarsy-Session-Id holds no UUIDv7: c0ffee".into()
        })
    );
    assert_eq!(
        (good.job.received.alert_id, &good.job.fault),
        (chosen, &None)
    );
    assert_eq!(
        (large.job.received.alert_id, &large.job.received.body),
        (chosen, &None)
    );
    assert_eq!(
        large.job.received.body_sha256,
        <[u8; 32]>::from(Sha256::digest([b'x'; 11]))
    );
    assert_eq!(
        large.job.fault,
        Some(Refusal {
            reason: DeadReason::TooLarge,
            detail: "the body has 11 bytes, at most 10 are taken".into()
        })
    );
    claims.stop().await;
}

#[tokio::test]
async fn the_highest_priority_goes_first_and_one_slot_in_eight_to_the_lowest() {
    let (_server, nats) = prepared().await;
    for _ in 0..9 {
        publish(&nats, Priority::Low, "low").await;
        publish(&nats, Priority::Normal, "normal").await;
        publish(&nats, Priority::Critical, "critical").await;
    }
    let mut claims = start(&nats, 1);
    let mut order = Vec::new();
    for _ in 0..17 {
        let claimed = next(&mut claims).await;
        claimed.job.delivery.ack().await.unwrap();
        order.push(body(&claimed));
    }
    let mut expected = vec!["critical"; 7];
    expected.extend([
        "low", "critical", "critical", "normal", "normal", "normal", "normal", "normal", "low",
        "normal",
    ]);
    assert_eq!(order, expected);
    claims.stop().await;
}

#[tokio::test]
async fn reserved_slots_wait_for_critical_alerts() {
    let (_server, nats) = prepared().await;
    for _ in 0..3 {
        publish(&nats, Priority::High, "high").await;
    }
    let mut claims = start_with(
        &nats,
        3,
        ClaimSettings {
            reserved_critical_slots: 2,
            ..ClaimSettings::default()
        },
    );
    let first = next(&mut claims).await;
    assert_eq!(body(&first), "high");
    publish(&nats, Priority::Critical, "critical").await;
    let second = next(&mut claims).await;
    assert_eq!(body(&second), "critical");
    claims.stop().await;
}

#[tokio::test]
async fn a_slot_that_becomes_free_beside_a_reserved_one_is_used() {
    let (_server, nats) = prepared().await;
    let mut claims = start_with(
        &nats,
        2,
        ClaimSettings {
            reserved_critical_slots: 1,
            ..ClaimSettings::default()
        },
    );
    publish(&nats, Priority::Normal, "first").await;
    let first = next(&mut claims).await;
    publish(&nats, Priority::Normal, "second").await;
    // Only critical alerts are requested now, until a slot becomes free.
    assert!(
        tokio::time::timeout(Duration::from_millis(600), claims.next())
            .await
            .is_err()
    );
    first.job.delivery.ack().await.unwrap();
    drop(first);
    assert_eq!(body(&next(&mut claims).await), "second");
    claims.stop().await;
}

#[tokio::test]
async fn a_worker_claims_no_more_alerts_than_it_has_slots() {
    let (server, nats) = prepared().await;
    for _ in 0..20 {
        publish(&nats, Priority::Normal, "x").await;
    }
    let mut claims = start(&nats, 5);
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(next(&mut claims).await);
    }
    let (_, jetstream) = outsider(&server).await;
    let mut consumer: async_nats::jetstream::consumer::PullConsumer = jetstream
        .get_consumer_from_stream("normal", "TARSY_ALERTS")
        .await
        .unwrap();
    let info = consumer.info().await.unwrap();
    assert_eq!((info.num_ack_pending, info.num_pending), (5, 15));
    held.pop().unwrap().job.delivery.ack().await.unwrap();
    held.push(next(&mut claims).await);
    assert_eq!(consumer.info().await.unwrap().num_ack_pending, 5);
    claims.stop().await;
}

#[tokio::test]
async fn a_paused_worker_claims_nothing_until_it_is_resumed() {
    let (_server, nats) = prepared().await;
    let (switch, flow) = watch::channel(Flow::Pause);
    let slots = Arc::new(Semaphore::new(1));
    let mut paused = Claims::start(&nats, ClaimSettings::default(), slots, flow);
    publish(&nats, Priority::Normal, "one").await;
    let mut other = start(&nats, 1);
    // The other worker gets the alert although the paused one started first.
    next(&mut other).await.job.delivery.ack().await.unwrap();
    other.stop().await;

    switch.send_replace(Flow::Claim);
    publish(&nats, Priority::Normal, "two").await;
    let claimed = next(&mut paused).await;
    claimed.job.delivery.ack().await.unwrap();
    drop(claimed);
    switch.send_replace(Flow::Pause);
    paused.stop().await;
}

#[tokio::test]
async fn claims_continue_after_the_server_was_killed() {
    let (mut server, nats) = prepared().await;
    let mut claims = start(&nats, 2);
    publish(&nats, Priority::Normal, "before").await;
    let claimed = next(&mut claims).await;
    claimed.job.delivery.ack().await.unwrap();
    drop(claimed);
    server.restart().await;
    let mut connection = nats.watch_connection();
    within(
        "the reconnect",
        connection.wait_for(|state| state.connected),
    )
    .await
    .unwrap();
    publish(&connect(&server).await, Priority::Normal, "after").await;
    loop {
        // The ack of the first may have been lost with the server.
        let claimed = next(&mut claims).await;
        claimed.job.delivery.ack().await.unwrap();
        if body(&claimed) == "after" {
            break;
        }
    }
    claims.stop().await;
}

/// The test pauses the consumer; a server may stop delivering for other reasons as well.
#[tokio::test]
async fn alerts_that_wait_beside_free_slots_restart_the_claim_loop() {
    let recorder = recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let stream = jetstream.get_stream("TARSY_ALERTS").await.unwrap();
    let later = async_nats::jetstream::consumer::PullConsumer::clone(
        &stream.get_consumer("normal").await.unwrap(),
    );
    let pause_until = later.cached_info().created + Duration::from_secs(3600);
    let settings = ClaimSettings {
        stall_after: Duration::from_millis(500),
        ..ClaimSettings::default()
    };
    let mut claims = start_with(&nats, 2, settings);
    stream.pause_consumer("normal", pause_until).await.unwrap();
    publish(&nats, Priority::Normal, "stalled").await;
    let stalls = || {
        let text = recorder.handle().render();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("tarsy_claim_stalls_total "));
        line.map_or(0, |count| count.parse::<u32>().unwrap())
    };
    within("a stall", async {
        while stalls() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await; // pacing of looks: a counter emits no signal
        }
    })
    .await;
    publish(&nats, Priority::High, "another").await;
    assert_eq!(body(&next(&mut claims).await), "another");
    stream.resume_consumer("normal").await.unwrap();
    assert_eq!(body(&next(&mut claims).await), "stalled");
    claims.stop().await;
}

#[tokio::test]
async fn an_idle_queue_is_no_stall() {
    let recorder = recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let (_server, nats) = prepared().await;
    let settings = ClaimSettings {
        stall_after: Duration::ZERO,
        ..ClaimSettings::default()
    };
    let mut claims = start_with(&nats, 1, settings);
    for _ in 0..20 {
        publish(&nats, Priority::Normal, "x").await;
        next(&mut claims).await.job.delivery.ack().await.unwrap();
    }
    assert!(
        !recorder
            .handle()
            .render()
            .contains("tarsy_claim_stalls_total")
    );
    claims.stop().await;
}

/// A job that arrives while a worker stops must not wait for `ack_wait` (30 s here, three times the limit).
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_worker_that_stops_leaves_no_alert_behind() {
    let (server, nats) = prepared().await;
    let rounds: usize =
        std::env::var("TARSY_TEST_STRAND_ROUNDS").map_or(30, |rounds| rounds.parse().unwrap());
    let producer = connect(&server).await;
    let mut other = start(&nats, 1);
    let mut claimed_while_stopping = 0;
    for round in 0..rounds {
        other.stop().await;
        let mut stopping = start(&nats, 4);
        // The worker is idle and its requests wait at the server when the job and the stop arrive together.
        publish(&producer, Priority::Low, "warm").await;
        let warm = next(&mut stopping).await;
        warm.job.delivery.ack().await.unwrap();
        drop(warm);
        // The stop comes a little later in each round: before, during and after the delivery of the job.
        let (_, ()) = tokio::join!(publish(&producer, Priority::ALL[round % 4], "job"), async {
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_micros((round as u64 % 40) * 20) {
                tokio::task::yield_now().await;
            }
            stopping.stop().await;
        });
        other = start(&nats, 1);
        let claimed = tokio::time::timeout(Duration::from_secs(10), other.next()).await;
        let claimed = claimed
            .unwrap_or_else(|_| panic!("round {round}: the job did not arrive"))
            .unwrap();
        assert_eq!(body(&claimed), "job");
        claimed.job.delivery.ack().await.unwrap();
        claimed_while_stopping += 1;
    }
    assert_eq!(claimed_while_stopping, rounds);
    other.stop().await;
}
