//! Tests of the timeline: one whole investigation in every style, and the status line.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{fits, narrow, story};
use crate::cli::render::timeline::{Charset, Style, Timeline};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::readable::text::{clean, first_sentence};
use tarsy_core::timeline::rows::{Body, Rows};
use tarsy_core::timeline::{Delta, DeltaKind, EventType, TimelineEvent};

pub(super) fn new(style: Style) -> Timeline {
    Timeline::new(style, story()[0].session_id)
}

pub(super) fn print(style: Style, events: &[TimelineEvent]) -> String {
    let mut timeline = new(style);
    let mut lines: Vec<_> = events
        .iter()
        .flat_map(|event| timeline.event(event))
        .collect();
    lines.push(timeline.finish());
    lines.join("\n")
}

/// The lines of the story; the hint below them may be wider.
pub(super) fn assert_fits(printed: &str, width: usize) {
    let mut lines: Vec<String> = printed.lines().map(ToOwned::to_owned).collect();
    lines.pop();
    fits(&lines, width);
}

#[test]
fn a_wide_terminal_shows_the_story() {
    let printed = print(Style::default(), &story());
    assert_fits(&printed, 120);
    insta::assert_snapshot!("120_columns", printed);
}

#[test]
fn a_narrow_terminal_shows_the_story() {
    let printed = print(narrow(), &story());
    assert_fits(&printed, 80);
    insta::assert_snapshot!("80_columns", printed);
}

#[test]
fn a_tiny_terminal_never_wraps() {
    assert_fits(
        &print(
            Style {
                width: 40,
                ..narrow()
            },
            &story(),
        ),
        40,
    );
}

#[test]
fn an_ascii_terminal_gets_ascii_only() {
    let printed = print(
        Style {
            charset: Charset::Ascii,
            ..Style::default()
        },
        &story(),
    );
    assert!(printed.is_ascii());
    insta::assert_snapshot!("ascii", printed);
}

#[test]
fn colours_mark_errors_and_take_no_room() {
    let printed = print(
        Style {
            color: true,
            ..Style::default()
        },
        &story(),
    );
    insta::assert_snapshot!("colour", printed.replace('\u{1b}', "␛"));
    let mut plain = printed;
    for code in ["0", "1", "2", "31", "32", "33"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(plain, print(Style::default(), &story()));
}

#[test]
fn all_folded_parts_can_be_shown() {
    let style = Style {
        thinking: true,
        verbose: true,
        utc: true,
        sources: true,
        ..Style::default()
    };
    insta::assert_snapshot!("everything", print(style, &story()));
}

#[test]
fn the_terminal_prints_the_words_that_the_web_interface_shows() {
    let mut terminal = new(Style {
        width: 4_000,
        ..Style::default()
    });
    let mut rows = Rows::new(Charset::Unicode);
    for event in &story() {
        let row = rows.row(event);
        let printed = terminal
            .event(event)
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let said = match &row.body {
            Body::Line(line) | Body::Result { line, .. } => line.clone(),
            Body::Folded(prose) | Body::Prose { text: prose, .. } => {
                first_sentence(&clean(&prose.text, Charset::Unicode))
            }
            Body::Whole { text, .. } => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Body::Code(code) => code.line(code.begin(), Charset::Unicode),
        };
        let marks = row.marks.iter().map(|mark| &mark.long);
        for words in marks.chain([&row.name, &said, &row.totals]) {
            assert!(
                printed.contains(words.as_str()),
                "{words:?} is not in {printed:?}"
            );
        }
    }
}

#[test]
fn a_second_agent_adds_the_column_of_agents() {
    let mut events = story();
    for event in events
        .iter_mut()
        .skip(9)
        .filter(|event| event.agent.is_some())
    {
        event.agent = Some("database".to_owned());
        event.execution_id = Some(ExecutionId(Uuid::from_u128(2)));
    }
    insta::assert_snapshot!("two_agents", print(Style::default(), &events[..12]));
}

/// The third event of the story with another number, type, agent, content and metadata.
pub(super) fn changed(
    session_seq: u32,
    word: &str,
    agent: Option<&str>,
    content: &str,
    metadata: Value,
) -> TimelineEvent {
    let stage = agent.map(|_| "look".to_owned());
    let id = agent.map(|name| ExecutionId(Uuid::from_u128(u128::try_from(name.len()).unwrap())));
    let mut event = story()[2].clone();
    (event.session_seq, event.execution_id, event.stage) = (session_seq, id, stage);
    event.agent = agent.map(ToOwned::to_owned);
    event.event_type = word.to_owned().into();
    content.clone_into(&mut event.content);
    event.metadata = metadata;
    event
}

#[test]
fn parallel_agents_have_a_column_and_the_synthesis_is_shown_whole() {
    let long = format!(
        "Cause: the pool [4]\nEvidence: 397 of 400 [4]\nDo next: roll back\n\n{}",
        "more\n".repeat(20)
    );
    let completed = |stage: &str, outcomes: Value| json!({"stage": stage, "status": "completed", "outcomes": outcomes});
    let mut started = story()[0].clone();
    started.metadata["agents"] = json!(["changes", "dba", "synthesis"]);
    let events = [
        started,
        changed(
            2,
            "stage_started",
            None,
            "",
            json!({"stage": "look", "agents": ["changes", "dba"], "success_policy": "any"}),
        ),
        changed(
            3,
            "llm_tool_call",
            Some("changes"),
            "{}",
            json!({"tool_name": "k8s.rollouts", "call_id": "1"}),
        ),
        changed(4, "final_analysis", Some("changes"), &long, Value::Null),
        changed(
            5,
            "error",
            Some("dba"),
            "no answer within 120 s",
            json!({"kind": "model"}),
        ),
        changed(
            6,
            "stage_completed",
            None,
            "",
            completed("look", json!({"changes": "completed", "dba": "timed_out"})),
        ),
        changed(
            7,
            "stage_started",
            None,
            "",
            json!({"stage": "look synthesis", "agents": ["synthesis"], "success_policy": "any"}),
        ),
        changed(8, "final_analysis", Some("synthesis"), &long, Value::Null),
        changed(
            9,
            "stage_completed",
            None,
            "",
            completed("look synthesis", json!({"synthesis": "completed"})),
        ),
        changed(
            10,
            "session_completed",
            None,
            "",
            json!({"stop_reason": "final_answer", "iterations": 4}),
        ),
    ];
    let printed = print(narrow(), &events);
    assert_fits(&printed, 80);
    assert_eq!(printed.matches("detail").count(), 1, "one head");
    insta::assert_snapshot!("team", printed);
    let verbose = print(
        Style {
            verbose: true,
            ..narrow()
        },
        &events,
    );
    assert_eq!(
        verbose.matches("more").count(),
        40,
        "nothing is left out with -v"
    );
}

#[test]
fn an_end_without_an_analysis_has_its_reason() {
    let mut events = story();
    let mut end = events.pop().unwrap();
    end.event_type = "session_failed".to_owned().into();
    end.content = "two model calls in a row took longer than 2m00s".to_owned();
    end.metadata["stop_reason"] = "timeouts".into();
    insta::assert_snapshot!("failed", print(narrow(), &[events[0].clone(), end]));
}

#[test]
fn a_blank_title_is_shown_as_none() {
    let mut first = story().remove(0);
    for blank in ["", "  ", "\n", "\u{1b}[2J", "\u{202e}"] {
        (first.metadata["title"], first.metadata["alert_type"]) = (blank.into(), Value::Null);
        let printed = print(narrow(), std::slice::from_ref(&first));
        assert!(printed.contains("(no title)"), "{blank:?}: {printed}");
    }
}

#[test]
fn unknown_events_and_missing_metadata_are_still_shown() {
    let mut events = story();
    for event in &mut events {
        event.metadata = Value::Null;
    }
    events[2].event_type = "of_a_later_version".to_owned().into();
    insta::assert_snapshot!("without_metadata", print(Style::default(), &events));
}

#[test]
fn the_words_of_older_versions_for_a_resumed_session_are_understood() {
    let resumed = story()
        .into_iter()
        .find(|event| event.event_type.as_str() == "session_resumed")
        .unwrap();
    let row = |reason: &str| {
        let mut event = resumed.clone();
        event.metadata["reason"] = reason.into();
        new(Style::default()).event(&event).pop().unwrap()
    };
    for (old, present) in [
        ("store_away", "store_unavailable"),
        ("handed_back", "released"),
    ] {
        assert_eq!(row(old), row(present));
        assert!(!row(old).contains(old), "{}", row(old));
    }
}

#[test]
fn every_other_event_has_its_symbol() {
    let mut timeline = new(narrow());
    let mut lines = Vec::new();
    for (word, content) in [
        ("stage_started", ""),
        ("user_question", "Is it the sidecar?"),
        (
            "code_execution",
            "```python\nprint(512 - 480)\n```\n\nOutput:\n```\n32\n```",
        ),
        (
            "url_context_result",
            "URL Context → Sources: docs (https://example.com)",
        ),
        (
            "provider_fallback",
            "gemini has failed (unavailable): claude goes on",
        ),
        ("executive_summary", "Cause: heap limit\nEvidence: [9]"),
        ("alert_resolved", "resolved at 14:05"),
        ("alert_acknowledged", "disk full on db-1"),
        (
            "alert_updated",
            "2 more alerts fire\n- fires: NodeDown n2\n- fires: NodeDown n3",
        ),
        ("session_timed_out", ""),
        ("session_cancelled", "asked for by lea"),
    ] {
        let mut event = story()[2].clone();
        event.event_type = word.to_owned().into();
        event.content = content.to_owned();
        event.metadata = Value::Null;
        event.truncated = word == "code_execution";
        lines.extend(timeline.event(&event));
    }
    insta::assert_snapshot!("other_events", lines.join("\n"));
}

#[test]
fn a_failed_model_call_shows_its_code_and_unread_pages_their_reason() {
    let row = |word: &str, content: &str, metadata: Value, style: Style| {
        let mut event = story()[2].clone();
        event.event_type = word.to_owned().into();
        event.content = content.to_owned();
        event.metadata = metadata;
        new(style).event(&event).join("\n")
    };
    let failed = json!({"kind": "model", "timeout": false, "code": "rate_limited"});
    let error = row("error", "too many requests", failed, Style::default());
    assert!(
        error.contains("model error") && error.contains("rate_limited"),
        "{error}"
    );
    let retrievals = json!([
        {"url": "https://docs.example/a", "status": "URL_RETRIEVAL_STATUS_SUCCESS"},
        {"url": "https://docs.example/b", "status": "URL_RETRIEVAL_STATUS_PAYWALL"},
    ]);
    let pages = json!({"sources": [{"uri": "https://docs.example/a", "title": "a"}], "retrievals": retrievals});
    let short = row("url_context_result", "", pages.clone(), Style::default());
    assert!(
        short.contains("1 source") && short.contains("1 not read"),
        "{short}"
    );
    let listed = row(
        "url_context_result",
        "",
        pages,
        Style {
            sources: true,
            ..Style::default()
        },
    );
    assert!(
        listed.contains("https://docs.example/b  not read: paywall"),
        "{listed}"
    );
    let none = json!({"sources": [], "retrievals": retrievals});
    let content = "URL Context → Not read: https://docs.example/b (paywall)";
    let unread = row("url_context_result", content, none, Style::default());
    assert!(
        unread.contains("Not read: https://docs.example/b (paywall)"),
        "{unread}"
    );
}

/// The story with failed code before its analysis, and with citations of pages in the analysis.
fn cited() -> Vec<TimelineEvent> {
    let mut events = story();
    let mut code = events[2].clone();
    code.event_type = "code_execution".to_owned().into();
    code.status = "failed".to_owned().into();
    code.content =
        "````python\nprint('```')\nexit(1)\n````\n\nOutput:\n```\nSystemExit: 1\n```".to_owned();
    code.metadata = json!({"source": "gemini", "outcome": "OUTCOME_DEADLINE_EXCEEDED"});
    let at = events
        .iter()
        .position(|event| event.event_type == EventType::FinalAnalysis)
        .unwrap();
    let analysis = &mut events[at];
    let cite = |text: &str, sources: Value| {
        let start = analysis.content.find(text).unwrap();
        json!({"start": start, "end": start + text.len(), "text": text, "sources": sources})
    };
    let jvm = json!({"uri": "https://docs.example.com/java/21/memory?area=direct-buffers-and-other-native-memory", "title": "JVM \u{1b}[31mmemory\nowned"});
    let limits = json!({"uri": "https://docs.example.com/limits", "title": "https://docs.example.com/limits"});
    let citations = json!([
        cite("-Xmx480m leaves no room for direct buffers", json!([jvm, limits])),
        cite("raise the limit to 768Mi", json!([limits])),
        {"start": 4, "end": 40_000, "sources": [limits]},
        {"start": "x"},
        7,
    ]);
    analysis.metadata["citations"] = citations;
    vec![events[0].clone(), code, events[at].clone()]
}

#[test]
fn an_analysis_has_footnotes_for_what_it_cites() {
    let wide = print(Style::default(), &cited());
    let narrow_lines = print(narrow(), &cited());
    let ascii = print(
        Style {
            charset: Charset::Ascii,
            ..narrow()
        },
        &cited(),
    );
    assert!(ascii.is_ascii());
    for (printed, width) in [(&wide, 120), (&narrow_lines, 80), (&ascii, 80)] {
        for line in printed.lines() {
            assert!(
                unicode_width::UnicodeWidthStr::width(line) <= width && !line.contains('\u{1b}'),
                "{line}"
            );
        }
    }
    insta::assert_snapshot!("footnotes_120", wide);
    insta::assert_snapshot!("footnotes_80", narrow_lines);
    insta::assert_snapshot!("footnotes_ascii", ascii);
}

pub(super) fn delta(kind: DeltaKind, offset: u64, text: &str) -> Delta {
    let event = story()[2].clone();
    Delta {
        session_id: event.session_id,
        execution_id: event.execution_id.unwrap(),
        agent: None,
        epoch: 1,
        iteration: 1,
        attempt: 1,
        kind,
        offset,
        delta: text.to_owned(),
    }
}

fn status(text: &str) -> Option<String> {
    Some(format!("            {text}"))
}

#[test]
fn a_half_sentence_is_shown_until_the_durable_event_replaces_it() {
    let mut timeline = new(narrow());
    assert_eq!(
        timeline.delta(&delta(DeltaKind::Thinking, 0, &"word ".repeat(320))),
        status("thinking… 400 tokens")
    );
    assert_eq!(
        timeline.delta(&delta(DeltaKind::Text, 0, "Cause: the heap")),
        status("writing… Cause: the heap")
    );
    assert_eq!(
        timeline.delta(&delta(
            DeltaKind::Text,
            15,
            &" limit leaves no room".repeat(4)
        )),
        status("writing… …leaves no room limit leaves no room limit leaves no room")
    );
    timeline.event(&story()[2]);
    assert_eq!(timeline.status(), None);
    assert_eq!(
        timeline.delta(&delta(DeltaKind::Text, 15, " too late")),
        None
    );
    let next = Delta {
        iteration: 2,
        ..delta(DeltaKind::Text, 0, "Next")
    };
    assert_eq!(timeline.delta(&next), status("writing… Next"));
}

#[test]
fn the_status_line_names_the_agent_before_its_first_event() {
    let mut timeline = new(narrow());
    let mut started = story().remove(0);
    started.metadata["agents"] = json!(["changes", "dba"]);
    timeline.event(&started);
    let first = |agent: &str, execution: u128| Delta {
        agent: Some(agent.to_owned()),
        execution_id: ExecutionId(Uuid::from_u128(execution)),
        ..delta(DeltaKind::Text, 0, "The disk")
    };
    assert_eq!(
        timeline.delta(&first("changes", 1)),
        status("changes  writing… The disk")
    );
    assert_eq!(
        timeline.delta(&first("dba", 2)),
        status("dba  writing… The disk")
    );
}

#[test]
fn a_lower_offset_truncates_and_a_lost_delta_is_survived() {
    let mut timeline = new(narrow());
    timeline.delta(&delta(DeltaKind::Text, 0, "The pod was évicted"));
    assert_eq!(
        timeline.delta(&delta(DeltaKind::Text, 12, "killed")),
        status("writing… The pod was killed")
    );
    assert_eq!(
        timeline.delta(&delta(DeltaKind::Text, 500, "far away")),
        status("writing… far away")
    );
    assert_eq!(
        timeline.delta(&delta(DeltaKind::Text, 0, "Again")),
        status("writing… Again")
    );
}

#[test]
fn deltas_of_a_worker_that_lost_its_lease_are_ignored() {
    let mut timeline = new(narrow());
    let second = Delta {
        epoch: 2,
        ..delta(DeltaKind::Text, 0, "Second")
    };
    timeline.delta(&delta(DeltaKind::Text, 0, "First"));
    assert_eq!(timeline.delta(&second), status("writing… Second"));
    assert_eq!(timeline.delta(&delta(DeltaKind::Text, 5, " worker")), None);
    assert_eq!(timeline.status(), status("writing… Second"));

    let mut timeline = new(narrow());
    timeline.delta(&delta(DeltaKind::Text, 0, "First"));
    let resumed = story()
        .into_iter()
        .find(|event| event.event_type.as_str() == "session_resumed")
        .unwrap();
    timeline.event(&resumed);
    assert_eq!(timeline.status(), None);
    assert_eq!(timeline.delta(&delta(DeltaKind::Text, 5, " worker")), None);
}

#[test]
fn raw_text_and_escape_codes_are_not_shown_live() {
    let mut timeline = new(narrow());
    assert_eq!(
        timeline.delta(&delta(DeltaKind::Raw, 0, "Action: k8s.get")),
        status("writing…")
    );
    assert_eq!(
        timeline.delta(&delta(DeltaKind::Text, 0, "\u{1b}[2Jgone\nnext")),
        status("writing… gone next")
    );
    let other = Delta {
        session_id: SessionId(Uuid::from_u128(1)),
        ..delta(DeltaKind::Text, 0, "foreign")
    };
    assert_eq!(timeline.delta(&other), None);
}

#[test]
fn a_new_attempt_replaces_the_text_of_the_last_one() {
    let mut timeline = new(narrow());
    timeline.delta(&delta(DeltaKind::Text, 0, "First attempt"));
    let second = Delta {
        attempt: 2,
        ..delta(DeltaKind::Text, 0, "Second")
    };
    assert_eq!(timeline.delta(&second), status("writing… Second"));
    assert_eq!(timeline.delta(&delta(DeltaKind::Text, 13, " late")), None);
}

#[test]
fn the_steps_of_a_sub_agent_are_indented_in_every_width() {
    let child = ExecutionId(Uuid::from_u128(77));
    let mut events = story();
    events.truncate(4);
    // A session with sub-agents names all of them in its first event.
    events[0].metadata["agents"] = json!(["sre", "logs"]);
    let last = events[3].clone();
    events.push(TimelineEvent {
        session_seq: 5,
        event_type: EventType::AgentDispatched,
        content: "Which errors?\u{1b}[2J".to_owned(),
        metadata: json!({"agent": "logs\u{202e}", "call_id": "c", "execution_id": child}),
        ..last.clone()
    });
    events.push(TimelineEvent {
        session_seq: 6,
        execution_id: Some(child),
        agent: Some("logs".to_owned()),
        event_type: EventType::LlmToolCall,
        content: "{}".to_owned(),
        metadata: json!({"tool_name": "k8s.logs", "call_id": "c"}),
        ..last
    });
    for style in [Style::default(), narrow()] {
        let arrow = if style.charset == Charset::Ascii {
            ">"
        } else {
            "→"
        };
        let printed = print(style.clone(), &events);
        assert!(
            !printed.contains('\u{1b}') && !printed.contains('\u{202e}'),
            "{printed}"
        );
        let row = |number: &str| {
            let mut lines = printed.lines();
            let wanted = format!("  {number}  ");
            let line = lines.find(|line| line.contains(&wanted)).unwrap();
            line.split_once(&wanted).unwrap().1.to_owned()
        };
        assert!(row("5").contains("dispatched logs"), "{printed}");
        let child = row("6");
        let indented = child.split_once(arrow).unwrap().0;
        let dispatched = row("5");
        let plain = dispatched.split_once(arrow).unwrap().0;
        assert_eq!(indented.len(), plain.len() + 2, "{printed}");
        assert_fits(&printed, style.width);
    }
}
