//! Reduces a body that is larger than the limit of the queue: of its lists the worst alerts stay in full, the others
//! are counted by label and named; long texts are cut. The identity of the alert, its status and its severity stay.
//!
//! The form of the body stays what its source expects, because only lists, objects and texts that make up most of it
//! are shortened, wherever they stand. `members` has the pieces of JSON, `lists` chooses among them, `left_out` counts
//! the others, and `strings` cuts texts. One element is parsed at a time; the rest of the body stays text.

mod left_out;
mod lists;
mod members;
mod strings;

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;

use self::left_out::Counter;
pub use self::left_out::LeftOut;
use self::members::{MemberPart, Members, around};
use super::batch::Urgency;
use super::decode::{self, form, json, lenient};
use super::read::Intake;
use super::webhook::Given;
use super::{Hints, IntakeError, plain};
use crate::alert::AlertStatus;
use crate::sources::Repair;

/// The bytes that stay of one list, object or text of JSON. The text of an alert shows less than half of it.
const MAX_PART_BYTES: usize = 256 * 1024;
/// The bytes that stay of a text. An alert shows so much together with its fields.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Parts are looked for so deep.
const MAX_DEPTH: usize = 16;
/// JSON in a JSON text, in a form, in a JSON text.
const MAX_TEXTS: usize = 3;
/// The maximum number of rounds. Each one shortens a part that has about half of the body, or everything that is too
/// much.
const MAX_ROUNDS: usize = 40;
/// The lengths at which all texts are cut, should that not be enough.
const TEXT_BYTES: [usize; 3] = [16 * 1024, 2 * 1024, 256];
/// JSON in a text grows when it is written into it again.
const QUOTED_SHARE: usize = 2;

/// A smaller body: text in UTF-8, which no header has to describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced {
    pub body: String,
    /// The parts that were left out.
    pub left_out: LeftOut,
    /// The whole body is larger than what is read, after decompression: its end is missing.
    pub is_too_large: bool,
}

impl Reduced {
    /// The hints for the smaller body.
    #[must_use]
    pub fn hints(&self, of_whole: Hints) -> Hints {
        let left_out = Some(self.left_out.clone());
        Hints {
            content_type: None,
            content_encoding: None,
            left_out,
            ..of_whole
        }
    }
}

impl Intake {
    /// A body with the same alert in at most `limit` bytes (1,024 or more); `None` for one that is not larger, also
    /// after decompression.
    ///
    /// # Errors
    /// When the body is not text.
    pub fn reduced(
        &self,
        body: &[u8],
        hints: &Hints,
        limit: usize,
    ) -> Result<Option<Reduced>, IntakeError> {
        let mut repairs = Vec::new();
        let text = decode::text(body, hints.content(), &mut repairs)?;
        if text.len() <= limit && body.len() <= limit {
            return Ok(None);
        }
        let reducer = Reducer {
            limit,
            depth: 0,
            group: None,
            urgency: &|element: &Value, group: Option<AlertStatus>| {
                plain::urgency_of_element(
                    element,
                    Given {
                        group,
                        received_at: hints.received_at,
                    },
                )
            },
        };
        let mut reduced = reducer.body(&text, repairs.clone());
        // The words of a severity are those of the source, if it declares them.
        if let Some(ranking) = self.ranking(&reduced.body, hints) {
            reduced = Reducer {
                urgency: &|element: &Value, _: Option<AlertStatus>| ranking.urgency(element),
                ..reducer
            }
            .body(&text, repairs.clone());
        }
        // The last character may be cut, too.
        let is_cut =
            repairs.contains(&Repair::CutCompressed) && text.len() + 4 > super::MAX_BODY_BYTES;
        Ok(Some(Reduced {
            is_too_large: is_cut,
            ..reduced
        }))
    }
}

/// Reduces texts to a number of bytes.
#[derive(Clone, Copy)]
struct Reducer<'u> {
    limit: usize,
    /// The depth of the part in other parts.
    depth: usize,
    /// The status of the group whose list is reduced: that of its alerts without one.
    group: Option<AlertStatus>,
    /// The urgency of an element of a list, given the status of its group.
    urgency: &'u dyn Fn(&Value, Option<AlertStatus>) -> Urgency,
}

impl Reducer<'_> {
    fn body(&self, text: &str, mut repairs: Vec<Repair>) -> Reduced {
        let mut counter = Counter::default();
        if let Some(body) = self.json_of(text, &mut repairs, &mut counter)
            && body.len() <= self.limit
        {
            let left_out = counter.finish(text.len(), &repairs);
            return Reduced {
                body,
                left_out,
                is_too_large: false,
            };
        }
        let body = strings::middle_cut(text, self.limit.min(super::MAX_TEXT_BYTES - 1_024));
        counter.is_cut = body.len() < text.len();
        // The hash of the whole text keeps two texts apart that differ where they were cut.
        let key = plain::text_key(text);
        let left_out = counter.finish(text.len(), &repairs);
        Reduced {
            body,
            left_out: LeftOut {
                key: Some(key),
                ..left_out
            },
            is_too_large: false,
        }
    }

    /// The JSON in a text, as the decoder finds it, reduced; `None` for a plain text.
    fn json_of(
        &self,
        text: &str,
        repairs: &mut Vec<Repair>,
        counter: &mut Counter,
    ) -> Option<String> {
        if self.depth > MAX_TEXTS {
            return None;
        }
        let text = lenient::trimmed(text);
        if !json::is_json(text) {
            let form = form::text(text)?;
            decode::note(repairs, Repair::Form);
            return self.inner().json_of(&form, repairs, counter);
        }
        if serde_json::from_str::<&RawValue>(text).is_ok() {
            if !text.starts_with('"') {
                return Some(self.json(text, counter));
            }
            let inner: String = serde_json::from_str(text).ok()?;
            let json = self.inner().json_of(&inner, repairs, counter)?;
            decode::note(repairs, Repair::JsonInText);
            return Some(json);
        }
        if let Some(values) = lenient::values(text, repairs) {
            counter.unread += values.unread;
            let values: Vec<&str> = values.texts.iter().map(Cow::as_ref).collect();
            decode::note(repairs, Repair::Lines);
            let list = self.list(&values, self.limit.min(MAX_PART_BYTES), counter);
            return Some(self.json(&list, counter));
        }
        let repaired = lenient::repaired(text, repairs)?;
        Some(self.json(&repaired, counter))
    }

    fn inner(&self) -> Self {
        Self {
            depth: self.depth + 1,
            group: None,
            ..*self
        }
    }

    /// Valid JSON, or nearly, in at most about the limit.
    fn json(&self, text: &str, counter: &mut Counter) -> String {
        let mut body = Cow::Borrowed(text);
        for _ in 0..MAX_ROUNDS {
            if body.len() <= self.limit {
                return body.into_owned();
            }
            let shorter = self.shortened(&body, counter);
            if shorter.len() >= body.len() {
                break;
            }
            body = Cow::Owned(shorter);
        }
        for bytes in TEXT_BYTES {
            if body.len() > self.limit {
                counter.is_cut = true;
                body = Cow::Owned(strings::shortened(&body, bytes));
            }
        }
        body.into_owned()
    }

    /// The text with its largest part shortened.
    fn shortened(&self, text: &str, counter: &mut Counter) -> String {
        let mut part = MemberPart {
            json: text.trim(),
            group: self.group,
        };
        let mut members = Members::new(part.json);
        for _ in 0..MAX_DEPTH {
            let Some(larger) = members.half_of(part.json.len()) else {
                break;
            };
            part = larger;
            members = Members::new(part.json);
        }
        let MemberPart { json: part, group } = part;
        let excess = text.len() - self.limit;
        let budget = part
            .len()
            .saturating_sub(excess)
            .max(part.len() / 4)
            .min(MAX_PART_BYTES);
        let short = match &members {
            Members::List { elements, unread } => {
                counter.unread += unread;
                Reducer { group, ..*self }.list(elements, budget, counter)
            }
            Members::Object(fields) => self.object(fields, budget, counter),
            Members::Text => self.text(part, budget, counter),
            Members::Other => "null".to_owned(),
        };
        let (before, after) = around(text, part);
        [before, &short, after].concat()
    }

    /// A text in quotes: JSON in it is reduced as JSON, also in Base64; any other keeps its beginning and its end.
    fn text(&self, quoted: &str, budget: usize, counter: &mut Counter) -> String {
        let Ok(text) = serde_json::from_str::<String>(quoted) else {
            counter.is_cut = true;
            return strings::shortened(quoted, budget.min(MAX_TEXT_BYTES));
        };
        let inside = Reducer {
            limit: budget / QUOTED_SHARE,
            ..self.inner()
        };
        let short = match strings::base64_json(&text) {
            Some(json) => {
                let is_json = serde_json::from_str::<&RawValue>(&json).is_ok();
                is_json.then(|| strings::to_base64(&inside.json(json.trim(), counter)))
            }
            // What is nearly JSON in a text is a text.
            None if json::is_json(&text) => {
                let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
                is_json.then(|| inside.json(text.trim(), counter))
            }
            None => None,
        };
        let short = short.unwrap_or_else(|| {
            counter.is_cut = true;
            strings::middle_cut(&text, budget.min(MAX_TEXT_BYTES))
        });
        Value::from(short).to_string()
    }
}

#[cfg(test)]
mod tests;
