//! Answers of a transcript that are given many times: `times: 180` with `{n}` in their texts and arguments.
//!
//! `{n}` counts from 1, or from the number beside `from`. A value that is nothing but `{n}` becomes a number.

use serde_json::Value;

const COUNTER: &str = "{n}";
/// No recording is longer.
const MOST: u64 = 10_000;

/// The answers, each as often as it says.
///
/// # Errors
/// The place of an answer whose numbers are none, and what is wrong with it.
pub(super) fn expanded(answers: Vec<Value>) -> Result<Vec<Value>, (usize, String)> {
    let mut all = Vec::with_capacity(answers.len());
    for (place, answer) in answers.into_iter().enumerate() {
        repeated(answer, &mut all).map_err(|error| (place, error))?;
    }
    Ok(all)
}

fn repeated(mut answer: Value, all: &mut Vec<Value>) -> Result<(), String> {
    let mut number = |key: &str| {
        let seen = answer.as_object_mut().and_then(|fields| fields.remove(key));
        let known = |value: Value| value.as_u64().ok_or_else(|| format!("{key}: {value} is no number from 0"));
        seen.map(known).transpose()
    };
    let (times, from) = (number("times")?, number("from")?.unwrap_or(1));
    let Some(times) = times else {
        all.push(answer);
        return Ok(());
    };
    if times > MOST {
        return Err(format!("times: {times} is more than {MOST}"));
    }
    all.extend((from..).zip(0..times).map(|(n, _)| counted(&answer, n)));
    Ok(())
}

fn counted(value: &Value, n: u64) -> Value {
    match value {
        Value::String(text) if text == COUNTER => n.into(),
        Value::String(text) => text.replace(COUNTER, &n.to_string()).into(),
        Value::Array(items) => items.iter().map(|item| counted(item, n)).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), counted(value, n))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_given_so_many_times_and_says_which_time_it_is() {
        let answer =
            json!({"times": 2, "from": 7, "chunks": [{"text": "page {n}"}, {"call": {"arguments": {"p": "{n}"}}}]});
        let once = json!({"chunks": [{"text": "{n}"}]});
        let page = |n: u64| json!({"chunks": [{"text": format!("page {n}")}, {"call": {"arguments": {"p": n}}}]});
        assert_eq!(expanded(vec![once.clone(), answer]), Ok(vec![once, page(7), page(8)]));
    }

    #[test]
    fn what_is_no_number_is_named_with_its_place() {
        let fault = |answer: Value| expanded(vec![json!({}), answer]).unwrap_err();
        assert_eq!(fault(json!({"times": "many"})), (1, "times: \"many\" is no number from 0".to_owned()));
        assert_eq!(fault(json!({"times": 10_001})), (1, "times: 10001 is more than 10000".to_owned()));
    }
}
