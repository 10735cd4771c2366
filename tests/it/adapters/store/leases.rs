//! Leases of sessions: claims, renewals, releases, and writes with a superseded lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_core::plan::NEWEST_VERSION;
use tarsy_core::trace_context::TraceContext;
use tarsy_engine::ports::{
    Claim, ClaimRequest, DeadReason, EventIdentity, Journal, Lease, OpenRequest, Opened, Outbox,
    Renewal, RunStatus, SessionEnd, SessionStep, Sessions, SettlementStatus, StageChange, StageEnd,
    StoreError,
};
use tarsy_store::CancelAnswer;
use uuid::Uuid;

use super::fixture::{
    LEASE, begin_stage, checkpoint, claim_request, completed, new_id, now, open_request,
    open_session, received, running_session, settled, steal,
};
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn a_claim_takes_only_a_session_whose_lease_has_expired() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    assert_eq!(
        store.claim(id, claim_request("w2")).await,
        Ok(Claim::Unknown)
    );
    let first = open_session(&store, id, "fp").await;
    let Ok(Claim::Busy(rest)) = store.claim(id, claim_request("w2")).await else {
        panic!("taken from its owner")
    };
    assert!(
        rest <= LEASE && rest > LEASE - Duration::from_secs(10),
        "{rest:?}"
    );

    let second = steal(&store, &database, id).await;
    assert_eq!(
        (second.lease.epoch, second.attempts, second.cancel_requested),
        (2, 1, false)
    );
    assert_ne!(second.lease.token, first.lease.token);
    let events = store.events(id, 1, 10).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].event_type.as_str(), events[0].content.as_str()),
        ("session_resumed", "lease of w1 expired")
    );
    let metadata =
        json!({"worker": "w2", "epoch": 2, "previous_worker": "w1", "reason": "lease_expired"});
    assert_eq!(events[0].metadata, metadata);

    store.finish(second.lease, completed()).await.unwrap();
    assert_eq!(
        store.claim(id, claim_request("w3")).await,
        Ok(Claim::Ended { settled: false })
    );
    settled(&store, id).await.unwrap();
    assert_eq!(
        store.claim(id, claim_request("w3")).await,
        Ok(Claim::Ended { settled: true })
    );
}

#[tokio::test]
async fn a_session_of_a_dead_owner_is_taken_at_once_but_not_after_a_second_death() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (id, other) = (new_id(), new_id());
    let (first, _) = (
        open_session(&store, id, "fp").await,
        open_session(&store, other, "other").await,
    );
    let owner = |id: SessionId| {
        let owner = database.text(&format!(
            "SELECT lease_owner::text FROM alert_sessions WHERE session_id = '{id}'"
        ));
        WorkerId(owner.parse().unwrap())
    };
    let after = |predecessors: Vec<WorkerId>, name| ClaimRequest {
        predecessors,
        ..claim_request(name)
    };
    let inherited = async |predecessors| {
        let found = store.inherited(predecessors).await.unwrap();
        found
            .into_iter()
            .map(|one| one.session_id)
            .collect::<Vec<_>>()
    };
    let stranger = WorkerId(Uuid::new_v4());
    assert_eq!(inherited(vec![stranger]).await, []);
    assert!(matches!(
        store.claim(id, after(vec![stranger], "w2")).await,
        Ok(Claim::Busy(_))
    ));

    let dead = owner(id);
    assert_eq!(inherited(vec![stranger, dead]).await, [id]);
    let request = after(vec![stranger, dead], "w1");
    let Ok(Claim::Taken(second)) = store.claim(id, request.clone()).await else {
        panic!("not taken")
    };
    assert_eq!(
        (second.lease.epoch, second.attempts),
        (2, 1),
        "the death is an attempt"
    );
    let metadata =
        json!({"worker": "w1", "epoch": 2, "previous_worker": "w1", "reason": "restarted"});
    assert_eq!(store.events(id, 1, 10).await.unwrap()[0].metadata, metadata);
    let Ok(Claim::Taken(again)) = store.claim(id, request).await else {
        panic!("a lost reply is not found again")
    };
    assert_eq!(again.lease, second.lease);
    assert_eq!(
        store.release(first.lease, "drain").await,
        Err(StoreError::LeaseLost {
            held: 1,
            current: 2
        })
    );
    assert!(
        matches!(
            store.claim(id, after(vec![dead], "w3")).await,
            Ok(Claim::Busy(_))
        ),
        "it has another owner"
    );

    // A second death at one checkpoint waits for the lease; a checkpoint begins anew.
    let dead = owner(id);
    assert_eq!(inherited(vec![dead]).await, []);
    assert!(matches!(
        store.claim(id, after(vec![dead], "w1")).await,
        Ok(Claim::Busy(_))
    ));
    store.step(second.lease, begin_stage(id, 1)).await.unwrap();
    assert_eq!(inherited(vec![dead]).await, [id]);
    let grace = ClaimRequest {
        outage_grace: LEASE,
        ..after(vec![dead], "w1")
    };
    let Ok(Claim::Taken(third)) = store.claim(id, grace).await else {
        panic!("not taken")
    };
    assert_eq!(
        (third.lease.epoch, third.attempts),
        (3, 1),
        "an outage excuses no death"
    );

    // A lease without an owner is free as ever, and an ended session is not inherited.
    store.release(third.lease, "drain").await.unwrap();
    assert_eq!(inherited(vec![dead]).await, []);
    let Ok(Claim::Taken(fourth)) = store.claim(id, claim_request("w4")).await else {
        panic!("not taken")
    };
    assert_eq!(fourth.attempts, 1, "a release counts as no death");
    let dead = owner(id);
    store.finish(fourth.lease, completed()).await.unwrap();
    assert_eq!(inherited(vec![dead]).await, []);
    assert_eq!(
        store.claim(id, after(vec![dead], "w5")).await,
        Ok(Claim::Ended { settled: false })
    );
}

#[tokio::test]
async fn a_claim_whose_reply_was_lost_is_found_again() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;
    store.release(lease, "drain").await.unwrap();
    let request = claim_request("w2");
    let (Ok(Claim::Taken(one)), Ok(Claim::Taken(two))) = (
        store.claim(id, request.clone()).await,
        store.claim(id, request).await,
    ) else {
        panic!("not taken")
    };
    assert_eq!(one.lease, two.lease);
    assert_eq!(store.events(id, 1, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_claim_returns_the_span_of_the_claim_before_it() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let span =
        |id: u8| TraceContext::parse(&format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{id:016x}-01"));
    let body = b"traced";
    let (id, question) = (new_id(), new_id());
    for alert in [id, question] {
        store.receive(received(alert, body)).await.unwrap();
    }
    let open = OpenRequest {
        trace: span(1),
        ..open_request(id, "fp")
    };
    let Ok(Opened::Session(first)) = store.open(open).await else {
        panic!("not opened")
    };
    assert_eq!(first.previous, None);
    store.release(first.lease, "drain").await.unwrap();
    let request = ClaimRequest {
        trace: span(2),
        ..claim_request("w2")
    };
    let Ok(Claim::Taken(second)) = store.claim(id, request.clone()).await else {
        panic!("not taken")
    };
    assert_eq!(second.previous, span(1));
    let Ok(Claim::Taken(again)) = store.claim(id, request).await else {
        panic!("not found again")
    };
    assert_eq!(
        again.previous, None,
        "the reply was lost, and the span in the row is its own"
    );
    store.finish(second.lease, completed()).await.unwrap();
    let ask = OpenRequest {
        parent: Some(id),
        trace: span(3),
        ..open_request(question, "")
    };
    let Ok(Opened::Session(asked)) = store.open(ask).await else {
        panic!("not opened")
    };
    assert_eq!(asked.previous, span(2));
    // A worker that exports nothing has no span to offer to the next one.
    store.release(asked.lease, "drain").await.unwrap();
    let Ok(Claim::Taken(third)) = store.claim(question, claim_request("w3")).await else {
        panic!("not taken")
    };
    assert_eq!(third.previous, span(3));
    store.release(third.lease, "drain").await.unwrap();
    let Ok(Claim::Taken(fourth)) = store.claim(question, claim_request("w4")).await else {
        panic!("not taken")
    };
    assert_eq!(fourth.previous, None);
}

#[tokio::test]
async fn a_session_of_a_newer_version_is_not_claimed() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;
    store.release(lease, "drain").await.unwrap();
    let newer = NEWEST_VERSION + 1;
    database.execute(&format!(
        "UPDATE session_plans SET format_version = {newer}"
    ));
    assert_eq!(
        store.claim(id, claim_request("w2")).await,
        Ok(Claim::Incompatible)
    );
    assert!(database.holds("SELECT lease_epoch = 2 AND event_seq = 1 FROM alert_sessions"));
}

#[tokio::test]
async fn a_released_session_is_free_at_once_and_its_attempt_is_refunded() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;
    store.release(lease, "drain").await.unwrap();
    // Sent again after a lost reply.
    store.release(lease, "drain").await.unwrap();
    let Ok(Claim::Taken(claimed)) = store.claim(id, claim_request("w2")).await else {
        panic!("not free")
    };
    assert_eq!((claimed.lease.epoch, claimed.attempts), (3, 0));
    let resumed = store.events(id, 1, 10).await.unwrap().remove(0);
    assert_eq!(
        (resumed.content.as_str(), &resumed.metadata["reason"]),
        ("released by w1", &json!("released"))
    );
    assert_eq!(
        store.release(lease, "drain").await,
        Err(StoreError::LeaseLost {
            held: 1,
            current: 3
        })
    );
}

#[tokio::test]
async fn only_worker_deaths_since_the_last_checkpoint_are_counted() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let id = lease.session_id;
    assert_eq!(steal(&store, &database, id).await.attempts, 1);
    let third = steal(&store, &database, id).await;
    assert_eq!(third.attempts, 2);
    store
        .append(third.lease, checkpoint(executions[0], 1))
        .await
        .unwrap();
    assert_eq!(steal(&store, &database, id).await.attempts, 1);
}

#[tokio::test]
async fn a_lease_that_expired_during_an_outage_counts_no_attempt() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, _) = running_session(&store, 1).await;
    let id = lease.session_id;
    assert_eq!(steal(&store, &database, id).await.attempts, 1);
    let expired = format!(
        "UPDATE alert_sessions SET lease_expires_at = clock_timestamp() - interval '10 s' WHERE session_id = '{id}'"
    );
    for (grace, attempts, reason) in [(60, 1, "store_unavailable"), (9, 2, "lease_expired")] {
        database.execute(&expired);
        let request = ClaimRequest {
            outage_grace: Duration::from_secs(grace),
            ..claim_request("w3")
        };
        let Ok(Claim::Taken(claimed)) = store.claim(id, request).await else {
            panic!("not taken")
        };
        assert_eq!(claimed.attempts, attempts, "{reason}");
        let last = store.events(id, 0, 10).await.unwrap().pop().unwrap();
        assert_eq!(last.metadata["reason"], reason);
    }
}

#[tokio::test]
async fn a_claim_returns_a_stored_cancel_request() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    open_session(&store, id, "fp").await;
    assert_eq!(
        store.request_cancel(id).await.unwrap(),
        CancelAnswer::Requested
    );
    assert!(steal(&store, &database, id).await.cancel_requested);
}

#[tokio::test]
async fn a_takeover_past_the_deadline_has_no_time_left() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    open_session(&store, id, "fp").await;
    database
        .execute("UPDATE alert_sessions SET deadline_at = clock_timestamp() - interval '1 min'");
    assert_eq!(steal(&store, &database, id).await.remaining, Duration::ZERO);
}

#[tokio::test]
async fn a_superseded_lease_cannot_append_step_or_finish_and_is_counted() {
    let metrics = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&metrics);
    let database = TestDatabase::create().await;
    let store = database.store();
    let (old, executions) = running_session(&store, 1).await;
    let new = steal(&store, &database, old.session_id).await.lease;
    let before = store.events(old.session_id, 0, 100).await.unwrap();

    let refused = StoreError::LeaseLost {
        held: 1,
        current: 2,
    };
    let lost = Err(refused.clone());
    let end = StageEnd {
        stage_no: 1,
        status: RunStatus::Failed,
        error: None,
    };
    let step = SessionStep {
        number: 2,
        at: now(),
        change: StageChange::End(end),
        events: vec![],
    };
    assert_eq!(
        store.append(old, checkpoint(executions[0], 1)).await,
        Err(refused)
    );
    assert_eq!(store.step(old, step.clone()).await, lost);
    assert_eq!(store.finish(old, completed()).await, lost);
    assert_eq!(store.renew(vec![old], LEASE).await, Ok(vec![Renewal::Lost]));
    // The right epoch alone does not suffice, because a restored database assigns the same epoch twice.
    let forged = Lease {
        token: Uuid::new_v4(),
        ..new
    };
    let refused = StoreError::LeaseLost {
        held: 2,
        current: 2,
    };
    let lost = Err(refused.clone());
    assert_eq!(
        store.append(forged, checkpoint(executions[0], 1)).await,
        Err(refused)
    );
    assert_eq!(store.step(forged, step).await, lost);
    assert_eq!(store.finish(forged, completed()).await, lost);
    assert_eq!(
        store.renew(vec![forged], LEASE).await,
        Ok(vec![Renewal::Lost])
    );

    assert_eq!(store.events(old.session_id, 0, 100).await.unwrap(), before);
    assert_eq!(database.number("SELECT count(*) FROM entries"), 0);
    for statement in ["checkpoint", "step", "finish", "renew"] {
        let line = format!("tarsy_writes_refused_total{{statement=\"{statement}\"}} 2");
        assert!(
            metrics.handle().render().contains(&line),
            "{line} not in\n{}",
            metrics.handle().render()
        );
    }
    store
        .append(new, checkpoint(executions[0], 1))
        .await
        .unwrap();
}

#[tokio::test]
async fn one_locked_row_does_not_keep_the_other_leases_from_being_renewed() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let mut leases = Vec::new();
    for number in 0..5 {
        leases.push(
            open_session(&store, new_id(), &format!("fp-{number}"))
                .await
                .lease,
        );
    }
    store.finish(leases[3], completed()).await.unwrap();
    steal(&store, &database, leases[2].session_id).await;
    assert_eq!(
        store.request_cancel(leases[4].session_id).await.unwrap(),
        CancelAnswer::Requested
    );
    let mut rival = database.connection();
    let lock = format!(
        "BEGIN; SELECT 1 FROM alert_sessions WHERE session_id = '{}' FOR UPDATE",
        leases[1].session_id
    );
    rival.batch_execute(&lock).unwrap();
    let renewed = |cancel_requested| Renewal::Renewed {
        last_seq: 1,
        updates: 0,
        cancel_requested,
    };
    assert_eq!(
        store.renew(leases.clone(), Duration::from_secs(300)).await,
        Ok(vec![
            renewed(false),
            Renewal::Locked,
            Renewal::Lost,
            Renewal::Ended,
            renewed(true)
        ])
    );
    rival.batch_execute("ROLLBACK").unwrap();
    let far = "SELECT count(*) FROM alert_sessions WHERE lease_expires_at > clock_timestamp() + interval '4 min'";
    assert_eq!(database.number(far), 2);
    assert_eq!(store.renew(vec![], LEASE).await, Ok(vec![]));
}

#[tokio::test]
async fn the_end_of_a_session_is_its_last_event_and_ends_its_executions() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 2).await;
    store
        .append(lease, checkpoint(executions[0], 1))
        .await
        .unwrap();
    let end = SessionEnd {
        status: RunStatus::Failed,
        error: Some("too many deaths".into()),
        dead_letter: Some(DeadReason::AttemptsExhausted),
        ..completed()
    };
    store.finish(lease, end.clone()).await.unwrap();
    // Sent again after a lost reply.
    store.finish(lease, end).await.unwrap();
    assert_eq!(
        store.append(lease, checkpoint(executions[0], 2)).await,
        Err(StoreError::Ended)
    );

    let id = lease.session_id;
    let events = store.events(id, 4, 10).await.unwrap();
    assert_eq!(
        events
            .iter()
            .map(|e| (e.session_seq, e.event_type.as_str()))
            .collect::<Vec<_>>(),
        [(5, "session_completed")]
    );
    assert_eq!(
        events[0].metadata,
        json!({"tokens": 16, "stop_reason": "final_answer"})
    );
    let record = store.load(id).await.unwrap();
    assert_eq!(record.stages[0].status, RunStatus::Failed);
    assert!(
        record.stages[0]
            .executions
            .iter()
            .all(|e| e.status == RunStatus::Failed)
    );

    let standing = store.standing(id).await.unwrap();
    let owes = standing.owes.unwrap();
    assert_eq!(
        (standing.over, standing.settled, standing.last_seq),
        (true, false, 5)
    );
    let last = events.last().map(EventIdentity::new);
    assert_eq!(standing.last_event, last);
    assert_eq!(
        (owes.reason, owes.detail.as_str()),
        (DeadReason::AttemptsExhausted, "too many deaths")
    );
    assert_eq!(owes.body, id.to_string().into_bytes());
    settled(&store, id).await.unwrap();
    let standing = store.standing(id).await.unwrap();
    let expected = SettlementStatus {
        over: true,
        settled: true,
        last_seq: 5,
        owes: None,
        ..standing.clone()
    };
    assert_eq!(standing, expected);
    assert!(database.holds("SELECT raw IS NULL FROM alerts"));
}

#[tokio::test]
async fn a_release_that_was_an_attempt_stays_counted() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;
    store.release_counted(lease, "drain").await.unwrap();
    // Sent again after a lost reply.
    store.release_counted(lease, "drain").await.unwrap();
    let Ok(Claim::Taken(second)) = store.claim(id, claim_request("w2")).await else {
        panic!("not free")
    };
    assert_eq!(second.attempts, 1);
    store.release(second.lease, "drain").await.unwrap();
    let Ok(Claim::Taken(third)) = store.claim(id, claim_request("w3")).await else {
        panic!("not free")
    };
    assert_eq!(third.attempts, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_while_many_statements_write_to_its_row() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;
    let stop = Arc::new(AtomicBool::new(false));
    let joins: Vec<_> = (0..8)
        .map(|_| {
            let (mut connection, stop) = (database.connection(), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    connection
                        .batch_execute("UPDATE alert_sessions SET event_seq = event_seq + 1")
                        .unwrap();
                }
            })
        })
        .collect();
    let period = 2 * LEASE;
    let renewed = store.renew_one(lease, period).await;
    stop.store(true, Ordering::Relaxed);
    joins.into_iter().for_each(|join| join.join().unwrap());
    assert!(
        matches!(
            renewed,
            Ok(Renewal::Renewed {
                cancel_requested: false,
                ..
            })
        ),
        "{renewed:?}"
    );
    let secs = i64::try_from(LEASE.as_secs()).unwrap() + 1;
    assert!(database.holds(&format!(
        "SELECT lease_expires_at > clock_timestamp() + interval '{secs} s' FROM alert_sessions"
    )));
    let other = Lease {
        epoch: lease.epoch + 1,
        ..lease
    };
    assert_eq!(
        store.renew_one(other, period).await,
        Ok(Renewal::Locked),
        "the lease of another worker is not renewed"
    );
}
