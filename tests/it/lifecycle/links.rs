//! Links to the pages: in the output of commands and in the events that end a session, if `web.public_url` is set.

use serde_json::Value;
use tarsy_core::ids::SessionId;

use crate::support::system::{Setup, TestSystem};

const PAGES: &str = "https://tarsy.example.com/ops";

async fn system(sections: &str) -> TestSystem {
    TestSystem::start_with(Setup {
        sections,
        ..Setup::default()
    })
    .await
}

/// Standard output of a command that succeeds.
async fn output(system: &TestSystem, args: &[&str]) -> String {
    let mut command = system.tarsy("command", args);
    let (code, output) = command.finished().await;
    assert_eq!(code, 0, "{output} {}", command.log());
    output
}

async fn json(system: &TestSystem, args: &[&str]) -> Value {
    serde_json::from_str(&output(system, args).await).unwrap()
}

/// Submits an alert, and returns its session and the JSON output.
async fn submit(system: &TestSystem) -> (SessionId, Value) {
    let alert = system.file("alert.txt");
    std::fs::write(&alert, "disk full").unwrap();
    let submitted = json(system, &["submit", "--json", alert.to_str().unwrap()]).await;
    (
        SessionId::parse(submitted["session_id"].as_str().unwrap()).unwrap(),
        submitted,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_output_about_a_session_leads_to_its_page() {
    let system = system(&format!("web: {{public_url: '{PAGES}/'}}\n")).await;
    let (session, submitted) = submit(&system).await;
    let page = format!("{PAGES}/sessions/{session}");
    assert_eq!(submitted["url"], *page);
    // No worker has the alert, so the command itself ends it.
    let cancelled = json(
        &system,
        &["sessions", "cancel", "--json", &session.to_string()],
    )
    .await;
    assert_eq!(
        (&cancelled["url"], &cancelled["status"]),
        (&page.as_str().into(), &"cancelled".into())
    );
    let stored = tarsy_engine::ports::Outbox::events(&system.database.store(), session, 0, 10)
        .await
        .unwrap();
    assert_eq!(stored.last().unwrap().metadata["url"], *page);

    let session = system.publish().await;
    let page = format!("{PAGES}/sessions/{session}");
    let (_worker, _) = system.worker("w1").await;
    assert_eq!(
        system.follow(session).await.finish().await.metadata["url"],
        *page
    );
    let id = session.to_string();
    assert_eq!(
        json(&system, &["sessions", "show", "--json", &id]).await["url"],
        *page
    );
    assert_eq!(
        json(&system, &["sessions", "list", "--json"]).await["url"],
        *page
    );
    assert!(
        output(&system, &["sessions", "show", &id])
            .await
            .contains(&page)
    );
    assert!(
        output(&system, &["sessions", "show", "--report", &id])
            .await
            .contains(&format!("- **Page:** <{page}>"))
    );
    let mut watch = system.tarsy("watch", &["watch", &id]);
    watch.finished().await;
    assert!(
        watch.log().contains(&format!("Web: {page}")),
        "{}",
        watch.log()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_address_nothing_has_a_link() {
    let system = system("").await;
    let (session, submitted) = submit(&system).await;
    assert_eq!(submitted.get("url"), None);
    let cancelled = json(
        &system,
        &["sessions", "cancel", "--json", &session.to_string()],
    )
    .await;
    assert_eq!(cancelled.get("url"), None);
    let stored = tarsy_engine::ports::Outbox::events(&system.database.store(), session, 0, 10)
        .await
        .unwrap();
    assert_eq!(
        stored.last().unwrap().metadata,
        serde_json::json!({"stop_reason": "cancelled"})
    );
    assert_eq!(
        json(
            &system,
            &["sessions", "show", "--json", &session.to_string()]
        )
        .await
        .get("url"),
        None
    );
}
