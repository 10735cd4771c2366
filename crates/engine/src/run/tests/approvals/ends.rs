//! Tests of each end of a request, and of what the model gets.

use super::*;
use crate::ports::ToolMatch;
use tarsy_core::execution::approvals::CHANGES_FROZEN;
use tarsy_core::execution::entry::StopReason;
use tarsy_core::timeline::EventType;

fn one_change() -> Vec<Turn> {
    vec![
        Turn::Says("restart it", vec![("a", "k8s.get"), ("w", "k8s.restart")]),
        Turn::Says("Cause: y", vec![]),
    ]
}

/// The scene after its one change has this end.
async fn ended_by(act: Act) -> Scene {
    let scene = scene(Strategy::NativeThinking, one_change());
    assert_eq!(drive(&scene, &people(&[("w", act)])).await, 1);
    scene
}

#[tokio::test(start_paused = true)]
async fn a_call_is_sent_once_after_its_approval_and_never_after_another_end() {
    use ApprovalOutcome::{Approved, Denied, DeniedSession, Expired, Frozen, Lapsed};
    let cases = [
        (Act::Approve, Approved, 1, "k8s.restart says hello"),
        (Act::Deny, Denied, 0, "a person denied this call"),
        (
            Act::DenyAll,
            DeniedSession,
            0,
            "denied every call of k8s.restart",
        ),
        (
            Act::Sleep,
            Expired,
            0,
            "no person decided about this call within 4 h",
        ),
        (
            Act::ApproveTooEarly,
            Lapsed,
            0,
            "the approval was older than 15 min",
        ),
        (
            Act::ApproveInFreeze,
            Frozen,
            0,
            "operators have frozen all changes",
        ),
    ];
    for (act, outcome, times, words) in cases {
        let scene = ended_by(act).await;
        assert_eq!(
            outcomes(&scene.disk()),
            [("w".to_owned(), outcome)],
            "{act:?}"
        );
        assert_eq!(sent(&scene, "w"), times, "{act:?}");
        assert!(
            result(&scene, "w").contains(words),
            "{act:?}: {}",
            result(&scene, "w")
        );
        assert!(scene.disk().end.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_lies_between_an_approval_and_the_start_of_its_call() {
    let scene = ended_by(Act::Approve).await;
    let journal = scene.journal();
    let started = journal
        .iter()
        .position(|entry| matches!(entry, Entry::Started { .. }));
    let before = &journal[started.unwrap() - 1];
    let Entry::ApprovalEnded(ended) = before else {
        panic!("{before:?}")
    };
    assert_eq!(
        (ended.outcome, ended.by.as_slice()),
        (ApprovalOutcome::Approved, ["ana".to_owned()].as_slice())
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_expires_forces_the_conclusion_where_the_policy_says_so() {
    let concludes = ApprovalRule {
        on_timeout: OnTimeout::Conclude,
        ..rule()
    };
    let scene = scene_with(concludes, Strategy::NativeThinking, one_change());
    assert_eq!(drive(&scene, &people(&[("w", Act::Sleep)])).await, 1);
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), ApprovalOutcome::Expired)]
    );
    let end = scene.disk().end.clone().unwrap();
    assert_eq!(end.reason, StopReason::ApprovalExpired);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_has_changed_since_the_plan_is_not_called() {
    let scene = scene(Strategy::NativeThinking, one_change());
    *scene.ports.tools.matches.lock() = ToolMatch::Changed;
    drive(&scene, &People::new()).await;
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), ApprovalOutcome::ToolChanged)]
    );
    assert_eq!(sent(&scene, "w"), 0);
    assert!(result(&scene, "w").contains("the tool has changed"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_asked_again_until_the_approval_lapses() {
    let scene = scene(Strategy::NativeThinking, one_change());
    *scene.ports.tools.matches.lock() = ToolMatch::Unavailable("no connection".to_owned());
    drive(&scene, &People::new()).await;
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), ApprovalOutcome::Lapsed)]
    );
    assert_eq!(sent(&scene, "w"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_denial_for_the_session_ends_later_calls_of_the_tool_without_asking() {
    let turns = vec![
        Turn::Says("", vec![("v", "k8s.restart"), ("w", "k8s.restart")]),
        Turn::Says("", vec![("x", "k8s.restart")]),
        Turn::Says("Cause: y", vec![]),
    ];
    let scene = scene(Strategy::NativeThinking, turns);
    drive(&scene, &people(&[("v", Act::DenyAll)])).await;
    let denied = |call: &str| (call.to_owned(), ApprovalOutcome::DeniedSession);
    assert_eq!(
        outcomes(&scene.disk()),
        [denied("v"), denied("w"), denied("x")]
    );
    assert_eq!(
        scene.disk().requests.len(),
        2,
        "the last one is not asked about"
    );
    assert_eq!(["v", "w", "x"].map(|call| sent(&scene, call)), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_freeze_holds_for_changing_calls_without_a_rule_and_costs_others_nothing() {
    let scene = Scene::new(Strategy::NativeThinking, 9, one_change());
    scene.disk().is_frozen = true;
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!([sent(&scene, "a"), sent(&scene, "w")], [1, 0]);
    assert!(result(&scene, "w").contains(CHANGES_FROZEN));
    assert_eq!(scene.disk().outcome_reads, 1);
    let journal = scene.journal();
    let mut entries = journal.iter();
    assert!(!entries.any(|entry| matches!(entry, Entry::Started { .. })));

    let reads = vec![
        Turn::Says("", vec![("a", "k8s.get")]),
        Turn::Says("Cause: y", vec![]),
    ];
    let scene = Scene::new(Strategy::NativeThinking, 9, reads);
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(scene.disk().outcome_reads, 0);
}

#[tokio::test(start_paused = true)]
async fn the_model_gets_the_words_of_a_person_before_its_next_answer() {
    let scene = ended_by(Act::Deny).await;
    let requests = scene.ports.model.requests.lock();
    let last = requests.last().unwrap().messages.last().unwrap();
    assert!(last.content.contains("not at noon"), "{}", last.content);
    drop(requests);
    let disk = scene.disk();
    let events = disk.events.iter().map(|event| &event.event_type);
    let waits = events.filter(|event| **event == EventType::SessionWaiting);
    assert_eq!(waits.count(), 1);
}
