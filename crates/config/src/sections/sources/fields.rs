//! Reads the small parts of a source: pointers, expressions, and words with their values.

use serde_json::Value;

use crate::read::fault::did_you_mean;
use crate::read::reader::{Field, Map};
use tarsy_core::sources::{Base, Condition, Expression, Pointer, Sign, TestSign, WordTable, Words};

/// The values that expressions of a source may use.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// The names of the groups of its capture.
    pub(super) groups: Vec<String>,
    pub(super) has_each: bool,
}

impl Scope {
    /// A pointer into the body or the element.
    pub(super) fn pointer(&self, field: &Field<'_>) -> Option<Pointer> {
        self.pointer_of(field, &field.text()?)
    }

    /// The pointer of a key whose value is `field`.
    fn pointer_of(&self, field: &Field<'_>, text: &str) -> Option<Pointer> {
        match Pointer::parse(text.trim()) {
            Ok(pointer) if pointer.base() == Base::Element && !self.has_each => {
                field.fault(format!(
                    "{text:?} leads into an element, and this source has no key each"
                ));
                None
            }
            Ok(pointer) => Some(pointer),
            Err(fault) => {
                field.fault(format!("{text:?}; {fault}"));
                None
            }
        }
    }

    /// A pointer into the body.
    pub(super) fn body_pointer(field: &Field<'_>) -> Option<Pointer> {
        Self::in_body(field, &field.text()?)
    }

    fn in_body(field: &Field<'_>, text: &str) -> Option<Pointer> {
        let pointer = Self {
            has_each: true,
            groups: Vec::new(),
        }
        .pointer_of(field, text)?;
        if pointer.base() == Base::Element {
            field.fault(format!(
                "{text:?}; accepted: a pointer into the body, such as /alert/id"
            ));
            return None;
        }
        Some(pointer)
    }

    /// An expression that uses nothing unknown.
    pub(super) fn expression(&self, field: &Field<'_>) -> Option<Expression> {
        let text = field.text()?;
        let expression = match Expression::parse(&text) {
            Ok(expression) => expression,
            Err(fault) => {
                field.fault(format!("{text:?}; {fault}"));
                return None;
            }
        };
        if expression.uses_element() && !self.has_each {
            field.fault(format!(
                "{text:?} leads into an element (@), and this source has no key each"
            ));
            return None;
        }
        let unknown = expression
            .captured()
            .into_iter()
            .find(|name| !self.groups.iter().any(|group| group == name));
        if let Some(name) = unknown {
            field.fault(self.unknown_group(name));
            return None;
        }
        Some(expression)
    }

    fn unknown_group(&self, name: &str) -> String {
        if self.groups.is_empty() {
            return format!("${name}, and this source has no capture with a group (?<{name}>…)");
        }
        let groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        let hint = did_you_mean(name, &groups)
            .map(|meant| format!(" (did you mean ${meant}?)"))
            .unwrap_or_default();
        format!(
            "${name} is no group of capture; groups: {}{hint}",
            groups.join(", ")
        )
    }

    /// An expression alone, or a mapping with `from`, `map` and `default`.
    pub(super) fn words<T: Copy + Default>(
        &self,
        field: &Field<'_>,
        known: &[T],
        word: fn(T) -> &'static str,
    ) -> Words<T> {
        if !field.is_map() {
            return Words {
                from: self.expression(field),
                ..Words::default()
            };
        }
        field.section(|map| {
            let from = map.get("from").and_then(|field| self.expression(&field));
            let mut table = WordTable::default();
            for (written, field) in map
                .get("map")
                .map(|field| field.entries())
                .unwrap_or_default()
            {
                if let Some(value) = field.choice(known, word) {
                    table.insert(&written, value);
                }
            }
            let default = map
                .get("default")
                .and_then(|field| field.choice(known, word));
            Words {
                from,
                map: table,
                default,
            }
        })
    }

    /// Pointers with the words that they are compared with.
    pub(super) fn conditions(
        &self,
        map: &mut Map<'_>,
        key: &'static str,
    ) -> Option<Vec<Condition>> {
        let entries = map.get(key)?.entries();
        let conditions = entries.iter().filter_map(|(text, field)| {
            Some(Condition {
                pointer: self.pointer_of(field, text)?,
                words: words_of(field)?.into_iter().collect(),
            })
        });
        Some(conditions.collect())
    }

    /// Pointers with the texts that they are in a test, or the values that they have. A text that ends with `*` stands
    /// for all that begin with it.
    pub(super) fn test_signs(&self, map: &mut Map<'_>) -> Option<Vec<TestSign>> {
        let entries = map.get("test")?.entries();
        let signs = entries.iter().filter_map(|(text, field)| {
            Some(TestSign {
                pointer: self.pointer_of(field, text)?,
                signs: signs_of(field)?,
            })
        });
        Some(signs.collect())
    }
}

fn signs_of(field: &Field<'_>) -> Option<Vec<Sign>> {
    let signs = one_or_several(field.written());
    if signs.is_empty()
        || signs
            .iter()
            .any(|sign| sign.is_array() || sign.is_object() || *sign == "" || *sign == "*")
    {
        field.expected(
            "a text, number, true, false or null that it is, or the beginning of a text with * behind it; or a list of them",
        );
        return None;
    }
    Some(signs.into_iter().map(sign).collect())
}

fn sign(value: Value) -> Sign {
    match value {
        Value::String(text) => match text.strip_suffix('*') {
            Some(beginning) => Sign::Begins(beginning.to_owned()),
            None => Sign::Equals(text),
        },
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_)) => Sign::Is(other),
    }
}

/// A word or a list of words.
fn words_of(field: &Field<'_>) -> Option<Vec<String>> {
    let words: Option<Vec<String>> = one_or_several(field.written())
        .into_iter()
        .map(|value| match value {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        })
        .collect();
    let words = words.filter(|words| !words.is_empty());
    if words.is_none() {
        field.expected("a word or a list of words");
    }
    words
}

fn one_or_several(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        one @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => vec![one],
    }
}
