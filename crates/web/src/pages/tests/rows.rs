//! Tests of rows: each type of event in each state, and the same words as in the terminal.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::pages::live::LivePage;
use crate::pages::steps::{Context, View, step, steps};
use crate::testing::data::story;
use crate::testing::markup::{check, texts};
use tarsy_core::timeline::{EventStatus, TimelineEvent};

fn rows(events: &[TimelineEvent], cited: &[u32], view: View) -> Vec<String> {
    let context = Context::new(events[0].session_id, events);
    let cited: BTreeSet<u32> = cited.iter().copied().collect();
    steps(events, &cited, view)
        .iter()
        .map(|each| step(each, &context).into_string())
        .collect()
}

#[test]
fn a_call_and_its_result_are_one_row_in_every_state() {
    let all = rows(&story(), &[10, 13], View::Steps);
    all.iter()
        .for_each(|row| assert_eq!(check(row).err(), None, "{row}"));
    let lines: Vec<String> = all.iter().map(|row| texts(row)).collect();
    insta::assert_snapshot!("story", lines.join("\n"));
    assert_eq!(rows(&story(), &[10, 13], View::Cited).len(), 2);
    assert_eq!(rows(&story(), &[], View::All).len(), story().len());
}

#[test]
fn every_type_of_event_has_its_row() {
    let mut shown = Vec::new();
    for (word, content, metadata) in [
        (
            "stage_started",
            "",
            json!({"stage": "look", "agents": ["changes", "dba"]}),
        ),
        ("user_question", "Is it the sidecar?", Value::Null),
        (
            "code_execution",
            "```python\nprint(512 - 480)\n```\n\nOutput:\n```\n32\n```",
            Value::Null,
        ),
        (
            "google_search_result",
            "",
            json!({"queries": ["jvm"], "sources": [{"uri": "https://a.example", "title": "A"}]}),
        ),
        (
            "url_context_result",
            "URL Context → Sources: docs (https://example.com)",
            Value::Null,
        ),
        (
            "provider_fallback",
            "gemini has failed (unavailable): claude goes on",
            Value::Null,
        ),
        (
            "executive_summary",
            "Cause: heap limit\nEvidence: [9]",
            Value::Null,
        ),
        (
            "alert_joined",
            "",
            json!({"alert_id": "0198b2c4-5d6e-7f80-9a1b-2c3d5e19c7f0", "count": 4}),
        ),
        ("alert_resolved", "resolved at 14:05", Value::Null),
        ("alert_acknowledged", "disk full on db-1", Value::Null),
        (
            "alert_joined",
            "",
            json!({"alert_id": "0198b2c4-5d6e-7f80-9a1b-2c3d5e19c7f0", "outdated": true}),
        ),
        (
            "alert_updated",
            "2 more alerts fire\n- fires: NodeDown n2\n- fires: NodeDown n3",
            Value::Null,
        ),
        (
            "mcp_tool_summary",
            "many rows",
            json!({"tool_name": "k8s.logs", "call_id": "x"}),
        ),
        (
            "error",
            "no answer within 120 s",
            json!({"kind": "model", "timeout": true, "code": "deadline"}),
        ),
        (
            "session_failed",
            "no answer",
            json!({"stop_reason": "timeouts"}),
        ),
        (
            "session_failed",
            "route storage opens at most 2 investigations an hour",
            json!({"stop_reason": "limited"}),
        ),
        ("session_timed_out", "past its deadline", Value::Null),
        ("session_cancelled", "asked for by lea", Value::Null),
        (
            "session_cancelled",
            "Investigation cancelled: its alert is resolved",
            json!({"cancel_reason": "alert_resolved"}),
        ),
        ("joined", "same fingerprint", Value::Null),
        ("of_a_later_version", "anything", Value::Null),
    ] {
        for status in [EventStatus::Completed, EventStatus::Failed] {
            let mut event = story()[2].clone();
            event.event_type = word.to_owned().into();
            event.content = content.to_owned();
            event.metadata = metadata.clone();
            event.status = status;
            let row = rows(&[event], &[], View::Steps).remove(0);
            assert_eq!(check(&row).err(), None, "{row}");
            let class = row.split('"').nth(1).unwrap_or_default().to_owned();
            shown.push(format!("{word} [{class}] {}", texts(&row)));
        }
    }
    insta::assert_snapshot!("types", shown.join("\n"));
}

#[test]
fn live_rows_are_those_of_the_page() {
    let events = story();
    let mut live = LivePage::new(events[0].session_id);
    let mut found: Vec<(String, String)> = Vec::new();
    for event in &events {
        let html = live.event(event).into_string();
        assert_eq!(check(&html).err(), None, "{html}");
        let row = html
            .split("<span class=\"cnt\"")
            .next()
            .unwrap_or_default()
            .to_owned();
        let id = row
            .split("id=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_default()
            .to_owned();
        match found.iter_mut().find(|(known, _)| *known == id) {
            Some((_, old)) => *old = row,
            None => found.push((id, row)),
        }
    }
    let live: Vec<String> = found.into_iter().map(|(_, row)| texts(&row)).collect();
    let page: Vec<String> = rows(&events, &[], View::Steps)
        .iter()
        .map(|row| texts(row))
        .collect();
    assert_eq!(live, page);
}
