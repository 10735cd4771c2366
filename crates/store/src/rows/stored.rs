//! The form in which the database returns what was written to it: of JSON values, and of events.

use chrono::{DateTime, Utc};
use serde_json::{Map, Number, Value};

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventStatus, EventType, TimelineEvent};

use super::number;

/// An event of the session itself, whose type and texts are still to be set.
pub(crate) fn session_event(
    session_id: SessionId,
    session_seq: i32,
    created_at: DateTime<Utc>,
) -> TimelineEvent {
    TimelineEvent {
        session_id,
        session_seq: number::from_int(session_seq),
        execution_id: None,
        sequence_number: None,
        stage: None,
        agent: None,
        iteration: None,
        attempt: None,
        event_type: EventType::SessionStarted,
        status: EventStatus::Completed,
        content: String::new(),
        metadata: Value::Null,
        created_at,
        truncated: false,
    }
}

/// The value as `jsonb` returns it: the keys of objects in its order (by length, then by bytes), numbers as `numeric`
/// prints them.
pub fn json(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(json).collect()),
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_unstable_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            Value::Object(
                fields
                    .into_iter()
                    .map(|(key, value)| (key, json(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Number(number) => Value::Number(numeric(number)),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

/// `numeric` has no negative zero, and prints a large number with all its digits: those of an integer, if it is one.
fn numeric(number: Number) -> Number {
    if !number.is_f64() {
        return number;
    }
    let float = number.as_f64().unwrap_or_default();
    if float == 0.0 {
        return Number::from_f64(0.0).unwrap_or(number);
    }
    if float.abs() < 1e16 {
        return number;
    }
    let digits = format!("{float}");
    let integer = digits
        .parse::<u64>()
        .map(Number::from)
        .or_else(|_| digits.parse::<i64>().map(Number::from));
    integer.unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn numbers_and_keys_are_as_the_database_returns_them() {
        let written = json!({"bb": 1e18, "a": [-0.0, 1.5, 1e-7, 1e25], "c": {"zz": 1, "y": 2}});
        let stored = r#"{"a":[0.0,1.5,1e-7,1e25],"c":{"y":2,"zz":1},"bb":1000000000000000000}"#;
        assert_eq!(
            super::json(written),
            serde_json::from_str::<serde_json::Value>(stored).unwrap()
        );
    }
}
