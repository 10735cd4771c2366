//! The receiver while the queue is full or the broker is unavailable.
use tarsy_bus::TopologySettings;

use super::{Receiver, make_streams};
use crate::support::http;
use crate::support::nats::NatsServer;
use crate::support::nats::topology::full_at;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_are_answered_with_503_while_the_queue_is_full() {
    let settings = full_at(16 * 1024);
    let receiver = Receiver::start_with(&settings, &[]).await;
    let body = [b'x'; 1024];
    let mut accepted = 0;
    let refused = loop {
        let answer = receiver.post("/alert", &[], &body).await;
        if answer.status != 202 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 16, "the queue does not fill up");
    };
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("30"))
    );
    assert_eq!(refused.json()["error"], "the queue is full");
    let stream = receiver.stream().await;
    assert_eq!(
        stream.cached_info().state.messages,
        accepted,
        "the stream has the alerts that were answered with 202, and no other"
    );
    assert_eq!(
        http::get(&receiver.metrics, "/readyz").await.status,
        200,
        "a smaller alert may still fit"
    );
    stream.purge().await.unwrap();
    assert_eq!(receiver.post("/alert", &[], &body).await.status, 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_are_answered_with_503_while_the_broker_is_unavailable() {
    let mut nats = NatsServer::start().await;
    make_streams(&nats.url(), &TopologySettings::default()).await;
    nats.kill();
    let mut receiver = Receiver::connecting_to(nats, &[]).await;
    receiver.process.logged("waiting for nats").await;
    for _ in 0..2 {
        let answer = receiver.post("/alert", &[], b"not published").await;
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (503, Some("5"))
        );
        assert_eq!(answer.json()["error"], "the queue is unavailable");
        assert_eq!(
            http::get(&receiver.metrics, "/readyz").await.body,
            "nats unavailable\n"
        );
        assert_eq!(
            http::get(&receiver.metrics, "/healthz").await.status,
            200,
            "an unavailable broker is no reason to restart the receiver"
        );
        receiver.nats.restart().await;
        receiver.readiness_is(200).await;
        assert_eq!(receiver.post("/alert", &[], b"published").await.status, 202);
        receiver.nats.kill();
        receiver.readiness_is(503).await;
    }
    receiver.nats.restart().await;
    assert_eq!(
        receiver.stream().await.cached_info().state.messages,
        2,
        "an alert that was answered with 503 was published later"
    );
    receiver.nats.kill();
    receiver.process.terminate();
    assert_eq!(
        receiver.process.finished().await.0,
        0,
        "{}",
        receiver.process.log()
    );
}
