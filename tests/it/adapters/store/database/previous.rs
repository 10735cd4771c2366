//! Statements of previous versions run on the new schema, as during a rollout. `previous/` has the old text of
//! statements that have changed since.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use tarsy_engine::ports::{Disposition, Journal, OpenRequest, Opened, Outbox, Sessions};

use crate::adapters::store::fixture::{
    alert, completed, investigated, new_id, open_request, received,
};
use crate::support::postgres::TestDatabase;

const PREPARED: [&str; 4] = [
    concat!(
        "PREPARE receive (uuid, uuid, bigint, bytea, text, jsonb, bytea) AS ",
        include_str!("previous/receive.sql")
    ),
    concat!(
        "PREPARE open (uuid, text, float8, float8, uuid, uuid, text, text, boolean, integer, jsonb, text, text, text, \
         text, text, text, text, text, jsonb) AS ",
        include_str!("previous/open.sql")
    ),
    concat!(
        "PREPARE placed (uuid, uuid) AS ",
        include_str!("previous/placed.sql")
    ),
    // This checkpoint writes no event numbers. Preparing it is enough to show that all its columns exist.
    concat!(
        "PREPARE checkpoint (uuid, uuid, integer, text[], integer, uuid, uuid, integer, text, text, text, timestamptz, \
         text[], integer, text[], text[], jsonb[], text[], text[], text[], text[], jsonb[], bytea[], integer[], \
         bigint[], bigint[], bigint[], bigint[], bigint[], text[], text[], text[], text[], text[], jsonb[], bigint[], \
         boolean[], text[], text[], text[], text[], text[], text[]) AS ",
        include_str!("previous/checkpoint.sql")
    ),
];

#[derive(QueryableByName)]
struct PlaceRow {
    #[diesel(sql_type = Text)]
    place: String,
}

#[tokio::test]
async fn statements_of_the_previous_version_run_on_this_schema() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let mut old = database.connection();
    for statement in PREPARED {
        old.batch_execute(statement).unwrap();
    }
    let plan = serde_json::to_string(&crate::adapters::store::fixture::plan()).unwrap();
    let mut open_old = |id, firing: bool| {
        let token = new_id();
        let row: PlaceRow = diesel::sql_query(format!(
            "EXECUTE open ('{id}', 'fp', 2400, 30, '{token}', '{token}', 'old', 'kubernetes', {firing}, 1, '{plan}', \
             'disk', 'disk full', 'high', 'json', 'the disk is full', 'session_started', 'completed', 'started', '{{}}')"
        ))
        .get_result(&mut old)
        .unwrap();
        row.place
    };
    let receive_old = |id| {
        let delivery = new_id();
        database.execute(&format!(
            "{}; EXECUTE receive ('{id}', '{delivery}', 7, sha256('one'), 'tarsy.alerts.high.disk', '{{}}', 'one')",
            PREPARED[0]
        ));
    };

    // The old worker receives and opens, the new worker sees it.
    let (first, second, third) = (new_id(), new_id(), new_id());
    receive_old(first);
    assert_eq!(
        store.receive(received(first, b"one")).await,
        Ok(Disposition::Undecided { attempts: 2 })
    );
    receive_old(first);
    assert_eq!(open_old(first, true), "opened");
    assert_eq!(
        store.receive(received(first, b"one")).await,
        Ok(Disposition::Opened)
    );
    // The new worker receives and opens, the old worker sees it.
    store.receive(received(second, b"one")).await.unwrap();
    receive_old(second);
    assert_eq!(open_old(second, true), "joined");
    assert_eq!(
        store.open(open_request(second, "fp")).await,
        Ok(Opened::Joined(first))
    );
    receive_old(third);
    assert_eq!(
        store.open(open_request(third, "fp")).await,
        Ok(Opened::Joined(first))
    );
    database.execute(&format!(
        "{}; EXECUTE placed ('{first}', '{third}')",
        PREPARED[2]
    ));
    assert_eq!(store.events(first, 0, 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn sessions_of_a_worker_without_members_cover_no_alert_that_has_members() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let mut old = database.connection();
    old.batch_execute(concat!(
        "PREPARE open (uuid, text, boolean, float8, text, float8, float8, uuid, uuid, text, text, uuid, uuid, integer, \
         jsonb, text, text, text, text, text, text, text, jsonb) AS ",
        include_str!("previous/open_without_members.sql")
    ))
    .unwrap();
    let plan = serde_json::to_string(&crate::adapters::store::fixture::plan()).unwrap();
    let mut open_old = |id| {
        let token = new_id();
        let row: PlaceRow = diesel::sql_query(format!(
            "EXECUTE open ('{id}', 'fp', true, 3600, 'high', 2400, 30, '{token}', '{token}', 'old', 'kubernetes', NULL, \
             NULL, 1, '{plan}', 'disk', 'disk full', 'json', 'the disk is full', 'session_started', 'completed', \
             'started', '{{}}')"
        ))
        .get_result(&mut old)
        .unwrap();
        row.place
    };
    let new = |id| OpenRequest {
        cooldown: std::time::Duration::from_secs(3600),
        ..open_request(id, "fp")
    };
    let ids = [new_id(), new_id(), new_id(), new_id()];
    for id in ids {
        store
            .receive(received(id, id.to_string().as_bytes()))
            .await
            .unwrap();
    }
    assert_eq!(open_old(ids[0]), "opened");
    assert_eq!(store.open(new(ids[1])).await, Ok(Opened::Joined(ids[0])));
    let finish = "UPDATE alert_sessions SET status = 'completed', finished_at = clock_timestamp(), final_analysis = 'logs' \
                  WHERE status = 'running'";
    database.execute(finish);
    let Ok(Opened::Session(claimed)) = store.open(new(ids[2])).await else {
        panic!("the old session has no members, so it covers no alert")
    };
    store.finish(claimed.lease, completed()).await.unwrap();
    assert_eq!(open_old(ids[3]), "cooling");
}

#[tokio::test]
async fn a_worker_without_questions_runs_beside_a_newer_one() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let root = investigated(&store, "fp", alert("fp").severity, completed()).await;
    let question = new_id();
    store.receive(received(question, b"why?")).await.unwrap();
    let request = OpenRequest {
        parent: Some(root),
        ..open_request(question, "")
    };
    assert!(matches!(store.open(request).await, Ok(Opened::Session(_))));

    let mut old = database.connection();
    old.batch_execute(concat!(
        "PREPARE open (uuid, text, boolean, float8, text, float8, float8, uuid, uuid, text, text, uuid, integer, jsonb, \
         text, text, text, text, text, text, text, jsonb) AS ",
        include_str!("previous/open_without_questions.sql")
    ))
    .unwrap();
    let plan = serde_json::to_string(&crate::adapters::store::fixture::plan()).unwrap();
    let mut open_old = |id, fingerprint: &str, cooldown: u32| {
        let token = new_id();
        let row: PlaceRow = diesel::sql_query(format!(
            "EXECUTE open ('{id}', '{fingerprint}', true, {cooldown}, 'high', 2400, 30, '{token}', '{token}', 'old', \
             'kubernetes', NULL, 1, '{plan}', 'disk', 'disk full', 'json', 'the disk is full', 'session_started', \
             'completed', 'started', '{{}}')"
        ))
        .get_result(&mut old)
        .unwrap();
        row.place
    };
    let mut places = Vec::new();
    for (fingerprint, cooldown) in [("", 0), ("fp", 3600), ("fp", 0), ("fp", 0)] {
        let id = new_id();
        store
            .receive(received(id, id.to_string().as_bytes()))
            .await
            .unwrap();
        places.push(open_old(id, fingerprint, cooldown));
    }
    // Only the investigation covers alerts, and only alerts join it.
    assert_eq!(places, ["opened", "cooling", "opened", "joined"]);
    assert_eq!(store.events(question, 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_worker_without_alert_updates_joins_and_covers_beside_a_newer_one() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let mut old = database.connection();
    old.batch_execute(concat!(
        "PREPARE open (uuid, text, boolean, float8, uuid[], text, float8, float8, uuid, uuid, text, text, uuid, uuid, \
         text, integer, jsonb, text, text, text, text, text, text, text, jsonb) AS ",
        include_str!("previous/open_without_updates.sql")
    ))
    .unwrap();
    let mut join_old = |id, members: &str| {
        let row: Outcome = diesel::sql_query(format!(
            "EXECUTE open ('{id}', 'fp', true, 3600, '{{{members}}}', 'high', NULL, 30, '{id}', '{id}', 'old', '', NULL, \
             NULL, NULL, 1, '{{}}', 'disk', 'disk full', 'json', 'the disk is full', '', '', '', NULL)"
        ))
        .get_result(&mut old)
        .unwrap();
        row.outcome
    };
    let new = |id, members: &[u128]| {
        let mut request = OpenRequest {
            cooldown: std::time::Duration::from_secs(3600),
            ..open_request(id, "fp")
        };
        request.alert.members = members
            .iter()
            .map(|number| uuid::Uuid::from_u128(*number))
            .collect();
        request
    };
    let member = |number| uuid::Uuid::from_u128(number).to_string();
    let ids: [_; 5] = std::array::from_fn(|_| new_id());
    for id in ids {
        store
            .receive(received(id, id.to_string().as_bytes()))
            .await
            .unwrap();
    }
    let Ok(Opened::Session(claimed)) = store.open(new(ids[0], &[1])).await else {
        panic!("not opened")
    };
    assert_eq!(
        join_old(ids[1], &member(2)),
        "joined",
        "the old worker only counts it"
    );
    assert!(
        matches!(
            store.open(new(ids[2], &[1, 2])).await,
            Ok(Opened::Updated { .. })
        ),
        "it is new for the session"
    );
    store.finish(claimed.lease, completed()).await.unwrap();
    assert_eq!(join_old(ids[3], &member(1)), "covered_by_cooldown");
    assert!(matches!(
        store.open(new(ids[4], &[2])).await,
        Ok(Opened::Session(_))
    ));
}

#[derive(QueryableByName)]
struct Outcome {
    #[diesel(sql_type = Text)]
    outcome: String,
}

/// A worker that knows no approvals, beside a session that waits: it neither takes nor delays it, and its command ends
/// it after the owner that is not there has not answered.
#[tokio::test]
async fn a_worker_without_approvals_leaves_a_session_that_waits_to_newer_ones() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    store.receive(received(id, b"one")).await.unwrap();
    let Ok(Opened::Session(_)) = store.open(open_request(id, "fp")).await else {
        panic!("not opened")
    };
    let mut old = database.connection();
    for statement in [
        concat!(
            "PREPARE claim (uuid, uuid[], float8, integer, uuid, text, uuid, float8, text, bigint) AS ",
            include_str!("previous/claim_without_approvals.sql")
        ),
        concat!(
            "PREPARE cancel (text, uuid, boolean, text) AS ",
            include_str!("previous/cancel_without_approvals.sql")
        ),
        // Preparing it is enough to show that all its columns exist.
        concat!(
            "PREPARE checkpoint AS ",
            include_str!("previous/checkpoint_without_approvals.sql")
        ),
    ] {
        old.batch_execute(statement).unwrap();
    }
    // What park.sql changes.
    database.execute(
        "UPDATE session_plans SET format_version = 8; \
         UPDATE alert_sessions SET lease_owner = NULL, lease_epoch = 2, lease_expires_at = now() + interval '1 h', \
         deadline_at = now() + interval '2 h'",
    );
    let mut outcome = |call: &str| {
        let row: Outcome = diesel::sql_query(format!("EXECUTE {call}"))
            .get_result(&mut old)
            .unwrap();
        row.outcome
    };
    let claim = format!("claim ('{id}', '{{}}', 0, 7, '{id}', 'old', '{id}', 30, NULL, NULL)");
    assert_eq!(outcome(&claim), "incompatible");
    assert_eq!(
        outcome(&format!("cancel (NULL, '{id}', false, NULL)")),
        "requested"
    );
    assert_eq!(
        outcome(&format!("cancel (NULL, '{id}', true, NULL)")),
        "cancelled"
    );
}
