//! The labels of an alert: an object, a list of `name:value` texts, or a list of objects with a name and a value.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pointer::Pointer;
use super::view::{View, scalar};

/// More labels than these are left out.
const MAX_LABELS: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelSource {
    /// The fields of an object that have a text, a number or a bool.
    Object(Pointer),
    /// A list of texts, or one text with commas, each split at the first separator.
    Split { list: Pointer, separator: String },
    /// A list of objects, with the pointers to name and value in each of them.
    Pairs {
        list: Pointer,
        name: Pointer,
        value: Pointer,
    },
}

/// The labels of all sources; an earlier one is not replaced.
pub(super) fn read(sources: &[LabelSource], view: &View<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (name, value) in sources
        .iter()
        .flat_map(|source| source.read(view))
        .take(MAX_LABELS)
    {
        labels.entry(name).or_insert(value);
    }
    labels
}

impl LabelSource {
    fn read(&self, view: &View<'_>) -> Vec<(String, String)> {
        match self {
            Self::Object(pointer) => {
                let fields = view
                    .find(pointer)
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten();
                fields
                    .filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
                    .collect()
            }
            Self::Split { list, separator } => {
                let texts: Vec<&str> = match view.find(list) {
                    Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
                    Some(Value::String(text)) => text.split(',').collect(),
                    Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_))
                    | None => Vec::new(),
                };
                texts
                    .into_iter()
                    .filter_map(|text| split(text.trim(), separator))
                    .collect()
            }
            Self::Pairs { list, name, value } => {
                let items = view
                    .find(list)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                let of = |item: &Value, pointer: &Pointer| scalar(pointer.find(item)?);
                items
                    .filter_map(|item| Some((of(item, name)?, of(item, value)?)))
                    .collect()
            }
        }
    }
}

/// A text without the separator is a separate label.
fn split(text: &str, separator: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once(separator).unwrap_or((text, "true"));
    let name = name.trim();
    let value = value.trim();

    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_come_from_objects_texts_and_pairs() {
        let body = json!({
            "labels": {"a": "1", "n": 2, "deep": {"x": 1}, "none": null},
            "tags": ["env:prod", "a:9", "alone", 7, ":x"], "text": "b:c:d, e",
            "dims": [{"k": "Host", "v": "db-1"}, {"k": "x"}, 5],
        });
        let pointer = |text: &str| Pointer::parse(text).unwrap();
        let split = |text: &str| LabelSource::Split {
            list: pointer(text),
            separator: ":".to_owned(),
        };
        let sources = [
            LabelSource::Object(pointer("/labels")),
            split("/tags"),
            split("/text"),
            split("/none"),
            LabelSource::Pairs {
                list: pointer("/dims"),
                name: pointer("/k"),
                value: pointer("/v"),
            },
        ];
        let expected = [
            ("Host", "db-1"),
            ("a", "1"),
            ("alone", "true"),
            ("b", "c:d"),
            ("e", "true"),
            ("env", "prod"),
            ("n", "2"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            read(&sources, &View::new(&body, None)),
            BTreeMap::from(expected)
        );
    }
}
