//! The web server without the database, without the broker, and without both.

use serde_json::json;

use super::Web;
use crate::support::http;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

async fn readiness(web: &Web) -> (u16, String) {
    let answer = http::get(&web.metrics, "/readyz").await;
    (answer.status, answer.body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_broker_the_history_is_served_and_the_pages_are_not_live() {
    let mut system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let events = system.follow(session).await.finish().await.session_seq;
    let web = Web::start(&system, &[]).await;
    eventually("the server is live", async || {
        web.get("/api/v1/queue").await.status == 200
    })
    .await;
    system.nats.kill();
    eventually("the loss is noticed", async || {
        web.get("/api/v1/queue").await.status == 503
    })
    .await;
    let answer = web.get("/api/v1/queue").await;
    assert!(
        answer.json()["error"]
            .as_str()
            .unwrap()
            .contains("nats unavailable"),
        "{answer:?}"
    );
    assert_eq!(
        web.json("/sessions").await["sessions"][0]["session_id"],
        json!(session)
    );
    assert_eq!(
        web.json(&format!("/sessions/{session}/events")).await["last_seq"],
        json!(events)
    );
    let mut stream = web
        .stream(&format!("/api/v1/sessions/{session}/events?after=2"), &[])
        .await;
    assert_eq!(
        stream.next().await.unwrap().id,
        Some(3),
        "the history needs no broker"
    );
    eventually("the readiness names nats", async || {
        readiness(&web).await.1.contains("nats unavailable")
    })
    .await;
    assert_eq!(readiness(&web).await.0, 200);
    system.nats.restart().await;
    eventually("the server is live again", async || {
        web.get("/api/v1/queue").await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_database_the_stream_alone_is_served() {
    let mut server = PostgresServer::start().await;
    let database = TestDatabase::empty_on(server.url());
    let setup = Setup {
        watched: &["answer-1-middle", "answer-2-middle"],
        database: Some(database),
        ..Setup::default()
    };
    let mut system = TestSystem::start_with(setup).await;
    let (_worker, _) = system.worker("w1").await;
    let web = Web::start(&system, &[]).await;
    let session = system.publish().await;
    let path = format!("/api/v1/sessions/{session}/events");
    let arrived = system.gates.next().await;
    let known = web.json(&format!("/sessions/{session}/events")).await["last_seq"]
        .as_u64()
        .unwrap();
    let mut before = web.stream(&path, &[]).await;
    for number in 1..=known {
        assert_eq!(
            before.next_event().await.unwrap().id.map(u64::from),
            Some(number)
        );
    }
    server.kill().await;
    eventually("the loss is noticed", async || {
        web.get("/api/v1/sessions").await.status == 503
    })
    .await;
    let answer = web.get("/api/v1/sessions").await;
    assert!(
        answer.json()["error"]
            .as_str()
            .unwrap()
            .contains("database unavailable"),
        "{answer:?}"
    );
    // A reader that comes without the database gets the events of the stream.
    let mut during = web.stream(&path, &[]).await;
    for number in 1..=known {
        assert_eq!(
            during.next_event().await.unwrap().id.map(u64::from),
            Some(number)
        );
    }
    eventually("the readiness names the database", async || {
        readiness(&web).await.1.contains("database unavailable")
    })
    .await;
    assert_eq!(readiness(&web).await.0, 200);
    server.restart().await;
    system.gates.open_all();
    arrived.open().await;
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for (reader, seen) in [(&mut before, &mut one), (&mut during, &mut other)] {
        while let Some(frame) = reader.next_event().await {
            seen.push((frame.id, frame.event, frame.data));
        }
    }
    assert_eq!(one, other);
    assert_eq!(one.last().map(|(_, event, _)| event.as_str()), Some("end"));
    let numbers: Vec<Option<u32>> = one.iter().map(|(id, _, _)| *id).collect();
    let first = u32::try_from(known).unwrap() + 1;
    let last = first + u32::try_from(numbers.len()).unwrap() - 2;
    assert_eq!(
        numbers,
        (first..=last).map(Some).chain([None]).collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_starts_without_database_and_broker_and_is_not_ready() {
    let mut system = TestSystem::servers(&[], TestDatabase::empty()).await;
    std::fs::write(system.file("tarsy.yaml"), "").unwrap();
    system.nats.kill();
    let env = [("DATABASE_URL", "postgres://postgres@127.0.0.1:1/none")];
    let web = Web::start(&system, &env).await;
    eventually("it is not ready", async || readiness(&web).await.0 == 503).await;
    eventually("the reason names both", async || {
        readiness(&web).await.1.contains("nats and the database")
    })
    .await;
    let answer = web.get("/api/v1/sessions").await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("3")),
        "{answer:?}"
    );
    let page = web.get("/").await;
    assert!(
        page.status == 503 && page.body.contains("database unavailable"),
        "{page:?}"
    );
}
