//! The reading of a body of a declared source.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::batch::Urgency;
use super::identity::{self, Identity};
use super::outline::Outline;
use super::reading::ParsedBody;
use super::{fingerprint, subject};
use crate::alert::{AlertStatus, MemberReport};
use crate::sources::{Mapped, Source, Traced, View};

/// The body of a message, and the element of its list that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extract<'v> {
    pub(super) body: &'v Value,
    pub(super) element: Option<&'v Value>,
}

/// Reads one alert. `name` is that of the source.
pub(super) fn read(name: &str, source: &Source, extract: Extract<'_>) -> ParsedBody {
    let Extract { body, element } = extract;
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
        let Identity { key, trace: fields } = identity::identity(element.unwrap_or(body));
        trace.extend(fields);
        key
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
    let reports = match status {
        AlertStatus::Firing | AlertStatus::Resolved => {
            vec![MemberReport {
                member,
                status,
                text: title.clone(),
            }]
        }
        AlertStatus::Acknowledged => vec![MemberReport {
            member,
            status: AlertStatus::Firing,
            text: title.clone(),
        }],
        AlertStatus::Test | AlertStatus::Ignored => Vec::new(),
    };
    let mut outline = Outline::default();
    outline.line(0, &title);
    outline.line(0, &format!("from {name}: {}", status.as_str()));
    fields(&mut outline, source, extract);
    ParsedBody {
        source: name.to_owned(),
        name: alert_type.or_else(|| Some(title.clone())),
        severity: mapped.severity,
        status,
        ignored_because: mapped.ignored_because,
        at: mapped.at,
        fingerprint: Some(own),
        members: vec![member],
        reports,
        runbook_url: mapped.runbook,
        refs: mapped.refs,
        text: outline.into_text(),
        labels,
        links: mapped.links,
        trace,
        notes: mapped.notes,
        tenant: None,
        title,
        annotations: BTreeMap::new(),
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
        fingerprint: Some(identity::of_json(body)),
        text: outline.into_text(),
        ..ParsedBody::default()
    }
}

/// The fields that the investigation reads.
fn fields(outline: &mut Outline, source: &Source, extract: Extract<'_>) {
    let Extract { body, element } = extract;
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
        let mapped = self.source.map(&self.body, Some(&element));
        Urgency::of(mapped.status, mapped.severity.unwrap_or_default())
    }
}
