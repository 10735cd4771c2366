//! Property tests: no text makes the parser panic, and the fields of a reply agree with each other.

use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::plan::ToolSpec;
use crate::react::{QuoteContext, ReplyKind, UntrustedHeaders, conclude, read, read_within};

#[test]
fn deep_nesting_in_an_input_hides_no_action() {
    let opened = [
        "[", "{\"a\":", "{a: ", "{'a': [", "- ", "- - ", "(", "`", "\"", "a: {", "```\n",
    ];
    for open in opened {
        for count in [10, 47, 48, 49, 129, 1_000, 100_000] {
            let text = format!("Action: a.b\nAction Input: {}", open.repeat(count));
            assert_eq!(read(&text, None).kind, ReplyKind::Action, "{open} {count}");
        }
    }
    for shape in ["k:\n", "- k:\n", "- \n", "- - k:\n"] {
        let deep: String = (0..300)
            .map(|n| format!("{}{shape}", " ".repeat(n)))
            .collect();
        assert_eq!(
            read(&format!("Action: a.b\nAction Input:\n{deep}"), None).kind,
            ReplyKind::Action,
            "{shape}"
        );
    }
}

/// Fragments of the format and of inputs.
const PARTS: [&str; 66] = [
    "Thought:",
    "Thought",
    "Action:",
    "Action Input:",
    "Final Answer:",
    "Observation:",
    "[Based on",
    "**Action:**",
    "**Action Input**:",
    "### Final Answer",
    "ACTION:",
    "action input:",
    "Action：",
    "- Action:",
    "> Thought:",
    "Action 1:",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    " ",
    "  ",
    "        ",
    "\t",
    "a.b",
    "a.b.c",
    "None",
    ".",
    "!`",
    "?** ",
    "{\"a\": 1,}",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "- ",
    "k: ",
    "k:",
    "k=",
    "k = ",
    ":",
    "=",
    ",",
    "\"",
    "'",
    "\"\"\"",
    "\\",
    "|",
    ">",
    "#",
    " # ",
    "// ",
    "/* ",
    "*/",
    "```json",
    "```",
    "`",
    "ü",
    "\u{a0}",
    "\u{feff}",
    "\u{130}",
    "7",
    "1e400",
    "null",
];

/// A random sequence of fragments, which is often close to the format.
fn almost_formatted() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PARTS.as_slice()), 0..60)
        .prop_map(|parts| parts.concat())
}

/// A call whose input consists of fragments of inputs, indented at random.
fn input() -> impl Strategy<Value = String> {
    let line = (
        0_usize..12,
        prop::collection::vec(prop::sample::select(PARTS[26..].to_vec()), 0..8),
    );
    prop::collection::vec(line, 0..16).prop_map(|lines| {
        let lines = lines
            .into_iter()
            .map(|(indent, parts)| format!("{}{}\n", " ".repeat(indent), parts.concat()));
        format!("Action: a.b\nAction Input: {}", lines.collect::<String>())
    })
}

fn check_reply(text: &str) -> Result<(), TestCaseError> {
    let reply = read(text, None);
    prop_assert_eq!(reply.kind == ReplyKind::Final, reply.final_answer.is_some());
    prop_assert_eq!(
        matches!(reply.kind, ReplyKind::Final | ReplyKind::Action),
        reply.feedback.is_none()
    );
    prop_assert_eq!(
        matches!(reply.kind, ReplyKind::Action | ReplyKind::UnknownTool),
        reply.arguments.is_some()
    );
    if let Some(sent) = &reply.arguments_text {
        let sent: Map<String, Value> = serde_json::from_str(sent).unwrap();
        prop_assert_eq!(Some(sent), reply.arguments);
    }
    let analysis = conclude(text, &UntrustedHeaders::default()).analysis;
    prop_assert!(
        reply
            .final_answer
            .is_none_or(|answer| answer == analysis || reply.found.contains(&"action"))
    );
    // A text that came completely from outside is neither a call nor an end.
    let mut untrusted = UntrustedHeaders::default();
    untrusted.add(text);
    let tools = [("a.b", true), ("a.b.c", false)].map(|(name, read_only)| ToolSpec {
        original_name: None,
        name: name.to_owned(),
        description: String::new(),
        parameters_schema: "{}".to_owned(),
        read_only,
        approval: None,
    });
    let quoted = read_within(
        text,
        &tools,
        QuoteContext {
            untrusted: &untrusted,
            was_rejected_as_quotation: false,
        },
    )
    .kind;
    prop_assert!(
        matches!(quoted, ReplyKind::Malformed | ReplyKind::UnknownTool),
        "{:?}",
        quoted
    );
    // White space around an answer changes nothing.
    prop_assert_eq!(read(&format!("\n\n{text}\n\n"), None).kind, reply.kind);
    Ok(())
}

proptest! {
    #[test]
    fn no_input_panics(text in input()) {
        check_reply(&text)?;
    }

    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        check_reply(&text)?;
    }

    #[test]
    fn no_almost_formatted_text_panics(text in almost_formatted()) {
        check_reply(&text)?;
    }
}
