//! Tests of the lines in the log: each has the ids of its session and execution, also without spans.

use super::{control, run};
use crate::run::instruments::{self, Ids};
use crate::testing::written::Written;
use crate::testing::{Scene, Turn};
use tarsy_core::execution::entry::Entry;
use tarsy_core::execution::state::State;
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::Strategy;

fn assert_all(line: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| line.contains(part)), "{line}");
}

const SESSION: &str = "session_id=00000000-0000-0000-0000-000000000007";

#[tokio::test(start_paused = true)]
async fn each_batch_of_calls_and_each_forced_conclusion_has_its_line() {
    let calls = vec![
        ("a", "k8s.get"),
        ("b", "k8s.refused"),
        ("v", "k8s.patch.lost"),
        ("c", "k8s.get"),
    ];
    let scene = Scene::new(Strategy::NativeThinking, 1, vec![Turn::Says("look", calls)]);
    let (written, _guard) = Written::begin();
    assert_eq!(run(&scene, control()).await, Ok(()));
    let execution = format!(
        "execution_id={}",
        scene.disk().record.stages[0].executions[0].execution_id
    );
    let batches = written.lines("tool calls ended");
    let ended = [
        "iteration=1 done=1 failed=1 lost=0 not_sent=0",
        "iteration=1 done=0 failed=0 lost=1 not_sent=0",
        "iteration=1 done=1 failed=0 lost=0 not_sent=0",
    ];
    assert_eq!(batches.len(), ended.len(), "{batches:#?}");
    for (line, ended) in batches.iter().zip(ended) {
        assert_all(line, &["INFO", SESSION, &execution, ended]);
    }
    let [forced] = &written.lines("conclusion forced")[..] else {
        panic!("not one line")
    };
    assert_all(
        forced,
        &[
            "WARN",
            SESSION,
            &execution,
            "reason=\"max_iterations\"",
            "iterations=1",
            "max_iterations=1",
        ],
    );
    assert_eq!(written.lines("iteration ended").len(), 2);
}

#[test]
fn a_shortened_conversation_is_logged_with_its_ids() {
    let scene = Scene::new(Strategy::NativeThinking, 9, vec![]);
    let plan = scene.disk().record.plan.stages[0].agents[0].clone();
    let state = State::replay(plan, None, Vec::<Entry>::new());
    let ids = Ids {
        session_id: scene.session,
        execution_id: ExecutionId::derive(scene.session, 1, 1),
    };
    let (written, _guard) = Written::begin();
    instruments::facts(
        ids,
        &state,
        &[
            Entry::elided(7),
            Entry::Feedback {
                content: String::new(),
                about: None,
            },
        ],
    );
    let [line] = &written.lines("conversation shortened")[..] else {
        panic!("not one line")
    };
    assert_all(
        line,
        &[
            "INFO",
            SESSION,
            &format!("execution_id={}", ids.execution_id),
            "up_to=7",
        ],
    );
}
