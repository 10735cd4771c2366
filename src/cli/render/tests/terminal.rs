//! Tests of the timeline in a terminal: laid out texts, results, and numbers without holes.

use serde_json::json;

use super::timeline::{assert_fits, changed, delta, new, print};
use super::{fits, narrow, story};
use crate::cli::render::timeline::{Charset, Prose, Style};
use tarsy_core::timeline::{DeltaKind, EventType, TimelineEvent};

/// The numbers in the second column of a printed timeline.
fn numbers(printed: &str) -> Vec<u32> {
    printed
        .lines()
        .filter_map(|line| line.get(7..10)?.trim().parse().ok())
        .collect()
}

#[test]
fn every_number_is_shown() {
    for width in [40, 80, 120, 200] {
        let printed = print(
            Style {
                width,
                ..Style::default()
            },
            &story(),
        );
        assert_eq!(numbers(&printed), (1..=19).collect::<Vec<_>>(), "{printed}");
    }
}

/// An analysis with a table, code, a link and a long paragraph.
const REPORT: &str = include_str!("../markdown/tests/report.md");

fn reported() -> Vec<TimelineEvent> {
    let mut events = story();
    let analysis = events
        .iter_mut()
        .find(|event| event.event_type == EventType::FinalAnalysis)
        .unwrap();
    analysis.content = REPORT.to_owned();
    events
}

#[test]
fn a_terminal_gets_an_analysis_laid_out() {
    for width in [40, 80, 120, 200] {
        let printed = print(
            Style {
                width,
                prose: Prose::Rendered,
                ..Style::default()
            },
            &reported(),
        );
        assert_fits(&printed, width);
        let ascii = Style {
            width,
            prose: Prose::Rendered,
            charset: Charset::Ascii,
            ..Style::default()
        };
        assert!(print(ascii, &reported()).is_ascii());
        assert!(
            !printed.contains("|---|") && !printed.contains("## "),
            "{printed}"
        );
        if width == 80 {
            insta::assert_snapshot!("rendered_80", printed);
        }
    }
}

#[test]
fn a_pipe_gets_the_text_of_the_model_line_by_line() {
    let printed = print(Style::default(), &reported());
    let lines: Vec<&str> = printed.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.contains("Cause: release 3.4.0"))
        .unwrap();
    let found: Vec<&str> = lines[first..first + REPORT.lines().count()]
        .iter()
        .map(|line| line.trim_start())
        .collect();
    assert_eq!(
        found,
        REPORT.lines().map(str::trim_start).collect::<Vec<_>>()
    );
}

#[test]
fn a_text_that_was_shown_live_ends_as_it_is_printed_later() {
    let style = Style {
        prose: Prose::Rendered,
        ..narrow()
    };
    let mut live = new(style.clone());
    let mut later = new(style);

    for event in reported() {
        for (at, _) in REPORT.char_indices().step_by(50) {
            let whole = REPORT
                .get(at..REPORT.len().min(at + 200))
                .unwrap_or_default();
            let offset = u64::try_from(at).unwrap();
            if let Some(status) = live.delta(&delta(DeltaKind::Text, offset, whole)) {
                assert!(
                    !status.contains('\n')
                        && unicode_width::UnicodeWidthStr::width(status.as_str()) < 80
                );
            }
        }
        assert_eq!(live.event(&event), later.event(&event));
    }
}

#[test]
fn a_result_in_json_is_read_as_names_and_values_and_is_shown_whole_on_request() {
    let mut event = story()
        .into_iter()
        .find(|event| event.event_type == EventType::ToolResult)
        .unwrap();
    event.content =
        r#"{"pod": "checkout", "limits": {"memory": "512Mi"}, "log": "a\u001b[2Jb"}"#.to_owned();
    event.metadata = json!({"tool_name": "k8s.describe_pod", "bytes": 60, "took_ms": 84});
    let printed = new(narrow()).event(&event).join("\n");
    assert!(
        printed.contains("pod: checkout") && !printed.contains('{')
            || printed.contains("limits: {"),
        "{printed}"
    );
    let full = new(Style {
        full: true,
        prose: Prose::Rendered,
        ..narrow()
    })
    .event(&event);
    assert!(
        full.iter()
            .any(|line| line.ends_with(r#""memory": "512Mi""#)),
        "{full:#?}"
    );
    fits(&full, 80);
}

#[test]
fn an_error_that_an_event_has_shown_is_not_repeated_at_the_end() {
    let why = "the provider answered 401: the key is wrong, and this sentence is too long for one line of the timeline";
    let error = changed(2, "error", Some("sre"), why, json!({"kind": "model"}));
    let end = changed(
        3,
        "session_failed",
        None,
        why,
        json!({"stop_reason": "model_error"}),
    );
    let printed = print(narrow(), &[story()[0].clone(), error, end]);
    assert_eq!(printed.matches("the key is wrong").count(), 1, "{printed}");
    assert!(printed.contains("model error: see event 2"), "{printed}");
    let cancelled = changed(
        2,
        "session_cancelled",
        None,
        "Investigation cancelled",
        json!({"stop_reason": "cancelled"}),
    );
    let printed = print(narrow(), &[story()[0].clone(), cancelled]);
    assert_eq!(
        printed.to_lowercase().matches("cancelled").count(),
        1,
        "{printed}"
    );
}
