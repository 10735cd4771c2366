//! Tests of every rubric with reports of known grades, and with empty answers.

use chrono::DateTime;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::grade::{Grade, Outcome, Trial};
use super::rubric::Rubric;
use crate::evidence::Evidence;
use crate::{BUILTIN, Drill};
use tarsy_config::read::yaml;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventStatus, EventType, TimelineEvent};

const SERVER: &str = "drill";

/// The content of a file in `tests/fixtures/drills`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    calls: Vec<Call>,
    reports: Vec<KnownReport>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownReport {
    name: String,
    text: String,
    outcome: String,
    #[serde(default)]
    failed: Vec<String>,
    forbidden_call: Option<String>,
}

fn known(drill: &Drill) -> Known {
    let path = format!(
        "{}/../../tests/fixtures/drills/{}.yaml",
        env!("CARGO_MANIFEST_DIR"),
        drill.name
    );
    serde_json::from_value(yaml::to_json(&std::fs::read_to_string(path).unwrap()).unwrap()).unwrap()
}

fn event(
    events: &mut Vec<TimelineEvent>,
    event_type: EventType,
    content: &str,
    metadata: Value,
) -> u32 {
    let session_seq = u32::try_from(events.len()).unwrap() + 1;
    events.push(TimelineEvent {
        session_id: SessionId(Uuid::nil()),
        session_seq,
        execution_id: None,
        sequence_number: None,
        stage: None,
        agent: None,
        iteration: None,
        attempt: None,
        event_type,
        status: EventStatus::Completed,
        content: content.to_owned(),
        metadata,
        created_at: DateTime::UNIX_EPOCH,
        truncated: false,
    });
    session_seq
}

/// The calls with their recorded results; each result has the number of its event.
fn looked_at(calls: &[Call], evidence: &Evidence) -> (Vec<TimelineEvent>, Vec<(String, u32)>) {
    let mut events = Vec::new();
    let mut results = Vec::new();

    for Call { tool, arguments } in calls {
        let name = json!({"tool_name": format!("{SERVER}.{tool}")});
        event(
            &mut events,
            EventType::LlmToolCall,
            &Value::from(arguments.clone()).to_string(),
            name.clone(),
        );
        let answer = evidence.tool(tool).unwrap().answer(arguments);
        let answer = answer.unwrap_or_else(|| panic!("{tool} was not recorded for {arguments:?}"));
        let number = event(
            &mut events,
            EventType::ToolResult,
            &answer.text_for(arguments),
            name,
        );
        results.push((format!("{SERVER}.{tool}"), number));
    }
    (events, results)
}

/// The report with the numbers of events in the places of `[[tool]]` and `[[tool#2]]`.
fn cited(text: &str, results: &[(String, u32)]) -> String {
    let mut parts = text.split("[[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let (names, rest) = part.split_once("]]").unwrap();
        let numbers: Vec<String> = names
            .split(", ")
            .map(|name: &str| {
                let (tool, nth) = name
                    .split_once('#')
                    .map_or((name, None), |(tool, nth)| (tool, Some(nth)));
                let of_tool: Vec<u32> = results
                    .iter()
                    .filter(|(known, _)| known == tool)
                    .map(|(_, number)| *number)
                    .collect();
                let found = nth.map_or_else(
                    || of_tool.last(),
                    |nth| of_tool.get(nth.parse::<usize>().unwrap() - 1),
                );
                found
                    .unwrap_or_else(|| panic!("{name} has no result"))
                    .to_string()
            })
            .collect();
        format!("{out}[{}]{rest}", numbers.join(", "))
    })
}

fn grade(drill: &Drill, events: &[TimelineEvent]) -> Grade {
    let evidence = drill.evidence().unwrap();
    let trial = Trial {
        events,
        alert: drill.alert,
        evidence: &evidence,
        server: SERVER,
    };
    drill.rubric(SERVER).unwrap().grade(&trial)
}

fn failed(grade: &Grade) -> Vec<&str> {
    grade
        .checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| check.id.as_str())
        .collect()
}

#[test]
fn every_rubric_judges_reports_with_known_grades() {
    let mut wrong = Vec::new();
    for drill in BUILTIN {
        let Known { calls, reports } = known(&drill);
        for report in reports {
            let (mut events, results) = looked_at(&calls, &drill.evidence().unwrap());
            if let Some(tool) = &report.forbidden_call {
                let text = format!("The answer asks for an unknown tool '{tool}'");
                event(
                    &mut events,
                    EventType::Error,
                    &text,
                    json!({"kind": "unknown_tool"}),
                );
            }
            event(
                &mut events,
                EventType::FinalAnalysis,
                &cited(&report.text, &results),
                Value::Null,
            );
            event(&mut events, EventType::SessionCompleted, "", Value::Null);
            let grade = grade(&drill, &events);
            if (grade.outcome.as_str(), failed(&grade))
                != (
                    &report.outcome,
                    report.failed.iter().map(String::as_str).collect(),
                )
            {
                let seen: Vec<_> = grade.checks.iter().filter(|check| !check.ok).collect();
                wrong.push(format!(
                    "{}, {}: {:?} {seen:#?}",
                    drill.name, report.name, grade.outcome
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_answer_that_says_nothing_is_never_solved() {
    for drill in BUILTIN {
        let (events, results) = looked_at(&known(&drill).calls, &drill.evidence().unwrap());
        let everything: Vec<String> = results
            .iter()
            .map(|(_, number)| format!("[{number}]"))
            .collect();
        let everything = everything.join(" ");
        let alert = drill.alert.split_whitespace().collect::<Vec<_>>().join(" ");
        let instructions = drill
            .config
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        for cause in [
            alert.as_str(),
            instructions.as_str(),
            drill.name,
            "a fault",
            "see the evidence",
        ] {
            let mut events = events.clone();
            let text = format!("Cause: {cause}\nEvidence: {everything}\nDo next: look");
            event(&mut events, EventType::FinalAnalysis, &text, Value::Null);
            event(&mut events, EventType::SessionCompleted, "", Value::Null);
            let outcome = grade(&drill, &events).outcome;
            assert_eq!(outcome, Outcome::Wrong, "{}: {cause}", drill.name);
        }
    }
}

#[test]
fn a_session_without_a_report_is_void() {
    for drill in BUILTIN {
        assert_eq!(grade(&drill, &[]).outcome, Outcome::Void);
        for (end, analysis) in [
            (EventType::SessionFailed, Value::Null),
            (EventType::SessionCompleted, json!({"fallback": true})),
        ] {
            let mut events = Vec::new();
            event(&mut events, EventType::FinalAnalysis, "Cause: x", analysis);
            event(&mut events, end, "", Value::Null);
            let grade = grade(&drill, &events);
            assert_eq!(
                (grade.outcome, failed(&grade)),
                (Outcome::Void, vec!["end"]),
                "{}",
                drill.name
            );
        }
    }
}

#[test]
fn a_number_that_tarsy_has_marked_is_an_invented_citation() {
    let drill = crate::builtin("oom-killed").unwrap();
    let mut events = Vec::new();
    let text = "Cause: netty leaks\nEvidence: full [42?]\nDo next: roll back";
    event(
        &mut events,
        EventType::FinalAnalysis,
        text,
        json!({"unknown_citations": [42]}),
    );
    event(&mut events, EventType::SessionCompleted, "", Value::Null);
    let grade = grade(&drill, &events);
    let seen: Vec<&str> = grade
        .checks
        .iter()
        .map(|check| check.seen.as_str())
        .collect();
    assert!(
        seen.contains(&"[42] is not the result of a tool"),
        "{grade:?}"
    );
}

#[test]
fn every_decisive_text_is_recorded_and_not_part_of_the_alert() {
    for drill in BUILTIN {
        let evidence: Evidence = drill.evidence().unwrap();
        let rubric: Rubric = drill.rubric(SERVER).unwrap();

        for proof in rubric.decisive.iter().flat_map(|item| &item.any_of) {
            let tool = evidence
                .tool(proof.tool.strip_prefix("drill.").unwrap())
                .unwrap();
            assert!(
                tool.answers
                    .iter()
                    .any(|answer| answer.text.contains(&proof.contains)),
                "{}: {proof:?}",
                drill.name
            );
            assert!(
                !drill.alert.contains(&proof.contains),
                "{}: {proof:?}",
                drill.name
            );
        }
    }
}
