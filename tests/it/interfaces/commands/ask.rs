//! `tarsy ask` and `watch --thread`: questions about an ended investigation.

use serde_json::{Value, json};
use tarsy_bus::{NewAlert, PARENT_ID, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_engine::ports::Outbox;
use uuid::Uuid;

use super::run;
use crate::support::system::TestSystem;
use crate::support::wait::eventually;

const QUESTION: &str = "Would a limit of 768Mi be enough?";

async fn stored(system: &TestSystem, session: SessionId) -> Vec<TimelineEvent> {
    system
        .database
        .store()
        .events(session, 0, 1000)
        .await
        .unwrap()
}

/// A completed investigation of the drill.
async fn investigated(system: &TestSystem) -> SessionId {
    let session = system.publish().await;
    assert_eq!(
        system.follow(session).await.finish().await.event_type,
        EventType::SessionCompleted
    );
    session
}

/// `tarsy ask --no-watch --json`.
async fn ask(system: &TestSystem, session: &str, question: &str) -> (SessionId, Value) {
    let asked = run(system, &["ask", session, question, "--no-watch", "--json"])
        .await
        .exits(0)
        .json()
        .remove(0);
    (
        SessionId::parse(asked["session_id"].as_str().unwrap()).unwrap(),
        asked,
    )
}

/// The first user message of a session's only agent, as the journal has it.
fn prompt(system: &TestSystem, session: SessionId) -> String {
    let sql = "SELECT content FROM entries WHERE kind = 'prompt' AND role = 'user'";
    system.database.text(&format!(
        "{sql} AND session_id = '{session}' ORDER BY entry_no LIMIT 1"
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_survives_its_worker_and_the_next_question_sees_its_answer() {
    let mut system = TestSystem::start(&[]).await;
    let (mut first, _) = system.worker("w1").await;
    let session = investigated(&system).await;

    // The worker dies during the second answer, after the tool call of the first.
    system.gates.watch("answer-1-start");
    let (question, asked) = ask(&system, &session.short(), QUESTION).await;
    let expected = json!({
        "session_id": question, "parent_id": session, "subject": "tarsy.questions.critical.question",
        "stream_sequence": asked["stream_sequence"],
    });
    assert_eq!(asked, expected);
    let held = system.gates.next().await;
    system.gates.open_all();
    first.kill().await;
    held.open().await;
    let (_second, _) = system.worker("w2").await;
    let mut timeline = system.follow(question).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    let types: Vec<&str> = timeline
        .seen
        .iter()
        .map(|event| event.event_type.as_str())
        .collect();
    let expected = "session_started user_question stage_started llm_thinking llm_tool_call tool_result session_resumed \
                    llm_thinking final_analysis stage_completed session_completed";
    assert_eq!(types.join(" "), expected);
    assert_eq!(
        (
            timeline.seen[0].metadata["parent_id"].clone(),
            timeline.seen[1].content.as_str()
        ),
        (json!(session), QUESTION)
    );
    assert_eq!(
        timeline.seen[0].metadata.get("alert_type"),
        None,
        "{:?}",
        timeline.seen[0]
    );
    let settled = format!(
        "SELECT count(*) FROM alert_sessions WHERE session_id = '{question}' AND settled_at IS NOT NULL"
    );
    eventually("every session is settled", async || {
        system.database.number(&settled) == 1
    })
    .await;
    system.assert_invariants(question, &timeline.seen).await;
    assert_eq!(
        stored(&system, session).await.last().unwrap().event_type,
        EventType::SessionCompleted
    );

    // A question about a question belongs to the same investigation. Its words need no quotes.
    let words = [
        "ask",
        &question.short(),
        "Should",
        "we",
        "roll",
        "back\nbefore",
        "the weekend?",
    ];
    let watched = run(&system, &words).await.exits(0);
    for part in [
        &format!("question about session {}", session.short()),
        "before the weekend?",
        "Yes: revision 42",
    ] {
        assert!(watched.out.contains(part), "{part}: {watched:?}");
    }
    let second = system
        .database
        .text("SELECT session_id::text FROM alert_sessions ORDER BY created_at DESC LIMIT 1");
    let second = SessionId::parse(&second).unwrap();
    let prompt = prompt(&system, second);
    for part in [
        "```question\nShould we roll back\nbefore the weekend?\n```".to_owned(),
        format!("Question 1: {QUESTION}\n\nAnswer 1: For some hours, but not for good."),
        "Cause: revision 43 of checkout".to_owned(),
        "] drill__describe_pod {".to_owned(),
    ] {
        assert!(prompt.contains(&part), "{part}: {prompt}");
    }
    assert_thread(&system, session, [question, second]).await;
}

async fn assert_thread(
    system: &TestSystem,
    session: SessionId,
    [question, second]: [SessionId; 2],
) {
    let all = [
        stored(system, session).await,
        stored(system, question).await,
        stored(system, second).await,
    ]
    .concat();
    for any in [session, second] {
        let thread = run(system, &["watch", &any.short(), "--thread", "--json"])
            .await
            .exits(0);
        let shown: Vec<TimelineEvent> = thread
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(shown, all);
    }
    let shown = run(system, &["watch", &question.short(), "--thread"])
        .await
        .exits(0);
    let places = [
        &format!("session {}", session.short()),
        QUESTION,
        "before the weekend?",
    ]
    .map(|part| {
        shown
            .out
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {shown:?}"))
    });
    assert!(places.is_sorted(), "{shown:?}");
    let again = format!("To watch again: tarsy watch {} --thread", session.short());
    assert!(
        shown.err.starts_with(&again) && shown.err.matches("To watch again").count() == 1,
        "one hint, at the end: {shown:?}"
    );
    let alone = run(system, &["watch", &question.short(), "--json"])
        .await
        .exits(0);
    assert_eq!(
        alone.out.lines().count(),
        stored(system, question).await.len()
    );

    let listed = run(system, &["sessions", "list", "--json"])
        .await
        .exits(0)
        .json();
    let parents: Vec<_> = listed
        .iter()
        .map(|line| line["parent_id"].clone())
        .collect();
    assert_eq!(parents, [json!(session), json!(session), json!(null)]);
    let shown = run(system, &["sessions", "show", &session.short()])
        .await
        .exits(0)
        .out;
    assert!(
        shown.contains("2 questions:") && shown.contains("For some hours, but not for good."),
        "{shown}"
    );
    let shown = run(system, &["sessions", "show", &question.short()])
        .await
        .exits(0)
        .out;
    assert!(
        shown.contains(&format!("asks about   session {}", session.short())),
        "{shown}"
    );
    let report = run(system, &["sessions", "show", &session.short(), "--report"])
        .await
        .exits(0)
        .out;
    assert!(
        report.contains("## Questions") && report.contains("Yes: revision 42"),
        "{report}"
    );
    let again = run(system, &["sessions", "rerun", &question.short(), "--watch"])
        .await
        .exits(0);
    assert!(
        again.out.contains(QUESTION) && again.out.contains("For some hours"),
        "{again:?}"
    );
    assert!(
        again.err.contains("tarsy.questions.critical.question"),
        "the rerun is a question: {again:?}"
    );
    let thread = system
        .database
        .store()
        .thread_sessions(session)
        .await
        .unwrap();
    assert_eq!(
        (thread.len(), &thread[..3]),
        (4, &[session, question, second][..])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_run_in_parallel_and_a_watcher_of_the_thread_waits_for_both() {
    let mut system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = investigated(&system).await;
    system.gates.watch("answer-0-start");
    let (first, _) = ask(&system, &session.to_string(), QUESTION).await;
    let held = system.gates.next().await;
    let (second, _) = ask(&system, &session.to_string(), QUESTION).await;
    let other = system.gates.next().await;
    let running = format!(
        "SELECT count(*) FROM alert_sessions WHERE parent_id = '{session}' AND status = 'running'"
    );
    assert_eq!(system.database.number(&running), 2);
    let mut watch = system.tarsy(
        "watch",
        &["watch", &session.to_string(), "--thread", "--json"],
    );
    watch
        .line_with(&format!("{first}\",\"session_seq\":2"))
        .await;
    system.gates.open_all();
    held.open().await;
    other.open().await;
    let (code, rest) = watch.finished().await;
    assert_eq!(code, 0, "{}", watch.log());
    let last: TimelineEvent = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(
        (last.session_id, last.event_type),
        (second, EventType::SessionCompleted)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_in_a_question_reaches_neither_the_store_nor_the_model() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = investigated(&system).await;
    let question = "Is password=zebra-crossing-42 right?\u{1b}[2J";
    let asked = run(&system, &["ask", &session.short(), question])
        .await
        .exits(0);
    assert!(
        asked.out.contains("password=[masked] right?") && asked.out.contains("this is a recording"),
        "{asked:?}"
    );
    assert!(!asked.out.contains('\u{1b}'), "{asked:?}");
    eventually("everything is settled", async || {
        system
            .database
            .number("SELECT count(*) FROM alerts WHERE settled_at IS NULL")
            == 0
    })
    .await;
    for table in [
        "alerts",
        "alert_sessions",
        "session_plans",
        "entries",
        "timeline_events",
        "llm_interactions",
    ] {
        let sql = format!("SELECT count(*) FROM {table} t WHERE t::text LIKE '%zebra-crossing%'");
        assert_eq!(system.database.number(&sql), 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_that_does_not_know_an_alert_or_a_question_completes_nothing() {
    let mut system = TestSystem::start(&[]).await;
    system
        .replace_llm_service(&["--pace", "0ms"], &[("TARSY_ANSWER_UNKNOWN", "false")])
        .await;
    let (_worker, _) = system.worker("w1").await;
    let session = investigated(&system).await;
    let asked = run(&system, &["ask", &session.short(), "Who did it?"])
        .await
        .exits(1);
    assert!(
        asked.out.contains("not answered: the model is a recording"),
        "{asked:?}"
    );
    let file = system.file("alert.txt");
    std::fs::write(&file, "disk 94 % full on db-3").unwrap();
    let submitted = run(&system, &["submit", file.to_str().unwrap(), "--watch"])
        .await
        .exits(1);
    assert!(
        submitted
            .out
            .contains("not investigated: the model is a recording"),
        "{submitted:?}"
    );
    assert!(
        !submitted.out.contains("completed") && !submitted.out.contains("final analysis"),
        "{submitted:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_question_is_refused_before_it_is_published() {
    let mut system = TestSystem::start(&["answer-1-start"]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let joined = system.publish().await;
    assert_eq!(
        system.follow(joined).await.finish().await.event_type,
        EventType::Joined
    );
    let dead = ask_about(&system, "why?", "no id").await;
    assert_eq!(
        system.follow(dead).await.finish().await.event_type,
        EventType::SessionFailed
    );
    let over = publish_alert(
        &system,
        r#"{"alertname": "Other", "status": "resolved"}"#,
        json!({}),
    )
    .await;
    assert_eq!(
        system.follow(over).await.finish().await.event_type,
        EventType::SessionCompleted
    );

    let long = "a".repeat(16_385);
    let (session, joined) = (session.to_string(), joined.to_string());
    for (id, question, why) in [
        (session.as_str(), "why?", "is not over yet: tarsy watch"),
        (&joined, "why?", "asks about that one"),
        (
            &dead.to_string(),
            "why?",
            "was given up and not investigated: tarsy dead-letters show",
        ),
        (&over.to_string(), "why?", "was not investigated"),
        (&Uuid::now_v7().to_string(), "why?", "no worker has seen"),
        ("ffffffff", "why?", "no session has ffffffff"),
        (&session, " ", "the question is empty"),
        (&session, "-", "the question is empty"),
        (&session, &long, "at most 16384 bytes"),
    ] {
        let refused = run(&system, &["ask", id, question]).await.exits(1);
        assert!(
            refused.err.contains(why) && refused.out.is_empty(),
            "{why}: {refused:?}"
        );
    }
    run(&system, &["ask", &session]).await.exits(2);
    assert_eq!(system.database.number("SELECT count(*) FROM alerts"), 4);
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_without_a_valid_parent_becomes_a_dead_letter_with_its_reason() {
    let mut system = TestSystem::start(&["answer-1-start"]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let joined = system.publish().await;
    assert_eq!(
        system.follow(joined).await.finish().await.event_type,
        EventType::Joined
    );
    let unknown = Uuid::now_v7().to_string();
    for (parent, why) in [
        ("password=zebra-crossing-42", "which is no session id"),
        ("", "which is no session id"),
        (&unknown, "there is no such session"),
        (&joined.to_string(), "there is no such session"),
        (&session.to_string(), "is not over yet"),
    ] {
        let id = ask_about(&system, "why?", parent).await;
        let end = system.follow(id).await.finish().await;
        assert_eq!(
            (end.event_type, &end.metadata["dead_letter"]),
            (EventType::SessionFailed, &json!("invalid_parent"))
        );
        assert!(
            end.content.contains(why) && !end.content.contains("zebra"),
            "{}",
            end.content
        );
    }
    system.gates.open_all();
    held.open().await;
    assert_eq!(
        system.follow(session).await.finish().await.event_type,
        EventType::SessionCompleted
    );
    for (body, reason) in [
        (&"a".repeat(20_000), "too_large"),
        (&" \n".to_owned(), "empty"),
    ] {
        let id = ask_about(&system, body, &session.to_string()).await;
        assert_eq!(
            system.follow(id).await.finish().await.metadata["dead_letter"],
            reason
        );
    }
    // The subject makes a message a question, even if its body is that of an alert.
    let id = ask_about(
        &system,
        r#"{"status": "resolved", "text": "why?"}"#,
        &format!(" {session} "),
    )
    .await;
    assert_eq!(
        system.follow(id).await.finish().await.event_type,
        EventType::SessionCompleted
    );
    assert_eq!(
        stored(&system, id).await[1].content,
        r#"{"status": "resolved", "text": "why?"}"#
    );
}

async fn ask_about(system: &TestSystem, body: &str, parent: &str) -> SessionId {
    let (session, question) = message(body, json!({PARENT_ID: parent}));
    system
        .connect()
        .await
        .publish_question(question)
        .await
        .unwrap();
    session
}

async fn publish_alert(system: &TestSystem, body: &str, headers: Value) -> SessionId {
    let (session, alert) = message(body, headers);
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

fn message(body: &str, mut headers: Value) -> (SessionId, NewAlert) {
    let session = SessionId(Uuid::now_v7());
    headers[SESSION_ID] = session.to_string().into();
    (
        session,
        NewAlert {
            priority: Priority::High,
            suffix: None,
            body: body.as_bytes().to_vec(),
            headers,
        },
    )
}
