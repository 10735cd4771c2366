//! The reading of a body of a declared source.

use serde_json::{Map, Value};

use super::batch::Urgency;
use super::outline::Outline;
use super::reading::ParsedBody;
use super::{fingerprint, identity, subject};
use crate::alert::{AlertStatus, MemberReport};
use crate::sources::{Mapped, Source, Traced, View};

/// Reads one alert: the body of a message, or the element of its list. `name` is that of the source.
pub(super) fn read(
    name: &str,
    source: &Source,
    body: &Value,
    element: Option<&Value>,
) -> ParsedBody {
    let mapped = source.map(body, element);
    let Mapped {
        alert_type,
        title,
        key,
        labels,
        status,
        mut trace,
        ..
    } = mapped;
    let own = if key.is_absent() {
        let identity = identity::identity(element.unwrap_or(body));
        trace.extend(identity.trace);
        identity.key
    } else {
        fingerprint::of_key(&key)
    };
    let title = title.unwrap_or_else(|| {
        let of_type = alert_type
            .as_deref()
            .map(|name| subject::title(name, &labels));
        let because = "it is the type, and the object that the labels name";
        let because = if of_type.is_some() {
            because
        } else {
            "its message has no name"
        };
        let title = of_type.unwrap_or_else(|| format!("alert of {name}"));
        trace.push(Traced::rule("title", &title, because));
        title
    });
    if alert_type.is_none() {
        trace.push(Traced::rule(
            "type",
            &title,
            "nothing names a type, so it is the title",
        ));
    }
    let member = fingerprint::member_of_key(name, &own);
    let reported = match status {
        AlertStatus::Firing | AlertStatus::Acknowledged => Some(AlertStatus::Firing),
        AlertStatus::Resolved => Some(AlertStatus::Resolved),
        AlertStatus::Test | AlertStatus::Ignored => None,
    };
    let reports = reported.map(|status| MemberReport {
        member,
        status,
        text: title.clone(),
    });
    let mut outline = Outline::default();
    outline.line(0, &title);
    outline.line(0, &format!("from {name}: {}", status.as_str()));
    fields(&mut outline, source, body, element);
    ParsedBody {
        source: name.to_owned(),
        name: alert_type.or_else(|| Some(title.clone())),
        severity: mapped.severity,
        status,
        ignored_because: mapped.ignored_because,
        at: mapped.at,
        fingerprint: Some(own),
        members: vec![member],
        reports: reports.into_iter().collect(),
        runbook_url: mapped.runbook,
        refs: mapped.refs,
        text: outline.into_text(),
        labels,
        links: mapped.links,
        trace,
        notes: mapped.notes,
        title,
        ..ParsedBody::default()
    }
}

/// The reading of a body in whose list there is no alert.
pub(super) fn without_elements(name: &str, body: &Value) -> ParsedBody {
    let mut outline = Outline::default();
    outline.line(0, &format!("from {name}: no alert in it"));
    outline.value(0, body);
    ParsedBody {
        source: name.to_owned(),
        title: format!("message of {name}"),
        status: AlertStatus::Ignored,
        ignored_because: Some("no alert in it".to_owned()),
        trace: vec![Traced::rule(
            "status",
            AlertStatus::Ignored.as_str(),
            "there is no alert in the list of its source",
        )],
        fingerprint: Some(identity::identity(body).key),
        text: outline.into_text(),
        ..ParsedBody::default()
    }
}

/// The fields that the investigation reads.
fn fields(outline: &mut Outline, source: &Source, body: &Value, element: Option<&Value>) {
    let Some(chosen) = &source.text else {
        if let Some(element) = element {
            outline.value(0, element);
            if !body
                .as_object()
                .is_some_and(|fields| fields.values().any(|value| !value.is_null()))
            {
                return;
            }
            outline.blank();
            outline.line(0, "of the whole message:");
        }
        outline.value(0, body);
        return;
    };
    let mut fields = Map::new();
    for pointer in chosen {
        if let Some(value) = View::new(body, element).find(pointer) {
            let key = if fields.contains_key(pointer.name()) {
                pointer.to_string()
            } else {
                pointer.name().to_owned()
            };
            fields.insert(key, value.clone());
        }
    }
    outline.value(0, &Value::Object(fields));
}

/// A declared source with the body around its list.
#[derive(Debug)]
pub(super) struct Ranking<'s> {
    pub(super) source: &'s Source,
    pub(super) body: Value,
}

impl Ranking<'_> {
    pub(super) fn urgency(&self, element: &Value) -> Urgency {
        let mut element = element.clone();
        self.source.embed_element(&mut element);
        urgency(self.source, &self.body, &element)
    }
}

/// The urgency of an element whose texts have been read in place.
pub(super) fn urgency(source: &Source, body: &Value, element: &Value) -> Urgency {
    let mapped = source.map(body, Some(element));
    Urgency::new(mapped.status, mapped.severity.unwrap_or_default())
}
