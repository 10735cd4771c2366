//! The names of people who ask and cancel, from the proxy to the timeline and the terminal.

use tarsy_core::ids::SessionId;

use super::Web;
use crate::support::system::TestSystem;

const SECRET: &str = "s3cret-of-the-proxy";
const ADA: [(&str, &str); 3] = [
    ("x-tarsy-proxy-secret", SECRET),
    ("x-forwarded-email", "ada@example.com"),
    ("sec-fetch-site", "same-origin"),
];

async fn web(system: &TestSystem) -> Web {
    std::fs::write(
        system.file("web.yaml"),
        "web: {auth: proxy, allow: {ask: ['*'], cancel: ['*']}}\n",
    )
    .unwrap();
    let config = system.file("web.yaml").display().to_string();
    Web::start(
        system,
        &[
            ("TARSY_CONFIG", &config),
            ("TARSY_WEB_PROXY_SECRET", SECRET),
        ],
    )
    .await
}

async fn output(system: &TestSystem, args: &[&str]) -> String {
    let mut command = system.tarsy("command", args);
    let (_, output) = command.finished().await;
    format!("{output}{}", command.log())
}

async fn post(web: &Web, path: &str, body: &str) -> serde_json::Value {
    let answer = web.post(path, &ADA, body).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cancels_and_who_asks_is_shown_in_the_terminal() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let web = web(&system).await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let mut timeline = system.follow(session).await;
    post(&web, &format!("/api/v1/sessions/{session}/cancel"), "").await;
    let end = timeline.finish().await;
    assert_eq!(
        (end.event_type.as_str(), &end.metadata["cancelled_by"]),
        ("session_cancelled", &"ada@example.com".into())
    );
    let id = session.to_string();
    let watched = output(&system, &["watch", &id]).await;
    assert!(
        watched.contains("cancelled") && watched.contains("by ada@example.com"),
        "{watched}"
    );
    drop(held);
    system.gates.open_all();

    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let asked = post(
        &web,
        &format!("/api/v1/sessions/{session}/questions"),
        r#"{"question": "Why?"}"#,
    )
    .await;
    let question = SessionId::parse(asked["session_id"].as_str().unwrap()).unwrap();
    system.follow(question).await.finish().await;
    let watched = output(&system, &["watch", &question.to_string()]).await;
    assert!(
        watched.contains("by ada@example.com") && watched.contains("Why?"),
        "{watched}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_survives_until_a_worker_ends_a_session_that_no_worker_had() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (worker, _) = system.worker("w1").await;
    let web = web(&system).await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let mut worker = worker;
    worker.kill().await;
    post(&web, &format!("/api/v1/sessions/{session}/cancel"), "").await;
    drop(held);
    system.gates.open_all();
    let (_other, _) = system.worker("w2").await;
    let end = system.follow(session).await.finish().await;
    assert_eq!(
        (end.event_type.as_str(), &end.metadata["cancelled_by"]),
        ("session_cancelled", &"ada@example.com".into())
    );
}
