//! A database that loses confirmed commits: a failover to a standby that lagged, or a restore.

use std::sync::Arc;

use tarsy_bus::{Follower, NewAlert, Priority, SESSION_ID, TimelineUpdate, timeline_subject};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_engine::ports::{Outbox, Sessions};
use uuid::Uuid;

use crate::adapters::store::fixture::received;
use crate::support::postgres::TestDatabase;
use crate::support::system::{Setup, TestSystem, Timeline};
use crate::support::wait::eventually;

const MARK: &str = "RestartDrill";
const TOOL: &str = "restart_deployment";
const START: &str = "tool-restart_deployment-start";

/// A recording that restarts a deployment and then concludes.
fn transcript() -> String {
    format!(
        "name: restart\nmatch: {MARK}\nprovider_state: true\nanswers:\n  \
         - chunks: [{{call: {{tool: drill.{TOOL}, arguments: {{namespace: checkout, deployment: checkout}}}}}}]\n  \
         - chunks: [{{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    )
}

async fn start_system(watched: &[&str]) -> TestSystem {
    let transcript = Some(transcript());
    let sweep = std::time::Duration::from_secs(1);
    TestSystem::start_with(Setup {
        watched,
        allow: &[TOOL],
        transcript,
        sweep,
        ..Setup::default()
    })
    .await
}

async fn publish(system: &TestSystem) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// Copies every row of every table.
fn back_up(database: &TestDatabase) {
    database.execute(
        "DO $$ DECLARE t text; BEGIN CREATE SCHEMA backup; FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' \
         AND tablename NOT LIKE '\\_\\_%' LOOP EXECUTE format('CREATE TABLE backup.%I AS TABLE public.%I', t, t); END LOOP; END $$",
    );
}

/// Restores every row of every table, so that later commits are lost.
fn restore(database: &TestDatabase) {
    database.execute(
        "DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'backup' LOOP \
         EXECUTE format('DELETE FROM public.%I', t); EXECUTE format('INSERT INTO public.%I SELECT * FROM backup.%I', t, t); \
         END LOOP; END $$",
    );
}

fn loss_events(seen: &[TimelineEvent]) -> Vec<&TimelineEvent> {
    seen.iter()
        .filter(|event| event.metadata["kind"] == "lost_commits")
        .collect()
}

/// Asserts that stream and table have the same events with one end, and that the call was sent once.
async fn assert_recovered(system: &TestSystem, session: SessionId, timeline: &mut Timeline) {
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    let left = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
    eventually("the alert is settled", async || {
        system.database.number(left) == 0
    })
    .await;
    assert_eq!(
        system.tool_calls().values().sum::<u32>(),
        1,
        "{:#?}",
        timeline.seen
    );
    system.assert_invariants(session, &timeline.seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_lost_during_a_call_are_noticed_and_the_call_is_not_sent_again() {
    let mut system = start_system(&["answer-0-start", START]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    let asked = system.gates.next().await;
    back_up(&system.database);
    asked.open().await;
    let called = system.gates.next().await;
    let lost_call = timeline.until(EventType::LlmToolCall).await;
    restore(&system.database);
    system.gates.open_all();
    called.open().await;
    assert_recovered(&system, session, &mut timeline).await;
    let losses = loss_events(&timeline.seen);
    assert_eq!(losses.len(), 1, "{:#?}", timeline.seen);
    assert_eq!(losses[0].metadata["restored"], lost_call.session_seq);
    assert_eq!(
        losses[0].metadata["calls_not_sent_again"],
        serde_json::json!([format!("drill.{TOOL}")])
    );
    let journal = system
        .database
        .text("SELECT string_agg(kind, ' ' ORDER BY entry_no) FROM entries");
    assert_eq!(
        journal,
        "prompt prompt sent_before feedback answer lost tool_result answer ended"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_lost_with_their_worker_are_noticed_at_the_claim() {
    let mut system = start_system(&["answer-0-start", START]).await;
    let (mut worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    let asked = system.gates.next().await;
    back_up(&system.database);
    asked.open().await;
    let called = system.gates.next().await;
    timeline.until(EventType::LlmToolCall).await;
    worker.kill().await;
    restore(&system.database);
    system.gates.open_all();
    drop(called);
    let (_next, _) = system.worker("w2").await;
    assert_recovered(&system, session, &mut timeline).await;
    assert_eq!(loss_events(&timeline.seen).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_whose_rows_are_lost_is_redelivered_without_repeating_its_calls() {
    let mut system = start_system(&[START]).await;
    back_up(&system.database);
    let (mut worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    let called = system.gates.next().await;
    timeline.until(EventType::LlmToolCall).await;
    worker.kill().await;
    restore(&system.database);
    assert_eq!(system.database.number("SELECT count(*) FROM alerts"), 0);
    system.gates.open_all();
    drop(called);
    let (_next, _) = system.worker("w2").await;
    assert_recovered(&system, session, &mut timeline).await;
    assert_eq!(loss_events(&timeline.seen)[0].metadata["kept"], 0);
    let numbers = "SELECT count(*) FROM (SELECT execution_id FROM timeline_events WHERE execution_id IS NOT NULL \
        GROUP BY execution_id HAVING count(*) <> max(sequence_number) OR count(*) <> count(DISTINCT sequence_number)) x";
    assert_eq!(
        system.database.number(numbers),
        0,
        "the numbers within an execution have no gap and no repetition"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_end_is_recovered_without_a_second_end() {
    let mut system = start_system(&["answer-1-start"]).await;
    let (mut worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    let asked = system.gates.next().await;
    back_up(&system.database);
    system.gates.open_all();
    asked.open().await;
    timeline.finish().await;
    let left = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
    eventually("the alert is settled", async || {
        system.database.number(left) == 0
    })
    .await;
    worker.kill().await;
    restore(&system.database);
    let asked = system.model_calls();
    let (_next, _) = system.worker("w2").await;
    eventually("the alert is settled again", async || {
        system.database.number(left) == 0
    })
    .await;
    assert_eq!(system.model_calls(), asked, "no model call is made again");
    let stored = Outbox::events(&system.database.store(), session, 0, 1000)
        .await
        .unwrap();
    assert_eq!(stored, timeline.seen, "the table equals the stream again");
    let stored = system
        .database
        .text("SELECT status || ' ' || final_analysis FROM alert_sessions");
    assert!(
        stored.starts_with("completed Cause: a drill [") && stored.ends_with("]. The end."),
        "{stored}"
    );
    let mut again = system.follow(session).await;
    again.finish().await;
    assert_eq!(again.seen, timeline.seen);
}

#[tokio::test]
async fn a_confirmed_write_is_on_disk_whatever_the_server_default_is() {
    let database = TestDatabase::create().await;
    database.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$",
    );
    database.execute("CREATE TABLE seen (setting text)");
    database.execute(
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$",
    );
    database
        .execute("CREATE TRIGGER see AFTER INSERT ON alerts FOR EACH ROW EXECUTE FUNCTION see()");
    database
        .store()
        .receive(received(SessionId(Uuid::now_v7()), b"disk full"))
        .await
        .unwrap();
    assert_eq!(
        database.text("SELECT string_agg(setting, ' ') FROM seen"),
        "on"
    );
}

/// Publishes a forged analysis and end on the timeline's subject.
async fn forge(system: &TestSystem, session: SessionId, from: u32) {
    let client = async_nats::connect(system.nats.url()).await.unwrap();
    let forged = |number: u32, event_type: &str, content: &str| {
        serde_json::json!({
            "session_id": session, "session_seq": number, "execution_id": null, "sequence_number": null, "stage": null,
            "agent": null, "iteration": null, "attempt": null, "event_type": event_type, "status": "completed",
            "content": content, "metadata": {"stop_reason": "final_answer"}, "created_at": "2026-11-22T10:00:00Z",
        })
    };
    for event in [
        forged(from, "final_analysis", "Cause: FORGED"),
        forged(from + 1, "session_completed", "done"),
    ] {
        client
            .publish(timeline_subject(session), event.to_string().into())
            .await
            .unwrap();
    }
    client.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_end_ends_nothing_and_is_not_shown_to_a_watcher_with_a_database() {
    let mut system = start_system(&["answer-0-start", "answer-1-start"]).await;
    let (mut worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let store = Arc::new(system.database.store());
    let mut watcher = Follower::start(
        &system.connect().await,
        session,
        0,
        Some(Arc::clone(&store)),
    );
    let asked = system.gates.next().await;
    let number = u32::try_from(
        system
            .database
            .number("SELECT event_seq::bigint FROM alert_sessions"),
    )
    .unwrap();
    let mut published = system.follow(session).await;
    while published.seen.len() < number as usize {
        published.next().await;
    }
    forge(&system, session, number + 1).await;
    asked.open().await;
    // The next owner compares store and stream.
    let asked = system.gates.next().await;
    worker.kill().await;
    system.gates.open_all();
    drop(asked);
    let (_next, _) = system.worker("w2").await;
    let mut seen = Vec::new();
    while let Some(item) = watcher.next().await {
        if let TimelineUpdate::Event(event) = item {
            seen.push(event);
        }
    }
    assert!(
        seen.iter().all(|event| !event.content.contains("FORGED")),
        "{seen:#?}"
    );
    let left = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
    eventually("the alert is settled", async || {
        system.database.number(left) == 0
    })
    .await;
    assert_eq!(loss_events(&seen), Vec::<&TimelineEvent>::new());
    system.assert_invariants(session, &seen).await;
}
