//! Cancel requests: received live, and looked up after every interruption of the subscription.

use std::future::Future;

use tarsy_bus::{JetStreamCancelRequests, Nats, control_subject};
use tarsy_engine::ports::{CancelNotice, CancelRequests};

use super::table::new_session;
use super::{connect, outsider, prepared, within};

async fn listen(nats: &Nats) -> JetStreamCancelRequests {
    let requests = JetStreamCancelRequests::listen(nats).await.unwrap();
    assert_eq!(
        next(&requests).await,
        CancelNotice::Missed,
        "earlier requests must be looked up"
    );
    requests
}

async fn next(requests: &JetStreamCancelRequests) -> CancelNotice {
    within("a request", requests.next()).await
}

/// Polls once, then drops the future.
async fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = future => Some(done),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn a_cancel_request_to_any_session_is_received_and_can_be_looked_up() {
    let (_server, nats) = prepared().await;
    let (first, second) = (new_session(), new_session());
    let requests = listen(&nats).await;
    assert!(!requests.cancel_requested(first).await.unwrap());
    nats.request_cancel(first).await.unwrap();
    nats.request_cancel(second).await.unwrap();
    nats.request_cancel(second).await.unwrap();
    for expected in [first, second, second] {
        assert_eq!(next(&requests).await, CancelNotice::Requested(expected));
    }
    assert!(requests.cancel_requested(first).await.unwrap());
    assert!(!requests.cancel_requested(new_session()).await.unwrap());
}

#[tokio::test]
async fn a_request_of_an_unknown_form_is_skipped() {
    let (server, nats) = prepared().await;
    let (client, _) = outsider(&server).await;
    let (unknown_form, session) = (new_session(), new_session());
    let requests = listen(&nats).await;
    let cancel = r#"{"request":"cancel"}"#;
    client
        .publish("tarsy.control.nobody", cancel.into())
        .await
        .unwrap();
    client
        .publish(
            control_subject(unknown_form),
            r#"{"request":"reboot"}"#.into(),
        )
        .await
        .unwrap();
    client
        .publish(control_subject(unknown_form), vec![0xff].into())
        .await
        .unwrap();
    client
        .publish(control_subject(session), cancel.into())
        .await
        .unwrap();
    assert_eq!(next(&requests).await, CancelNotice::Requested(session));
    assert!(!requests.cancel_requested(unknown_form).await.unwrap());
}

#[tokio::test]
async fn a_reconnect_reports_missed_requests_and_receives_later_ones() {
    let (mut server, nats) = prepared().await;
    let (missed, later) = (new_session(), new_session());
    let requests = listen(&nats).await;
    let mut connection = nats.watch_connection();
    for _ in 0..2 {
        server.restart().await;
        connect(&server).await.request_cancel(missed).await.unwrap();
        // The subscription of the previous round may have received a request before the gap.
        while next(&requests).await != CancelNotice::Missed {}
        assert!(requests.cancel_requested(missed).await.unwrap());
        within(
            "the connection",
            connection.wait_for(|state| state.connected),
        )
        .await
        .unwrap();
    }
    // The new subscription may have received the earlier requests as well.
    nats.request_cancel(later).await.unwrap();
    while next(&requests).await != CancelNotice::Requested(later) {}
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_no_request() {
    let (_server, nats) = prepared().await;
    let requests = JetStreamCancelRequests::listen(&nats).await.unwrap();
    assert_eq!(poll_once(requests.next()).await, Some(CancelNotice::Missed));
    assert_eq!(poll_once(requests.next()).await, None);
    let sessions: Vec<_> = (0..20).map(|_| new_session()).collect();
    let mut received = Vec::new();
    for session in &sessions {
        nats.request_cancel(*session).await.unwrap();
        received.extend(poll_once(requests.next()).await);
    }
    while received.len() < sessions.len() {
        received.push(next(&requests).await);
    }
    assert_eq!(
        received,
        sessions
            .into_iter()
            .map(CancelNotice::Requested)
            .collect::<Vec<_>>()
    );
}

/// The client keeps 65,536 messages for a subscription and drops the next ones.
#[tokio::test]
async fn dropped_messages_report_missed_requests() {
    let (server, nats) = prepared().await;
    let (client, _) = outsider(&server).await;
    let session = new_session();
    let requests = listen(&nats).await;
    for _ in 0..70_000 {
        client
            .publish(control_subject(session), "{}".into())
            .await
            .unwrap();
    }
    client.flush().await.unwrap();
    let gap = async { while next(&requests).await != CancelNotice::Missed {} };
    // The connection has received everything that was sent before this round trip.
    within("the flood", nats.rtt()).await.unwrap();
    within("the gap", gap).await;
}
