//! Parallel agents in real processes: killed while only one has completed, and cancelled.

use std::collections::BTreeMap;

use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_engine::ports::RunStatus;

use crate::faults::survive::settled;
use crate::support::system::{Setup, TestSystem, Timeline};

/// Two parallel agents, followed by the built-in synthesis.
const TEAM: &str = "
agents: {fast: {}, slow: {}}
agent_chains: {team: {stages: [{name: look, agents: [{name: fast}, {name: slow}]}]}}
";
const CALL: &str = "call: {tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8c6b5-x2x9p}}";

fn transcripts() -> [String; 3] {
    let transcript = |agent: &str, answers: &str| {
        format!("name: team\nmatch: KubePodOOMKilled\nagent: {agent}\nanswers:\n{answers}")
    };
    [
        transcript(
            "fast",
            &format!(
                "  - chunks: [{CALL}]\n  - chunks: [gate: fast-thinks, text: 'Cause: limit [[*]]']\n"
            ),
        ),
        transcript(
            "slow",
            &format!(
                "  - chunks: [{CALL}]\n  - chunks: [gate: slow-thinks, text: 'Cause: heap [[*]]']\n"
            ),
        ),
        transcript(
            "synthesis",
            "  - chunks: [text: 'Cause: heap above limit']\n",
        ),
    ]
}

async fn team(watched: &[&str]) -> (TestSystem, SessionId, Timeline) {
    let transcripts = transcripts();
    let transcripts = transcripts.each_ref().map(String::as_str);
    let setup = Setup {
        watched,
        sections: TEAM,
        transcripts: &transcripts,
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let session = system.publish().await;
    let timeline = system.follow(session).await;
    (system, session, timeline)
}

/// The numbers of each execution's events.
fn numbers(seen: &[TimelineEvent]) -> Vec<Vec<u32>> {
    let mut numbers: BTreeMap<ExecutionId, Vec<u32>> = BTreeMap::new();
    for event in seen {
        if let Some((execution, number)) = event.execution_id.zip(event.sequence_number) {
            numbers.entry(execution).or_default().push(number);
        }
    }
    numbers.into_values().collect()
}

fn status_of(system: &TestSystem, table: &str, session: SessionId) -> String {
    system.database.text(&format!(
        "SELECT coalesce(string_agg(status, ' '), '') FROM (SELECT status FROM {table} WHERE session_id = '{}') x",
        session.0
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_beside_a_completed_agent_repeats_only_the_unfinished_call() {
    let (mut system, session, mut timeline) = team(&["slow-thinks"]).await;
    let (mut first, _) = system.worker("w1").await;
    let waiting = system.gates.next().await;
    let found = timeline.until(EventType::FinalAnalysis).await;
    assert_eq!(found.agent.as_deref(), Some("fast"));
    first.kill().await;
    system.gates.open_all();
    waiting.open().await;

    let (_second, _) = system.worker("w2").await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    let seen = std::mem::take(&mut timeline.seen);
    settled(&system, session).await;
    system.assert_invariants(session, &seen).await;

    let calls = |stage_no, agent_no| {
        system.model_calls_of(ExecutionId::derive(session, stage_no, agent_no))
    };
    assert_eq!(
        calls(1, 1),
        [1, 1],
        "the completed agent makes no further call"
    );
    assert_eq!(calls(1, 2), [1, 2], "the call in flight is made again");
    assert_eq!(calls(2, 1), [1]);
    let analyses = seen
        .iter()
        .filter(|event| event.event_type == EventType::FinalAnalysis);
    let without_source = |text: &str| text.split(" [").next().unwrap().to_owned();
    let analyses: Vec<_> = analyses
        .map(|event| (event.agent.clone().unwrap(), without_source(&event.content)))
        .collect();
    let expected = [
        ("fast", "Cause: limit"),
        ("slow", "Cause: heap"),
        ("synthesis", "Cause: heap above limit"),
    ];
    assert_eq!(
        analyses,
        expected.map(|(agent, analysis)| (agent.to_owned(), analysis.to_owned()))
    );
    for numbers in numbers(&seen) {
        assert_eq!(
            numbers,
            (1..=u32::try_from(numbers.len()).unwrap()).collect::<Vec<_>>()
        );
    }
    let prompt = format!(
        "SELECT content FROM entries WHERE session_id = '{}' AND execution_id = '{}' AND kind = 'prompt' AND entry_no = 2",
        session.0,
        ExecutionId::derive(session, 2, 1)
    );
    let stored = system.database.text(&prompt);
    let parts = [
        "<!-- STAGE_CONTEXT_START -->\n### fast\n\nCause: limit [",
        "]\n\n### slow\n\nCause: heap [",
    ];
    assert!(parts.iter().all(|part| stored.contains(part)), "{stored}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_two_agents_in_their_calls_their_stage_and_the_session() {
    let (mut system, session, mut timeline) = team(&["slow-thinks", "fast-thinks"]).await;
    let (_worker, _) = system.worker("w1").await;
    let both = [system.gates.next().await, system.gates.next().await];
    let mut cancel = system.tarsy("cancel", &["sessions", "cancel", &session.to_string()]);
    assert_eq!(cancel.finished().await.0, 0, "{}", cancel.log());
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCancelled
    );
    system.gates.open_all();
    for waiting in both {
        waiting.open().await;
    }
    let cancelled = RunStatus::Cancelled.as_str();
    assert_eq!(
        status_of(&system, "agent_executions", session),
        format!("{cancelled} {cancelled}")
    );
    assert_eq!(status_of(&system, "stages", session), cancelled);
    assert_eq!(status_of(&system, "alert_sessions", session), cancelled);
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
}
