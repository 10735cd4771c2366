//! The cooldown: a completed investigation covers later alerts of its fingerprint for a limited time.

mod alert_updates;
mod marks;

use std::sync::Arc;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use serde_json::json;
use tarsy_core::alert::{AlertStatus, Severity};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{
    CancelOutcome, Disposition, Journal, OpenRequest, Opened, Outbox, Renewal, RunStatus,
    SessionEnd, Sessions, SettlementStatus, StoreError,
};
use tarsy_store::{CancelAnswer, ConnectOptions, Store};
use tokio::{sync::Barrier, task::JoinSet};
use uuid::Uuid;

use super::fixture::{
    checkpoint, completed, investigated, new_id, open_request, open_session, received,
    running_session, settled, until_blocked,
};
use crate::support::figures::by_depth;
use crate::support::postgres::TestDatabase;
use crate::support::stream::join_events;

const COOLDOWN: Duration = Duration::from_secs(3600);

fn request(alert: SessionId, severity: Severity) -> OpenRequest {
    let mut request = OpenRequest {
        cooldown: COOLDOWN,
        ..open_request(alert, "fp")
    };
    request.alert.severity = severity;
    request
}

async fn open(store: &Store, request: OpenRequest) -> Opened {
    let id = request.alert_id;
    store
        .receive(received(id, id.to_string().as_bytes()))
        .await
        .unwrap();
    store.open(request).await.unwrap()
}

/// Moves the end of a session this many minutes into the past.
fn age(database: &TestDatabase, session: SessionId, minutes: u32) {
    database.execute(&format!(
        "UPDATE alert_sessions SET finished_at = clock_timestamp() - interval '{minutes} min' \
         WHERE session_id = '{session}'"
    ));
}

#[tokio::test]
async fn a_completed_investigation_covers_later_alerts_of_no_higher_severity() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let target = investigated(&store, "fp", Severity::High, completed()).await;
    age(&database, target, 59);
    let before = store.events(target, 0, 10).await.unwrap();
    for severity in [Severity::High, Severity::Normal, Severity::Low] {
        let late = new_id();
        assert_eq!(
            open(&store, request(late, severity)).await,
            Opened::CoveredByCooldown(target)
        );
        // A later request for this alert, by this delivery or another one, gets the same answer.
        assert_eq!(
            store.open(request(late, severity)).await,
            Ok(Opened::CoveredByCooldown(target))
        );
        assert_eq!(
            store
                .receive(received(late, late.to_string().as_bytes()))
                .await,
            Ok(Disposition::Joined(target))
        );

        let finished_at = database.text(&format!(
            "SELECT to_char(finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') \
             FROM alert_sessions WHERE session_id = '{target}'"
        ));
        let events = store.events(late, 0, 10).await.unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(
            (events[0].session_seq, events[0].event_type.as_str()),
            (1, "joined")
        );
        let said = format!(
            "the same was investigated 59 min ago: see session {}",
            target.short()
        );
        assert_eq!(events[0].content, said);
        let metadata = json!({
            "joined_session_id": target, "reason": "cooldown", "finished_at": finished_at, "fingerprint": "fp",
            "members": 1,
        });
        assert_eq!(events[0].metadata, metadata);
        let standing = store.standing(late).await.unwrap();
        let expected = SettlementStatus {
            over: true,
            settled: false,
            last_seq: 1,
            owes: None,
            ..standing.clone()
        };
        assert_eq!(standing, expected);
        assert_eq!(
            store.request_cancel(late).await.unwrap(),
            CancelAnswer::Joined(target)
        );
        settled(&store, late).await.unwrap();
    }
    assert_eq!(store.events(target, 0, 10).await.unwrap(), before);
    assert_eq!(database.number("SELECT count(*) FROM alert_sessions"), 1);
}

#[tokio::test]
async fn a_more_severe_forced_or_late_alert_is_investigated() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let requests: [fn() -> OpenRequest; 3] = [
        || request(new_id(), Severity::Critical),
        || OpenRequest {
            force: true,
            ..request(new_id(), Severity::Low)
        },
        || OpenRequest {
            cooldown: Duration::ZERO,
            ..request(new_id(), Severity::High)
        },
    ];
    for request in requests {
        investigated(&store, "fp", Severity::High, completed()).await;
        let Opened::Session(claimed) = open(&store, request()).await else {
            panic!("not investigated")
        };
        store.finish(claimed.lease, completed()).await.unwrap();
    }
    database.execute("UPDATE alert_sessions SET finished_at = finished_at - interval '60 min'");
    assert!(matches!(
        open(&store, request(new_id(), Severity::High)).await,
        Opened::Session(_)
    ));
}

fn members(numbers: &[u128]) -> Vec<Uuid> {
    numbers
        .iter()
        .map(|number| Uuid::from_u128(*number))
        .collect()
}

async fn investigated_members(store: &Store, numbers: &[u128]) -> SessionId {
    let mut request = OpenRequest {
        force: true,
        ..request(new_id(), Severity::High)
    };
    request.alert.members = members(numbers);
    let id = request.alert_id;
    let Opened::Session(claimed) = open(store, request).await else {
        panic!("not opened")
    };
    store.finish(claimed.lease, completed()).await.unwrap();
    id
}

#[tokio::test]
async fn an_investigation_covers_an_alert_only_if_it_had_all_its_members() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let group = investigated_members(&store, &[1, 2]).await;
    // An alert with the same fingerprint and another member covers its own member and never the group.
    let other = investigated_members(&store, &[7]).await;
    let opened = async |numbers: &[u128]| {
        let mut request = request(new_id(), Severity::High);
        request.alert.members = members(numbers);
        let opened = open(&store, request).await;
        if let Opened::Session(claimed) = &opened {
            store.finish(claimed.lease, completed()).await.unwrap();
        }
        opened
    };
    for numbers in [&[1_u128, 2][..], &[2, 1], &[1], &[2]] {
        assert_eq!(
            opened(numbers).await,
            Opened::CoveredByCooldown(group),
            "{numbers:?}"
        );
    }
    assert_eq!(opened(&[7]).await, Opened::CoveredByCooldown(other));
    for numbers in [&[1_u128, 2, 3][..], &[1, 7], &[9]] {
        assert!(
            matches!(opened(numbers).await, Opened::Session(_)),
            "{numbers:?}"
        );
    }
    assert!(
        matches!(opened(&[1, 2]).await, Opened::CoveredByCooldown(newest) if newest != group),
        "the newest investigation of the group covers it"
    );
}

#[tokio::test]
async fn only_the_newest_investigation_with_an_analysis_covers_alerts() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let ended = |status| SessionEnd {
        status,
        ..completed()
    };
    let ends = [
        ended(RunStatus::Failed),
        ended(RunStatus::Cancelled),
        ended(RunStatus::TimedOut),
        SessionEnd {
            final_analysis: None,
            ..completed()
        },
        SessionEnd {
            final_analysis: Some(String::new()),
            ..completed()
        },
    ];
    for end in ends {
        investigated(&store, "fp", Severity::Critical, end).await;
    }
    // A resolved alert ends at once, without a session.
    let mut resolved = request(new_id(), Severity::Critical);
    resolved.alert.status = AlertStatus::Resolved;
    assert_eq!(open(&store, resolved).await, Opened::NotInvestigated);

    let high = new_id();
    let Opened::Session(claimed) = open(&store, request(high, Severity::High)).await else {
        panic!("not opened")
    };
    store.finish(claimed.lease, completed()).await.unwrap();
    assert_eq!(
        open(&store, request(new_id(), Severity::High)).await,
        Opened::CoveredByCooldown(high)
    );
    let low = investigated(&store, "fp", Severity::Low, completed()).await;
    assert_eq!(
        open(&store, request(new_id(), Severity::Low)).await,
        Opened::CoveredByCooldown(low)
    );
    assert!(matches!(
        open(&store, request(new_id(), Severity::High)).await,
        Opened::Session(_)
    ));
}

#[tokio::test]
async fn a_resolved_alert_ends_at_once_in_the_cooldown_and_beside_a_cancelling_session() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let resolved = || {
        let mut resolved = request(new_id(), Severity::High);
        resolved.alert.status = AlertStatus::Resolved;
        resolved
    };
    investigated(&store, "fp", Severity::High, completed()).await;
    assert_eq!(open(&store, resolved()).await, Opened::NotInvestigated);
    let forced = new_id();
    open_session(&store, forced, "fp").await;
    assert_eq!(
        store.cancel(forced, None).await,
        Ok(CancelOutcome::Requested)
    );
    assert_eq!(open(&store, resolved()).await, Opened::NotInvestigated);
}

#[tokio::test]
async fn a_retry_names_the_session_that_it_repeats() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let first = investigated(&store, "fp", Severity::High, completed()).await;
    let again = OpenRequest {
        retry_of: Some(first),
        force: true,
        ..request(new_id(), Severity::High)
    };
    assert!(matches!(open(&store, again).await, Opened::Session(_)));
    assert!(database.holds(&format!(
        "SELECT count(*) = 1 FROM alert_sessions WHERE retry_of = '{first}'"
    )));
}

#[tokio::test]
async fn only_a_running_session_can_be_cancelled() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    assert_eq!(store.cancel(id, None).await, Ok(CancelOutcome::Nothing));
    store.receive(received(id, b"one")).await.unwrap();
    let Ok(Opened::Session(claimed)) = store.open(open_request(id, "fp")).await else {
        panic!("not opened")
    };
    assert_eq!(
        [
            store.cancel(id, None).await.unwrap(),
            store.cancel(id, None).await.unwrap()
        ],
        [CancelOutcome::Requested; 2]
    );
    store.finish(claimed.lease, completed()).await.unwrap();
    assert_eq!(store.cancel(id, None).await, Ok(CancelOutcome::Nothing));
}

#[tokio::test]
async fn an_alert_without_a_disposition_ends_with_the_request_to_cancel_it() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    store.receive(received(id, b"one")).await.unwrap();
    assert_eq!(store.cancel(id, None).await, Ok(CancelOutcome::Cancelled));
    assert_eq!(store.cancel(id, None).await, Ok(CancelOutcome::Nothing));
    assert_eq!(
        store.receive(received(id, b"one")).await,
        Ok(Disposition::Ended)
    );
    let late = store.open(open_request(id, "fp")).await;
    assert_eq!(
        late,
        Ok(Opened::NotInvestigated),
        "the worker that prepares it is too late"
    );
    let events = store.events(id, 0, 10).await.unwrap();
    let ends: Vec<_> = events
        .iter()
        .map(|event| (event.session_seq, event.event_type.as_str()))
        .collect();
    assert_eq!(ends, [(1, "session_cancelled")]);
    let standing = store.standing(id).await.unwrap();
    let expected = SettlementStatus {
        over: true,
        settled: false,
        last_seq: 1,
        owes: None,
        ..standing.clone()
    };
    assert_eq!(standing, expected);
    settled(&store, id).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_session_without_an_owner_ends_and_a_late_owner_writes_nothing() {
    let expired = "UPDATE alert_sessions SET lease_expires_at = clock_timestamp()";
    for owner_is_ignored in [false, true] {
        let database = TestDatabase::create().await;
        let store = database.store();
        let (lease, executions) = running_session(&store, 2).await;
        let id = lease.session_id;
        let last = store.standing(id).await.unwrap().last_seq;
        if owner_is_ignored {
            assert_eq!(
                store.request_cancel(id).await.unwrap(),
                CancelAnswer::Requested
            );
            assert_eq!(
                store.cancel_unanswered(id).await.unwrap(),
                CancelAnswer::Cancelled
            );
        } else {
            database.execute(expired);
            assert_eq!(
                store.request_cancel(id).await.unwrap(),
                CancelAnswer::Cancelled
            );
        }
        assert_eq!(store.request_cancel(id).await.unwrap(), CancelAnswer::Ended);
        assert_eq!(
            store.cancel_unanswered(id).await.unwrap(),
            CancelAnswer::Ended
        );
        let lost = Err(StoreError::LeaseLost {
            held: 1,
            current: 2,
        });
        assert_eq!(
            store
                .append(lease, checkpoint(executions[0], 1))
                .await
                .map(|_| ()),
            lost.clone()
        );
        assert_eq!(store.finish(lease, completed()).await, lost);
        assert_eq!(
            store.renew(vec![lease], Duration::from_secs(30)).await,
            Ok(vec![Renewal::Lost])
        );
        let events = store.events(id, last, 10).await.unwrap();
        let ends: Vec<_> = events
            .iter()
            .map(|event| (event.session_seq, event.event_type.as_str()))
            .collect();
        assert_eq!(
            ends,
            [(last + 1, "session_cancelled")],
            "one end, and no gap before it"
        );
        let open = "SELECT (SELECT count(*) FROM agent_executions WHERE status = 'running') \
                    + (SELECT count(*) FROM stages WHERE status = 'running')";
        assert_eq!(database.number(open), 0);
        settled(&store, id).await.unwrap();
    }
}

/// Tries each change of the open session while an alert waits for its row.
#[tokio::test]
async fn an_alert_that_waited_for_a_session_sees_its_current_state() {
    let changes = [
        (
            "status = 'completed', finished_at = clock_timestamp(), final_analysis = 'logs'",
            "cooling",
        ),
        (
            "status = 'failed', finished_at = clock_timestamp()",
            "session",
        ),
        ("cancel_requested_at = clock_timestamp()", "closing"),
        ("event_seq = event_seq", "joined"),
    ];
    for (change, expected) in changes {
        let database = TestDatabase::create().await;
        let (target, late) = (new_id(), new_id());
        open_session(&database.store(), target, "fp").await;
        database
            .store()
            .receive(received(late, b"late"))
            .await
            .unwrap();
        let options = ConnectOptions {
            application_name: "opening".into(),
            ..ConnectOptions::new(database.url())
        };
        let store = Store::new(&options).unwrap();
        let mut rival = database.connection();
        rival
            .batch_execute("BEGIN; SELECT 1 FROM alert_sessions FOR NO KEY UPDATE")
            .unwrap();
        let opening =
            tokio::spawn(async move { store.open(request(late, Severity::High)).await.unwrap() });
        until_blocked(&database, "opening").await;
        rival
            .batch_execute(&format!("UPDATE alert_sessions SET {change}; COMMIT"))
            .unwrap();
        let opened = opening.await.unwrap();
        let disposition = match opened {
            Opened::Session(_) => "session",
            Opened::Joined(session) if session == target => "joined",
            Opened::CoveredByCooldown(session) if session == target => "cooling",
            Opened::TargetCancelling(session) if session == target => "closing",
            _ => "wrong",
        };
        assert_eq!(disposition, expected, "after {change}");
        assert!(
            database.number("SELECT count(*) FROM alert_sessions WHERE status = 'running'") <= 1
        );
    }
}

/// Opens the alerts at the same time and returns the disposition of each.
async fn open_together(store: &Store, requests: Vec<OpenRequest>) -> JoinSet<(SessionId, Opened)> {
    for request in &requests {
        store
            .receive(received(
                request.alert_id,
                request.alert_id.to_string().as_bytes(),
            ))
            .await
            .unwrap();
    }
    let barrier = Arc::new(Barrier::new(requests.len()));
    let mut tasks = JoinSet::new();
    for request in requests {
        let (store, barrier) = (store.clone(), Arc::clone(&barrier));
        tasks.spawn(async move {
            barrier.wait().await;
            (request.alert_id, store.open(request).await.unwrap())
        });
    }
    tasks
}

fn store_with_many_connections(database: &TestDatabase) -> Store {
    Store::new(&ConnectOptions {
        pool_size: 18,
        ..ConnectOptions::new(database.url())
    })
    .unwrap()
}

/// Opens 16 alerts at the end of a session; in every other round one of them is more severe.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_at_the_end_of_a_session_joins_or_is_covered_and_never_runs_twice() {
    let database = TestDatabase::create().await;
    let store = store_with_many_connections(&database);
    let (mut joined, mut cooling) = (0, 0);
    for round in 0..by_depth("TARSY_STORE_RACES", 12, 60) {
        let fingerprint = format!("fp-{round}");
        let ending = new_id();
        let lease = open_session(&store, ending, &fingerprint).await.lease;
        let more_severe = (round % 2 == 1).then_some(round % 16);
        let requests = (0..16).map(|number| {
            let severity = if more_severe == Some(number) {
                Severity::Critical
            } else {
                Severity::High
            };
            let mut request = request(new_id(), severity);
            request.alert.fingerprint.clone_from(&fingerprint);
            request
        });
        let mut opening = open_together(&store, requests.collect()).await;
        let mut places = Vec::new();
        for _ in 0..round % 8 {
            places.push(opening.join_next().await.unwrap().unwrap());
        }
        store.finish(lease, completed()).await.unwrap();
        places.extend(opening.join_all().await);

        let is_session = |place: &Opened| matches!(place, Opened::Session(_));
        let anew: Vec<SessionId> = places
            .iter()
            .filter(|(_, place)| is_session(place))
            .map(|(id, _)| *id)
            .collect();
        assert!(
            anew.len() <= usize::from(more_severe.is_some()),
            "{places:?}"
        );
        for (alert, place) in &places {
            let expected = match place {
                Opened::Session(_) => true,
                Opened::Joined(session) | Opened::Updated { session, .. } => {
                    *session == ending || anew.contains(session)
                }
                Opened::CoveredByCooldown(session) => *session == ending,
                Opened::Limited { .. }
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
        joined += joined_old;
        cooling += places
            .iter()
            .filter(|(_, place)| *place == Opened::CoveredByCooldown(ending))
            .count();
        assert!(database.holds(&format!(
            "SELECT count(*) = {} AND max(session_seq) = count(*) \
             AND (array_agg(event_type ORDER BY session_seq DESC))[1] = 'session_completed' \
             FROM timeline_events WHERE session_id = '{ending}'",
            join_events(joined_old) + 2
        )));
        assert!(database.holds(
            "SELECT bool_and(place IN ('opened', 'joined')) AND bool_and(events = 1 OR place = 'opened') \
             FROM alerts, LATERAL (SELECT count(*) AS events FROM timeline_events WHERE session_id = alert_id) t"
        ));
    }
    assert!(
        joined > 0 && cooling > 0,
        "{joined} joined, {cooling} cooling"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_alert_delivered_sixteen_times_at_once_is_covered_once() {
    let database = TestDatabase::create().await;
    let store = store_with_many_connections(&database);
    let target = investigated(&store, "fp", Severity::High, completed()).await;
    for _ in 0..10 {
        let alert = new_id();
        let requests = (0..16).map(|_| OpenRequest {
            token: Uuid::new_v4(),
            ..request(alert, Severity::High)
        });
        let places = open_together(&store, requests.collect())
            .await
            .join_all()
            .await;
        assert!(
            places
                .iter()
                .all(|(_, place)| *place == Opened::CoveredByCooldown(target)),
            "{places:?}"
        );
        assert_eq!(store.events(alert, 0, 10).await.unwrap().len(), 1);
    }
}
