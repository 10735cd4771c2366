//! Sessions that cause their own failures are given up with their reason, and before their deadline.

use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::DeadReason;
use uuid::Uuid;

use crate::support::process::metric_is;
use crate::support::system::{Setup, TestSystem};

/// A recording whose call waits at a gate before the first chunk of the answer.
const DEADLY: &str =
    "name: deadly\nmatch: DeadlyRequest\nanswers:\n  - chunks: [{gate: deadly}, {text: never}]\n";

async fn publish(system: &TestSystem, body: &str) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let body = body.as_bytes().to_vec();
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body,
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// The dead letter of a session, and the reason of its failure.
fn failure(system: &TestSystem, session: SessionId) -> (String, String) {
    let read = |column: &str| {
        system.database.text(&format!(
            "SELECT {column} FROM alert_sessions WHERE session_id = '{}'",
            session.0
        ))
    };
    (read("dead_letter"), read("error"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_kills_the_llm_service_is_given_up_after_a_few_returns() {
    let transcript = Some(DEADLY.to_owned());
    let mut system = TestSystem::start_with(Setup {
        watched: &["deadly"],
        transcript,
        attempts: 1,
        ..Setup::default()
    })
    .await;
    let (_worker, address) = system.worker("w1").await;
    let deadly = publish(&system, "DeadlyRequest: it kills").await;
    let mut timeline = system.follow(deadly).await;
    for _ in 0..3 {
        let arrived = system.gates.next().await;
        system.llm.kill().await;
        drop(arrived);
        let listen = system.llm_addr().to_owned();
        system.start_llm_service(&listen).await;
    }
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionFailed);
    let (letter, error) = failure(&system, deadly);
    assert_eq!(letter, DeadReason::AttemptsExhausted.as_str());
    assert!(
        error.starts_with("given up: llm service broke off before it answered: "),
        "{error}"
    );
    metric_is(
        &address,
        "tarsy_returns_counted_total",
        "reason=\"model_broke\"",
        1.0,
    )
    .await;

    let other = publish(&system, "disk full on db-3").await;
    assert_eq!(
        system.follow(other).await.finish().await.event_type,
        EventType::SessionCompleted
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_write_the_store_refuses_is_given_up_after_a_few_returns() {
    let system = TestSystem::start_with(Setup {
        attempts: 1,
        ..Setup::default()
    })
    .await;
    system.database.execute(
        "ALTER TABLE entries ADD CONSTRAINT no_such_word CHECK (content NOT LIKE '%Unwritable%')",
    );
    let (_worker, address) = system.worker("w1").await;
    let refused = publish(&system, "Unwritable: the database has no place for it").await;
    assert_eq!(
        system.follow(refused).await.finish().await.event_type,
        EventType::SessionFailed
    );
    let (letter, error) = failure(&system, refused);
    assert_eq!(letter, DeadReason::AttemptsExhausted.as_str());
    assert!(
        error.starts_with("given up: store refused a write: ") && error.contains("no_such_word"),
        "{error}"
    );
    metric_is(
        &address,
        "tarsy_returns_counted_total",
        "reason=\"store_refused\"",
        1.0,
    )
    .await;
    metric_is(
        &address,
        "tarsy_sessions_released_total",
        "reason=\"store_refused\"",
        2.0,
    )
    .await;
}
