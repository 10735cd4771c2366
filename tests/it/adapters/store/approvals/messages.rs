//! Messages about requests: the checkpoint that asks writes their rows, and each is due in its time.

use tarsy_core::notification::Moment;
use tarsy_core::notification::request::Request;
use tarsy_core::notification::route::{Filter, Filters, NamedFilter};
use tarsy_engine::ports::{DueNotification, NotificationClaim, NotificationResult, Notifications};

use super::*;
use crate::adapters::store::fixture::completed;

/// A store with a route for every moment, and one for ends only.
fn announcing(database: &TestDatabase) -> Store {
    let route = |name: &str, on: &[Moment]| NamedFilter {
        name: name.to_owned(),
        filter: Filter {
            on: on.to_vec(),
            ..Filter::default()
        },
    };
    let asks = [Moment::Ended, Moment::Approval, Moment::Decided];
    database.store().notifying(Filters(vec![
        route("ops", &asks),
        route("program", &[Moment::Approval]),
        route("team", &[Moment::Ended]),
    ]))
}

async fn waiting() -> Waiting {
    let database = TestDatabase::create().await;
    let store = announcing(&database);
    let (lease, executions) = running_session(&store, 1).await;
    let execution = executions[0];
    let checkpoint = asks(execution, 1, vec![asked("c1", RESTART)]);
    store.append(lease, checkpoint).await.unwrap();
    let request = request_of(&database, lease.session_id, "c1");
    Waiting {
        database,
        store,
        lease,
        execution,
        request,
    }
}

async fn due(store: &Store, route: &str) -> Vec<DueNotification> {
    let claim = NotificationClaim {
        route: route.to_owned(),
        limit: 10,
        lease: Duration::from_secs(60),
    };
    store.claim_notifications(claim).await.unwrap()
}

async fn record(store: &Store, due: &DueNotification, result: NotificationResult) {
    let key = due.key.clone();
    store
        .record_notification(key, due.lease, result)
        .await
        .unwrap();
}

fn shown(due: &DueNotification) -> &Request {
    due.summary.request.as_ref().unwrap()
}

#[tokio::test]
async fn a_request_is_due_at_once_and_its_end_after_the_message_and_the_decision() {
    let waiting = waiting().await;
    let event = waiting.request.event;
    let store = &waiting.store;
    assert_eq!(
        waiting.database.text("SELECT string_agg(route || ' ' || moment, ', ' ORDER BY route, moment) FROM notifications"),
        format!("ops approval-{event}, ops decided-{event}, ops ended, program approval-{event}, team ended")
    );
    waiting.park().await;
    let asks = due(store, "ops").await.remove(0);
    assert_eq!(
        (asks.key.moment, asks.key.request),
        (Moment::Approval, Some(event))
    );
    let request = shown(&asks);
    assert_eq!(
        (
            request.tool.as_str(),
            request.arguments.as_str(),
            request.call
        ),
        (RESTART, "{\"pod\":\"db-1\"}", HASH)
    );
    assert!(
        request.is_open() && request.channels == ["web", "cli"],
        "{request:?}"
    );

    // Decided before the message is recorded: its end waits for it, and then names it.
    waiting.vote("ana", Choice::Approve).await;
    assert!(due(store, "ops").await.is_empty());
    let receipt = Some("C1/1.2".to_owned());
    record(
        store,
        &asks,
        NotificationResult::Sent {
            receipt: receipt.clone(),
        },
    )
    .await;
    let ends = due(store, "ops").await.remove(0);
    assert_eq!(
        (ends.key.moment, ends.key.request),
        (Moment::Decided, Some(event))
    );
    let request = shown(&ends);
    assert_eq!(
        (
            &request.receipt,
            request.outcome.as_deref(),
            &request.decided_by
        ),
        (&receipt, Some("approved"), &vec!["ana".to_owned()])
    );
    record(store, &ends, NotificationResult::Sent { receipt: None }).await;
    assert!(due(store, "ops").await.is_empty(), "the session still runs");
    assert!(due(store, "team").await.is_empty());

    // The other route has sent nothing yet: it sees that all was decided.
    let late = due(store, "program").await.remove(0);
    assert!(!shown(&late).is_open());
}

#[tokio::test]
async fn a_request_without_a_decision_ends_with_the_journal_or_the_session() {
    let closed = waiting().await;
    let asks = due(&closed.store, "ops").await.remove(0);
    record(
        &closed.store,
        &asks,
        NotificationResult::Sent { receipt: None },
    )
    .await;
    assert!(due(&closed.store, "ops").await.is_empty(), "it waits");
    let checkpoint = closes(closed.execution, 2, ApprovalOutcome::Expired);
    closed.store.append(closed.lease, checkpoint).await.unwrap();
    let ends = due(&closed.store, "ops").await.remove(0);
    assert_eq!(shown(&ends).closed_as.as_deref(), Some("expired"));

    let ended = waiting().await;
    let asks = due(&ended.store, "ops").await.remove(0);
    record(&ended.store, &asks, NotificationResult::Filtered).await;
    ended.store.finish(ended.lease, completed()).await.unwrap();
    let mut moments: Vec<Moment> = due(&ended.store, "ops")
        .await
        .iter()
        .map(|due| due.key.moment)
        .collect();
    moments.sort_unstable();
    assert_eq!(moments, [Moment::Ended, Moment::Decided]);
}

#[tokio::test]
async fn a_checkpoint_that_is_sent_again_writes_the_rows_of_its_request_once() {
    let waiting = waiting().await;
    let before = waiting
        .database
        .number("SELECT count(*) FROM notifications");
    let other = asks(waiting.execution, 2, vec![asked("c2", RESTART)]);
    for _ in 0..2 {
        waiting
            .store
            .append(waiting.lease, other.clone())
            .await
            .unwrap();
    }
    let after = waiting
        .database
        .number("SELECT count(*) FROM notifications");
    assert_eq!(after - before, 3);
}
