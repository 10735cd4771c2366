//! The expected alerts of a sample, and their differences from the alerts that were read.

use std::collections::BTreeMap;

use chrono::SecondsFormat;
use serde_json::{Map, Value};

use crate::read::yaml;
use tarsy_core::alert::AlertStatus;
use tarsy_core::intake::Part;

/// Keys that each alert has, unless it is ignored.
const REQUIRED: [&str; 4] = ["title", "type", "severity", "status"];
/// Keys that are compared if they are given.
const OPTIONAL: [&str; 6] = ["reason", "runbook", "at", "links", "labels", "refs"];

/// The expected alerts in their order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected(Vec<Map<String, Value>>);

impl Expected {
    /// One mapping, or a list of them.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value = yaml::to_json(text)
            .map_err(|error| format!("line {} of expected: {}", error.line, error.message))?;
        let items = match value {
            Value::Array(items) => items,
            one @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_)) => vec![one],
        };
        items
            .into_iter()
            .map(checked)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn checked(alert: Value) -> Result<Map<String, Value>, String> {
    let Value::Object(fields) = alert else {
        return Err("expected is no mapping with title, type, severity and status".to_owned());
    };
    let mut keys = fields.keys().map(String::as_str);
    if let Some(key) = keys.find(|key| !REQUIRED.contains(key) && !OPTIONAL.contains(key)) {
        return Err(format!(
            "{key} in expected is unknown; accepted: {}",
            [&REQUIRED[..], &OPTIONAL[..]].concat().join(", ")
        ));
    }
    let is_ignored = fields
        .get("status")
        .is_some_and(|status| status == AlertStatus::Ignored.as_str());
    let required: &[&str] = if is_ignored {
        &["status", "reason"]
    } else {
        &REQUIRED
    };
    match required.iter().find(|key| !fields.contains_key(**key)) {
        Some(key) => Err(format!("{key} is missing in expected")),
        None => Ok(fields),
    }
}

/// Each difference in one line. An ignored alert beside others is not compared: it is left out.
pub(super) fn compare(expected: &Expected, parts: &[Part]) -> Vec<String> {
    let is_ignored = |fields: &&Map<String, Value>| {
        fields
            .get("status")
            .is_some_and(|status| status == AlertStatus::Ignored.as_str())
    };
    let all_ignored = expected.0.iter().all(|fields| is_ignored(&fields));
    let expected: Vec<_> = expected
        .0
        .iter()
        .filter(|fields| all_ignored || !is_ignored(fields))
        .collect();
    if expected.len() != parts.len() {
        return vec![format!(
            "{} alerts; expected {}",
            parts.len(),
            expected.len()
        )];
    }
    let numbered = expected.into_iter().zip(parts).enumerate();
    let differences = numbered.flat_map(|(index, (expected, part))| {
        let seen = fields(part);
        let place = if parts.len() == 1 {
            String::new()
        } else {
            format!("alert {index}: ")
        };
        let wrong = expected
            .iter()
            .filter(|(key, value)| seen.get(key.as_str()) != Some(*value))
            .map(|(key, value)| {
                let seen = seen.get(key.as_str()).unwrap_or(&Value::Null);
                format!("{place}{key} is {seen}; expected {value}")
            });
        wrong.collect::<Vec<_>>()
    });
    differences.collect()
}

fn fields(part: &Part) -> BTreeMap<&'static str, Value> {
    let Part {
        alert,
        labels,
        links,
        ..
    } = part;
    let at = alert
        .at
        .map(|at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true));
    let pairs = |pairs: &BTreeMap<String, String>| -> Value {
        pairs
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect::<Map<_, _>>()
            .into()
    };
    BTreeMap::from([
        ("title", Value::from(alert.title.as_str())),
        ("type", Value::from(alert.alert_type.as_str())),
        ("severity", Value::from(alert.severity.as_str())),
        ("status", Value::from(alert.status.as_str())),
        (
            "reason",
            alert
                .ignored_because
                .as_deref()
                .map_or(Value::Null, Value::from),
        ),
        (
            "runbook",
            alert
                .runbook_url
                .as_deref()
                .map_or(Value::Null, Value::from),
        ),
        ("at", at.map_or(Value::Null, Value::from)),
        ("links", pairs(links)),
        ("labels", pairs(labels)),
        (
            "refs",
            serde_json::to_value(&alert.refs).unwrap_or_default(),
        ),
    ])
}
