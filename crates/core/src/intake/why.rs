//! Explains the reading of an alert: one sentence for each decision, for `inspect alert --why`.

use super::Hints;
use crate::alert::Alert;
use crate::sources::{Origin, Traced};

/// The decisions, in the order in which they are told.
const DECISIONS: [&str; 7] = ["source", "status", "severity", "key", "type", "title", "at"];

/// The decisions of a body's reader, before the headers count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'r> {
    pub(super) hints: &'r Hints,
    pub(super) alert: &'r Alert,
    /// Headers about one alert do not count for several.
    pub(super) has_several: bool,
    /// The fields that the body does not state: the severity, the key, the name.
    pub(super) absent: &'r [&'static str],
}

/// The origins of all fields: those of the reader, those of the headers, and those of defaults.
pub(super) fn complete(mut trace: Vec<Traced>, given: Given<'_>) -> Vec<Traced> {
    let Given {
        hints,
        alert,
        has_several,
        absent,
    } = given;
    let of_header =
        |header: Option<&String>| header.is_some_and(|header| !header.trim().is_empty());
    let mut add =
        |field, value: &str, because: &str| trace.push(Traced::rule(field, value, because));
    if hints.source.as_ref() == Some(&alert.source) {
        add(
            "source",
            &alert.source,
            "its path or the header Tarsy-Source names it",
        );
    } else {
        add("source", &alert.source, because_of_source(&alert.source));
    }
    if absent.contains(&"severity") {
        let because = match hints.priority {
            Some(_) => {
                "nothing in the body names one that is known, and it came by the queue of this priority"
            }
            None => "nothing in the body names one that is known",
        };
        add("severity", alert.severity.as_str(), because);
    }
    if of_header(hints.fingerprint.as_ref()) && !has_several {
        add(
            "key",
            &alert.fingerprint,
            "the header Tarsy-Fingerprint names it",
        );
    } else if absent.contains(&"key") {
        add(
            "key",
            &alert.fingerprint,
            "it is a hash of the body, in which nothing names the problem",
        );
    }
    if of_header(hints.alert_type.as_ref()) {
        add(
            "type",
            &alert.alert_type,
            "the header Tarsy-Alert-Type names it",
        );
    } else if absent.contains(&"type") {
        add(
            "type",
            &alert.alert_type,
            "nothing in the body is a name of what happened",
        );
    }
    if of_header(hints.title.as_ref()) && !has_several {
        add("title", &alert.title, "the header Tarsy-Title names it");
    } else if absent.contains(&"title") {
        add(
            "title",
            &alert.title,
            "it is the type, because the body has no title",
        );
    }
    if !trace.iter().any(|line| line.field == "status") {
        trace.push(Traced::rule(
            "status",
            alert.status.as_str(),
            "nothing in the body says otherwise",
        ));
    }
    trace
}

fn because_of_source(source: &str) -> &'static str {
    match source {
        "text" => "the body is no JSON",
        "json" => "no source fits the body, so the names of its fields count",
        "alertmanager" | "grafana" => {
            "the body is a group of alerts with labels, as its webhook sends it"
        }
        _ => "its rule fits the body",
    }
}

/// The decisions about an alert in its [`Part::trace`](super::Part::trace), one sentence each.
pub fn sentences(trace: &[Traced]) -> Vec<String> {
    DECISIONS
        .iter()
        .filter_map(|field| sentence(field, trace))
        .collect()
}

/// Explains one field: the last of its origins that gave a value counts; a key may have several parts.
fn sentence(field: &str, trace: &[Traced]) -> Option<String> {
    let lines = || {
        trace
            .iter()
            .filter(|line| line.field == field && !line.value.is_empty())
    };
    let last = lines().next_back()?;
    let name = if field == "at" { "time" } else { field };
    let parts: Vec<String> = lines()
        .filter(|line| is_part(line))
        .map(Traced::because)
        .collect();
    Some(match &last.origin {
        Origin::At { .. } if field == "key" => {
            format!(
                "The problem is told from others by its key: {}.",
                parts.join(", and ")
            )
        }
        Origin::At { .. } | Origin::Nothing(_) | Origin::Rule(_) => {
            format!("The {name} is {}, because {}.", last.value, last.because())
        }
    })
}

fn is_part(line: &Traced) -> bool {
    match line.origin {
        Origin::At { .. } => true,
        Origin::Nothing(_) | Origin::Rule(_) => false,
    }
}
