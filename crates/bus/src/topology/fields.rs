//! Compares two configurations field by field, with the field names that `nats stream edit` uses.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// Fields that may be larger than expected.
const AT_LEAST: [&str; 3] = ["num_replicas", "max_bytes", "max_age"];

/// A field that must be as expected, with the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
}

/// A difference between a stream or consumer and the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `TARSY_ALERTS` or `TARSY_ALERTS/critical`.
    pub object: String,
    /// The field that differs; `None` if the stream or consumer is missing.
    pub field: Option<FieldDifference>,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDifference {
    pub name: &'static str,
    /// The value on the server, as JSON or a duration.
    pub found: String,
    pub expected: String,
    /// The reason for the expected value.
    pub why: &'static str,
}

impl Difference {
    pub(super) fn missing(object: &str) -> Self {
        Self {
            object: object.to_owned(),
            field: None,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            None => write!(f, "{}: missing", self.object),
            Some(FieldDifference {
                name,
                found,
                expected,
                why,
            }) => {
                let is_bound =
                    AT_LEAST.contains(name) && !["not set", "-1"].contains(&expected.as_str());
                let least = if is_bound { "at least " } else { "" };
                write!(
                    f,
                    "{}: {name} is {found}, must be {least}{expected} ({why})",
                    self.object
                )
            }
        }
    }
}

/// The differences in `fields` between two configurations in their JSON form.
pub(super) fn differences(
    object: &str,
    fields: &[Field],
    found: &Value,
    expected: &Value,
) -> Vec<Difference> {
    let differing = |field: &Field| {
        let (found, expected) = (
            normalised(found.get(field.name)),
            normalised(expected.get(field.name)),
        );
        (found != expected).then(|| Difference {
            object: object.to_owned(),
            field: Some(FieldDifference {
                name: field.name,
                found: displayed(field.name, &found),
                expected: displayed(field.name, &expected),
                why: field.why,
            }),
        })
    };
    fields.iter().filter_map(differing).collect()
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
