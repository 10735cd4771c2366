//! The key of an alert: the parts that name its condition, each as text that does not depend on the order of fields.

use serde_json::Value;

use super::expression::{Alternative, Expression};
use super::view::{View, scalar};

/// Fields of an object that say how bad a condition is, and not which one it is.
const VOLATILE: [&str; 5] = ["severity", "priority", "level", "status", "state"];

/// The parts of a key; `None` represents an absent one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The list of the source that gave it.
    pub list: usize,
    pub parts: Vec<KeyPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// The expression that gave it, as written.
    pub from: String,
    pub value: Option<String>,
}

impl Key {
    pub fn is_absent(&self) -> bool {
        self.parts.iter().all(|part| part.value.is_none())
    }
}

/// The first list all of whose parts are present; otherwise the last list.
pub(super) fn read(lists: &[Vec<Expression>], view: &View<'_>) -> Key {
    let mut key = Key::default();
    for (list, expressions) in lists.iter().enumerate() {
        let parts: Vec<KeyPart> = expressions
            .iter()
            .map(|expression| part(expression, view))
            .collect();
        let complete = !parts.is_empty() && parts.iter().all(|part| part.value.is_some());
        key = Key { list, parts };
        if complete {
            break;
        }
    }
    key
}

fn part(expression: &Expression, view: &View<'_>) -> KeyPart {
    let found = expression.alternatives().iter().find_map(|alternative| {
        let value = match alternative {
            Alternative::Pointer(pointer) => canonical(view.find(pointer)?),
            Alternative::Captured(_) | Alternative::Template(_) => alternative.text(view),
        };
        Some(KeyPart {
            from: alternative.to_string(),
            value: Some(value?),
        })
    });
    found.unwrap_or_else(|| KeyPart {
        from: expression.to_string(),
        value: None,
    })
}

/// The same text for equal values in another order; `None` for an empty value.
pub fn canonical(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let kept = fields
                .iter()
                .filter(|(key, _)| !VOLATILE.contains(&key.as_str()));
            object(kept)
        }
        Value::Array(_) => ordered(value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => scalar(value),
    }
}

/// A value in a list or an object, as JSON.
fn ordered(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.to_string()),
        Value::Array(items) => {
            let mut items: Vec<String> = items.iter().filter_map(ordered).collect();
            items.sort_unstable();
            (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
        }
        Value::Object(fields) => object(fields.iter()),
    }
}

fn object<'v>(fields: impl Iterator<Item = (&'v String, &'v Value)>) -> Option<String> {
    let mut fields: Vec<(&String, String)> = fields
        .filter_map(|(key, value)| Some((key, ordered(value)?)))
        .collect();
    fields.sort_unstable();
    let fields: Vec<String> = fields
        .into_iter()
        .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
        .collect();
    (!fields.is_empty()).then(|| format!("{{{}}}", fields.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_and_volatile_fields_do_not_count() {
        for (value, expected) in [
            (
                json!({"b": [2, 1, null], "a": "x", "severity": "high"}),
                Some(r#"{"a":"x","b":[1,2]}"#),
            ),
            (
                json!(["b", {"y": 1, "x": {}}, "a"]),
                Some(r#"["a","b",{"y":1}]"#),
            ),
            (json!(" 12 "), Some("12")),
            (json!(12), Some("12")),
            (json!({"status": "x"}), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            assert_eq!(canonical(&value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn the_first_complete_list_is_taken_and_an_absent_part_keeps_its_place() {
        let body = json!({"a": 1, "c": ["y", "x"]});
        let of = |texts: &[&[&str]]| {
            let key = read(&lists(texts), &View::new(&body, None));
            (
                key.list,
                key.parts
                    .into_iter()
                    .map(|part| part.value)
                    .collect::<Vec<_>>(),
            )
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            of(&[&["/a", "/b"], &["/b | /c", "/a"]]),
            (1, vec![text(r#"["x","y"]"#), text("1")])
        );
        assert_eq!(of(&[&["/a"], &["/c"]]), (0, vec![text("1")]));
        assert_eq!(of(&[&["/b", "/a"]]), (0, vec![None, text("1")]));
    }

    fn lists(texts: &[&[&str]]) -> Vec<Vec<Expression>> {
        texts
            .iter()
            .map(|list| {
                list.iter()
                    .map(|text: &&str| Expression::parse(text).unwrap())
                    .collect()
            })
            .collect()
    }
}
