//! Renders a webhook as text for a model and for people.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{WebhookAlert, common, truncated};
use crate::intake::outline::Outline;
use crate::intake::plain::text;
use crate::sources::WordList;

/// Fields of the body that are rendered in their own way, or left out.
const BODY_KNOWN: WordList = WordList::new(
    "alerts commonLabels commonAnnotations groupLabels status version truncatedAlerts orgId",
);
const ALERT_KNOWN: WordList = WordList::new("labels annotations status startsAt endsAt orgId");
/// The `endsAt` of an alert that has not ended.
const NEVER: &str = "0001-01-01T00:00:00Z";

pub(super) fn render(
    title: &str,
    source: &str,
    body: &Map<String, Value>,
    items: &[WebhookAlert<'_>],
) -> String {
    let resolved = items.iter().filter(|item| item.is_resolved()).count();
    let firing = items.len() - resolved;
    // The worst come first: the end of a long text is not shown.
    let mut items: Vec<&WebhookAlert<'_>> = items.iter().collect();
    items.sort_by_cached_key(|item| {
        (
            item.is_resolved(),
            Reverse(item.severity().map(|judged| judged.severity)),
        )
    });
    let mut out = Outline::default();
    out.line(0, title);
    out.line(
        0,
        &format!("from {source}: {firing} firing, {resolved} resolved"),
    );
    if let Some(truncated) = truncated(body) {
        out.line(
            0,
            &format!(
                "The sender left out {truncated} more alerts of this group (truncatedAlerts)."
            ),
        );
    }
    for (key, value) in body.iter().filter(|(key, _)| !BODY_KNOWN.contains(key)) {
        out.field(0, key, value);
    }
    let labels = common(items.iter().map(|item| &item.labels));
    let annotations = common(items.iter().map(|item| &item.annotations));
    let shared = if items.len() > 1 {
        " of all alerts"
    } else {
        ""
    };
    out.pairs(0, &format!("labels{shared}"), &labels);
    out.pairs(0, &format!("annotations{shared}"), &annotations);
    for (index, item) in items.iter().enumerate() {
        out.blank();
        let heading = if item.is_resolved() {
            format!(
                "resolved alert {} of {resolved} (context)",
                index + 1 - firing
            )
        } else {
            format!("firing alert {} of {firing}", index + 1)
        };
        out.line(0, &heading);
        out.pairs(1, "labels", &without(&item.labels, &labels));
        out.pairs(1, "annotations", &without(&item.annotations, &annotations));
        for (key, name) in [("startsAt", "started"), ("endsAt", "ended")] {
            if let Some(time) = text(item.fields, key).filter(|time| time != NEVER) {
                out.text_field(1, name, &time);
            }
        }
        for (key, value) in item
            .fields
            .iter()
            .filter(|(key, _)| !ALERT_KNOWN.contains(key))
        {
            out.field(1, key, value);
        }
    }
    out.into_text()
}

fn without(
    all: &BTreeMap<String, String>,
    shared: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    all.iter()
        .filter(|(key, _)| !shared.contains_key(*key))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}
