//! Sub-agents in real processes: the worker is killed while two of them run, and their session is cancelled.

use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::EventType;

use super::survive::settled;
use crate::support::gates::Arrived;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem, Timeline};

const CHAIN: &str = "
agents:
  lead: {mcp_servers: [], agents: [logs, db]}
  logs: {description: Finds what a log shows., tools: ['drill.describe_pod']}
  db: {description: Finds what a database shows., tools: ['drill.describe_pod']}
agent_chains: {look: {stages: [{name: look, agents: [{name: lead}]}]}}
";
const CALL: &str = "call: {tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p}}";

/// A session whose sub-agents wait, each before its second answer, and the worker that runs it.
struct Dispatched {
    system: TestSystem,
    session: SessionId,
    timeline: Timeline,
    worker: Tarsy,
    waiting: [Arrived; 2],
}

async fn dispatched() -> Dispatched {
    let transcript = |agent: &str, answers: &str| {
        format!("name: {agent}\nmatch: KubePodOOMKilled\nagent: {agent}\nanswers:\n{answers}")
    };
    let calls = ["logs", "db"].map(|agent| {
        format!(
            "{{call: {{tool: tarsy.dispatch_agent, arguments: {{agent: {agent}, task: Look.}}}}}}"
        )
    });
    let looks = |agent: &str| {
        format!(
            "  - chunks: [{CALL}]\n  - chunks: [gate: {agent}, text: \"Found: the limit is low [[*]]\"]\n"
        )
    };
    let transcripts = [
        transcript(
            "lead",
            &format!(
                "  - chunks: [{}]\n  - chunks: [text: \"Cause: the limit [[logs:1]]\\nEvidence:\\n- it is low [[logs:1]]\"]\n",
                calls.join(", ")
            ),
        ),
        transcript("logs", &looks("logs")),
        transcript("db", &looks("db")),
    ];
    let transcripts = transcripts.each_ref().map(String::as_str);
    let setup = Setup {
        watched: &["logs", "db"],
        sections: CHAIN,
        transcripts: &transcripts,
        ..Setup::default()
    };
    let mut system = TestSystem::start_with(setup).await;
    let session = system.publish().await;
    let timeline = system.follow(session).await;
    let worker = system.worker("w1").await.0;
    let waiting = [system.gates.next().await, system.gates.next().await];
    Dispatched {
        system,
        session,
        timeline,
        worker,
        waiting,
    }
}

/// The sub-agents of a session: agent, status and answer, in the order of the results.
fn sub_agents(system: &TestSystem, session: SessionId) -> String {
    system.database.text(&format!(
        "SELECT coalesce(string_agg(e.agent || ' ' || e.status || ' ' || n.content, ', ' ORDER BY n.entry_no), '')
         FROM agent_executions e
         JOIN entries n ON n.session_id = e.session_id AND n.execution_id = e.parent_execution_id
           AND n.tool_call_id = e.parent_call_id AND n.kind = 'tool_result'
         WHERE e.session_id = '{}' AND e.agent_no = 0",
        session.0
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_while_sub_agents_run_repeats_only_the_calls_in_flight() {
    let Dispatched {
        system,
        session,
        mut timeline,
        mut worker,
        waiting,
    } = dispatched().await;
    worker.kill().await;
    system.gates.open_all();
    for waiting in waiting {
        waiting.open().await;
    }

    let _second = system.worker("w2").await;
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    let found = sub_agents(&system, session);
    assert!(
        found.starts_with("logs completed Found: the limit is low [")
            && found.contains(", db completed Found: the limit is low ["),
        "{found}"
    );
    let begun: Vec<ExecutionId> = timeline
        .seen
        .iter()
        .filter(|event| event.event_type == EventType::AgentDispatched)
        .map(|event| {
            event.metadata["execution_id"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .map(ExecutionId)
        .collect();
    assert_eq!(begun.len(), 2, "each is dispatched once");
    for execution in begun {
        assert_eq!(system.model_calls_of(execution), [1, 2]);
    }
    let lead = ExecutionId::derive(session, 1, 1);
    assert_eq!(system.model_calls_of(lead), [1, 1]);
    let answers = system.database.number(&format!(
        "SELECT count(*) FROM llm_interactions WHERE session_id = '{}'",
        session.0
    ));
    assert_eq!(answers, 6, "every answer is stored once");
    assert_eq!(end.metadata["iterations"], 6);
    let mark = format!(
        "SELECT coalesce(mark, '') FROM alert_sessions WHERE session_id = '{}'",
        session.0
    );
    assert_eq!(
        system.database.text(&mark),
        "",
        "it cites what a sub-agent has seen"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_while_sub_agents_run_ends_all_of_them() {
    let Dispatched {
        system,
        session,
        mut timeline,
        worker: _worker,
        waiting,
    } = dispatched().await;
    let mut cancel = system.tarsy("cancel", &["sessions", "cancel", &session.to_string()]);
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCancelled);
    cancel.finished().await;
    system.gates.open_all();
    for waiting in waiting {
        waiting.open().await;
    }
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    let found = sub_agents(&system, session);
    let expected = ["logs", "db"].map(|agent| format!("{agent} cancelled the agent was cancelled"));
    assert_eq!(found, expected.join(", "));
}
