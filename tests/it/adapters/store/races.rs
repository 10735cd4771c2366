//! Alerts of one fingerprint that arrive at the same time, or at the end of the session that they would join.
//!
//! The suite repeats each race a few times, `./dev prove` more often; `TARSY_STORE_RACES` sets the number.

use std::sync::Arc;

use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Claim, Journal, Opened, Sessions};
use tarsy_store::{ConnectOptions, Store};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::fixture::{claim_request, completed, new_id, open_request, open_session, received};
use crate::support::figures::by_depth;
use crate::support::postgres::TestDatabase;
use crate::support::stream::join_events;

/// The number of rounds of each race.
const RACES: &str = "TARSY_STORE_RACES";

fn store_with_connections(database: &TestDatabase, connections: usize) -> Store {
    let options = ConnectOptions {
        pool_size: connections,
        ..ConnectOptions::new(database.url())
    };
    Store::new(&options).unwrap()
}

/// Opens `alerts` at the same time and returns the disposition of each.
async fn open_together(
    store: &Store,
    fingerprint: &str,
    alerts: &[SessionId],
) -> JoinSet<(SessionId, Opened)> {
    for alert in alerts {
        store
            .receive(received(*alert, alert.to_string().as_bytes()))
            .await
            .unwrap();
    }
    let barrier = Arc::new(Barrier::new(alerts.len()));
    let mut tasks = JoinSet::new();
    for alert in alerts.iter().copied() {
        let (store, request, barrier) = (
            store.clone(),
            open_request(alert, fingerprint),
            Arc::clone(&barrier),
        );
        tasks.spawn(async move {
            barrier.wait().await;
            (alert, store.open(request).await.unwrap())
        });
    }
    tasks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_alerts_of_one_fingerprint_one_opens_and_63_join() {
    let database = TestDatabase::create().await;
    let store = store_with_connections(&database, 32);
    for round in 0..by_depth(RACES, 1, 6) {
        let fingerprint = format!("fp-{round}");
        let alerts: Vec<SessionId> = (0..64).map(|_| new_id()).collect();
        let places = open_together(&store, &fingerprint, &alerts)
            .await
            .join_all()
            .await;
        let opened: Vec<SessionId> = places
            .iter()
            .filter(|(_, opened)| matches!(opened, Opened::Session(_)))
            .map(|(alert, _)| *alert)
            .collect();
        assert_eq!(opened.len(), 1, "{places:?}");
        let joined = places
            .iter()
            .filter(|(_, place)| *place == Opened::Joined(opened[0]))
            .count();
        assert_eq!(joined, 63);
        assert!(database.holds(&format!(
            "SELECT count(*) = {0} AND max(session_seq) = {0} FROM timeline_events WHERE session_id = '{1}'",
            1 + join_events(63),
            opened[0]
        )));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_alert_delivered_sixteen_times_at_once_has_one_disposition() {
    let database = TestDatabase::create().await;
    let store = store_with_connections(&database, 16);
    for round in 0..by_depth(RACES, 3, 20) {
        let fingerprint = format!("fp-{round}");
        let alert = new_id();
        let places = open_together(&store, &fingerprint, &[alert; 16])
            .await
            .join_all()
            .await;
        let opened = places
            .iter()
            .filter(|(_, place)| matches!(place, Opened::Session(_)))
            .count();
        let raced = places
            .iter()
            .filter(|(_, place)| *place == Opened::Raced)
            .count();
        assert_eq!((opened, raced), (1, 15), "{places:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_at_the_end_of_a_session_joins_or_opens_a_new_one() {
    let database = TestDatabase::create().await;
    let store = store_with_connections(&database, 18);
    let mut joined_before = 0;
    for round in 0..by_depth(RACES, 8, 40) {
        let fingerprint = format!("fp-{round}");
        let ending = new_id();
        let lease = open_session(&store, ending, &fingerprint).await.lease;
        let alerts: Vec<SessionId> = (0..16).map(|_| new_id()).collect();
        let mut joins = open_together(&store, &fingerprint, &alerts).await;
        let mut places = Vec::new();
        for _ in 0..round % 8 {
            places.push(joins.join_next().await.unwrap().unwrap());
        }
        store.finish(lease, completed()).await.unwrap();
        places.extend(joins.join_all().await);

        let anew: Vec<SessionId> = places
            .iter()
            .filter(|(_, place)| matches!(place, Opened::Session(_)))
            .map(|(alert, _)| *alert)
            .collect();
        assert!(anew.len() <= 1, "{places:?}");
        for (alert, place) in &places {
            let expected = match place {
                Opened::Session(_) => true,
                Opened::Joined(session) | Opened::Updated { session, .. } => {
                    *session == ending || anew.contains(session)
                }
                Opened::CoveredByCooldown(_)
                | Opened::Limited { .. }
                | Opened::TargetCancelling(_)
                | Opened::NotInvestigated
                | Opened::Raced => false,
            };
            assert!(expected, "{alert} {place:?}");
        }
        let is_old = |place: &Opened| match place {
            Opened::Joined(session) | Opened::Updated { session, .. } => *session == ending,
            _ => false,
        };
        let joined_old = places.iter().filter(|(_, place)| is_old(place)).count();
        joined_before += joined_old;
        assert!(database.holds(&format!(
            "SELECT count(*) = {} AND max(session_seq) = count(*) \
             AND (array_agg(event_type ORDER BY session_seq DESC))[1] = 'session_completed' \
             FROM timeline_events WHERE session_id = '{ending}'",
            join_events(joined_old) + 2
        )));
    }
    assert!(joined_before > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_sixteen_claims_of_a_free_session_one_takes_it() {
    let database = TestDatabase::create().await;
    let store = store_with_connections(&database, 16);
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;
    store.release(lease, "drain").await.unwrap();
    let barrier = Arc::new(Barrier::new(16));
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let (store, barrier) = (store.clone(), Arc::clone(&barrier));
        tasks.spawn(async move {
            barrier.wait().await;
            store.claim(id, claim_request("w2")).await.unwrap()
        });
    }
    let claims = tasks.join_all().await;
    assert_eq!(
        claims
            .iter()
            .filter(|claim| matches!(claim, Claim::Taken(_)))
            .count(),
        1
    );
    assert_eq!(
        claims
            .iter()
            .filter(|claim| matches!(claim, Claim::Busy(_)))
            .count(),
        15
    );
    assert_eq!(
        database
            .number("SELECT count(*) FROM timeline_events WHERE event_type = 'session_resumed'"),
        1
    );
}
