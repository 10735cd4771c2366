//! A second look in real processes: the worker is killed while it runs, and it is cancelled.

use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventType, TimelineEvent};

use super::survive::settled;
use crate::support::gates::Arrived;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem, Timeline};

const CHAIN: &str = "
agents: {sre: {}}
agent_chains: {look: {review: {when: [always]}, stages: [{name: look, agents: [{name: sre}]}]}}
";
const CALL: &str = "call: {tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p}}";
const FOUND: &str = "Cause: the limit";

/// A session whose review waits for its conclusion, and the worker that runs it.
struct Reviewed {
    system: TestSystem,
    session: SessionId,
    timeline: Timeline,
    worker: Tarsy,
    waiting: Arrived,
}

async fn in_review() -> Reviewed {
    let transcript = |agent: &str, answers: &str| {
        format!("name: {agent}\nmatch: KubePodOOMKilled\nagent: {agent}\nanswers:\n{answers}")
    };
    let transcripts = [
        transcript(
            "sre",
            &format!(
                "  - chunks: [{CALL}]\n  - chunks: [text: \"{FOUND} [[*]]\\nSure: certain\\nEvidence:\\n- it is low [[*]]\"]\n"
            ),
        ),
        transcript(
            "reviewer",
            &format!(
                "  - chunks: [{CALL}]\n  - chunks: [gate: review, text: \"Verdict: weakened\\nWhy: <b>one</b> fact\"]\n"
            ),
        ),
    ];
    let transcripts = transcripts.each_ref().map(String::as_str);
    let setup = Setup {
        watched: &["review"],
        sections: CHAIN,
        transcripts: &transcripts,
        ..Setup::default()
    };
    let mut system = TestSystem::start_with(setup).await;
    let session = system.publish().await;
    let timeline = system.follow(session).await;
    let worker = system.worker("w1").await.0;
    let waiting = system.gates.next().await;
    Reviewed {
        system,
        session,
        timeline,
        worker,
        waiting,
    }
}

/// Verdict, mark and analysis of a session, as the table has them.
fn stored(system: &TestSystem, session: SessionId) -> [String; 3] {
    ["review ->> 'verdict'", "mark", "final_analysis"].map(|column| {
        system.database.text(&format!(
            "SELECT coalesce({column}, '') FROM alert_sessions WHERE session_id = '{}'",
            session.0
        ))
    })
}

fn review_in(event: &TimelineEvent) -> &str {
    event.metadata["review"]["verdict"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_a_review_repeats_only_the_call_in_flight() {
    let Reviewed {
        system,
        session,
        mut timeline,
        mut worker,
        waiting,
    } = in_review().await;
    worker.kill().await;
    system.gates.open_all();
    waiting.open().await;

    let _second = system.worker("w2").await;
    let end = timeline.finish().await;
    assert_eq!(
        (end.event_type.clone(), review_in(&end)),
        (EventType::SessionCompleted, "weakened")
    );
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    let calls = |stage_no| system.model_calls_of(ExecutionId::derive(session, stage_no, 1));
    assert_eq!((calls(1), calls(2)), (vec![1, 1], vec![1, 2]));

    let [verdict, mark, analysis] = stored(&system, session);
    assert_eq!((verdict.as_str(), mark.as_str()), ("weakened", "weakened"));
    assert!(
        analysis.starts_with(FOUND) && analysis.contains("\nSure: likely\n"),
        "{analysis}"
    );
    assert!(
        analysis.ends_with("\n> Why: <b>one</b> fact\n"),
        "{analysis}"
    );
    let mut show = system.tarsy(
        "show",
        &["sessions", "show", &session.to_string(), "--json"],
    );
    assert_eq!(show.finished().await.0, 0, "{}", show.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_during_a_review_leaves_a_completed_session() {
    let Reviewed {
        system,
        session,
        mut timeline,
        worker: _worker,
        waiting,
    } = in_review().await;
    let mut cancel = system.tarsy("cancel", &["sessions", "cancel", &session.to_string()]);
    let end = timeline.finish().await;
    assert_eq!(
        (end.event_type.clone(), review_in(&end)),
        (EventType::SessionCompleted, "failed")
    );
    cancel.finished().await;
    system.gates.open_all();
    waiting.open().await;
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    let [verdict, mark, analysis] = stored(&system, session);
    assert_eq!((verdict.as_str(), mark.as_str()), ("failed", ""));
    assert!(
        analysis.starts_with(FOUND) && !analysis.contains("Second look"),
        "{analysis}"
    );
}
