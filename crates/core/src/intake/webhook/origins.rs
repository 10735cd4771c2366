//! The status, the severity and the key of a group of alerts, each with its origin.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{WebhookAlert, group_labels};
use crate::alert::{AlertStatus, Severity};
use crate::intake::fingerprint;
use crate::intake::plain::text;
use crate::sources::{Traced, severity_of};

/// A severity with its origin.
pub(super) struct TracedSeverity {
    pub(super) severity: Severity,
    pub(super) origin: Traced,
}

/// The worst of all alerts, each by its labels that name one, in any case; otherwise by its annotations. Alerts that
/// all report that Grafana has no data are low.
pub(super) fn severity(items: &[&WebhookAlert<'_>]) -> Option<TracedSeverity> {
    let worst = items
        .iter()
        .filter_map(|item| item.severity())
        .rev()
        .max_by_key(|judged| judged.severity);
    worst.or_else(|| no_data(items))
}

/// The worst of some pairs that name a severity.
pub(super) fn worst_of(
    kind: &'static str,
    pairs: &BTreeMap<String, String>,
) -> Option<TracedSeverity> {
    let named = pairs
        .iter()
        .filter(|(key, _)| fingerprint::is_severity_key(key));
    let known = named.filter_map(|(key, word)| Some((severity_of(word)?, key, word)));
    let (severity, key, text) = known.rev().max_by_key(|(severity, _, _)| *severity)?;
    let place = format!("the {kind} {key}");
    let origin = Traced::word("severity", place, text, severity.as_str());
    Some(TracedSeverity { severity, origin })
}

fn no_data(items: &[&WebhookAlert<'_>]) -> Option<TracedSeverity> {
    let because = "no alert names one, and Grafana reports that it has no data";
    let origin = Traced::rule("severity", Severity::Low.as_str(), because);
    let is_said = !items.is_empty() && items.iter().all(|item| item.name() == "DatasourceNoData");
    is_said.then_some(TracedSeverity {
        severity: Severity::Low,
        origin,
    })
}

/// The key of the group, or the fingerprint of its single alert, or the name with the labels of the group.
pub(super) fn key(name: &str, body: &Map<String, Value>, items: &[WebhookAlert<'_>]) -> Traced {
    let single = match items {
        [item] => text(item.fields, "fingerprint"),
        _ => None,
    };
    match (text(body, "groupKey"), single) {
        (Some(key), _) => Traced::text("key", "/groupKey", key),
        (None, Some(key)) => Traced::text("key", "the fingerprint of the only alert", key),
        (None, None) => {
            let key = fingerprint::of_labels(name, &group_labels(body, items));
            Traced::rule(
                "key",
                key,
                "it is a hash of the name and the labels that all alerts share",
            )
        }
    }
}

pub(super) fn status(status: AlertStatus, items: &[WebhookAlert<'_>]) -> Traced {
    let firing = items.iter().filter(|item| !item.is_resolved()).count();
    let of = items.len();
    let because = match status {
        AlertStatus::Test => "its alerts are those of Grafana's button for a test".to_owned(),
        AlertStatus::Resolved if of == 0 => "the group says so, and has no alerts".to_owned(),
        AlertStatus::Resolved if of == 1 => "its alert has ended".to_owned(),
        AlertStatus::Resolved => format!("all {of} alerts have ended"),
        _ if firing == 0 && of > 0 => {
            "the group says so: alerts that its sender left out may still fire".to_owned()
        }
        _ if of == 0 => "nothing says that it has ended".to_owned(),
        AlertStatus::Firing | AlertStatus::Acknowledged | AlertStatus::Ignored => {
            format!(
                "{firing} of {of} alerts {}",
                if firing == 1 { "fires" } else { "fire" }
            )
        }
    };
    Traced::rule("status", status.as_str(), because)
}
