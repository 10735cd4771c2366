//! A queue that is full, and a broker that is unavailable.

use tarsy::bus::{Bound, TopologySettings};

use super::{Door, make_streams};
use crate::support::http;
use crate::support::nats::NatsServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_is_answered_with_503_until_there_is_room() {
    let settings = TopologySettings { alerts_max_bytes: Bound::Exactly(16 * 1024), ..TopologySettings::default() };
    let door = Door::open_with(&settings, &[]).await;
    let body = [b'x'; 1024];
    let mut taken = 0;
    let refused = loop {
        let answer = door.post("/alert", &[], &body).await;
        if answer.status != 202 {
            break answer;
        }
        taken += 1;
        assert!(taken < 16, "it never is full");
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("30")));
    assert_eq!(refused.json()["error"], "the queue is full");
    let stream = door.stream().await;
    assert_eq!(stream.cached_info().state.messages, taken, "what was answered with 202 is kept, and nothing else");
    assert_eq!(http::get(&door.metrics, "/readyz").await.status, 200, "other alerts may be smaller");
    stream.purge().await.unwrap();
    assert_eq!(door.post("/alert", &[], &body).await.status, 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_broker_is_away_the_door_says_so_and_lives() {
    let mut nats = NatsServer::start().await;
    make_streams(&nats.url(), &TopologySettings::default()).await;
    nats.kill();
    let mut door = Door::before(nats, &[]).await;
    door.process.logged("waiting for nats").await;
    for _ in 0..2 {
        let answer = door.post("/alert", &[], b"nobody takes it").await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
        assert_eq!(answer.json()["error"], "the queue is unavailable");
        assert_eq!(http::get(&door.metrics, "/readyz").await.body, "nats unavailable\n");
        assert_eq!(http::get(&door.metrics, "/healthz").await.status, 200, "no reason to restart this process");
        door.nats.restart().await;
        door.is_ready(200).await;
        assert_eq!(door.post("/alert", &[], b"somebody takes it").await.status, 202);
        door.nats.kill();
        door.is_ready(503).await;
    }
    door.nats.restart().await;
    assert_eq!(door.stream().await.cached_info().state.messages, 2, "what was answered with 503 did not come later");
    door.nats.kill();
    door.process.terminate();
    assert_eq!(door.process.finished().await.0, 0, "{}", door.process.log());
}
