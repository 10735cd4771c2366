//! Tests of the differences between strategies: their requests and their timelines.

use std::sync::Arc;

use serde_json::{Value, json};

use super::control;
use crate::ports::RunStatus;
use crate::testing::{Scene, Turn};
use tarsy_core::execution::entry::{Entry, Role, StopReason};
use tarsy_core::plan::{FORMAT_VERSION, NativeTool, Strategy};
use tarsy_core::timeline::{DeltaKind, EventStatus, EventType};

async fn run(strategy: Strategy, max_iterations: u32, turns: Vec<Turn>) -> Scene {
    let scene = Scene::new(strategy, max_iterations, turns);
    go_on(&scene).await;
    scene
}

async fn go_on(scene: &Scene) {
    assert_eq!(super::run(scene, control()).await, Ok(()));
}

fn says(texts: &[&'static str]) -> Vec<Turn> {
    texts
        .iter()
        .map(|text| Turn::Says(text, vec![("x", "k8s.restart")]))
        .collect()
}

/// Type, content and a part of the metadata of every event of the execution: without the first and the last three.
fn shown(scene: &Scene) -> Vec<(EventType, String, Value)> {
    let disk = scene.disk();
    let count = disk.events.len();
    let events = disk.events.iter().skip(1).take(count - 4);
    let kept = [
        "source",
        "kind",
        "tool_name",
        "is_error",
        "warning",
        "forced_conclusion",
        "stop_reason",
    ];
    events
        .map(|event| {
            let is_error = event.event_type == EventType::Error;
            assert_eq!(event.status == EventStatus::Failed, is_error, "{event:?}");
            let metadata = event.metadata.as_object().into_iter().flatten();
            let metadata = metadata.filter(|(key, _)| kept.contains(&key.as_str()));
            let metadata = metadata
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            (
                event.event_type.clone(),
                event.content.clone(),
                Value::Object(metadata),
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_react_timeline_has_the_parsed_sections_and_never_the_raw_text() {
    let scene = run(
        Strategy::React,
        9,
        says(&[
            "Let me think.",
            "Thought: look\nAction: k8s.get\nAction Input: pod: a\n- b",
            "Thought: hm\nAction: k8s.got\nAction Input: {}",
            "Action: k8s.refused\nAction Input: {}",
            "Thought: enough\nFinal Answer: Cause: y",
        ]),
    )
    .await;
    let event = |event_type, content: &str, metadata| (event_type, content.to_owned(), metadata);
    let thought = |text| event(EventType::LlmThinking, text, json!({"source": "react"}));
    let call = |tool: &str, arguments, warning: Option<&str>| {
        let mut metadata = json!({"tool_name": tool});
        if let Some(warning) = warning {
            metadata["warning"] = warning.into();
        }
        event(EventType::LlmToolCall, arguments, metadata)
    };
    let result = |tool, content, is_error: bool| {
        event(
            EventType::ToolResult,
            content,
            json!({"tool_name": tool, "is_error": is_error}),
        )
    };
    let error = |kind, content| event(EventType::Error, content, json!({"kind": kind}));
    let expected = [
        error(
            "malformed",
            "The answer was not understood: it has none of the sections",
        ),
        thought("look"),
        call("k8s.get", "{\"pod\":\"a\"}", Some("not understood: - b")),
        result("k8s.get", "k8s.get says hello", false),
        thought("hm"),
        error(
            "unknown_tool",
            "The answer asks for an unknown tool 'k8s.got'",
        ),
        call("k8s.refused", "{}", None),
        result("k8s.refused", "k8s.refused says hello", true),
        thought("enough"),
        event(EventType::FinalAnalysis, "Cause: y", json!({})),
    ];
    assert_eq!(shown(&scene), expected);
    let deltas = scene.ports.feed.deltas.lock();
    assert!(
        deltas.len() == 5 && deltas.iter().all(|delta| delta.kind == DeltaKind::Raw),
        "{deltas:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_react_conversation_is_flat_and_offers_no_tools() {
    let scene = run(
        Strategy::React,
        9,
        says(&[
            "Hm.",
            "Action: k8s.get\nAction Input: {}",
            "Action: k8s.got\nAction Input: {}",
            "Final Answer: Cause: y",
        ]),
    )
    .await;
    let requests = scene.ports.model.requests.lock();
    assert!(requests.iter().all(|request| request.tools.is_empty()));
    let last = requests.last().unwrap();
    assert!(
        last.messages
            .iter()
            .all(|m| m.tool_calls.is_empty() && m.tool_call_id.is_none() && m.tool_name.is_none())
    );
    let shown: Vec<_> = last
        .messages
        .iter()
        .map(|m| (m.role, m.content.lines().next().unwrap()))
        .collect();
    let expected = [
        (Role::System, "You are an SRE."),
        (Role::User, "The disk is full."),
        (Role::Assistant, "Hm."),
        (
            Role::User,
            "Your response has none of the sections that are needed.",
        ),
        (Role::Assistant, "Action: k8s.get"),
        (Role::User, "Observation: [event 4]"),
        (Role::Assistant, "Action: k8s.got"),
        (
            Role::User,
            "Observation: Error - Unknown tool 'k8s.got'. Did you mean 'k8s.get'? Available tools:",
        ),
    ];
    assert_eq!(shown, expected);
    let tools = scene.ports.tools.calls.lock();
    assert_eq!(
        tools.iter().collect::<Vec<_>>(),
        [(&"call-2-1".to_owned(), &1)],
        "only the calls of known tools"
    );
}

#[tokio::test(start_paused = true)]
async fn a_forced_react_conclusion_falls_back_to_the_thought() {
    let look = "Thought: look\nAction: k8s.get\nAction Input: {}";
    let scene = run(
        Strategy::React,
        1,
        says(&[
            look,
            "Thought: Cause: likely z\nAction: k8s.get\nAction Input: {}",
        ]),
    )
    .await;
    let end = scene.disk().end.clone().unwrap();
    assert_eq!(
        (end.status, end.reason),
        (RunStatus::Completed, StopReason::MaxIterations)
    );
    assert_eq!(end.final_analysis.as_deref(), Some("Cause: likely z"));
    let last = shown(&scene).pop().unwrap();
    assert_eq!(
        last.2,
        json!({"forced_conclusion": true, "stop_reason": "max_iterations"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_forced_conclusion_has_no_tools_and_no_native_tools() {
    let scene = Scene::new(
        Strategy::NativeThinking,
        1,
        vec![Turn::Says("look", vec![("a", "k8s.get")])],
    );
    Arc::make_mut(&mut scene.disk().record.plan.stages[0].agents[0]).providers[0].native_tools =
        vec![NativeTool::GoogleSearch];
    go_on(&scene).await;
    let requests = scene.ports.model.requests.lock();
    let offered: Vec<_> = requests
        .iter()
        .map(|request| {
            (
                !request.tools.is_empty(),
                request.provider.native_tools.len(),
            )
        })
        .collect();
    assert_eq!(offered, [(true, 1), (false, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_forced_conclusion_declares_its_tools_where_calls_can_be_forbidden() {
    let scene = Scene::new(
        Strategy::NativeThinking,
        1,
        vec![Turn::Says("look", vec![("a", "k8s.get")])],
    );
    Arc::make_mut(&mut scene.disk().record.plan.stages[0].agents[0]).providers[0].keeps_tools =
        true;
    go_on(&scene).await;
    let requests = scene.ports.model.requests.lock();
    let [first, conclusion] = requests.as_slice() else {
        panic!("two calls")
    };
    assert_eq!(
        (&conclusion.declared_tools, conclusion.tools.len()),
        (&first.tools, 0)
    );
    assert!(!first.tools.is_empty() && first.declared_tools.is_empty());
    assert!(conclusion.messages.starts_with(&first.messages));
}

#[tokio::test(start_paused = true)]
async fn a_failed_react_call_is_an_observation_to_the_model() {
    let scene = run(
        Strategy::React,
        9,
        vec![Turn::Fails, Turn::Says("Final Answer: Cause: y", vec![])],
    )
    .await;
    let content =
        "Observation: Error from previous attempt: provider broke. Please try again.".to_owned();
    assert!(scene.journal().contains(&Entry::Feedback {
        content,
        about: None
    }));
}

#[tokio::test]
async fn a_synthesis_is_one_call_over_the_findings_of_the_stage_before() {
    let scene = Scene::new(
        Strategy::NativeThinking,
        9,
        vec![Turn::Says("Cause: found first", vec![])],
    );
    let mut stage = scene.disk().record.plan.stages[0].clone();
    stage.name = "put together".to_owned();
    Arc::make_mut(&mut stage.agents[0]).strategy = Strategy::Synthesis;
    scene.disk().record.plan.stages.push(stage);
    assert_eq!(scene.disk().record.plan.version, FORMAT_VERSION);
    go_on(&scene).await;
    let requests = scene.ports.model.requests.lock();
    let [_, request] = requests.as_slice() else {
        panic!("two calls")
    };
    assert!(request.tools.is_empty());
    let shown: Vec<_> = request
        .messages
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    let user = tarsy_core::prompt::with_context("The disk is full.", "Cause: found first");
    assert_eq!(shown, ["You are an SRE.", &user]);
    assert!(
        user.contains(
            "<!-- STAGE_CONTEXT_START -->\nCause: found first\n<!-- STAGE_CONTEXT_END -->"
        )
    );
    assert_eq!(
        scene.disk().end.as_ref().map(|end| end.status),
        Some(RunStatus::Completed)
    );
}
