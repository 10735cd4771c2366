//! Parses webhooks of Alertmanager (format 4) and of Grafana's unified alerting, and bare alerts with labels as
//! Prometheus sends them. Grafana's body is Alertmanager's with more fields.

mod api;
mod origins;
mod rendered;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

pub(super) use self::api::parse as read_api;
use self::origins::TracedSeverity;
use self::rendered::render;
use super::batch::Urgency;
use super::plain::{pairs, runbook, text};
use super::reading::{MAX_REPORT_CHARS, ParsedBody};
use super::{clean, fingerprint, plain, subject};
use crate::alert::aggregate::Aggregate;
use crate::alert::refs;
use crate::alert::{AlertStatus, MemberReport};
use crate::sources::{Note, Traced, parse_time, severity_of, status_of as status_of_word};

/// Alerts of Grafana about a rule that it could not evaluate.
const GRAFANA_OWN: [&str; 2] = ["DatasourceNoData", "DatasourceError"];

/// One alert of the message, as Alertmanager and Grafana write it.
#[derive(Debug)]
struct WebhookAlert<'a> {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    status: AlertStatus,
    fields: &'a Map<String, Value>,
}

/// Reads a webhook; `None` for anything else.
pub(super) fn read(value: &Value, received_at: Option<DateTime<Utc>>) -> Option<ParsedBody> {
    let empty = Map::new();
    let body = value.as_object().unwrap_or(&empty);
    let bare = body.get("labels").map(|_| std::slice::from_ref(value));
    let listed = body
        .get("alerts")
        .or(Some(value))
        .and_then(Value::as_array)
        .map(Vec::as_slice);
    let (listed, body) = match (listed, bare) {
        (Some(listed), _) => (listed, body),
        (None, Some(bare)) if named(bare) => (bare, &empty),
        (None, Some(_) | None) => return None,
    };
    if !is_group(body, listed) {
        return None;
    }
    let group = status_of(body);
    let given = Given { group, received_at };
    let mut items: Vec<WebhookAlert<'_>> = listed
        .iter()
        .filter_map(|item| WebhookAlert::read(item, given))
        .collect();
    let no_alerts = listed.len() - items.len();
    // A stable sort: the firing alerts come first, in the sender's order.
    items.sort_by_key(WebhookAlert::is_resolved);
    // Alerts that the sender left out may still fire: then the status of the body counts.
    let are_resolved = if items.is_empty() {
        group.is_some()
    } else {
        items.iter().all(WebhookAlert::is_resolved)
    };
    let resolved = are_resolved && group != Some(AlertStatus::Firing);
    let status = if resolved {
        AlertStatus::Resolved
    } else {
        AlertStatus::Firing
    };
    let grafana = ["orgId", "appVersion"]
        .iter()
        .any(|key| body.contains_key(*key));
    let source = if grafana { "grafana" } else { "alertmanager" };
    let mut reading = reading(source, body, &items, status);
    if no_alerts > 0 {
        reading.notes.push(Note::NoAlerts(no_alerts));
    }
    Some(reading)
}

/// The urgency of an alert with labels, or of the worst one of a group; `None` for anything else.
pub(super) fn urgency(value: &Value, given: Given) -> Option<Urgency> {
    let received_at = given.received_at;
    if let Some(alerts) = value.get("alerts").and_then(Value::as_array) {
        let of_this = Given {
            group: value.as_object().and_then(status_of),
            received_at,
        };
        return alerts
            .iter()
            .filter_map(|alert| urgency(alert, of_this))
            .max();
    }
    value.get("labels").filter(|labels| labels.is_object())?;
    let item = WebhookAlert::read(value, given)?;
    let status = if api::is_suppressed(value) {
        AlertStatus::Ignored
    } else {
        item.status
    };
    let severity = item.severity().map_or_else(
        || plain::urgency(value, received_at).severity,
        |judged| judged.severity,
    );
    Some(Urgency::new(status, severity))
}

/// Whether a list is the group of a webhook. One bad alert costs only itself: beside an alert with labels, or with the
/// key of a group around it, an alert needs no labels. In a list with nothing around it each object has to have some.
fn is_group(body: &Map<String, Value>, items: &[Value]) -> bool {
    let is_labelled = |item: &Value| item.get("labels").is_some_and(Value::is_object);
    if body.is_empty() {
        return items.iter().any(is_labelled)
            && items
                .iter()
                .filter(|item: &&Value| item.is_object() || item.is_array() || item.is_string())
                .all(is_labelled);
    }
    let has_key = text(body, "groupKey").is_some() && !items.is_empty();
    has_key || items.iter().any(is_labelled)
}

/// Whether a bare object is an alert: it has a name among its labels.
fn named(alerts: &[Value]) -> bool {
    alerts.iter().all(|alert| {
        alert
            .pointer("/labels/alertname")
            .is_some_and(Value::is_string)
    })
}

/// The status by the fields of an alert or a group: one that is no end fires.
pub(super) fn status_of(fields: &Map<String, Value>) -> Option<AlertStatus> {
    let status = status_of_word(&text(fields, "status")?);
    Some(if status == Some(AlertStatus::Resolved) {
        AlertStatus::Resolved
    } else {
        AlertStatus::Firing
    })
}

/// The facts that decide the status of an alert without one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    /// The status of the group around the alert.
    pub(super) group: Option<AlertStatus>,
    pub(super) received_at: Option<DateTime<Utc>>,
}

impl<'a> WebhookAlert<'a> {
    /// An alert without a status has that of its group. Prometheus sends neither: then its end is in the past. `None`
    /// for a value that is no object, or an empty one.
    fn read(value: &'a Value, given: Given) -> Option<Self> {
        let fields = value.as_object().filter(|fields| !fields.is_empty())?;
        let labels = fields.get("labels").filter(|labels| labels.is_object());
        let end = text(fields, "endsAt").and_then(|time| parse_time(&time));
        // The API of Alertmanager has an object as status: its alerts are active.
        let ended =
            !fields.contains_key("status") && end.is_some_and(|end| Some(end) <= given.received_at);
        let by_time = if ended {
            AlertStatus::Resolved
        } else {
            AlertStatus::Firing
        };
        Some(Self {
            labels: labels.map_or_else(|| unlabelled(fields), |labels| pairs(Some(labels))),
            annotations: pairs(fields.get("annotations")),
            status: status_of(fields).or(given.group).unwrap_or(by_time),
            fields,
        })
    }

    fn is_resolved(&self) -> bool {
        self.status == AlertStatus::Resolved
    }

    fn name(&self) -> &str {
        self.labels.get("alertname").map_or("", String::as_str)
    }

    /// The alert in one line: the name, the other labels, and the summary.
    fn describe(&self) -> String {
        let labels = self.labels.iter().filter(|(key, _)| *key != "alertname");
        let labels = labels
            .map(|(key, value)| {
                let value = clean::line(value, MAX_REPORT_CHARS);
                format!("{key}={value:?}")
            })
            .collect::<Vec<_>>()
            .join(" ");
        let about = ["summary", "description", "message"]
            .iter()
            .find_map(|key| self.annotations.get(*key));
        let about = about.map(|about| format!(": {about}")).unwrap_or_default();
        format!("{} {labels}{about}", self.name())
            .trim()
            .trim_start_matches(": ")
            .to_owned()
    }

    /// The member of this alert. Without labels it is made from the text, so that two such alerts are two.
    fn member(&self) -> Uuid {
        if self.labels.is_empty() && !self.annotations.is_empty() {
            return fingerprint::member_of_text(&self.describe());
        }
        fingerprint::member(self.name(), &self.labels)
    }

    /// The worst of the labels that name one, in any case; otherwise of the annotations.
    fn severity(&self) -> Option<TracedSeverity> {
        let of = origins::worst_of;
        of("label", &self.labels).or_else(|| of("annotation", &self.annotations))
    }

    /// The labels that name a severity.
    fn severities(&self) -> impl Iterator<Item = (&String, &String)> {
        self.labels
            .iter()
            .filter(|(key, _)| fingerprint::is_severity_key(key))
    }
}

fn reading(
    source: &'static str,
    body: &Map<String, Value>,
    items: &[WebhookAlert<'_>],
    status: AlertStatus,
) -> ParsedBody {
    // Name, severity and runbook are those of the firing alerts, as long as one fires.
    let relevant = items
        .iter()
        .filter(|item| status == AlertStatus::Resolved || !item.is_resolved());
    let relevant: Vec<&WebhookAlert<'_>> = relevant.collect();
    let relevant = if relevant.is_empty() {
        items.iter().collect()
    } else {
        relevant
    };
    let shared = common(labelled(relevant.iter().copied()));
    let name = relevant
        .iter()
        .find_map(|item| item.labels.get("alertname"))
        .cloned();
    let rule = name.as_deref().and_then(|name| rule_of(name, &shared));
    let named = rule
        .as_deref()
        .or(name.as_deref())
        .or_else(|| body.get("title")?.as_str());
    let title = subject::title(named.unwrap_or_default(), &shared);
    let reports = reports(body, items);
    let notes = relevant
        .iter()
        .find_map(|item| severity_note(item))
        .into_iter()
        .collect();
    let (severity, why_severity) = match origins::severity(&relevant) {
        Some(TracedSeverity { severity, origin }) => (Some(severity), Some(origin)),
        None => (None, None),
    };
    let key = origins::key(name.as_deref().unwrap_or_default(), body, items);
    let status = if is_test(items) {
        AlertStatus::Test
    } else {
        status
    };
    let because = "it is the name of the alert, and the object that its labels name";
    let titled = Traced::rule("title", &title, because);
    let typed = name
        .as_ref()
        .map(|name| Traced::text("type", "the label alertname", name));
    let trace = [origins::status(status, items), key.clone(), titled];
    ParsedBody {
        source: source.to_owned(),
        trace: trace.into_iter().chain(typed).chain(why_severity).collect(),
        severity,
        at: changed_at(&relevant, status),
        status,
        members: reports
            .iter()
            .filter(|report| report.status == AlertStatus::Firing)
            .map(|report| report.member)
            .collect(),
        reports,
        fingerprint: Some(key.value),
        runbook_url: relevant
            .iter()
            .find_map(|item| runbook(&item.annotations).or_else(|| runbook(&item.labels))),
        text: render(&title, source, body, items),
        title,
        name,
        labels: shared,
        // Of those with one key that of the first alert counts.
        annotations: relevant
            .iter()
            .rev()
            .flat_map(|item| item.annotations.clone())
            .collect(),
        refs: group_refs(body, &relevant),
        tenant: organisation(body),
        notes,
        ..ParsedBody::default()
    }
}

/// A word of an alert that is no severity, or two labels that differ.
fn severity_note(item: &WebhookAlert<'_>) -> Option<Note> {
    let worst = item.severity();
    let Some(TracedSeverity {
        severity: worst, ..
    }) = worst
    else {
        return item
            .severities()
            .next()
            .map(|(_, word)| Note::UnknownSeverity(word.clone()));
    };
    let of = |is_worst: bool| {
        item.severities()
            .find(|(_, word)| severity_of(word).is_some_and(|each| (each == worst) == is_worst))
    };
    let (key, word) = of(true)?;
    let (other, less) = of(false)?;

    Some(Note::Differ(format!(
        "{key} is {word:?}, and {other} is {less:?}"
    )))
}

/// The organisation of a Grafana that has several. The first one is that of a Grafana with one, and is in no key.
fn organisation(body: &Map<String, Value>) -> Option<String> {
    let id = body
        .get("orgId")
        .and_then(Value::as_u64)
        .filter(|id| *id > 1)?;
    Some(format!("org-{id}"))
}

/// The hash of the group, by which Alertmanager calls it elsewhere, and the dashboard of Grafana that shows an alert.
fn group_refs(body: &Map<String, Value>, items: &[&WebhookAlert<'_>]) -> BTreeMap<String, String> {
    let group = text(body, "groupKey").map(|key| (refs::AM_GROUP.to_owned(), refs::am_group(&key)));
    let dashboard = items
        .iter()
        .find_map(|item| dashboard(&text(item.fields, "dashboardURL")?))
        .map(|id| (refs::DASHBOARD.to_owned(), id));
    group.into_iter().chain(dashboard).collect()
}

/// The id in the address of a dashboard, `https://grafana.example.com/d/<id>?orgId=1`.
fn dashboard(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    let behind = path.split("/d/").nth(1)?;
    behind.split('/').next().map(str::to_owned)
}

/// The time of the status change: when the newest alert began, or when the last one ended.
fn changed_at(items: &[&WebhookAlert<'_>], status: AlertStatus) -> Option<DateTime<Utc>> {
    let key = if status == AlertStatus::Resolved {
        "endsAt"
    } else {
        "startsAt"
    };
    items
        .iter()
        .filter_map(|item| parse_time(&text(item.fields, key)?))
        .max()
}

/// Whether a person has pressed Grafana's button for a test.
fn is_test(items: &[WebhookAlert<'_>]) -> bool {
    !items.is_empty()
        && items.iter().all(|item| {
            let label = |key: &str| item.labels.get(key).map(String::as_str);
            let is_grafana = label("instance") == Some("Grafana")
                || label("grafana_folder") == Some("Test Folder");
            item.name() == "TestAlert" && is_grafana
        })
}

/// The alerts, each with its member. The alerts that the sender left out are one firing member, made of their number.
fn reports(body: &Map<String, Value>, items: &[WebhookAlert<'_>]) -> Vec<MemberReport> {
    let left_out = truncated(body).map(|left_out| {
        let text = format!("{left_out} alerts that the sender left out");
        MemberReport {
            member: Aggregate::left_out(left_out),
            status: AlertStatus::Firing,
            text,
        }
    });
    items
        .iter()
        .map(|item: &WebhookAlert<'_>| MemberReport {
            member: item.member(),
            status: item.status,
            text: item.describe(),
        })
        .chain(left_out)
        .collect()
}

/// The number of alerts that the sender left out, if there are any.
fn truncated(body: &Map<String, Value>) -> Option<u64> {
    body.get("truncatedAlerts")?
        .as_u64()
        .filter(|count| *count > 0)
}

/// The labels that identify a webhook without a group key: the group's labels, otherwise those of all its alerts.
fn group_labels(body: &Map<String, Value>, items: &[WebhookAlert<'_>]) -> BTreeMap<String, String> {
    let group = pairs(body.get("groupLabels"));
    if group.is_empty() {
        common(labelled(items.iter()))
    } else {
        group
    }
}

/// The labels of the alerts that have some.
fn labelled<'a>(
    items: impl Iterator<Item = &'a WebhookAlert<'a>>,
) -> impl Iterator<Item = &'a BTreeMap<String, String>> {
    items
        .map(|item| &item.labels)
        .filter(|labels| !labels.is_empty())
}

/// The name and the severity of an alert that has its fields in no labels.
fn unlabelled(fields: &Map<String, Value>) -> BTreeMap<String, String> {
    let name = ["alertname", "name", "title"]
        .iter()
        .find_map(|key| text(fields, key));
    let severity = fields
        .keys()
        .filter(|key| fingerprint::is_severity_key(key))
        .find_map(|key| text(fields, key));
    let pairs = [("alertname", name), ("severity", severity)];
    pairs
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

/// Grafana's report about one of its rules, with the name of the rule.
fn rule_of(name: &str, labels: &BTreeMap<String, String>) -> Option<String> {
    let rule = labels
        .get("rulename")
        .filter(|rule| !rule.is_empty() && GRAFANA_OWN.contains(&name))?;
    Some(format!("{name}: {rule}"))
}

/// The pairs that all of the maps have.
fn common<'a>(
    mut maps: impl Iterator<Item = &'a BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    let mut shared = maps.next().cloned().unwrap_or_default();
    for map in maps {
        shared.retain(|key, value| map.get(key) == Some(value));
    }
    shared
}
