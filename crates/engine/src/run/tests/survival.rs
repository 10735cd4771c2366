//! Tests of crashes: a worker dies before or after every write, and the next one ends with the same journal.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{control, draining, run};
use crate::ports::RunStatus;
use crate::run::control::{Control, Interrupted, ReleaseReason};
use crate::run::session::LeasedSession;
use crate::testing::{Death, Scene, Turn};
use tarsy_core::execution::entry::{Entry, Outcome, StopReason, ToolCall};
use tarsy_core::execution::results::lost;
use tarsy_core::plan::Strategy;
use tarsy_core::timeline::EventType;

/// Every kind of answer and failure, for every strategy.
pub(super) fn scripts() -> Vec<(Strategy, u32, Vec<Turn>)> {
    use Turn::{Fails, Says, TimesOut};
    let native = Strategy::NativeThinking;
    vec![
        (Strategy::SingleCall, 1, vec![Says("Cause: x", vec![])]),
        (Strategy::SingleCall, 1, vec![Fails]),
        (
            native,
            9,
            vec![Says(
                "looking",
                vec![
                    ("a", "k8s.get"),
                    ("b", "k8s.get"),
                    ("w", "k8s.restart"),
                    ("c", "k8s.get"),
                ],
            )],
        ),
        (
            native,
            9,
            vec![
                Says("", vec![("w", "k8s.restart"), ("v", "k8s.patch.lost")]),
                Says("Cause: y", vec![]),
            ],
        ),
        (
            native,
            9,
            vec![
                Fails,
                Says("again", vec![("a", "k8s.get")]),
                Fails,
                Says("Cause: z", vec![]),
            ],
        ),
        (native, 9, vec![TimesOut, TimesOut]),
        (native, 9, vec![Fails, Turn::Misconfigured]),
        (
            native,
            9,
            vec![TimesOut, Fails, TimesOut, Says("Cause: z", vec![])],
        ),
        (
            native,
            2,
            vec![
                Says("1", vec![("a", "k8s.get")]),
                Says("2", vec![("a", "k8s.get")]),
                Says("Cause: forced", vec![]),
            ],
        ),
        (native, 2, vec![Says("1", vec![("a", "k8s.get")]), Fails]),
        (
            native,
            9,
            vec![Says(
                "?",
                vec![
                    ("a", "no.such"),
                    ("b", "k8s.get"),
                    ("", "k8s.refused"),
                    ("l", "k8s.lost"),
                ],
            )],
        ),
        (
            native,
            9,
            vec![
                Says("", vec![]),
                Says("Cause: after an empty answer", vec![]),
            ],
        ),
        (native, 9, vec![Says("", vec![]); 4]),
        (
            native,
            9,
            vec![Says("", vec![("a", "k8s.get"), ("w", "k8s.restart")]); 6],
        ),
        (
            native,
            1,
            vec![
                Says("", vec![("a", "k8s.get")]),
                Says("", vec![]),
                Says("Cause: asked again", vec![]),
            ],
        ),
    ]
    .into_iter()
    .chain(react_scripts())
    .chain(synthesis_scripts())
    .collect()
}

const LOOK: &str = "Thought: look\nAction: k8s.get\nAction Input: {\"pod\": \"a\"}";
const TWO: &str = "Action: k8s.get\nAction Input: {\"pod\": \"a\"}\nAction: k8s.lost\nAction Input: {}\n\
    Action: get\nAction Input: {\"pod\": \"b\"}";
const TWO_WITH_A_CHANGE: &str =
    "Action: k8s.get\nAction Input: {}\nAction: k8s.restart\nAction Input: {}";
const FOUND: &str = "Thought: enough\nFinal Answer: Cause: y";

fn react_scripts() -> Vec<(Strategy, u32, Vec<Turn>)> {
    let says = |texts: &[&'static str]| {
        texts
            .iter()
            .map(|text| Turn::Says(text, vec![]))
            .collect::<Vec<_>>()
    };
    let scripts = vec![
        (9, says(&[LOOK, LOOK, FOUND])),
        (
            9,
            says(&["I do not know.", LOOK, "Thought: and now", FOUND]),
        ),
        (
            9,
            says(&[
                "Action: no.such\nAction Input: {}",
                LOOK,
                "Action: get\nAction Input: {}",
                FOUND,
            ]),
        ),
        (
            9,
            says(&["Thought: do\nAction: k8s.restart\nAction Input: {}", FOUND]),
        ),
        (
            9,
            says(&[
                "Action: k8s.patch.lost\nAction Input: {}",
                "Action: k8s.refused\nAction Input: {}",
                FOUND,
            ]),
        ),
        (9, says(&["Action: k8s.lost\nAction Input: n: 1", FOUND])),
        (9, says(&[TWO, TWO_WITH_A_CHANGE, FOUND])),
        (9, says(&["", FOUND])),
        (9, says(&["", "", "", FOUND])),
        (9, says(&[LOOK, LOOK, "Hm.", LOOK, LOOK, LOOK])),
        (
            2,
            says(&[
                LOOK,
                "Thought: again",
                "Thought: the rest\nAction: k8s.get\nAction Input: {}",
            ]),
        ),
        (2, says(&["no", "no", "no"])),
        (
            9,
            vec![
                Turn::TimesOut,
                Turn::Says(LOOK, vec![]),
                Turn::TimesOut,
                Turn::TimesOut,
            ],
        ),
        (
            9,
            vec![
                Turn::Fails,
                Turn::Says(LOOK, vec![("a", "k8s.get")]),
                Turn::Fails,
                Turn::Says(FOUND, vec![]),
            ],
        ),
        (1, vec![Turn::Fails]),
    ];
    scripts
        .into_iter()
        .map(|(limit, turns)| (Strategy::React, limit, turns))
        .collect()
}

fn synthesis_scripts() -> Vec<(Strategy, u32, Vec<Turn>)> {
    let empty = || Turn::Says("", vec![]);
    let turns = [
        vec![Turn::Says("Cause: both", vec![])],
        vec![empty()],
        vec![Turn::TimesOut],
        vec![Turn::Fails, empty(), Turn::TimesOut],
        vec![empty(), empty(), empty(), empty()],
    ];
    let of = |strategy| turns.clone().map(|turns| (strategy, 20, turns));
    [
        of(Strategy::Synthesis),
        of(Strategy::SynthesisNativeThinking),
    ]
    .concat()
}

/// Compares two journals, except for changing calls that were in flight at a crash and so are lost.
fn same_but_for_lost(journal: &[Entry], whole: &[Entry], calls: &[ToolCall]) -> bool {
    let without_facts = |entries: &[Entry]| -> Vec<Entry> {
        let mut entries = entries.to_vec();
        entries.retain(|entry| !matches!(entry, Entry::Lost { .. }));
        for entry in &mut entries {
            if let Entry::ToolResult(result) | Entry::Observation(result) = entry {
                let mut changing = calls.iter().filter(|call| !call.read_only);
                if changing.any(|call| call.id == result.call_id) {
                    result.content.clear();
                    result.is_error = true;
                }
            }
        }
        entries
    };
    without_facts(journal) == without_facts(whole)
}

pub(super) fn calls_of(entries: &[Entry]) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    for entry in entries {
        if let Entry::Answer(answer) = entry {
            calls.extend(answer.calls.clone());
        }
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_at_any_write_the_next_worker_ends_with_the_same_journal() {
    let mut kills = 0;
    for (strategy, limit, turns) in scripts() {
        let whole = Scene::new(strategy, limit, turns.clone());
        assert_eq!(run(&whole, control()).await, Ok(()));
        let journal = whole.journal();
        let writes = whole.disk().writes;
        let paid = *whole.ports.model.calls.lock();
        let calls = calls_of(&journal);
        let deaths = (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]);
        for death in deaths {
            let scene = Scene::new(strategy, limit, turns.clone());
            scene.disk().death = death;
            tokio::select! {
                biased;
                () = scene.ports.journal.died.notified() => {}
                ended = run(&scene, control()) => panic!("outlived {death:?}: {ended:?}"),
            }
            scene.disk().epoch += 1;
            scene.disk().death = Death::Never;
            if scene.disk().end.is_none() {
                assert_eq!(run(&scene, control()).await, Ok(()), "{turns:?} {death:?}");
            }
            kills += 1;
            assert!(
                same_but_for_lost(&scene.journal(), &journal, &calls),
                "{turns:?} {death:?}\n{:#?}",
                scene.journal()
            );
            assert!(
                *scene.ports.model.calls.lock() <= paid + 1,
                "at most one model call is paid twice: {death:?}"
            );
            for call in &calls {
                let sent = scene
                    .ports
                    .tools
                    .calls
                    .lock()
                    .get(&call.id)
                    .copied()
                    .unwrap_or(0);
                let usual = whole
                    .ports
                    .tools
                    .calls
                    .lock()
                    .get(&call.id)
                    .copied()
                    .unwrap_or(0);
                let limit = if call.read_only { usual * 2 } else { 1 };
                assert!(
                    sent <= limit,
                    "{} was sent {sent} times: {death:?}",
                    call.id
                );
            }
            assert_eq!(
                scene.disk().end.as_ref().map(|end| end.status),
                whole.disk().end.as_ref().map(|end| end.status)
            );
        }
    }
    assert!(kills > 100, "only {kills} kills");
}

#[tokio::test]
async fn a_lost_side_effect_is_reported_to_the_model_and_never_sent_again() {
    let turns = vec![
        Turn::Says("", vec![("v", "k8s.patch.lost")]),
        Turn::Says("Cause: unknown", vec![]),
    ];
    let scene = Scene::new(Strategy::NativeThinking, 9, turns);
    assert_eq!(run(&scene, control()).await, Ok(()));
    let journal = scene.journal();
    let call = calls_of(&journal).remove(0);
    assert!(
        journal
            .windows(2)
            .any(|pair| pair == lost(Strategy::NativeThinking, &call))
    );
    assert_eq!(scene.ports.tools.calls.lock().get("v"), Some(&1));
}

#[tokio::test]
async fn a_read_only_call_without_an_answer_is_sent_once_more() {
    let scene = Scene::new(
        Strategy::NativeThinking,
        9,
        vec![Turn::Says("", vec![("l", "k8s.lost")])],
    );
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(scene.ports.tools.calls.lock().get("l"), Some(&2));
}

#[tokio::test]
async fn a_superseded_worker_ends_without_a_write() {
    let scene = Scene::new(Strategy::NativeThinking, 9, vec![]);
    let stale = LeasedSession {
        ports: scene.ports.clone(),
        lease: scene.lease(),
        control: control(),
        opened: None,
        max_open: 1_000,
    };
    scene.disk().epoch = 2;
    assert_eq!(stale.run().await, Err(Interrupted::LeaseLost));
    assert_eq!(scene.disk().writes, 0);
}

#[tokio::test(start_paused = true)]
async fn two_timeouts_in_a_row_end_an_execution_and_an_iteration_has_its_own_time() {
    let scene = Scene::new(
        Strategy::NativeThinking,
        9,
        vec![Turn::NeverAnswers, Turn::NeverAnswers],
    );
    let began = Instant::now();
    assert_eq!(run(&scene, control()).await, Ok(()));
    let pause = began
        .elapsed()
        .saturating_sub(Duration::from_secs(120 + 120));
    let range = Duration::from_millis(500)..=Duration::from_millis(1_010);
    assert!(
        range.contains(&pause),
        "two calls and the pause between them: {pause:?}"
    );
    let error =
        "aborted after 2 consecutive timeouts (iteration 3/9): no answer within 120 s".to_owned();
    let outcome = Outcome::Failed {
        error,
        reason: StopReason::Timeouts,
    };
    assert_eq!(scene.journal().last(), Some(&Entry::Ended { outcome }));
    let end = scene.disk().end.clone().unwrap();
    assert_eq!(
        (end.status, end.reason),
        (RunStatus::Failed, StopReason::Timeouts)
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_call_in_flight_and_the_session_as_timed_out() {
    let scene = Scene::new(Strategy::NativeThinking, 9, vec![Turn::NeverAnswers]);
    let control = control();
    let deadline = async {
        tokio::time::sleep(Duration::from_secs(30)).await; // paused time
        control.stop(StopReason::Deadline);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = run(&scene, control.clone()) => assert_eq!(ended, Ok(())),
        () = deadline => {}
    }
    let end = scene.disk().end.clone().unwrap();
    assert_eq!(
        (end.status, end.reason, end.event.event_type),
        (
            RunStatus::TimedOut,
            StopReason::Deadline,
            EventType::SessionTimedOut
        )
    );
}

#[tokio::test]
async fn a_draining_worker_finishes_its_call_and_begins_no_other() {
    let scene = Scene::new(
        Strategy::NativeThinking,
        9,
        vec![Turn::Says("", vec![("a", "k8s.get")])],
    );
    let drain = CancellationToken::new();
    drain.cancel();
    assert_eq!(
        run(&scene, draining(drain)).await,
        Err(Interrupted::Release(ReleaseReason::Drain))
    );
    assert_eq!(*scene.ports.model.calls.lock(), 0);
    assert!(
        scene.journal().len() == 2,
        "the opening prompt is committed"
    );
}

#[tokio::test]
async fn the_timeline_shows_an_investigation_in_order() {
    let turns = vec![
        Turn::Says("let me look", vec![("a", "k8s.get"), ("b", "k8s.refused")]),
        Turn::Says("Cause: z", vec![]),
    ];
    let scene = Scene::new(Strategy::NativeThinking, 9, turns);
    assert_eq!(run(&scene, control()).await, Ok(()));
    let emitted: Vec<_> = scene
        .disk()
        .events
        .iter()
        .map(|event| event.event_type.clone())
        .collect();
    use EventType::*;
    let expected = [
        StageStarted,
        LlmResponse,
        LlmToolCall,
        LlmToolCall,
        ToolResult,
        ToolResult,
        FinalAnalysis,
        StageCompleted,
        ExecutiveSummary,
        SessionCompleted,
    ];
    assert_eq!(emitted, expected);
    let deltas: Vec<_> = scene
        .ports
        .feed
        .deltas
        .lock()
        .iter()
        .map(|d| (d.iteration, d.offset, d.delta.clone()))
        .collect();
    assert_eq!(
        deltas,
        [
            (1, 0, "let me look".to_owned()),
            (2, 0, "Cause: z".to_owned())
        ]
    );
}

#[tokio::test]
async fn a_permanent_error_ends_the_execution_at_once_with_one_event() {
    let scene = Scene::new(Strategy::NativeThinking, 9, vec![Turn::Misconfigured]);
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(*scene.ports.model.calls.lock(), 1);
    let errors = scene
        .disk()
        .events
        .iter()
        .filter(|event| event.event_type == EventType::Error)
        .count();
    let end = scene.disk().end.clone().unwrap();
    assert_eq!(
        (errors, end.status, end.error.as_deref()),
        (1, RunStatus::Failed, Some("no such backend"))
    );
}

#[tokio::test(start_paused = true)]
async fn no_tool_call_is_sent_when_the_lease_was_not_renewed_for_too_long() {
    let sent = async |calls: Vec<(&'static str, &'static str)>| {
        let scene = Scene::new(Strategy::NativeThinking, 9, vec![Turn::Says("", calls)]);
        *scene.ports.tools.call_duration.lock() = Duration::from_secs(25);
        let control = Control::new(
            Instant::now(),
            Duration::from_secs(20),
            CancellationToken::new(),
        );
        let late = ReleaseReason::StoreUnavailable("no renewal for 25 s".to_owned());
        assert_eq!(run(&scene, control).await, Err(Interrupted::Release(late)));
        scene.ports.tools.calls.lock().values().sum::<u32>()
    };
    assert_eq!(
        sent(vec![("w", "k8s.restart")]).await,
        1,
        "a call that was not sent is not repeated"
    );
    let ids = "abcdefghijklmnopq".split("").filter(|id| !id.is_empty());
    assert_eq!(
        sent(ids.map(|id| (id, "k8s.get")).collect()).await,
        16,
        "the last call waits until another one has ended"
    );
}
