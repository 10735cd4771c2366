//! Repeats answers of a transcript: `times: 180`, with `{n}` in texts and arguments.
//!
//! `{n}` counts from 1, or from the value of `from`. A value that is only `{n}` becomes a number.

use serde_json::Value;

const COUNTER: &str = "{n}";
/// The most times that an answer may be repeated.
const MAX_TIMES: u64 = 10_000;

/// An answer whose `times` or `from` is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RepeatError {
    pub(super) index: usize,
    pub(super) message: String,
}

/// The answers, each as often as its `times` says.
///
/// # Errors
/// The index of an answer whose `times` or `from` is invalid.
pub(super) fn expanded(answers: Vec<Value>) -> Result<Vec<Value>, RepeatError> {
    let mut all = Vec::with_capacity(answers.len());
    for (index, answer) in answers.into_iter().enumerate() {
        repeated(answer, &mut all).map_err(|message| RepeatError { index, message })?;
    }
    Ok(all)
}

fn repeated(mut answer: Value, all: &mut Vec<Value>) -> Result<(), String> {
    let mut number = |key: &str| {
        let seen = answer.as_object_mut().and_then(|fields| fields.remove(key));
        seen.map(|value: Value| {
            value
                .as_u64()
                .ok_or_else(|| format!("{key}: {value} is not a whole number"))
        })
        .transpose()
    };
    let times = number("times")?;
    let from = number("from")?.unwrap_or(1);

    let Some(times) = times else {
        all.push(answer);
        return Ok(());
    };
    if times > MAX_TIMES {
        return Err(format!("times: {times} is more than {MAX_TIMES}"));
    }
    all.extend((from..).zip(0..times).map(|(n, _)| counted(&answer, n)));
    Ok(())
}

fn counted(value: &Value, n: u64) -> Value {
    match value {
        Value::String(text) if text == COUNTER => n.into(),
        Value::String(text) => text.replace(COUNTER, &n.to_string()).into(),
        Value::Array(items) => items.iter().map(|item| counted(item, n)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), counted(value, n)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_repeated_with_a_counter() {
        let answer = json!({"times": 2, "from": 7, "chunks": [{"text": "page {n}"}, {"call": {"arguments": {"p": "{n}"}}}]});
        let once = json!({"chunks": [{"text": "{n}"}]});
        let page = |n: u64| json!({"chunks": [{"text": format!("page {n}")}, {"call": {"arguments": {"p": n}}}]});
        assert_eq!(
            expanded(vec![once.clone(), answer]),
            Ok(vec![once, page(7), page(8)])
        );
    }

    #[test]
    fn an_invalid_number_is_reported_with_the_index_of_its_answer() {
        let fault = |answer: Value| {
            let error = expanded(vec![json!({}), answer]).unwrap_err();
            (error.index, error.message)
        };
        assert_eq!(
            fault(json!({"times": "many"})),
            (1, "times: \"many\" is not a whole number".to_owned())
        );
        assert_eq!(
            fault(json!({"times": 10_001})),
            (1, "times: 10001 is more than 10000".to_owned())
        );
    }
}
