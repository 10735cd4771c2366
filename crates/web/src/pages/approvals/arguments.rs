//! The arguments of a call, all of them: as they will be sent, and the places where their values occur.

use maud::{Markup, html};
use serde_json::Value;

use crate::shell::visibly::visibly;
use tarsy_core::approvals::{Origin, Origins};
use tarsy_core::ids::SessionId;

/// A deeper value is indented no further, so that a line keeps room for its text.
const MAX_DEPTH: usize = 16;

/// The arguments, byte for byte apart from the white space between their values.
pub(super) fn all(arguments: &str) -> Markup {
    html! {
        pre.args tabindex="0" { (visibly(&spread(arguments))) }
        @if !arguments.is_ascii() {
            p.warn { "These arguments have characters that are not ASCII. Some look like others." }
        }
    }
}

/// The values with the places where the investigation has seen them.
pub(super) fn origins(arguments: &str, origins: &Value, session: SessionId) -> Markup {
    let parsed: Value = serde_json::from_str(arguments).unwrap_or_default();
    let Origins(found) = Origins::from_value(origins);
    html! {
        @if found.is_empty() { p.muted { "No value has four characters or more." } } @else {
            div.scroll tabindex="0" { table {
                thead { tr { th scope="col" { "argument" } th scope="col" { "value" } th scope="col" { "occurs in" } } }
                tbody { @for origin in &found {
                    tr {
                        td.text { code { (visibly(&origin.at)) } }
                        td.text { code { (visibly(&value(&parsed, &origin.at))) } }
                        td { (places(origin, session)) }
                    }
                } }
            } }
        }
    }
}

fn value(arguments: &Value, at: &str) -> String {
    match arguments.pointer(at) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn places(origin: &Origin, session: SessionId) -> Markup {
    if origin.events.is_empty() {
        return html! { span.warn { (origin.words()) } };
    }
    html! {
        @for (index, event) in origin.events.iter().enumerate() {
            @if index > 0 { ", " } a href={ "/sessions/" (session) "#" (event) } { "event " (event) }
        }
        @if origin.in_alert { ", the alert" }
    }
}

/// JSON with one value a line. Every token keeps its bytes: a number is not read, and an escape stays an escape.
fn spread(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth: usize = 0;
    let mut chars = json.trim().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push(c);
                let mut is_escaped = false;
                for c in chars.by_ref() {
                    out.push(c);
                    if c == '"' && !is_escaped {
                        break;
                    }
                    is_escaped = c == '\\' && !is_escaped;
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = chars.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth.min(MAX_DEPTH)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tarsy_core::approvals::MAX_ARGUMENTS_BYTES;

    use super::*;

    #[test]
    fn each_value_has_a_line_and_keeps_its_bytes() {
        assert_eq!(
            spread(r#"{"a":"x, {y}: \"z\"", "n" : 12345678901234567890123.50,"e":{ },"l":[1,[]]}"#),
            "{\n  \"a\": \"x, {y}: \\\"z\\\"\",\n  \"n\": 12345678901234567890123.50,\n  \"e\": {},\n  \"l\": [\n    1,\n    []\n  ]\n}"
        );
        assert_eq!(spread("no json"), "nojson");
    }

    #[test]
    fn the_deepest_arguments_make_a_short_page() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(120), "]".repeat(120));
        assert!(deep.len() <= MAX_ARGUMENTS_BYTES);
        assert!(all(&deep).into_string().len() < 32 * 1024);
    }

    proptest! {
        #[test]
        fn spread_arguments_are_the_same_json(text in ".{0,40}", number in any::<i64>()) {
            let value = serde_json::json!({text.clone(): [text, number, {}], "z": null});
            let spread = spread(&value.to_string());
            prop_assert_eq!(serde_json::from_str::<Value>(&spread).unwrap(), value);
        }
    }
}
