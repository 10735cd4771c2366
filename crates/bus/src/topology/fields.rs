//! Compares two configurations field by field, with the field names that `nats stream edit` uses.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::difference::{Difference, FieldDifference};

/// A field that must be as expected, with the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
}

/// A row of a table of fields.
pub(super) const fn field(name: &'static str, why: &'static str) -> Field {
    Field { name, why }
}

/// The differences in `fields` between two configurations in their JSON form.
pub(super) fn differences(
    object: &str,
    fields: &[Field],
    found: &impl Serialize,
    expected: &impl Serialize,
) -> Vec<Difference> {
    let found = serde_json::to_value(found).unwrap_or_default();
    let expected = serde_json::to_value(expected).unwrap_or_default();
    let mut differences = Vec::new();
    for field in fields {
        let found = normalised(found.get(field.name));
        let expected = normalised(expected.get(field.name));
        if found != expected {
            differences.push(Difference {
                object: object.to_owned(),
                field: Some(FieldDifference {
                    name: field.name,
                    found: displayed(field.name, &found),
                    expected: displayed(field.name, &expected),
                    why: field.why,
                }),
            });
        }
    }
    differences
}

/// NATS omits zero values, and the order of a list has no meaning.
fn normalised(value: Option<&Value>) -> Value {
    match value {
        None => Value::Null,
        Some(Value::Bool(false)) => Value::Null,
        Some(Value::Number(number)) if number.as_i64() == Some(0) => Value::Null,
        Some(Value::String(text)) if text.is_empty() => Value::Null,
        Some(Value::Array(items)) if items.is_empty() => Value::Null,
        Some(Value::Array(items)) => {
            let mut items = items.clone();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Some(value) => value.clone(),
    }
}

fn displayed(field: &str, value: &Value) -> String {
    const DURATIONS: [&str; 6] = [
        "max_age",
        "duplicate_window",
        "ack_wait",
        "max_expires",
        "inactive_threshold",
        "subject_delete_marker_ttl",
    ];
    match (DURATIONS.contains(&field), value.as_u64()) {
        (true, Some(nanos)) => format!("{:?}", Duration::from_nanos(nanos)),
        _ if value.is_null() => "not set".to_owned(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_names_the_object_the_field_both_values_and_the_reason() {
        let fields = [
            Field {
                name: "discard",
                why: "a full queue refuses",
            },
            Field {
                name: "ack_wait",
                why: "the lease",
            },
            Field {
                name: "sealed",
                why: "never",
            },
            Field {
                name: "subjects",
                why: "all of them",
            },
        ];
        let found = json!({"discard": "old", "ack_wait": 5_000_000_000_u64, "sealed": false, "subjects": ["b", "a"], "x": 1});
        let expected = json!({"discard": "new", "ack_wait": 30_000_000_000_u64, "subjects": ["a", "b"], "x": 2});
        let lines: Vec<String> = differences("TARSY_ALERTS", &fields, &found, &expected)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            lines,
            [
                r#"TARSY_ALERTS: discard is "old", must be "new" (a full queue refuses)"#,
                "TARSY_ALERTS: ack_wait is 5s, must be 30s (the lease)",
            ]
        );
    }
}
