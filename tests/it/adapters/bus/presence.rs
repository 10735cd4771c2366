//! Worker status: published by workers and collected by commands.

use std::time::Duration;

use tarsy_bus::Nats;
use tarsy_core::ids::WorkerId;
use tarsy_engine::ports::{Presence, WorkerStatus};
use uuid::Uuid;

use super::table::new_session;
use super::{outsider, prepared, within};

fn status(name: &str, slots: u32) -> WorkerStatus {
    WorkerStatus {
        worker_id: WorkerId(Uuid::new_v4()),
        name: name.into(),
        version: "1.2.3".into(),
        slots,
        sessions: vec![new_session(), new_session()],
        busy: 2,
        state: "claiming".into(),
        unavailable: vec![],
        state_ms: 0,
    }
}

/// Collects statuses while `announce` is called repeatedly, as workers do.
async fn collect_while(nats: &Nats, mut announce: impl FnMut()) -> Vec<WorkerStatus> {
    let collecting = nats.workers(Duration::from_millis(500));
    tokio::pin!(collecting);
    loop {
        tokio::select! {
            workers = &mut collecting => return workers.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(10)) => announce(), // pacing of tries: no signal says subscribed
        }
    }
}

#[tokio::test]
async fn every_worker_is_listed_once_by_name_with_its_last_status() {
    let (server, nats) = prepared().await;
    let (client, _) = outsider(&server).await;
    let (beta, alpha) = (status("beta", 1), status("alpha", 4));
    let other_alpha = status("alpha", 5);
    let draining = WorkerStatus {
        state: "draining".into(),
        sessions: Vec::new(),
        ..beta.clone()
    };
    nats.announce(&beta);
    let workers = collect_while(&nats, || {
        nats.announce(&beta);
        nats.announce(&alpha);
        nats.announce(&other_alpha);
        nats.announce(&draining);
        drop(tokio::spawn({
            let client = client.clone();
            async move { client.publish("tarsy.workers.x", "no news".into()).await }
        }));
    })
    .await;
    let mut expected = vec![alpha, other_alpha];
    expected.sort_by_key(|worker| worker.worker_id);
    expected.push(draining);
    assert_eq!(workers, expected);
}

#[tokio::test]
async fn a_worker_without_a_connection_does_not_wait_to_publish_its_status() {
    let (mut server, nats) = prepared().await;
    let worker = status("a", 1);
    // More messages than the connection can queue, because no other task runs on this thread meanwhile.
    for _ in 0..10_000 {
        nats.announce(&worker);
    }
    let mut connection = nats.watch_connection();
    server.kill();
    within("the loss", connection.wait_for(|state| !state.connected))
        .await
        .unwrap();
    for _ in 0..10_000 {
        nats.announce(&worker);
    }
    server.restart().await;
    within(
        "the reconnect",
        connection.wait_for(|state| state.connected),
    )
    .await
    .unwrap();
    let workers = collect_while(&nats, || nats.announce(&worker)).await;
    assert_eq!(workers, [worker]);
}
