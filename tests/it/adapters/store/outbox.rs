//! The outbox of notifications: a worker that dies after any statement loses none and doubles none.

use std::time::Duration;

use tarsy_core::alert::Severity;
use tarsy_core::alert::refs::{Refs, SlackThread};
use tarsy_core::ids::SessionId;
use tarsy_core::notification::Moment;
use tarsy_core::notification::route::{Filter, Filters, NamedFilter};
use tarsy_core::notification::summary::Outcome;
use tarsy_engine::ports::{
    Arrival, DeadReason, DueNotification, Journal, Lease, NotificationClaim, NotificationResult,
    Notifications, OpenRequest, Opened, Refusal, Sessions,
};
use tarsy_store::Store;
use tarsy_store::reads::thread::{ChatRoutes, OfChat};
use tokio::task::JoinSet;

use super::fixture::{
    completed, investigated, new_id, open_request, open_session, received, settled, steal,
};
use crate::support::postgres::TestDatabase;

const MAX_AGE: Duration = Duration::from_secs(86_400);

fn filters(on: &[Moment], names: &[&str]) -> Filters {
    let route = |name: &&str| NamedFilter {
        name: (*name).to_owned(),
        filter: Filter {
            on: on.to_vec(),
            ..Filter::default()
        },
    };
    Filters(names.iter().map(route).collect())
}

/// A store that writes notifications of `ops` about both moments.
pub(crate) async fn announcing(database: &TestDatabase) -> Store {
    database.store().notifying(filters(&Moment::ALL, &["ops"]))
}

/// Takes what is due for `ops`, for a minute.
pub(crate) async fn claim(store: &Store) -> Vec<DueNotification> {
    let claim = NotificationClaim {
        route: "ops".to_owned(),
        limit: 10,
        lease: Duration::from_secs(60),
    };
    store.claim_notifications(claim).await.unwrap()
}

async fn record(store: &Store, due: &DueNotification, result: NotificationResult) {
    store
        .record_notification(due.key.clone(), due.lease, result)
        .await
        .unwrap();
}

fn sent(receipt: &str) -> NotificationResult {
    NotificationResult::Sent {
        receipt: Some(receipt.to_owned()),
    }
}

/// Lets the leases of all notifications expire.
fn expire(database: &TestDatabase) {
    database.execute("UPDATE notifications SET due_at = clock_timestamp() WHERE closed_at IS NULL");
}

async fn finish(store: &Store, lease: Lease) {
    store.finish(lease, completed()).await.unwrap();
}

#[tokio::test]
async fn a_message_is_due_from_its_moment_until_its_result_after_each_death() {
    let database = TestDatabase::create().await;
    let store = announcing(&database).await;
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;

    // The worker dies after it has claimed the first message: the next one knows of the doubt.
    assert_eq!(claim(&store).await.len(), 1);
    assert!(claim(&store).await.is_empty(), "one worker at a time");
    expire(&database);
    let first = claim(&store).await.remove(0);
    assert_eq!(
        (first.key.moment, first.attempts, first.in_doubt),
        (Moment::Started, 2, true)
    );

    // The session ends before the first message is recorded: the second one waits for it.
    finish(&store, lease).await;
    assert!(claim(&store).await.is_empty());
    record(&store, &first, sent("1.1")).await;
    let second = claim(&store).await.remove(0);
    assert_eq!(
        (second.key.moment, second.in_doubt, second.thread.as_deref()),
        (Moment::Ended, false, Some("1.1"))
    );
    assert_eq!(
        (second.summary.outcome, second.summary.severity),
        (Some(Outcome::Completed), Some(Severity::High))
    );
    assert_eq!(second.summary.title, "disk full on db-1");

    // A refusal leaves no doubt, an unknown answer does. The result of an old lease is ignored.
    let failed = |arrival| NotificationResult::Failed {
        reason: "no".into(),
        retry_after: Duration::ZERO,
        arrival,
    };
    record(&store, &second, failed(Arrival::Refused)).await;
    let third = claim(&store).await.remove(0);
    assert!(!third.in_doubt);
    record(&store, &third, failed(Arrival::Unknown)).await;
    let fourth = claim(&store).await.remove(0);
    assert!(fourth.in_doubt);
    record(&store, &third, sent("late")).await;
    assert_eq!(
        database.number("SELECT count(*) FROM notifications WHERE closed_at IS NULL"),
        1
    );
    record(&store, &fourth, sent("1.2")).await;
    expire(&database);
    assert!(claim(&store).await.is_empty());
    assert_eq!(
        database.text("SELECT string_agg(moment || ' ' || outcome, ', ' ORDER BY moment DESC) FROM notifications"),
        "started sent, ended sent"
    );
}

#[tokio::test]
async fn a_message_has_the_newest_references_of_the_alerts_of_its_session() {
    let database = TestDatabase::create().await;
    let store = announcing(&database).await;
    let pairs = |pairs: &[(&str, &str)]| {
        Refs::new(
            pairs
                .iter()
                .map(|(name, id)| ((*name).to_owned(), (*id).to_owned())),
        )
    };
    let id = new_id();
    let mut request = open_request(id, "fp");
    request.alert.refs = pairs(&[("incident", "P1"), ("slack", "C1/1700000000.000100")]);
    store.receive(received(id, b"x")).await.unwrap();
    store.open(request).await.unwrap();
    assert_eq!(
        claim(&store).await[0].summary.refs,
        pairs(&[("incident", "P1"), ("slack", "C1/1700000000.000100")])
    );
    for (incident, subject) in [("P2", new_id()), ("P3", new_id())] {
        let mut joining = open_request(subject, "fp");
        joining.alert.refs = pairs(&[("incident", incident)]);
        store.receive(received(subject, b"x")).await.unwrap();
        store.open(joining).await.unwrap();
    }
    expire(&database);
    assert_eq!(
        claim(&store).await[0].summary.refs,
        pairs(&[("incident", "P3"), ("slack", "C1/1700000000.000100")])
    );
}

#[tokio::test]
async fn each_end_makes_its_message_due_also_one_written_without_routes() {
    let database = TestDatabase::create().await;
    let store = database
        .store()
        .notifying(filters(&[Moment::Ended], &["ops"]));
    let other = database.store();
    let (owner, cancelled, taken) = (new_id(), new_id(), new_id());
    let lease = open_session(&store, owner, "a").await.lease;
    open_session(&store, cancelled, "b").await;
    open_session(&store, taken, "c").await;
    assert!(claim(&store).await.is_empty(), "none has ended");

    finish(&other, lease).await;
    other.cancel_unanswered(cancelled).await.unwrap();
    let stolen = steal(&other, &database, taken).await.lease;
    finish(&other, stolen).await;
    let dead = new_id();
    store.receive(received(dead, b"x")).await.unwrap();
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

    let mut due: Vec<(SessionId, Option<Outcome>)> = claim(&store)
        .await
        .into_iter()
        .map(|due| (due.key.session, due.summary.outcome))
        .collect();
    due.sort_by_key(|(id, _)| *id);
    let expected = [
        (owner, Some(Outcome::Completed)),
        (cancelled, Some(Outcome::Cancelled)),
        (taken, Some(Outcome::Completed)),
        (dead, Some(Outcome::DeadLetter)),
    ];
    assert_eq!(due, expected);
}

#[tokio::test]
async fn a_covered_alert_gets_a_message_about_the_earlier_session() {
    let database = TestDatabase::create().await;
    let store = database
        .store()
        .notifying(filters(&[Moment::Covered], &["ops"]));
    let earlier = investigated(&store, "fp", Severity::High, completed()).await;
    assert!(
        claim(&store).await.is_empty(),
        "no cooldown covers the first"
    );

    let covered = new_id();
    let refs = Refs::new([("incident".to_owned(), "P9".to_owned())]);
    let mut request = OpenRequest {
        cooldown: Duration::from_secs(3_600),
        ..open_request(covered, "fp")
    };
    request.alert.refs = refs.clone();
    request.alert.title = "the same again".to_owned();
    store.receive(received(covered, b"x")).await.unwrap();
    let opened = store.open(request).await.unwrap();
    assert_eq!(opened, Opened::CoveredByCooldown(earlier));

    let due = claim(&store).await.remove(0);
    assert_eq!(
        (due.key.session, due.key.moment),
        (covered, Moment::Covered)
    );
    assert_eq!((due.about, due.summary.refs), (earlier, refs));
    assert_eq!(due.summary.title, "the same again");
    assert_eq!(due.summary.outcome, Some(Outcome::Completed));
    assert!(
        due.summary.analysis.is_some(),
        "the analysis of the earlier session"
    );
    assert!(due.waited < Duration::from_secs(60), "since it was covered");
}

#[tokio::test]
async fn a_statement_that_is_sent_again_writes_no_second_row() {
    let database = TestDatabase::create().await;
    let store = announcing(&database).await;
    let (id, dead) = (new_id(), new_id());
    store.receive(received(id, b"x")).await.unwrap();
    let request = open_request(id, "fp");
    for _ in 0..2 {
        store.open(request.clone()).await.unwrap();
    }
    store.receive(received(dead, b"y")).await.unwrap();
    for _ in 0..2 {
        store
            .give_up(
                dead,
                Refusal {
                    reason: DeadReason::Empty,
                    detail: "empty".into(),
                },
            )
            .await
            .unwrap();
    }
    assert_eq!(database.number("SELECT count(*) FROM notifications"), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_take_each_row_once() {
    let database = TestDatabase::create().await;
    let store = database
        .store()
        .notifying(filters(&[Moment::Started], &["ops"]));
    for number in 0..40 {
        open_session(&store, new_id(), &format!("fp-{number}")).await;
    }
    let mut workers = JoinSet::new();
    for _ in 0..6 {
        let store = store.clone();
        workers.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let due = claim(&store).await;
                if due.is_empty() {
                    return taken;
                }
                taken.extend(due.into_iter().map(|due| due.key.session));
            }
        });
    }
    let mut taken: Vec<SessionId> = workers.join_all().await.concat();
    taken.sort();
    let count = taken.len();
    taken.dedup();
    assert_eq!((count, taken.len()), (40, 40));
}

#[tokio::test]
async fn a_row_without_a_route_is_given_up_and_then_goes_with_its_session() {
    let database = TestDatabase::create().await;
    let store = database
        .store()
        .notifying(filters(&[Moment::Ended], &["removed"]));
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;
    finish(&store, lease).await;
    settled(&store, id).await.unwrap();
    let retention = tarsy_config::Retention::of_all(Duration::ZERO);
    assert!(
        store
            .prune_some(retention, 10)
            .await
            .unwrap()
            .rows
            .is_empty(),
        "a message waits"
    );

    let backlog = store
        .notification_backlog(vec!["ops".into()], MAX_AGE)
        .await
        .unwrap();
    assert_eq!(
        (backlog.closed, backlog.oldest),
        (0, None),
        "it is not old enough, and not ours"
    );
    database.execute("UPDATE alert_sessions SET finished_at = finished_at - interval '25 h'");
    assert_eq!(
        store
            .notification_backlog(vec!["ops".into()], MAX_AGE)
            .await
            .unwrap()
            .closed,
        1
    );
    assert_eq!(
        database.text("SELECT reason FROM notifications"),
        "no worker has this route"
    );
    let pruned = store.prune_some(retention, 10).await.unwrap();
    assert_eq!(
        (pruned.rows["notifications"], pruned.rows["alert_sessions"]),
        (1, 1)
    );
}

#[tokio::test]
async fn a_question_and_a_session_of_another_chain_have_no_row() {
    let database = TestDatabase::create().await;
    let chains = Filter {
        on: Moment::ALL.to_vec(),
        chains: vec!["other".into()],
        ..Filter::default()
    };
    let routes = Filters(vec![NamedFilter {
        name: "ops".into(),
        filter: chains,
    }]);
    open_session(&database.store().notifying(routes), new_id(), "fp").await;
    let store = announcing(&database).await;
    let (root, question) = (new_id(), new_id());
    open_session(&database.store(), root, "root").await;
    store.receive(received(question, b"why?")).await.unwrap();
    let mut request = open_request(question, "q");
    request.parent = Some(root);
    store.open(request).await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM alert_sessions"), 3);
    assert_eq!(database.number("SELECT count(*) FROM notifications"), 0);
}

const THREAD: &str = "C1/1700000000.000001";

async fn of_chat(store: &Store, of_channel: &[&str]) -> Option<OfChat> {
    let routes = ChatRoutes {
        all: vec!["ops".to_owned()],
        of_channel: of_channel.iter().map(|name| (*name).to_owned()).collect(),
    };
    let thread = SlackThread::parse(THREAD).unwrap();
    store.thread_of_chat(&thread, routes).await.unwrap()
}

#[tokio::test]
async fn a_thread_of_a_chat_belongs_to_the_newest_investigation_with_a_message_in_it() {
    let database = TestDatabase::create().await;
    let store = announcing(&database).await;
    let first = new_id();
    open_session(&store, first, "fp").await;
    assert_eq!(of_chat(&store, &["ops"]).await, None);
    let started = claim(&store).await.remove(0);
    // An earlier version stores no channel: only a route of the channel can mean this thread.
    record(&store, &started, sent("1700000000.000001")).await;
    assert_eq!(of_chat(&store, &[]).await, None);
    let found = of_chat(&store, &["ops"]).await.unwrap();
    assert_eq!(
        (found.session, found.route.as_str(), found.questions),
        (first, "ops", 0)
    );

    let second = new_id();
    open_session(&store, second, "other").await;
    let started = claim(&store).await.remove(0);
    record(&store, &started, sent(THREAD)).await;
    assert_eq!(of_chat(&store, &[]).await.unwrap().session, second);
    assert_eq!(of_chat(&store, &["ops"]).await.unwrap().session, second);
    let nothing = ChatRoutes::default();
    let thread = SlackThread::parse(THREAD).unwrap();
    assert_eq!(store.thread_of_chat(&thread, nothing).await.unwrap(), None);
    database.execute("DELETE FROM notifications WHERE receipt LIKE '%/%'");
    assert_eq!(of_chat(&store, &[]).await, None);
}

#[tokio::test]
async fn only_the_answering_route_gets_the_thread_and_only_of_a_question_of_slack() {
    let database = TestDatabase::create().await;
    let store = announcing(&database).await;
    let root = new_id();
    let lease = open_session(&store, root, "fp").await.lease;
    finish(&store, lease).await;
    for _ in [Moment::Started, Moment::Ended] {
        let due = claim(&store).await.remove(0);
        record(&store, &due, sent(THREAD)).await;
    }
    for (subject, answer_route, asked_in) in [
        ("tarsy.questions.high.slack", Some("ops"), Some(THREAD)),
        ("tarsy.questions.high.eu.slack", Some("ops"), None),
        ("tarsy.questions.high.slack.eu", Some("ops"), None),
        ("tarsy.questions.high", Some("ops"), None),
        ("tarsy.alerts.high.slack", Some("ops"), None),
    ] {
        let question = new_id();
        let body = question.to_string();
        store
            .receive(received(question, body.as_bytes()))
            .await
            .unwrap();
        let request = OpenRequest {
            parent: Some(root),
            answer_route: answer_route.map(str::to_owned),
            ..open_request(question, "")
        };
        let Ok(Opened::Session(claimed)) = store.open(request).await else {
            panic!("{subject}: not opened")
        };
        database.execute(&format!(
            "UPDATE alerts SET subject = '{subject}', headers = '{{\"Tarsy-Thread\": \"{THREAD}\"}}' \
             WHERE alert_id = '{}'",
            question.0
        ));
        finish(&store, claimed.lease).await;
        for moment in [Moment::Started, Moment::Ended] {
            let due = claim(&store).await;
            let [due] = &*due else {
                panic!("{subject}: {due:#?}")
            };
            assert_eq!((due.key.session, due.key.moment), (question, moment));
            assert_eq!(due.asked_in.as_deref(), asked_in, "{subject}");
            record(&store, due, NotificationResult::Filtered).await;
        }
    }
    let found = of_chat(&store, &[]).await.unwrap();
    assert_eq!((found.session, found.questions), (root, 5));
    // A question that no thread asks has no rows.
    let other = new_id();
    store.receive(received(other, b"other")).await.unwrap();
    let request = OpenRequest {
        parent: Some(root),
        ..open_request(other, "")
    };
    store.open(request).await.unwrap();
    let rows = format!(
        "SELECT count(*) FROM notifications WHERE session_id = '{}'",
        other.0
    );
    assert_eq!(database.number(&rows), 0);
}
