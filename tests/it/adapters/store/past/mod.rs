//! Earlier investigations: which of them are found from an alert, a session and a question.

mod at_scale;

use serde_json::json;
use tarsy_core::ids::SessionId;
use tarsy_core::notification::summary::Seen;
use tarsy_core::past::Relation;
use tarsy_core::plan::PastScope;
use tarsy_core::search::all_of;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    By, Journal as _, OpenRequest, Opened, Past, PastQuery, PastSessions as _, RunStatus,
    SessionEnd, Sessions as _,
};
use tarsy_mask::Mask;
use tarsy_store::Store;

use super::fixture::{completed, new_id, open_request, open_session, received};
use super::outbox::{announcing, claim};
use crate::support::postgres::TestDatabase;

fn query(by: By) -> PastQuery {
    PastQuery {
        by,
        days: 30,
        limit: 3,
        scope: PastScope::Chain,
    }
}

fn words(text: &str) -> By {
    By::Words(all_of(text, 8).unwrap())
}

/// Opens a session of a chain, or a question about `parent`.
async fn opened(
    store: &Store,
    fingerprint: &str,
    chain: &str,
    parent: Option<SessionId>,
) -> tarsy_engine::ports::Lease {
    let id = new_id();
    let body = id.to_string();
    store.receive(received(id, body.as_bytes())).await.unwrap();
    let mut request = OpenRequest {
        parent,
        ..open_request(id, fingerprint)
    };
    request.plan.chain = chain.to_owned();
    match store.open(request).await {
        Ok(Opened::Session(claimed)) => claimed.lease,
        other => panic!("not opened: {other:?}"),
    }
}

fn end(cause: &str) -> SessionEnd {
    SessionEnd {
        final_analysis: Some(format!("Cause: {cause}\nSure: likely, it fits")),
        executive_summary: Some(format!("Cause: {cause}\nSure: likely, it fits")),
        ..completed()
    }
}

/// A completed investigation.
async fn investigated(store: &Store, fingerprint: &str, chain: &str, cause: &str) -> SessionId {
    let lease = opened(store, fingerprint, chain, None).await;
    store.finish(lease, end(cause)).await.unwrap();
    lease.session_id
}

fn ids(past: &Past) -> Vec<SessionId> {
    past.sessions.iter().map(|record| record.session).collect()
}

/// The sessions that are found from a session by words.
async fn found(store: &Store, from: SessionId, text: &str, scope: PastScope) -> Vec<SessionId> {
    let query = PastQuery {
        scope,
        ..query(words(text))
    };
    ids(&store.past(from, query).await.unwrap())
}

#[tokio::test]
async fn the_same_alert_is_found_in_every_chain_and_nothing_else_is() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let old = investigated(&store, "fp-1", "kubernetes", "too old").await;
    database.execute(&format!(
        "UPDATE alert_sessions SET finished_at = now() - interval '31 days' WHERE session_id = '{old}'"
    ));
    let first = investigated(&store, "fp-1", "kubernetes", "first").await;
    let second = investigated(&store, "fp-1", "storage", "second").await;
    let third = investigated(&store, "fp-1", "kubernetes", "third").await;
    let fourth = investigated(&store, "fp-1", "kubernetes", "fourth").await;
    investigated(&store, "fp-2", "kubernetes", "a rival").await;
    let failed = opened(&store, "fp-1", "kubernetes", None).await;
    let without_analysis = SessionEnd {
        status: RunStatus::Failed,
        final_analysis: None,
        ..completed()
    };
    store.finish(failed, without_analysis).await.unwrap();
    let question = opened(&store, "", "kubernetes", Some(fourth)).await;
    let running = open_session(&store, new_id(), "fp-1").await.lease;

    let past = store
        .past_of_alert(new_id(), "fp-1", &query(By::SameAlert))
        .await
        .unwrap();
    assert_eq!((past.total, past.days), (4, 30));
    assert_eq!(ids(&past), [fourth, third, second]);
    let newest = &past.sessions[0];
    assert_eq!(
        (newest.title.as_str(), newest.relation, newest.mark),
        ("disk full on db-1", Relation::SameAlert, None)
    );
    assert_eq!(
        newest.summary.as_deref(),
        Some("Cause: fourth\nSure: likely, it fits")
    );

    let of_session = store
        .past(running.session_id, query(By::SameAlert))
        .await
        .unwrap();
    assert_eq!(of_session, past);
    // A question finds those of the alert that its investigation is about, and not that investigation.
    let of_question = store
        .past(question.session_id, query(By::SameAlert))
        .await
        .unwrap();
    assert_eq!(ids(&of_question), [third, second, first]);
    store.finish(question, end("answered")).await.unwrap();
    let itself = store.past(fourth, query(By::SameAlert)).await.unwrap();
    assert_eq!(ids(&itself), [third, second, first]);
    let nothing = store
        .past_of_alert(new_id(), "fp-9\0", &query(By::SameAlert))
        .await;
    assert_eq!(nothing.unwrap().total, 0);
}

#[tokio::test]
async fn the_page_of_a_session_has_what_came_before_it_began() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let first = investigated(&store, "fp-1", "kubernetes", "first").await;
    let second = investigated(&store, "fp-1", "storage", "second").await;
    investigated(&store, "fp-1", "storage", "third").await;
    let seen = store.report(second).await.unwrap().unwrap().seen_before;
    let seen = seen.unwrap();
    assert_eq!((seen.times, seen.days, seen.sessions.len()), (1, 30, 1));
    assert_eq!(seen.sessions[0].session_id, first);
    assert_eq!(seen.sessions[0].cause.as_deref(), Some("first"));
    let of_first = store.report(first).await.unwrap().unwrap();
    assert_eq!(of_first.seen_before, None);
    let past = store.past_of_session(second, &query(By::SameAlert)).await;
    assert_eq!(ids(&past.unwrap().unwrap()), [first]);
    let unknown = store.past_of_session(new_id(), &query(By::SameAlert)).await;
    assert_eq!(unknown.unwrap(), None);
}

#[tokio::test]
async fn words_find_sessions_of_the_chain_or_of_all_chains_if_the_scope_is_all() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let own = investigated(
        &store,
        "fp-1",
        "kubernetes",
        "the pool of payments-db is full",
    )
    .await;
    let other = investigated(&store, "fp-2", "storage", "the pool of payments-db leaks").await;
    let same = investigated(&store, "fp-9", "storage", "payments-db again").await;
    let failed = opened(&store, "fp-3", "kubernetes", None).await;
    let cancelled = SessionEnd {
        status: RunStatus::Cancelled,
        ..end("payments-db")
    };
    store.finish(failed, cancelled).await.unwrap();
    let question = opened(&store, "", "kubernetes", Some(own)).await;
    store.finish(question, end("payments-db")).await.unwrap();
    let running = opened(&store, "fp-9", "kubernetes", None).await.session_id;

    let all = PastScope::All;
    let chain = PastScope::Chain;
    assert_eq!(
        found(&store, running, "PAYMENTS-DB", chain).await,
        [same, own]
    );
    assert_eq!(
        found(&store, running, "payments-db", all).await,
        [same, other, own]
    );
    assert_eq!(
        found(&store, running, "payments-db pool", all).await,
        [other, own]
    );
    assert_eq!(found(&store, running, "payments-db gone", all).await, []);
    // From a question: its investigation is known, and its chain counts.
    let about = opened(&store, "", "x", Some(own)).await.session_id;
    assert_eq!(found(&store, about, "payments-db", chain).await, []);
    assert_eq!(
        found(&store, about, "payments-db", all).await,
        [same, other]
    );
    let by_words = store
        .past(running, query(words("payments-db")))
        .await
        .unwrap();
    let relations: Vec<Relation> = by_words.sessions.iter().map(|each| each.relation).collect();
    assert_eq!(relations, [Relation::SameAlert, Relation::OtherAlert]);

    // A pruned session is gone with its words.
    database.execute(&format!(
        "DELETE FROM session_words WHERE session_id = '{own}'; DELETE FROM alert_sessions WHERE session_id = '{own}'"
    ));
    assert_eq!(found(&store, running, "payments-db", chain).await, [same]);
}

#[tokio::test]
async fn a_report_is_read_within_the_scope_and_masked_by_the_present_mask() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let own = investigated(
        &store,
        "fp-1",
        "kubernetes",
        "the key hunter2-hunter2 leaked",
    )
    .await;
    let other = investigated(&store, "fp-2", "storage", "elsewhere").await;
    let running = opened(&store, "fp-1", "kubernetes", None).await.session_id;
    let store = store.masking(Mask::new(["hunter2-hunter2".to_owned()]));
    let report = async |wanted: SessionId, scope| {
        let read = store.past_report(running, wanted.short(), scope).await;
        read.unwrap()
    };
    let read = report(own, PastScope::Chain).await.unwrap();
    let summary = read.record.summary.clone().unwrap();
    assert!(
        read.analysis.starts_with("Cause: the key [") && !read.analysis.contains("hunter2"),
        "{}",
        read.analysis
    );
    assert!(!summary.contains("hunter2"), "{summary}");
    let listed = store.past(running, query(By::SameAlert)).await.unwrap();
    assert_eq!(listed.sessions, [read.record]);
    assert_eq!(report(other, PastScope::Chain).await, None);
    assert!(report(other, PastScope::All).await.is_some());
    assert_eq!(report(running, PastScope::All).await, None);
    let unreadable = store
        .past_report(running, "x'; --".to_owned(), PastScope::All)
        .await;
    assert_eq!(unreadable.unwrap(), None);
}

#[tokio::test]
async fn a_notification_has_the_number_that_the_first_event_of_its_session_has() {
    let database = TestDatabase::create().await;
    let store = announcing(&database).await;
    for (metadata, expected) in [
        (
            json!({"past": 3, "past_days": 30}),
            Some(Seen { times: 3, days: 30 }),
        ),
        (json!({"worker": "w1"}), None),
        (json!({"past": "x", "past_days": 30}), None),
    ] {
        let id = new_id();
        store
            .receive(received(id, id.to_string().as_bytes()))
            .await
            .unwrap();
        let started = EventDraft::new(EventType::SessionStarted, "started", metadata);
        let request = OpenRequest {
            started,
            ..open_request(id, &format!("fp-{id}"))
        };
        let opened = store.open(request).await;
        assert!(matches!(opened, Ok(Opened::Session(_))), "{opened:?}");
        let due = claim(&store).await.remove(0);
        assert_eq!(due.summary.seen_before, expected);
    }
}
