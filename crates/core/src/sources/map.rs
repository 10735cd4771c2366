//! Reads the fields of one alert from a body, as its source declares them, with the origin of each field.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::document;
use super::expression::{Expression, Found};
use super::key::{self, Key};
use super::source::{Source, Words};
use super::trace::{Note, Traced};
use super::view::View;
use super::words::{severity_of, status_of};
use super::{labels, time};
use crate::alert::{AlertStatus, Severity};

const MAX_LINKS: usize = 16;

/// The fields of an alert, before they are cleaned and bounded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapped {
    pub alert_type: Option<String>,
    pub title: Option<String>,
    pub severity: Option<Severity>,
    pub status: AlertStatus,
    /// The reason for the status `ignored`; no other status has one.
    pub ignored_because: Option<String>,
    pub key: Key,
    pub labels: BTreeMap<String, String>,
    pub links: BTreeMap<String, String>,
    pub runbook: Option<String>,
    pub refs: BTreeMap<String, String>,
    pub at: Option<DateTime<Utc>>,
    pub trace: Vec<Traced>,
    pub notes: Vec<Note>,
}

impl Source {
    /// Reads the texts that are JSON in place.
    pub fn embed(&self, body: &mut Value) {
        document::embed(body, &self.parse);
    }

    /// Takes the elements out of the body; `None` when the body is one alert.
    pub(crate) fn take_elements(&self, body: &mut Value) -> Option<Vec<Value>> {
        let each = self.each.as_ref()?;
        let found = each
            .find_mut(body)
            .filter(|value| value.is_array() || value.is_object());
        let mut elements = match found.map(std::mem::take) {
            Some(Value::Array(items)) => items,
            Some(only) => vec![only],
            None => Vec::new(),
        };
        elements
            .iter_mut()
            .for_each(|element| self.embed_element(element));
        Some(elements)
    }

    /// Reads the texts of an element that are JSON in place.
    pub(crate) fn embed_element(&self, element: &mut Value) {
        document::embed(element, &self.parse_element);
    }

    /// Reads one alert. The texts that are JSON have been read in place.
    pub fn map(&self, body: &Value, element: Option<&Value>) -> Mapped {
        let view = View::new(body, element);
        let captures = self
            .capture
            .as_ref()
            .map(|capture| capture.find(&view))
            .unwrap_or_default();
        let view = view.with_captures(captures);
        let mut trace = Trace::default();
        let (status, ignored_because) = self.judge(&view, &mut trace);
        let alert_type = trace.text("type", self.alert_type.as_ref(), &view);
        let key = key::read(&self.key, &view);
        trace.key(&key);
        Mapped {
            title: trace.text("title", self.title.as_ref(), &view),
            severity: trace.severity(&self.severity, &view),
            labels: labels::read(&self.labels, &view),
            links: self.links(&view),
            runbook: trace.text("runbook", self.runbook.as_ref(), &view),
            refs: self
                .refs
                .iter()
                .filter_map(|each| Some((each.name.clone(), each.id.find(&view)?.text)))
                .collect(),
            at: trace.time(self.at.as_ref(), &view),
            status,
            ignored_because,
            alert_type,
            key,
            trace: trace.lines,
            notes: trace.notes,
        }
    }

    /// The status, with the reason of one that is ignored.
    fn judge(&self, view: &View<'_>, trace: &mut Trace) -> (AlertStatus, Option<String>) {
        if let Some((condition, word)) = self
            .ignore
            .iter()
            .find_map(|rule| Some((rule, rule.met(view)?)))
        {
            let because = format!(
                "its source ignores messages in which {} is {word:?}",
                condition.pointer
            );
            trace.status(AlertStatus::Ignored, because);
            let reason = format!("{} is {word}", condition.pointer.name());
            return (AlertStatus::Ignored, Some(reason));
        }
        let judged = self.judge_word(view, trace);
        match self.test.iter().find(|sign| sign.is_seen(view)) {
            Some(sign) if judged.0 != AlertStatus::Ignored => {
                let because = format!("{} is as in a test of its sender", sign.pointer);
                trace.status(AlertStatus::Test, because);
                (AlertStatus::Test, None)
            }
            Some(_) | None => judged,
        }
    }

    fn judge_word(&self, view: &View<'_>, trace: &mut Trace) -> (AlertStatus, Option<String>) {
        let Words { from, map, default } = &self.status;
        let found = from.as_ref().and_then(|from| from.find(view));
        let known = found
            .as_ref()
            .and_then(|found| map.get(&found.text).or_else(|| status_of(&found.text)));
        let status = known.or(*default).unwrap_or_default();
        let ignored_because = match (found, status) {
            (Some(Found { text, from, name }), status) => {
                let meaning = status.as_str();
                trace
                    .lines
                    .push(Traced::word("status", from, &text, meaning));
                if known.is_none() && default.is_none() {
                    trace.notes.push(Note::UnknownStatus(text.clone()));
                }
                (status == AlertStatus::Ignored).then(|| format!("{name} is {text}"))
            }
            (None, AlertStatus::Ignored) => {
                let because = match from {
                    Some(from) => format!("there is no {}", name_of(from)),
                    None => "such messages ask for nothing".to_owned(),
                };
                trace.status(status, because.clone());
                Some(because)
            }
            (None, status) => {
                trace.status(status, because_absent(from.as_ref()));
                None
            }
        };
        (status, ignored_because)
    }

    fn links(&self, view: &View<'_>) -> BTreeMap<String, String> {
        let links = self
            .links
            .iter()
            .filter_map(|link| Some((link.name.clone(), link.url.find(view)?.text)));
        links
            .filter(|(_, url)| url.starts_with("https://") || url.starts_with("http://"))
            .take(MAX_LINKS)
            .collect()
    }
}

/// The reason why the default of a field counts.
fn because_absent(from: Option<&Expression>) -> String {
    match from {
        Some(from) => {
            format!("it is the default of its source, and nothing that is known is at {from}")
        }
        None => "its source has it for all messages".to_owned(),
    }
}

/// The last key of the first pointer of an expression, or the name of its group.
fn name_of(expression: &Expression) -> String {
    let pointer = expression
        .pointers()
        .first()
        .map(|pointer| pointer.name().to_owned());
    pointer
        .or_else(|| expression.captured().first().map(|name| (*name).to_owned()))
        .unwrap_or_default()
}

#[derive(Default)]
struct Trace {
    lines: Vec<Traced>,
    notes: Vec<Note>,
}

impl Trace {
    fn status(&mut self, status: AlertStatus, because: String) {
        let line = Traced::rule("status", status.as_str(), because);
        self.lines.push(line);
    }

    fn text(
        &mut self,
        field: &'static str,
        expression: Option<&Expression>,
        view: &View<'_>,
    ) -> Option<String> {
        let expression = expression?;
        let found = expression.find(view);
        self.lines.push(match &found {
            Some(found) => Traced::text(field, &found.from, &found.text),
            None => Traced::nothing(field, format!("nothing at {expression}")),
        });
        found.map(|found| found.text)
    }

    /// The first alternative that is a time.
    fn time(&mut self, expression: Option<&Expression>, view: &View<'_>) -> Option<DateTime<Utc>> {
        let expression = expression?;
        let found = expression
            .each(view)
            .find_map(|found| Some((time::parse(&found.text)?, found)));
        self.lines.push(match &found {
            Some((_, found)) => Traced::text("at", &found.from, &found.text),
            None => Traced::nothing("at", format!("no time at {expression}")),
        });
        found.map(|(time, _)| time)
    }

    /// The first alternative with a known word.
    fn severity(&mut self, words: &Words<Severity>, view: &View<'_>) -> Option<Severity> {
        let known = words.from.as_ref().and_then(|from| {
            from.each(view).find_map(|found: Found| {
                let severity = words
                    .map
                    .get(&found.text)
                    .or_else(|| severity_of(&found.text))?;
                Some((severity, found))
            })
        });
        if let Some((severity, found)) = known {
            let meaning = severity.as_str();
            self.lines
                .push(Traced::word("severity", found.from, found.text, meaning));
            return Some(severity);
        }
        let default = words.default?;
        self.lines.push(Traced::rule(
            "severity",
            default.as_str(),
            because_absent(words.from.as_ref()),
        ));
        Some(default)
    }

    fn key(&mut self, key: &Key) {
        for part in &key.parts {
            self.lines.push(match &part.value {
                Some(value) => Traced::text("key", &part.from, value),
                None => Traced::nothing("key", &part.from),
            });
        }
        if key.is_absent() {
            self.notes.push(Note::NoKey);
        }
    }
}
