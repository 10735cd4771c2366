//! Tests of the branches of sub-agents: a tree of links without a script, also with hostile names and tasks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::pages::live::LivePage;
use crate::pages::steps::{Bodies, Context, View, step, steps};
use crate::testing::data::{report, story};
use crate::testing::markup::{check, texts};
use tarsy_core::ids::ExecutionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use uuid::Uuid;

use super::shown;

fn event(number: u32, execution: u128, event_type: EventType, agent: &str) -> TimelineEvent {
    TimelineEvent {
        session_seq: number,
        execution_id: Some(ExecutionId(Uuid::from_u128(execution))),
        agent: Some(agent.to_owned()),
        event_type,
        content: format!("content {number}"),
        metadata: Value::Null,
        ..story()[0].clone()
    }
}

/// A lead dispatches two agents, whose events alternate.
fn events(agent: &str, task: &str) -> Vec<TimelineEvent> {
    let dispatched = |number, child: u128| TimelineEvent {
        content: task.to_owned(),
        metadata: json!({
            "agent": agent, "call_id": format!("c{child}"), "execution_id": ExecutionId(Uuid::from_u128(child)),
        }),
        ..event(number, 1, EventType::AgentDispatched, "lead")
    };
    vec![
        dispatched(1, 2),
        dispatched(2, 3),
        event(3, 2, EventType::LlmThinking, agent),
        event(4, 3, EventType::LlmThinking, "db"),
        event(5, 2, EventType::FinalAnalysis, agent),
        event(6, 1, EventType::FinalAnalysis, "lead"),
    ]
}

fn rows(events: &[TimelineEvent], bodies: Bodies) -> Vec<String> {
    let context = Context {
        bodies,
        ..Context::new(events[0].session_id, events)
    };
    steps(events, &BTreeSet::new(), View::Steps)
        .iter()
        .map(|each| step(each, &context).into_string())
        .collect()
}

#[test]
fn the_steps_of_a_sub_agent_are_a_branch_below_its_dispatch() {
    for bodies in [Bodies::InPage, Bodies::Linked] {
        let rows = rows(&events("logs", "Which errors?"), bodies);
        for row in &rows {
            assert_eq!(check(row).err(), None, "{row}");
        }
        let branch = |row: &str| {
            row.split_once("<ul class=\"branch\">")
                .map(|(_, list)| texts(list))
        };
        let first = branch(&rows[0]).unwrap();
        assert!(rows[0].contains("<details>"), "{}", rows[0]);
        assert!(first.contains("3") && first.contains("answer"), "{first}");
        assert!(!first.contains("content 4"), "{first}");
        assert!(
            rows[0].contains("<a class=\"n\" href=\"#5\">"),
            "{}",
            rows[0]
        );
        assert!(branch(&rows[1]).unwrap().contains("content 4"));
        let is_sub: Vec<bool> = rows.iter().map(|row| row.contains(" sub\" id=")).collect();
        assert_eq!(is_sub, [false, false, true, true, true, false]);
    }
}

#[test]
fn hostile_names_and_tasks_stay_texts() {
    for text in [
        "</ul></details><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "a\n<li>\u{202e}#1 [9]",
    ] {
        let events = events(text, text);
        for bodies in [Bodies::InPage, Bodies::Linked] {
            for row in rows(&events, bodies) {
                assert_eq!(check(&row).err(), None, "{row}");
            }
        }
        let mut live = LivePage::new(events[0].session_id);
        for event in &events {
            let row = live.event(event).into_string();
            assert_eq!(check(&row).err(), None, "{row}");
        }
        let mut report = report();
        let stage = &mut report.session.as_mut().unwrap().stages[0];
        let mut child = stage.executions[0].clone();
        child.parent_execution_id = Some(child.execution_id);
        child.execution_id = ExecutionId(Uuid::from_u128(9));
        child.agent = text.to_owned();
        stage.executions.push(child);
        let page = shown(&report, &events).whole();
        assert_eq!(check(&page).err(), None);
        assert!(page.contains("└ "), "the table of agents");
    }
}

#[test]
fn a_live_row_of_a_sub_agent_is_marked_without_the_whole_timeline() {
    let events = events("logs", "x");
    let mut live = LivePage::new(events[0].session_id);
    live.pass(&events[0]);
    let row = live.event(&events[2]).into_string();
    assert!(row.contains(" sub\" id="), "{row}");
}
