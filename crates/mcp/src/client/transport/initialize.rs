//! Repairs the answer to `initialize` of a server with small errors: programs in PHP write `[]` for an empty object,
//! and others omit fields that a client does not need.

use rmcp::model::{InitializeResult, ProtocolVersion};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// A longer result answers another request.
const MAX_BYTES: usize = 64 * 1024;
/// Each answer to `initialize` has one of these members.
const MEMBERS: [&str; 3] = ["protocolVersion", "serverInfo", "capabilities"];

/// The result in the form of the protocol; `None` if it has this form, or answers another request.
pub(super) fn mended(result: &RawValue) -> Option<Value> {
    let text = result.get();
    if text.len() > MAX_BYTES || !MEMBERS.iter().any(|name| text.contains(name)) {
        return None;
    }
    if serde_json::from_str::<InitializeResult>(text).is_ok() {
        return None;
    }
    let given: Map<String, Value> = serde_json::from_str(text).ok()?;
    let is_of_another = ["content", "tools", "structuredContent"]
        .iter()
        .any(|name| given.contains_key(*name));
    if is_of_another || !MEMBERS.iter().any(|name| given.contains_key(*name)) {
        return None;
    }
    let version = match given.get("protocolVersion") {
        Some(Value::String(version)) => json!(version),
        Some(_) | None => json!(ProtocolVersion::V_2025_03_26),
    };
    let info = given.get("serverInfo");
    let word = |name: &str| match info.and_then(|info| info.get(name)) {
        Some(Value::String(word)) => word.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(_) | None => "unknown".to_owned(),
    };
    let mut mended = json!({
        "protocolVersion": version,
        "capabilities": capabilities(given.get("capabilities")),
        "serverInfo": {"name": word("name"), "version": word("version")},
    });
    if let (Some(Value::String(instructions)), Value::Object(mended)) =
        (given.get("instructions"), &mut mended)
    {
        mended.insert("instructions".to_owned(), json!(instructions));
    }
    Some(mended)
}

/// The capabilities of the server. A server that does not say so is asked for its tools all the same.
fn capabilities(given: Option<&Value>) -> Value {
    let known = given
        .and_then(Value::as_object)
        .is_some_and(|given| !given.contains_key("tools") && !given.is_empty());
    if known {
        json!({})
    } else {
        json!({"tools": {}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<InitializeResult> {
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        mended(&raw).map(|mended| serde_json::from_value(mended).unwrap())
    }

    #[test]
    fn an_answer_to_initialize_that_is_a_little_off_is_read() {
        let info = r#""serverInfo":{"name":"x","version":"1"}"#;
        let version = r#""protocolVersion":"2025-06-18""#;
        for (text, name) in [
            (
                format!(r#"{{{version},"capabilities":{{"tools":[]}},{info}}}"#),
                "x",
            ),
            (
                format!(r#"{{{version},"capabilities":{{"tools":true,"logging":null}},{info}}}"#),
                "x",
            ),
            (format!(r#"{{{version},"capabilities":null,{info}}}"#), "x"),
            (
                format!(r#"{{{version},"capabilities":[],{info},"instructions":["a"]}}"#),
                "x",
            ),
            (format!(r#"{{{version},{info}}}"#), "x"),
            (
                format!(r#"{{"protocolVersion":1.0,"capabilities":{{"tools":{{}}}},{info}}}"#),
                "x",
            ),
            (
                format!(r#"{{{version},"capabilities":{{"tools":{{}}}}}}"#),
                "unknown",
            ),
            (
                format!(
                    r#"{{{version},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":1}}}}"#
                ),
                "x",
            ),
        ] {
            let read = parse(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(read.server_info.name, name, "{text}");
            assert!(read.capabilities.tools.is_some(), "{text}");
        }
    }

    #[test]
    fn any_other_result_stays_as_it_is() {
        for text in [
            r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}"#,
            r#"{"content":[{"type":"text","text":"capabilities"}],"capabilities":1}"#,
            r#"{"tools":[{"name":"serverInfo"}],"capabilities":1}"#,
            r#"["capabilities"]"#,
            r#"{"a":"capabilities"}"#,
            "null",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
