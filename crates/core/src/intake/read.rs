//! Reads a body with the sources of a configuration: recognises its source, and makes an alert of each part.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::batch::{self, Batch, worst};
use super::declared::{self, Ranking};
use super::decode::decode;
use super::reading::{MessageContext, ParsedBody};
use super::{Hints, IntakeError, envelope, plain, webhook};
use crate::alert::{Alert, AlertStatus};
use crate::sources::{NamedSource, Note, Reader, Source, Sources, Traced};

pub use super::batch::MAX_PARTS;

/// Unless the configuration says otherwise.
const MAX_ALERT_BYTES: usize = 512 * 1024;

/// Reads bodies with the sources of a configuration. Without any source it knows the webhooks of Alertmanager and
/// Grafana, JSON of any form, and text.
#[derive(Clone, Debug)]
pub struct Intake {
    sources: Arc<Sources>,
    max_alert_bytes: usize,
}

impl Default for Intake {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

/// An alert of a message, with the decisions and notes about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The place of the alert in the list of its message, from 0: the value of `Tarsy-Part`.
    pub index: u32,
    pub alert: Alert,
    pub labels: BTreeMap<String, String>,
    /// Web addresses by their names.
    pub links: BTreeMap<String, String>,
    /// The origin of each field. Not masked.
    pub trace: Vec<Traced>,
    pub notes: Vec<Note>,
}

/// The form in which a body is read.
enum BodyForm<'s> {
    Declared {
        name: &'s str,
        source: &'s Source,
        note: Option<Note>,
    },
    Read(Vec<ParsedBody>),
}

impl Intake {
    pub fn new(sources: Arc<Sources>) -> Self {
        Self {
            sources,
            max_alert_bytes: MAX_ALERT_BYTES,
        }
    }

    /// Sets the limit above which a body is reduced, in bytes.
    #[must_use]
    pub fn with_max_alert_bytes(self, max_alert_bytes: usize) -> Self {
        Self {
            max_alert_bytes,
            ..self
        }
    }

    /// A larger body is reduced before it is read.
    pub fn max_alert_bytes(&self) -> usize {
        self.max_alert_bytes
    }

    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Every alert of a message, in its order and never empty; of more than [`MAX_PARTS`] the worst. Of several with
    /// one fingerprint the last counts; ignored ones are left out beside others. The hints about one alert, title and
    /// fingerprint, do not count for several.
    ///
    /// # Errors
    /// When the body is not text, or is empty.
    pub fn read(&self, body: &[u8], hints: &Hints) -> Result<Vec<Part>, IntakeError> {
        let parts = self.read_all(body, hints, None)?;
        let has_alerts = parts
            .iter()
            .any(|part| part.alert.status != AlertStatus::Ignored);
        let mut kept: Vec<Part> = Vec::new();
        for part in parts {
            if has_alerts && part.alert.status == AlertStatus::Ignored {
                continue;
            }
            kept.retain(|known| known.alert.fingerprint != part.alert.fingerprint);
            kept.push(part);
        }
        batch::keep_worst(&mut kept);
        Ok(kept)
    }

    /// The alert of a message that `hints.part` names, otherwise the first one.
    ///
    /// # Errors
    /// When the body is not text, is empty, or has no such alert.
    pub fn part(&self, body: &[u8], hints: &Hints) -> Result<Part, IntakeError> {
        let parts = self.read(body, hints)?;
        let Some(wanted) = hints.part else {
            return parts.into_iter().next().ok_or(IntakeError::Empty);
        };
        match parts.into_iter().find(|part| part.index == wanted) {
            Some(part) => Ok(part),
            // One that another of its fingerprint follows, or that lies after the last.
            None => self
                .read_all(body, hints, Some(wanted))?
                .into_iter()
                .next()
                .ok_or(IntakeError::Empty),
        }
    }

    /// The alert of [`Self::part`].
    ///
    /// # Errors
    /// When the body is not text, is empty, or has no such alert.
    pub fn normalise(&self, body: &[u8], hints: &Hints) -> Result<Alert, IntakeError> {
        self.part(body, hints).map(|part| part.alert)
    }

    fn read_all(
        &self,
        body: &[u8],
        hints: &Hints,
        only: Option<u32>,
    ) -> Result<Vec<Part>, IntakeError> {
        let decoded = decode(body, hints.content())?;
        let mut readings = match decoded.value {
            Some(value) => self.read_value(value, hints)?,
            None => vec![plain::read_text(&decoded.text)],
        };
        let has_several = readings.len() > 1;
        let message = MessageContext {
            body: decoded.text.as_bytes(),
            hints,
            sources: &self.sources,
            has_several,
        };
        let unknown = hints
            .source
            .as_ref()
            .filter(|name| !self.sources.contains(name));
        let notes: Vec<Note> = decoded
            .repairs
            .iter()
            .copied()
            .map(Note::Repaired)
            .chain(unknown.cloned().map(Note::UnknownSource))
            .collect();
        readings.retain(|reading| only.is_none_or(|only| only == reading.index));
        readings
            .into_iter()
            .map(|mut reading: ParsedBody| {
                reading.notes.extend_from_slice(&notes);
                reading.finish(message)
            })
            .collect()
    }

    /// The alerts of a body, or those of each body in a list.
    fn read_value(&self, mut value: Value, hints: &Hints) -> Result<Vec<ParsedBody>, IntakeError> {
        value.sort_all_objects();
        let value = self.opened(value, hints);
        if !self.is_list_of_bodies(&value, hints) {
            return self.read_one(value, hints);
        }
        let Value::Array(bodies) = value else {
            return Err(IntakeError::Empty);
        };
        let mut batch = Batch::default();
        for (outer, body) in worst(
            bodies,
            |body| plain::urgency(body, hints.received_at),
            &mut batch,
        ) {
            let read = match body {
                Value::String(text) if !text.trim().is_empty() => Ok(vec![plain::read_text(&text)]),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    Err(IntakeError::Empty)
                }
                Value::Array(_) | Value::Object(_) => {
                    self.read_one(self.opened(body, hints), hints)
                }
            };
            match read {
                Ok(readings) => batch.extend(outer, readings),
                Err(IntakeError::Empty | IntakeError::Undecodable) => batch.no_alerts += 1,
            }
        }
        batch.finish()
    }

    /// Whether a value is a list with a body in each of its elements, and no body that is itself a list.
    fn is_list_of_bodies(&self, value: &Value, hints: &Hints) -> bool {
        let Some(items) = value.as_array().filter(|items| batch::has_bodies(items)) else {
            return false;
        };
        match self.named(hints).map(|named| (named, &named.reader)) {
            Some((named, Reader::Declared(source))) => {
                !source.takes_lists() && !named.fits_body(value)
            }
            Some((_, Reader::Alertmanager(_) | Reader::Grafana(_))) | None => {
                self.sources.fitting(value).is_empty()
                    && of_code(value, hints).is_none()
                    && !items.is_empty()
            }
        }
    }

    /// The alerts of one body, with their places in its list.
    fn read_one(&self, mut value: Value, hints: &Hints) -> Result<Vec<ParsedBody>, IntakeError> {
        let (name, source, note) = match self.form(&value, hints)? {
            BodyForm::Read(mut readings) => {
                for (index, reading) in (0..).zip(&mut readings) {
                    reading.index = index;
                }
                return Ok(readings);
            }
            BodyForm::Declared { name, source, note } => (name, source, note),
        };
        source.embed(&mut value);
        let elements = source.take_elements(&mut value);
        let read = |index: u32, element: Option<&Value>| {
            let mut reading = declared::read(name, source, &value, element);
            reading.index = index;
            reading.notes.extend(note.clone());
            reading
        };
        let Some(elements) = elements else {
            return Ok(vec![read(0, None)]);
        };
        let mut batch = Batch::default();
        for (index, element) in worst(
            elements,
            |element| declared::urgency(source, &value, element),
            &mut batch,
        ) {
            if matches!(element, Value::Null | Value::Bool(_) | Value::Number(_)) {
                batch.no_alerts += 1;
                continue;
            }
            batch.push(read(index, Some(&element)));
        }
        Ok(batch
            .finish()
            .unwrap_or_else(|_| vec![declared::without_elements(name, &value)]))
    }

    /// Ranks the elements of a body's list by the words of its source; `None` if it declares no list. The text is JSON
    /// with some of the elements.
    pub(super) fn ranking(&self, text: &str, hints: &Hints) -> Option<Ranking<'_>> {
        let mut value: Value = serde_json::from_str(text).ok()?;
        value.sort_all_objects();
        let mut value = self.opened(value, hints);
        if self.is_list_of_bodies(&value, hints) {
            return None;
        }
        let BodyForm::Declared { source, .. } = self.form(&value, hints).ok()? else {
            return None;
        };
        source.embed(&mut value);
        source.take_elements(&mut value)?;
        Some(Ranking {
            source,
            body: value,
        })
    }

    /// The body without its envelopes, unless a source of the user reads it in them.
    fn opened(&self, value: Value, hints: &Hints) -> Value {
        if self.is_of_user(&value, hints) {
            value
        } else {
            envelope::open(value)
        }
    }

    /// Whether a source of the user reads the body as it is, in its envelope.
    fn is_of_user(&self, value: &Value, hints: &Hints) -> bool {
        let named = self.named(hints).and_then(NamedSource::declared);
        self.sources.of_user(value).is_some()
            || named.is_some_and(|source| source.understands(value))
    }

    fn form<'s>(&'s self, value: &Value, hints: &Hints) -> Result<BodyForm<'s>, IntakeError> {
        if let Some(named @ NamedSource { name, reader }) = self.named(hints) {
            return Ok(match reader {
                Reader::Declared(_) if is_empty(value) => return Err(IntakeError::Empty),
                Reader::Declared(source) if named.accepts(value) => BodyForm::Declared {
                    name,
                    source,
                    note: None,
                },
                Reader::Declared(source) => self.form_of_another(name, source, value, hints)?,
                Reader::Alertmanager(_) | Reader::Grafana(_) => {
                    self.form_of_code(name, value, hints)?
                }
            });
        }
        let declared = |source: &'s NamedSource| {
            source.declared().map(|declared| BodyForm::Declared {
                name: &source.name,
                source: declared,
                note: None,
            })
        };
        if let Some(form) = self.sources.of_user(value).and_then(declared) {
            return Ok(form);
        }
        if let Some(readings) = of_code(value, hints) {
            return Ok(BodyForm::Read(readings));
        }
        match self.sources.of_builtin(value).and_then(declared) {
            Some(form) => Ok(form),
            None => Ok(BodyForm::Read(of_json(value, hints)?)),
        }
    }

    /// The form of a body for a source that code reads. Older versions of its vendor send other forms, which a built-in
    /// source may know.
    fn form_of_code<'s>(
        &'s self,
        name: &'s str,
        value: &Value,
        hints: &Hints,
    ) -> Result<BodyForm<'s>, IntakeError> {
        let declared = self
            .sources
            .of_builtin(value)
            .and_then(NamedSource::declared);
        let mut readings = match (of_code(value, hints), declared) {
            (Some(readings), _) => readings,
            (None, Some(source)) => {
                return Ok(BodyForm::Declared {
                    name,
                    source,
                    note: None,
                });
            }
            (None, None) => of_json(value, hints)?,
        };
        for reading in &mut readings {
            name.clone_into(&mut reading.source);
        }
        Ok(BodyForm::Read(readings))
    }

    /// The form of a body that does not fit the declared source of its path: that of another source, or of any JSON.
    /// What the source itself would drop by a default fires here.
    fn form_of_another<'s>(
        &'s self,
        name: &'s str,
        own: &'s Source,
        value: &Value,
        hints: &Hints,
    ) -> Result<BodyForm<'s>, IntakeError> {
        let other = self
            .sources
            .of_user(value)
            .or_else(|| self.sources.of_builtin(value));
        let declared = other.and_then(|other| Some((&other.name, other.declared()?)));
        let code = of_code(value, hints);
        if let (None, Some((other, source))) = (&code, declared) {
            let note = Some(Note::OtherForm(format!("as one of {other}")));
            return Ok(BodyForm::Declared { name, source, note });
        }
        if code.is_none() && own.understands(value) {
            return Ok(BodyForm::Declared {
                name,
                source: own,
                note: Some(Note::OtherForm("by it nevertheless".to_owned())),
            });
        }
        let (mut readings, read_as) = match code {
            Some(readings) => (readings, "as a group of alerts"),
            None => (of_json(value, hints)?, "by the names of its fields"),
        };
        for reading in &mut readings {
            name.clone_into(&mut reading.source);
            reading.notes.push(Note::OtherForm(read_as.to_owned()));
        }
        Ok(BodyForm::Read(readings))
    }

    /// The source that a header names.
    fn named(&self, hints: &Hints) -> Option<&NamedSource> {
        self.sources.get(hints.source.as_deref()?)
    }
}

/// JSON of a form that code knows.
fn of_code(value: &Value, hints: &Hints) -> Option<Vec<ParsedBody>> {
    let at = hints.received_at;
    webhook::read_api(value, at).or_else(|| {
        let left_out = hints
            .left_out
            .as_ref()
            .map_or(0, |left_out| left_out.firing);
        Some(vec![webhook::read(value, at)?.with_left_out(left_out)])
    })
}

/// JSON of no declared source.
fn of_json(value: &Value, hints: &Hints) -> Result<Vec<ParsedBody>, IntakeError> {
    match value {
        Value::Null => Err(IntakeError::Empty),
        Value::String(text) => Ok(vec![plain::read_text(text)]),
        Value::Bool(_) | Value::Number(_) => Ok(vec![plain::read_text(&value.to_string())]),
        Value::Array(_) | Value::Object(_) if is_empty(value) => Err(IntakeError::Empty),
        Value::Array(_) | Value::Object(_) => {
            Ok(of_code(value, hints).unwrap_or_else(|| plain::read_all(value, hints.received_at)))
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
