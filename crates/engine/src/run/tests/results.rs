//! Tests of long results: summaries, and the built-in tool that reads results again. Crashes change neither.

use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use uuid::Uuid;

use super::{control, run};
use crate::ports::{ModelRequest, Past, RunStatus};
use crate::run::control::{Interrupted, ReleaseReason};
use crate::testing::{Death, Scene, Turn};
use tarsy_core::alert::Severity;
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::entry::{Entry, Summary, Usage};
use tarsy_core::ids::SessionId;
use tarsy_core::past::{self, PastSession, Relation};
use tarsy_core::plan::{PastPlan, PastScope, ProviderPlan, Strategy, SummaryPlan};
use tarsy_core::read_result;
use tarsy_core::timeline::{EventStatus, EventType};

/// An agent whose results of more than five tokens are summarised by the model `cheap`, which answers so.
fn scene(strategy: Strategy, turns: Vec<Turn>, summary: Turn) -> Scene {
    let scene = Scene::new(strategy, 9, turns);
    {
        let mut disk = scene.disk();
        let agent = Arc::make_mut(&mut disk.record.plan.stages[0].agents[0]);
        let provider = ProviderPlan {
            name: "cheap".to_owned(),
            model: "cheap".to_owned(),
            ..agent.providers[0].clone()
        };
        agent.summaries = Some(SummaryPlan {
            provider,
            over_tokens: [("k8s".to_owned(), 5)].into(),
        });
        agent.tools.push(read_result::spec());
    }
    scene
        .ports
        .model
        .others
        .lock()
        .insert("cheap".to_owned(), vec![summary]);
    scene
}

fn look(calls: Vec<(&'static str, &'static str)>) -> Vec<Turn> {
    vec![Turn::Says("I look.", calls), Turn::Says("Cause: y", vec![])]
}

fn requests(scene: &Scene, model: &str) -> Vec<ModelRequest> {
    scene
        .ports
        .model
        .requests
        .lock()
        .iter()
        .filter(|request| request.provider.model == model)
        .cloned()
        .collect()
}

fn summaries(scene: &Scene) -> Vec<Summary> {
    let mut summaries = Vec::new();
    for entry in scene.journal() {
        if let Entry::Summarised(summary) = entry {
            summaries.push(summary);
        }
    }
    summaries
}

#[tokio::test]
async fn a_long_result_is_summarised_and_the_summary_is_counted() {
    let calls = vec![("a", "k8s.get"), ("b", "k8s.refused"), ("c", "k8s.get")];
    let scene = scene(
        Strategy::NativeThinking,
        look(calls),
        Turn::Says("3 pods", vec![("x", "k8s.get")]),
    );
    assert_eq!(run(&scene, control()).await, Ok(()));
    let shown: Vec<String> = requests(&scene, "m")
        .pop()
        .unwrap()
        .messages
        .into_iter()
        .map(|m| m.content)
        .collect();
    let summary = "    [a summary of the result by a model; tarsy.read_result shows the whole result]\n    3 pods";
    let refused = "[event 7]\n    k8s.refused says hello";
    let a = "[event 6]\n";
    let c = "[event 8]\n";
    assert_eq!(
        shown[3..],
        [
            format!("{a}{summary}"),
            refused.to_owned(),
            format!("{c}{summary}")
        ]
    );
    let asked = requests(&scene, "cheap");
    assert_eq!(asked.len(), 2);
    assert!(
        asked[0].messages[1]
            .content
            .contains("\nk8s.get says hello\n")
            && asked[0].tools.is_empty()
    );
    assert!(
        asked[0].messages[1].content.contains("The disk is full.")
            && asked[0].request_id.ends_with(":1:summary:6")
    );

    let disk = scene.disk();
    let events: Vec<_> = disk
        .events
        .iter()
        .filter(|event| event.event_type == EventType::McpToolSummary)
        .collect();
    assert_eq!(events.len(), 2);
    let metadata = &events[0].metadata;
    assert_eq!(
        (
            events[0].content.as_str(),
            metadata["result_event"].as_u64()
        ),
        ("3 pods", Some(6))
    );
    assert_eq!(
        (metadata["provider"].as_str(), metadata["tokens"].as_u64()),
        (Some("cheap"), Some(12))
    );
    let purposes: Vec<Purpose> = disk.model_calls.iter().map(|call| call.purpose).collect();
    assert_eq!(
        purposes,
        [
            Purpose::Iteration,
            Purpose::Summary,
            Purpose::Summary,
            Purpose::Iteration
        ]
    );
    let end = disk.end.clone().unwrap().event.metadata;
    assert_eq!(
        (end["iterations"].as_u64(), end["input_tokens"].as_u64()),
        (Some(2), Some(40))
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_summary_the_result_stays_as_it_is() {
    for (answer, error) in [
        (Turn::Fails, "max_retries: provider broke"),
        (Turn::Misconfigured, "invalid_backend: no such backend"),
        (Turn::Breaks, "the llm service broke off: connection reset"),
        (Turn::Says(" ", vec![]), "the model gave an empty summary"),
        (Turn::NeverAnswers, "timeout: no answer within 60 s"),
    ] {
        let scene = scene(
            Strategy::NativeThinking,
            look(vec![("a", "k8s.get")]),
            answer,
        );
        assert_eq!(run(&scene, control()).await, Ok(()));
        let last = requests(&scene, "m").pop().unwrap();
        assert_eq!(
            last.messages[3].content, "[event 4]\n    k8s.get says hello",
            "{error}"
        );
        assert_eq!(summaries(&scene).pop().unwrap().error, error);
        let disk = scene.disk();
        let event = disk
            .events
            .iter()
            .find(|event| event.event_type == EventType::McpToolSummary)
            .unwrap();
        assert_eq!(event.status, EventStatus::Failed);
        assert_eq!(
            event.content,
            format!("no summary, the result stays cut: {error}")
        );
        assert_eq!(
            disk.end.as_ref().map(|end| end.status),
            Some(RunStatus::Completed)
        );
    }
}

#[tokio::test]
async fn an_unavailable_service_releases_the_session_before_the_summary() {
    let scene = scene(
        Strategy::NativeThinking,
        look(vec![("a", "k8s.get")]),
        Turn::Unavailable,
    );
    let released = ReleaseReason::ModelUnavailable("no connection".to_owned());
    assert_eq!(
        run(&scene, control()).await,
        Err(Interrupted::Release(released))
    );
    scene
        .ports
        .model
        .others
        .lock()
        .insert("cheap".to_owned(), vec![Turn::Says("3 pods", vec![])]);
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        scene.ports.tools.calls.lock().get("a"),
        Some(&1),
        "the result is committed"
    );
    assert_eq!(summaries(&scene).pop().unwrap().content, "3 pods");
}

#[tokio::test]
async fn a_used_up_budget_pays_for_no_summary() {
    let scene = scene(
        Strategy::NativeThinking,
        look(vec![("a", "k8s.get")]),
        Turn::Says("3 pods", vec![]),
    );
    Arc::make_mut(&mut scene.disk().record.plan.stages[0].agents[0])
        .limits
        .max_tokens = 12;
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        (requests(&scene, "cheap").len(), summaries(&scene)),
        (0, vec![])
    );
    let scene = self::scene(
        Strategy::NativeThinking,
        look(vec![("a", "k8s.get")]),
        Turn::Says("3 pods", vec![]),
    );
    Arc::make_mut(&mut scene.disk().record.plan.stages[0].agents[0])
        .limits
        .max_tokens = 24;
    assert_eq!(run(&scene, control()).await, Ok(()));
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 2,
        ..Usage::default()
    };
    assert_eq!(
        summaries(&scene).pop().map(|summary| summary.usage),
        Some(usage)
    );
    assert_eq!(
        scene.disk().end.clone().unwrap().event.metadata["stop_reason"],
        "budget",
        "the summary used up the rest"
    );
}

/// Runs the scene once without a crash and then with one at each write; every journal has to be the same.
pub(super) async fn survives(made: impl Fn() -> Scene, check: impl Fn(&Scene, Death)) {
    let whole = made();
    assert_eq!(run(&whole, control()).await, Ok(()));
    let journal = whole.journal();
    let writes = whole.disk().writes;
    for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
        let scene = made();
        scene.disk().death = death;
        tokio::select! {
            biased;
            () = scene.ports.journal.died.notified() => {}
            ended = run(&scene, control()) => panic!("outlived {death:?}: {ended:?}"),
        }
        scene.disk().epoch += 1;
        scene.disk().death = Death::Never;
        if scene.disk().end.is_none() {
            assert_eq!(run(&scene, control()).await, Ok(()), "{death:?}");
        }
        assert_eq!(scene.journal(), journal, "{death:?}");
        check(&scene, death);
    }
}

#[tokio::test(start_paused = true)]
async fn a_committed_summary_is_never_made_again_and_a_lost_one_is() {
    let made = || {
        scene(
            Strategy::NativeThinking,
            look(vec![("a", "k8s.get")]),
            Turn::Says("3 pods", vec![]),
        )
    };
    let whole = made();
    assert_eq!(run(&whole, control()).await, Ok(()));
    // The stage begins, the prompts, the answer and the result are written before the summary.
    let of_summary = 5;
    let at = whole
        .journal()
        .iter()
        .position(|entry| matches!(entry, Entry::Summarised(_)))
        .unwrap();
    assert!(matches!(whole.journal()[at - 1], Entry::ToolResult(_)));
    survives(made, |scene, death| {
        let expected = if death == Death::Before(of_summary) {
            2
        } else {
            1
        };
        assert_eq!(requests(scene, "cheap").len(), expected, "{death:?}");
        let sent = scene.ports.tools.calls.lock()["a"];
        assert_eq!(
            sent,
            if death == Death::Before(of_summary - 1) {
                2
            } else {
                1
            },
            "{death:?}"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_model_reads_a_result_again_whichever_worker_goes_on() {
    let says = |text| Turn::Says(text, vec![]);
    let made = || {
        let turns = vec![
            says("Action: k8s.get\nAction Input: {}"),
            says("Action: tarsy.read_result\nAction Input: {\"event\": 3, \"search\": \"hello\"}"),
            says("Action: tarsy.read_result\nAction Input: event: 5"),
            says("Action: tarsy.read_result\nAction Input: {\"event\": 2}"),
            says("Final Answer: Cause: y"),
        ];
        scene(Strategy::React, turns, says("3 pods"))
    };
    let whole = made();
    assert_eq!(run(&whole, control()).await, Ok(()));
    let last = requests(&whole, "m").pop().unwrap();
    let results: Vec<&str> = last
        .messages
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    let observed: Vec<&&str> = results
        .iter()
        .filter(|text| text.starts_with("Observation: [event "))
        .collect();
    assert_eq!(observed.len(), 4, "{results:#?}");
    assert!(observed[0].ends_with("\n    3 pods"));
    assert!(
        observed[1]
            .contains("\n    event 3 (k8s.get), matches 1 to 1 of 1\n    1> k8s.get says hello\n"),
        "{}",
        observed[1]
    );
    assert!(
        observed[2].contains("is no result of a tool call")
            || observed[2].contains("is itself a part"),
        "{}",
        observed[2]
    );
    assert!(
        observed[3].contains("event 2 is no result of a tool call."),
        "{}",
        observed[3]
    );
    assert_eq!(
        whole.ports.tools.calls.lock().len(),
        1,
        "no server is called"
    );
    assert_eq!(whole.disk().tool_calls.len(), 4);
    survives(made, |_, _| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_model_finds_earlier_investigations_whichever_worker_goes_on() {
    let says = |text| Turn::Says(text, vec![]);
    let record = PastSession {
        session: SessionId(Uuid::from_u128(0x7f3a_9c12)),
        finished_at: Utc::now() - TimeDelta::hours(90),
        relation: Relation::SameAlert,
        chain: "c".to_owned(),
        title: "[event 9] Disk full".to_owned(),
        severity: Some(Severity::High),
        summary: Some("Cause: logs\nSure: likely".to_owned()),
        mark: None,
        verdict: None,
    };
    let made = || {
        let turns = vec![
            says("Action: tarsy.past_investigations\nAction Input: {\"same_alert\": true}"),
            says("Action: tarsy.past_investigations\nAction Input: {\"session\": \"7f3a9c12\"}"),
            says("Action: tarsy.past_investigations\nAction Input: {\"session\": \"00000000\"}"),
            says("Action: tarsy.past_investigations\nAction Input: {}"),
            says("Final Answer: Cause: y [3]"),
        ];
        let scene = Scene::new(Strategy::React, 9, turns);
        {
            let mut disk = scene.disk();
            let agent = Arc::make_mut(&mut disk.record.plan.stages[0].agents[0]);
            agent.tools.push(past::tool::spec());
            agent.past = Some(PastPlan {
                given: 3,
                days: 14,
                scope: PastScope::Chain,
            });
            disk.past = Past {
                total: 4,
                days: 0,
                sessions: vec![record.clone()],
            };
        }
        scene
    };
    let whole = made();
    assert_eq!(run(&whole, control()).await, Ok(()));
    let last = requests(&whole, "m").pop().unwrap();
    let observed: Vec<&str> = last
        .messages
        .iter()
        .map(|message| message.content.as_str())
        .filter(|text| text.starts_with("Observation: [event "))
        .collect();
    assert_eq!(observed.len(), 4, "{:#?}", last.messages);
    for (text, expected) in observed.iter().zip([
        "\n    4 found in 14 days, the newest 1. It is about another time and proves nothing about now.\n",
        "\n    Its report. It is about another time and proves nothing about now.\n        The whole report.",
        "there is no earlier investigation \"00000000\" that may be read here",
        "give query, same_alert or session",
    ]) {
        assert!(text.contains(expected), "{text}");
    }
    assert!(
        observed[0].contains(", 3 days ago, session 7f3a9c12, high, same alert, likely\n        [event 9] Disk full\n"),
        "{}",
        observed[0]
    );
    assert!(
        whole.ports.tools.calls.lock().is_empty(),
        "no server is called"
    );
    survives(made, |_, _| {}).await;
}
