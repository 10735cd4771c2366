//! Extracts the reason for a refusal from the body of the response, for people and models.

use serde_json::Value;

use super::body::without_bom;
use tarsy_core::visible::visible;

/// A longer reason is cut.
const MAX_REASON_CHARS: usize = 500;
/// The pointers to a reason in bodies of servers and gateways: JSON-RPC, RFC 9457, frameworks of Python, and most
/// others.
const PLACES: [&str; 8] = [
    "/error/message",
    "/detail",
    "/message",
    "/error_description",
    "/error/detail",
    "/reason",
    "/title",
    "/error",
];

/// The reason in a body: a member of a JSON object, or a short text. A page of HTML is none.
pub(super) fn reason(body: &[u8]) -> Option<String> {
    let body = without_bom(body);
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(json) => PLACES.iter().find_map(|place| said(json.pointer(place)?))?,
        Err(_) => std::str::from_utf8(body)
            .ok()
            .filter(|text| !text.trim_start().starts_with('<'))?
            .to_owned(),
    };
    let line = visible(&text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let mut chars = line.chars();
    let cut: String = chars.by_ref().take(MAX_REASON_CHARS).collect();
    match (cut.is_empty(), chars.next()) {
        (true, _) => None,
        (false, None) => Some(cut),
        (false, Some(_)) => Some(format!("{cut}…")),
    }
}

/// A text, or a list or an object as JSON: some servers list the faults of each argument.
fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Array(items) if !items.is_empty() => Some(value.to_string()),
        Value::Object(members) if !members.is_empty() => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_found_where_servers_write_it() {
        for (body, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no namespace prodd"}}"#,
                "no namespace prodd",
            ),
            (r#"{"detail":"Not  authenticated"}"#, "Not authenticated"),
            (
                r#"{"detail":[{"loc":["a"],"msg":"missing"}]}"#,
                r#"[{"loc":["a"],"msg":"missing"}]"#,
            ),
            (
                r#"{"error":"slow_down","error_description":"too many calls"}"#,
                "too many calls",
            ),
            (r#"{"error":"slow_down"}"#, "slow_down"),
            (r#"{"title":"Conflict","status":409}"#, "Conflict"),
            ("\u{feff}{\"message\":\"a\\u001b[1mb\"}", "ab"),
            (
                "upstream connect error\nreset",
                "upstream connect error reset",
            ),
        ] {
            assert_eq!(reason(body.as_bytes()).as_deref(), Some(expected), "{body}");
        }
        for body in [
            "",
            " \n",
            "<html>no</html>",
            "{}",
            "[]",
            "17",
            r#"{"error":{}}"#,
            r#"{"message":" "}"#,
        ] {
            assert_eq!(reason(body.as_bytes()), None, "{body}");
        }
        assert_eq!(reason(&[0xff, 0xfe]), None);
        let long = "é".repeat(MAX_REASON_CHARS + 1);
        assert_eq!(
            reason(long.as_bytes()).unwrap(),
            format!("{}…", "é".repeat(MAX_REASON_CHARS))
        );
    }
}
