//! The sweep finds each orphaned alert and session, by one worker at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use serde_json::json;
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{
    DeadReason, IdleAlert, Journal, OpenRequest, Opened, Received, Refusal, Sessions, Sweep, Swept,
};
use tarsy_store::{ConnectOptions, Store};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::fixture::{
    completed, investigated, new_id, open_request, open_session, received, settled,
};
use crate::support::postgres::TestDatabase;

const SWEEP: Sweep = Sweep {
    interval: Duration::from_secs(15),
    min_age: Duration::from_secs(60),
    limit: 100,
};

/// Moves all times of the rows this many seconds into the past.
fn age(database: &TestDatabase, seconds: u32) {
    database.execute(&format!(
        "UPDATE alerts SET received_at = received_at - i, delivered_at = delivered_at - i, swept_at = swept_at - i \
         FROM (SELECT interval '{seconds} s' AS i) t; \
         UPDATE alert_sessions SET lease_expires_at = lease_expires_at - i, deadline_at = deadline_at - i, \
         finished_at = finished_at - i FROM (SELECT interval '{seconds} s' AS i) t"
    ));
}

async fn sweep(store: &Store) -> Vec<Swept> {
    let mut swept = store.sweep(SWEEP).await.unwrap();
    swept.sort_by_key(id);
    swept
}

fn id(swept: &Swept) -> SessionId {
    match swept {
        Swept::Overdue(id) | Swept::Unsettled(id) => *id,
        Swept::Idle(idle) => idle.alert_id,
    }
}

fn undecided_alert(alert_id: SessionId, body: Option<&[u8]>) -> Swept {
    Swept::Idle(IdleAlert {
        undecided: true,
        ..idle_alert(alert_id, body)
    })
}

fn open_alert(alert_id: SessionId, body: Option<&[u8]>) -> Swept {
    Swept::Idle(idle_alert(alert_id, body))
}

/// An alert whose session has no owner.
fn idle_alert(alert_id: SessionId, body: Option<&[u8]>) -> IdleAlert {
    IdleAlert {
        alert_id,
        undecided: false,
        subject: "tarsy.alerts.high.disk".into(),
        headers: json!({"Tarsy-Alert-Type": "disk"}),
        body: body.map(<[u8]>::to_vec),
        stream_sequence: 7,
        woken_by: None,
    }
}

#[tokio::test]
async fn a_session_past_its_deadline_is_found_once_its_lease_has_expired() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (dead, alive) = (new_id(), new_id());
    open_session(&store, dead, "fp-dead").await;
    let lease = open_session(&store, alive, "fp-alive").await.lease;
    age(&database, 2401);
    store
        .renew(vec![lease], Duration::from_secs(30))
        .await
        .unwrap();
    assert_eq!(sweep(&store).await, [Swept::Overdue(dead)]);
    assert_eq!(sweep(&store).await, []);
    age(&database, 15);
    assert_eq!(sweep(&store).await, [Swept::Overdue(dead)]);
    age(&database, 30);
    assert_eq!(
        sweep(&store).await,
        [Swept::Overdue(dead), Swept::Overdue(alive)]
    );
}

#[tokio::test]
async fn undecided_alerts_and_sessions_without_an_owner_are_found_with_body_and_headers() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (undecided, too_large, expired, released) = (new_id(), new_id(), new_id(), new_id());
    store
        .receive(received(undecided, b"raw \xff\0"))
        .await
        .unwrap();
    store
        .receive(Received {
            body: None,
            ..received(too_large, b"large")
        })
        .await
        .unwrap();
    open_session(&store, expired, "fp-expired").await;
    let lease = open_session(&store, released, "fp-handed-back").await.lease;
    assert_eq!(sweep(&store).await, []);

    // The session has just been released: the broker delivers its job again.
    store.release(lease, "drain").await.unwrap();
    age(&database, 14);
    assert_eq!(sweep(&store).await, []);
    let text = |id: SessionId| id.to_string().into_bytes();
    age(&database, 1);
    assert_eq!(
        sweep(&store).await,
        [open_alert(released, Some(&text(released)))]
    );
    age(&database, 29);
    assert_eq!(
        sweep(&store).await,
        [open_alert(released, Some(&text(released)))]
    );
    // The lease lasted 30 s, and one interval is added to it.
    age(&database, 1);
    assert_eq!(
        sweep(&store).await,
        [open_alert(expired, Some(&text(expired)))]
    );
    age(&database, 15);
    assert_eq!(
        sweep(&store).await,
        [
            undecided_alert(undecided, Some(b"raw \xff\0")),
            undecided_alert(too_large, None),
            open_alert(expired, Some(&text(expired))),
            open_alert(released, Some(&text(released))),
        ]
    );

    // A delivery shows that the job is in the stream; the next sweep returns its new sequence.
    age(&database, 15);
    store
        .receive(received(undecided, b"raw \xff\0"))
        .await
        .unwrap();
    store.requeued(too_large, 8).await.unwrap();
    store
        .finish(store_claim(&store, released).await, completed())
        .await
        .unwrap();
    store_claim(&store, expired).await;
    let found = sweep(&store).await;
    let [Swept::Idle(alert)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((alert.alert_id, alert.stream_sequence), (too_large, 8));
}

async fn store_claim(store: &Store, session: SessionId) -> tarsy_engine::ports::Lease {
    match store
        .claim(session, super::fixture::claim_request("w2"))
        .await
    {
        Ok(tarsy_engine::ports::Claim::Taken(claimed)) => claimed.lease,
        other => panic!("not taken: {other:?}"),
    }
}

#[tokio::test]
async fn an_ended_alert_or_session_is_found_until_it_is_settled() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let over = investigated(&store, "fp", Severity::High, completed()).await;
    let (covered, given_up, open, joined) = (new_id(), new_id(), new_id(), new_id());
    store.receive(received(covered, b"covered")).await.unwrap();
    let request = OpenRequest {
        cooldown: Duration::from_secs(60),
        ..open_request(covered, "fp")
    };
    assert_eq!(
        store.open(request).await,
        Ok(Opened::CoveredByCooldown(over))
    );
    store.receive(received(given_up, b"\xff")).await.unwrap();
    store
        .give_up(
            given_up,
            Refusal {
                reason: DeadReason::Undecodable,
                detail: "no text".into(),
            },
        )
        .await
        .unwrap();
    let lease = open_session(&store, open, "fp").await.lease;
    store.receive(received(joined, b"joined")).await.unwrap();
    assert_eq!(
        store.open(open_request(joined, "fp")).await,
        Ok(Opened::Joined(open))
    );

    store
        .renew(vec![lease], Duration::from_secs(600))
        .await
        .unwrap();
    age(&database, 59);
    assert_eq!(sweep(&store).await, []);
    age(&database, 1);
    let all = [over, covered, given_up, joined].map(Swept::Unsettled);
    assert_eq!(sweep(&store).await, all);
    assert_eq!(sweep(&store).await, []);
    for id in [over, given_up, joined] {
        settled(&store, id).await.unwrap();
    }
    age(&database, 15);
    assert_eq!(sweep(&store).await, [Swept::Unsettled(covered)]);
    settled(&store, covered).await.unwrap();
    age(&database, 600);
    // Its raw body is kept while other alerts are settled.
    assert_eq!(
        sweep(&store).await,
        [open_alert(open, Some(open.to_string().as_bytes()))]
    );
}

/// Creates `count` orphans of each kind.
async fn orphans(database: &TestDatabase, count: usize) -> usize {
    let store = database.store();
    for number in 0..count {
        open_session(&store, new_id(), &format!("fp-{number}")).await;
    }
    database.execute("UPDATE alert_sessions SET deadline_at = clock_timestamp()");
    for number in 0..count {
        let fingerprint = format!("fp-open-{number}");
        open_session(&store, new_id(), &fingerprint).await;
        let joining = new_id();
        store.receive(received(joining, b"joining")).await.unwrap();
        store
            .open(open_request(joining, &fingerprint))
            .await
            .unwrap();
        store
            .receive(received(new_id(), b"undecided"))
            .await
            .unwrap();
        investigated(&store, "fp-over", Severity::High, completed()).await;
    }
    age(database, 60);
    count * 5
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_sweepers_at_once_one_finds_each_orphan() {
    let database = TestDatabase::create().await;
    let all = orphans(&database, 20).await;
    let store = Store::new(&ConnectOptions {
        pool_size: 8,
        ..ConnectOptions::new(database.url())
    })
    .unwrap();
    for _ in 0..10 {
        let barrier = Arc::new(Barrier::new(8));
        let mut sweepers = JoinSet::new();
        for number in 0..8 {
            let (store, barrier) = (store.clone(), Arc::clone(&barrier));
            // Some sweepers have a large limit, others a small one.
            let limit = if number % 2 == 0 { 100 } else { 7 };
            sweepers.spawn(async move {
                barrier.wait().await;
                store.sweep(Sweep { limit, ..SWEEP }).await.unwrap()
            });
        }
        let mut found: BTreeMap<SessionId, u32> = BTreeMap::new();
        let mut count = |swept: &[Swept]| {
            swept
                .iter()
                .for_each(|swept| *found.entry(id(swept)).or_default() += 1)
        };
        for swept in sweepers.join_all().await {
            count(&swept);
        }
        // A row that was locked for every sweeper is left for the next sweep.
        count(&store.sweep(SWEEP).await.unwrap());
        assert_eq!((found.len(), found.values().max()), (all, Some(&1)));
        assert_eq!(store.sweep(SWEEP).await, Ok(vec![]));
        age(&database, 15);
    }
}

#[tokio::test]
async fn a_sweep_skips_a_locked_row_and_does_not_wait_for_it() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let all = orphans(&database, 2).await;
    for table in ["alerts WHERE place <> 'opened'", "alert_sessions"] {
        let mut rival = database.connection();
        rival
            .batch_execute(&format!("BEGIN; SELECT 1 FROM {table} FOR NO KEY UPDATE"))
            .unwrap();
        let free = timeout(Duration::from_secs(4), store.sweep(SWEEP))
            .await
            .expect("the sweep waits for a locked row")
            .unwrap();
        rival.batch_execute("ROLLBACK").unwrap();
        let held = store.sweep(SWEEP).await.unwrap();
        assert!(!free.is_empty() && !held.is_empty(), "{free:?} {held:?}");
        assert_eq!(free.len() + held.len(), all);
        age(&database, 15);
    }
}

#[tokio::test]
async fn the_limit_applies_to_each_kind_and_every_row_is_found_in_turn() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let all = orphans(&database, 4).await;
    let few = Sweep { limit: 3, ..SWEEP };
    let mut found = BTreeMap::new();
    for _ in 0..3 {
        let swept = store.sweep(few).await.unwrap();
        let overdue = swept
            .iter()
            .filter(|s| matches!(s, Swept::Overdue(_)))
            .count();
        let idle = swept.iter().filter(|s| matches!(s, Swept::Idle(_))).count();
        assert!(
            overdue <= 3 && idle <= 3 && swept.len() - overdue - idle <= 3,
            "{swept:?}"
        );
        found.extend(swept.iter().map(|swept| (id(swept), ())));
        // The next sweep may find these rows again, but after the rows that it has not found yet.
        age(&database, 15);
    }
    assert_eq!(found.len(), all);
}
