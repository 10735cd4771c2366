//! Pruning deletes old rows, keeps every row that may still be needed, and blocks no other statement.

use std::collections::BTreeMap;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use tarsy_config::Retention;
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_core::skills::SkillText;
use tarsy_engine::ports::{
    DeadReason, Journal, OpenRequest, Opened, PRUNED_TABLES, Pruned, Refusal, Renewal, SessionEnd,
    Sessions,
};
use tarsy_store::{ConnectOptions, Store};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::adapters::store::fixture::{
    LEASE, checkpoint, completed, investigated, new_id, now, open_request, open_session, prompt,
    received, running_session, settled,
};
use crate::support::postgres::TestDatabase;

const DAY: Duration = Duration::from_secs(86_400);
const LIMIT: u32 = 500;

/// Prunes until no row is left to delete.
async fn prune(store: &Store, retention: Retention) -> Pruned {
    let mut all = Pruned::default();
    loop {
        let some = store.prune_some(retention, LIMIT).await.unwrap();
        if some.rows.is_empty() {
            return all;
        }
        all.add(&some);
    }
}

fn rows(database: &TestDatabase) -> BTreeMap<&'static str, u64> {
    let count =
        |table| u64::try_from(database.number(&format!("SELECT count(*) FROM {table}"))).unwrap();
    PRUNED_TABLES
        .into_iter()
        .map(|table| (table, count(table)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// Moves the settlement of these sessions this many days into the past, and the use of their skills two weeks more.
fn age(database: &TestDatabase, ids: &[SessionId], days: u32) {
    for id in ids {
        database.execute(&format!(
            "UPDATE skill_texts SET used_at = used_at - interval '{} d' WHERE sha256 = {}",
            days + 14,
            hash_of(*id)
        ));
    }
    let ids: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    let ids = ids.join(", ");
    database.execute(&format!(
        "UPDATE alert_sessions SET settled_at = settled_at - i, finished_at = finished_at - i \
         FROM (SELECT interval '{days} d' AS i) t WHERE session_id IN ({ids}); \
         UPDATE alerts SET settled_at = settled_at - i FROM (SELECT interval '{days} d' AS i) t WHERE alert_id IN ({ids})"
    ));
}

/// A hash for the text that only this session uses.
fn hash_of(id: SessionId) -> String {
    format!("sha256('{id}'::bytea)")
}

/// A settled investigation with rows in every table.
async fn full_investigation(database: &TestDatabase, store: &Store) -> SessionId {
    let (lease, executions) = running_session(store, 2).await;
    store
        .append(lease, checkpoint(executions[0], 1))
        .await
        .unwrap();
    store
        .append(lease, prompt(executions[1], 1, "look"))
        .await
        .unwrap();
    store.finish(lease, completed()).await.unwrap();
    settled(store, lease.session_id).await.unwrap();
    database.execute(&format!(
        "INSERT INTO session_recoveries (session_id, recovery_id, created_at, recovery_no, restored, calls) \
         VALUES ('{}', gen_random_uuid(), now(), 1, 0, '[]')",
        lease.session_id
    ));
    database.execute(&format!(
        "INSERT INTO alert_updates (session_id, update_no, alert_id, created_at, firing, resolved, severity, status, report) \
         VALUES ('{0}', 1, '{0}', now(), '{{}}', '{{}}', 'low', 'firing', '{{}}')",
        lease.session_id
    ));
    database.execute(&format!(
        "INSERT INTO skill_texts (sha256, text, used_at) VALUES ({}, 'Look.', now())",
        hash_of(lease.session_id)
    ));
    database.execute(&format!(
        "INSERT INTO verdicts (verdict_id, session_id, person, account, channel, verdict) \
         VALUES (gen_random_uuid(), '{}', 'ana', 'ana', 'cli', 'right')",
        lease.session_id
    ));
    database.execute(&format!(
        "INSERT INTO notifications (session_id, route, moment, closed_at, outcome) VALUES ('{}', 'r', 'ended', now(), 'sent')",
        lease.session_id
    ));
    database.execute(&format!(
        "INSERT INTO approvals (session_id, event_seq, execution_id, call_id, tool, policy, arguments, call_sha256, \
         schema_sha256, why, evidence, origins, quorum, expires_at, valid_for, on_resolved, other_person, channels) \
         VALUES ('{0}', 1, '{0}', 'c', 't', 'p', '{{}}', '', '', '', '{{}}', '[]', 1, now(), '1 m', 'keep', false, '{{}}'); \
         INSERT INTO approval_votes (vote_id, session_id, event_seq, seen_updates, person, account, groups, channel, \
         verdict, seen_sha256) VALUES (gen_random_uuid(), '{0}', 1, 0, 'ana', 'ana', '{{}}', 'cli', 'deny', '')",
        lease.session_id
    ));
    lease.session_id
}

#[tokio::test]
async fn requests_and_votes_are_kept_longer_than_their_sessions_where_they_have_an_age() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let old = full_investigation(&database, &store).await;
    age(&database, &[old], 91);
    let retention = Retention {
        approvals: Some(DAY * 365),
        ..Retention::of_all(DAY * 90)
    };
    let preview = store.preview_prune(retention).await.unwrap();
    assert_eq!(prune(&store, retention).await, preview);
    let left = BTreeMap::from([("approvals", 1), ("approval_votes", 1)]);
    assert_eq!(rows(&database), left);
    database.execute("UPDATE approvals SET asked_at = asked_at - interval '366 d'");
    assert_eq!(store.preview_prune(retention).await.unwrap().rows, left);
    assert_eq!(prune(&store, retention).await.rows, left);
    assert_eq!(rows(&database), BTreeMap::new());
}

#[tokio::test]
async fn every_table_is_pruned_or_has_no_row_of_an_investigation() {
    let database = TestDatabase::create().await;
    let kept = [
        "__diesel_schema_migrations",
        "approval_freezes",
        "event_key",
        "route_turns",
        "schema_compatibility",
        "store_probes",
    ];
    let known: Vec<String> = PRUNED_TABLES
        .iter()
        .chain(&kept)
        .map(|table| format!("'{table}'"))
        .collect();
    let forgotten = format!(
        "SELECT coalesce(string_agg(table_name, ', '), '') FROM information_schema.tables \
         WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT IN ({})",
        known.join(", ")
    );
    assert_eq!(database.text(&forgotten), "");
}

#[tokio::test]
async fn an_old_investigation_is_deleted_with_all_its_rows_and_a_young_one_stays_whole() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let old = full_investigation(&database, &store).await;
    let of_one = rows(&database);
    assert_eq!(
        of_one.len(),
        PRUNED_TABLES.len(),
        "a row in every table: {of_one:?}"
    );
    let young = full_investigation(&database, &store).await;
    age(&database, &[old], 91);
    age(&database, &[young], 89);

    let retention = Retention::of_all(DAY * 90);
    assert_eq!(store.preview_prune(retention).await.unwrap().rows, of_one);
    assert_eq!(prune(&store, retention).await.rows, of_one);
    assert_eq!(
        rows(&database),
        of_one,
        "the rows of the young investigation are left"
    );
    assert!(
        store.report(old).await.unwrap().is_none() && store.report(young).await.unwrap().is_some()
    );
    assert_eq!(
        store.preview_prune(retention).await.unwrap(),
        Pruned::default()
    );
}

#[tokio::test]
async fn a_session_can_be_shown_and_followed_after_its_entries_are_deleted() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (old, young) = (
        full_investigation(&database, &store).await,
        full_investigation(&database, &store).await,
    );
    age(&database, &[old], 31);
    let events = tarsy_engine::ports::Outbox::events(&store, old, 0, 100)
        .await
        .unwrap();
    let retention = Retention {
        entries: Some(DAY * 30),
        llm_interactions: Some(DAY * 30),
        tool_interactions: Some(DAY * 30),
        ..Retention::of_all(DAY * 90)
    };
    // The times in the ids are of today, as if the session had begun when it was settled.
    let id = Uuid::now_v7();
    assert_eq!(
        prune(&store, retention).await,
        Pruned::default(),
        "rows with an id of today are kept until their session is old: {id}"
    );
    let dated: u64 = 1_700_000_000_000;
    let past = SessionId(Uuid::from_u128(
        u128::from(dated) << 80 | old.0.as_u128() & ((1 << 80) - 1),
    ));
    for table in PRUNED_TABLES {
        if table == "skill_texts" {
            continue;
        }
        let key = if table == "alerts" {
            "alert_id"
        } else {
            "session_id"
        };
        database.execute(&format!(
            "UPDATE {table} SET {key} = '{past}' WHERE {key} = '{old}'"
        ));
    }
    let expected = BTreeMap::from([
        ("entries", 3),
        ("llm_interactions", 1),
        ("tool_interactions", 1),
    ]);
    assert_eq!(store.preview_prune(retention).await.unwrap().rows, expected);
    assert_eq!(prune(&store, retention).await.rows, expected);
    assert_eq!(
        tarsy_engine::ports::Outbox::events(&store, past, 0, 100)
            .await
            .unwrap()
            .len(),
        events.len()
    );
    assert!(store.report(past).await.unwrap().is_some());
    assert_eq!(
        database.number(&format!(
            "SELECT count(*) FROM entries WHERE session_id = '{young}'"
        )),
        3
    );
}

#[tokio::test]
async fn running_unsettled_and_still_referenced_rows_are_kept() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let running = open_session(&store, new_id(), "fp-running").await.lease;
    let unsettled = investigated(&store, "fp-unsettled", Severity::High, completed()).await;
    let owing = SessionEnd {
        dead_letter: Some(DeadReason::AttemptsExhausted),
        ..completed()
    };
    let owing = investigated(&store, "fp-owing", Severity::High, owing).await;
    let root = full_investigation(&database, &store).await;
    let question = new_id();
    store.receive(received(question, b"why?")).await.unwrap();
    let Ok(Opened::Session(claimed)) = store
        .open(OpenRequest {
            parent: Some(root),
            ..open_request(question, "")
        })
        .await
    else {
        panic!("not opened")
    };
    store.finish(claimed.lease, completed()).await.unwrap();
    settled(&store, question).await.unwrap();
    let answering = investigated(&store, "fp-answering", Severity::High, completed()).await;
    settled(&store, answering).await.unwrap();
    let (joined, dead, undecided) = (new_id(), new_id(), new_id());
    store.receive(received(joined, b"again")).await.unwrap();
    let request = OpenRequest {
        cooldown: DAY,
        ..open_request(joined, "fp-answering")
    };
    assert_eq!(
        store.open(request).await,
        Ok(Opened::CoveredByCooldown(answering))
    );
    settled(&store, joined).await.unwrap();
    store.receive(received(dead, b"\xff")).await.unwrap();
    store
        .give_up(
            dead,
            Refusal {
                reason: DeadReason::Undecodable,
                detail: "no text".into(),
            },
        )
        .await
        .unwrap();
    store.receive(received(undecided, b"x")).await.unwrap();
    let open_for_long = [
        running.session_id,
        unsettled,
        owing,
        root,
        answering,
        dead,
        undecided,
    ];
    age(&database, &open_for_long, 400);
    // A text is pruned by its own age.
    database.execute("UPDATE skill_texts SET used_at = now()");
    let before = rows(&database);
    let retention = Retention::of_all(DAY * 90);
    assert_eq!(
        store.preview_prune(retention).await.unwrap(),
        Pruned::default()
    );
    assert_eq!(prune(&store, retention).await, Pruned::default());
    assert_eq!(rows(&database), before);

    // Now the dead letter is stored, and the question and the joined alert are old enough.
    settled(&store, dead).await.unwrap();
    age(&database, &[question, joined, dead], 400);
    let counted = store.preview_prune(retention).await.unwrap();
    assert_eq!(
        (counted.rows["alert_sessions"], counted.rows["alerts"]),
        (3, 5)
    );
    assert_eq!(prune(&store, retention).await, counted);
    let left = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NULL";
    assert_eq!(
        database.number(left),
        database.number("SELECT count(*) FROM alert_sessions")
    );
    assert_eq!(
        database.number("SELECT count(*) FROM alerts"),
        4,
        "running, unsettled, owing, undecided"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_four_concurrent_prunes_one_deletes_each_row_while_leases_are_renewed() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let mut ids = Vec::new();
    for _ in 0..60 {
        ids.push(full_investigation(&database, &store).await);
    }
    age(&database, &ids, 100);
    let expected = rows(&database);
    let lease = open_session(&store, new_id(), "fp").await.lease;
    let retention = Retention::of_all(DAY);
    let mut pruners = JoinSet::new();
    for _ in 0..4 {
        let store = Store::new(&ConnectOptions::new(database.url())).unwrap();
        // With small batches the pruners delete from the same rows.
        pruners.spawn(async move {
            let mut all = Pruned::default();
            loop {
                let some = store.prune_some(retention, 20).await.unwrap();
                if some.rows.is_empty() {
                    return all;
                }
                all.add(&some);
            }
        });
    }
    let mut all = Pruned::default();
    let mut longest = Duration::ZERO;
    while !pruners.is_empty() {
        let began = Instant::now();
        let renewed = store.renew(vec![lease], LEASE).await.unwrap();
        assert!(
            matches!(renewed[..], [Renewal::Renewed { .. }]),
            "{renewed:?}"
        );
        longest = longest.max(began.elapsed());
        if let Some(done) = pruners.try_join_next() {
            all.add(&done.unwrap());
        }
    }
    all.add(&prune(&store, retention).await);
    assert_eq!(all.rows, expected);
    assert!(
        longest < Duration::from_secs(5),
        "a renewal waited for {longest:?}"
    );
    assert_eq!(database.number("SELECT count(*) FROM alert_sessions"), 1);
}

#[tokio::test]
async fn a_locked_row_is_pruned_the_next_time() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (held, free) = (
        full_investigation(&database, &store).await,
        full_investigation(&database, &store).await,
    );
    age(&database, &[held, free], 2);
    let mut rival = database.connection();
    rival
        .batch_execute(&format!(
            "BEGIN; SELECT 1 FROM alert_sessions WHERE session_id = '{held}' FOR UPDATE"
        ))
        .unwrap();
    let retention = Retention::of_all(DAY);
    let pruned = timeout(Duration::from_secs(5), prune(&store, retention))
        .await
        .expect("pruning waits for a locked row");
    assert_eq!(pruned.rows["alert_sessions"], 1);
    rival.batch_execute("ROLLBACK").unwrap();
    assert_eq!(prune(&store, retention).await.rows["alert_sessions"], 1);
}

#[tokio::test]
async fn a_session_that_covers_later_alerts_is_kept_during_the_cooldown() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let over = investigated(&store, "fp", Severity::High, completed()).await;
    settled(&store, over).await.unwrap();
    age(&database, &[over], 5);
    let cooldown = DAY * 7;
    assert_eq!(
        prune(&store, Retention::of_all(DAY).beyond(cooldown)).await,
        Pruned::default()
    );
    let later = new_id();
    store.receive(received(later, b"again")).await.unwrap();
    let answered = store
        .open(OpenRequest {
            cooldown,
            ..open_request(later, "fp")
        })
        .await;
    assert_eq!(answered, Ok(Opened::CoveredByCooldown(over)), "{}", now());
}

#[tokio::test]
async fn details_behind_which_pruning_has_gone_on_are_deleted_later() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let [late, early] = [
        full_investigation(&database, &store).await,
        full_investigation(&database, &store).await,
    ];
    // Both ids are older than the cutoff; at first only the second session is settled.
    for (number, id) in [(1, late), (2, early)] {
        let old = format!("0190000{number}-0000-7000-8000-000000000000");
        for table in ["alert_sessions", "entries"] {
            database.execute(&format!(
                "UPDATE {table} SET session_id = '{old}' WHERE session_id = '{id}'"
            ));
        }
    }
    database.execute("UPDATE alert_sessions SET settled_at = CASE WHEN session_id::text LIKE '01900002%' THEN now() - interval '10 d' END");
    let entries = Retention {
        entries: Some(9 * DAY),
        ..Retention::default()
    };
    let left =
        "SELECT coalesce(string_agg(DISTINCT left(session_id::text, 8), ' '), '') FROM entries";
    assert!(!prune(&store, entries).await.rows.is_empty());
    assert_eq!(database.text(left), "01900001");
    // This process continues after the second session, and comes back when nothing follows.
    let young = store.prune_some(entries, LIMIT).await.unwrap();
    assert_eq!(young, Pruned::default());
    database.execute("UPDATE alert_sessions SET settled_at = now() - interval '10 d'");
    assert!(!prune(&store, entries).await.rows.is_empty());
    assert_eq!(database.text(left), "");
}

#[tokio::test]
async fn a_text_of_a_skill_is_deleted_only_when_no_plan_can_name_it() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let texts = || ["one", "two"].map(|text| SkillText::new(text.to_owned()));
    store.keep_skill_texts(texts().to_vec()).await.unwrap();
    let move_back = |days: u32, text: &str| {
        database.execute(&format!(
            "UPDATE skill_texts SET used_at = now() - interval '{days} d' WHERE text = '{text}'"
        ));
    };
    move_back(90 + 13, "one");
    move_back(90 + 15, "two");
    let retention = Retention::of_all(DAY * 90);
    let expected = BTreeMap::from([("skill_texts", 1)]);
    assert_eq!(store.preview_prune(retention).await.unwrap().rows, expected);

    // Another process plans with both again: the rows are dated before the session is opened, and stay.
    let other = database.store();
    other.keep_skill_texts(texts().to_vec()).await.unwrap();
    assert_eq!(prune(&store, retention).await, Pruned::default());
    move_back(90 + 15, "two");
    assert_eq!(prune(&store, retention).await.rows, expected);

    let hashes = texts().map(|text| text.hash).to_vec();
    let left = store.skill_texts(hashes).await.unwrap();
    let left: Vec<String> = left.into_values().collect();
    assert_eq!(left, ["one"]);
    move_back(4_000, "one");
    let forever = Retention::default();
    assert_eq!(prune(&store, forever).await, Pruned::default());
}
