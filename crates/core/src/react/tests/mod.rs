//! Answers in the format that the prompt asks for, and answers that break it.

mod properties;
mod header_styles;
mod quoted;

use serde_json::{Value, json};

use crate::react::*;

/// The reply as JSON.
fn reply_json(text: &str) -> Value {
    serde_json::to_value(read(text, None)).unwrap()
}

/// The fields that are not null, without `found` and `feedback`.
fn filled_fields(text: &str) -> Value {
    let Value::Object(mut reply) = reply_json(text) else {
        panic!("an object")
    };
    reply.retain(|key, value| !value.is_null() && key != "found" && key != "feedback");
    Value::Object(reply)
}

#[test]
fn a_call_has_a_thought_a_tool_and_its_arguments() {
    let text = "Thought: Which disk is it?\nAction: host.df\nAction Input: {\"host\": \"db-3\", \"all\": true}";
    assert_eq!(
        reply_json(text),
        json!({
            "kind": "action", "thought": "Which disk is it?", "action": "host.df",
            "action_input": "{\"host\": \"db-3\", \"all\": true}", "arguments": {"host": "db-3", "all": true},
            "final_answer": null, "found": ["thought", "action", "action_input"], "feedback": null,
        })
    );
}

#[test]
fn headers_are_found_where_models_put_them() {
    let call = |thought: &str, input: &str| json!({"kind": "action", "thought": thought, "action": "host.df", "action_input": input, "arguments": {}});
    let bare = json!({"kind": "action", "action": "host.df", "action_input": "", "arguments": {}});
    let table = [
        (
            "Thought: Look.\nAction: host.df\nAction Input: {}",
            call("Look.", "{}"),
        ),
        (
            "Thought\nLook.\nAction: host.df\nAction Input: {}",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look.\nAction:\nhost.df\nAction Input:\n{}",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look.\nAction: `host.df`\nAction Input: {}",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look.\nAction: host.df Action Input: {}",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look.Action: host.df\nAction Input: {}",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look!` Action:\nhost.df\nAction Input: {}",
            call("Look!", "{}"),
        ),
        (
            "Thought\nSo much.\nLook.** Action: host.df\r\nAction Input: {}\r\n",
            call("So much.\nLook.", "{}"),
        ),
        ("\n\n  Action: host.df\n  Action Input:", bare),
        (
            "Thought: a\nAction: host.du\nThought: Look.\nAction: host.df\nAction Input: {}",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look.\nThought:\nAction: host.df\nAction Input: {}",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look.\nAction: host.df\nAction Input: {}\nFinal Answer: too early",
            call("Look.", "{}"),
        ),
        (
            "Final Answer: x\nThought: Look.\nAction: host.df\nAction Input: {}",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look.\nAction: host.df\nAction Input: {}\n\nObservation: 94 %\nThought: It is full.",
            call("Look.", "{}"),
        ),
        (
            "Thought: Look.\nAction: host.df\nAction Input: {}\n[Based on what it says …",
            call("Look.", "{}"),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(filled_fields(text), expected, "{text}");
    }
}

#[test]
fn a_recovered_name_of_three_parts_must_be_a_known_tool() {
    let text = "Thought: Look.\nI take action db.top.tables\nAction Input: {}";
    let tool = ToolSpec {
        original_name: None,
        name: "db.top.tables".to_owned(),
        description: String::new(),
        parameters_schema: "{}".to_owned(),
        read_only: true,
        approval: None,
    };
    assert_eq!(read(text, None).kind, ReplyKind::Malformed);
    assert_eq!(read(text, Some(&[])).kind, ReplyKind::Malformed);
    assert_eq!(
        read(text, Some(&[tool])).action.as_deref(),
        Some("db.top.tables")
    );
}

#[test]
fn an_unmarked_action_before_its_input_is_recovered() {
    for text in [
        "Thought: Look.\nAction host.df\nAction Input: {}",
        "Thought: Look.\naction: host.df\nAction Input: {}",
        "Thought: My first action\nhost.df\nAction Input: {}",
    ] {
        assert_eq!(filled_fields(text)["action"], "host.df", "{text}");
    }
    let name = |text| inline_header::tool_name(text);
    assert_eq!(
        (name("  host.df  "), name("host-1.df_h\nmore")),
        (Some("host.df"), Some("host-1.df_h"))
    );
    for text in ["", "just-text", "host.", ".df", "host df", "a..b"] {
        assert_eq!(name(text), None, "{text}");
    }
    assert_eq!(
        reply_json("Thought: no interaction host.df\nAction Input: {}")["kind"],
        "malformed"
    );
}

#[test]
fn a_final_answer_is_the_whole_text_after_its_header() {
    let table = [
        (
            "Final Answer: Full.",
            json!({"kind": "final", "final_answer": "Full."}),
        ),
        (
            "Thought: Done.\nFinal Answer: One.\n  - two\n\nThree.",
            json!({"kind": "final", "thought": "Done.", "final_answer": "One.\n  - two\n\nThree."}),
        ),
        (
            "Thought: That is all!Final Answer: Full.",
            json!({"kind": "final", "thought": "That is all!", "final_answer": "Full."}),
        ),
        (
            "Thought\nVersion 2.3.4 it is.\n\nEnough.Final Answer:\n**Cause**: x.\n\nRecommended Action: WAIT",
            json!({"kind": "final", "thought": "Version 2.3.4 it is.\n\nEnough.",
                "final_answer": "**Cause**: x.\n\nRecommended Action: WAIT"}),
        ),
        (
            "Final Answer: First.\nFinal Answer: Second.",
            json!({"kind": "final", "final_answer": "First.\nFinal Answer: Second."}),
        ),
        (
            "Final Answer: Full.\nAction: Delete old logs\nthen watch\nAction Input: none",
            json!({"kind": "final", "final_answer": "Full.\nAction: Delete old logs\nthen watch\nAction Input: none"}),
        ),
        (
            "Final Answer: The log says\nObservation: disk full\n[Based on that, wait]\n\nAnd more.",
            json!({"kind": "final",
                "final_answer": "The log says\nObservation: disk full\n[Based on that, wait]\n\nAnd more."}),
        ),
        (
            "Final Answer: The disk is full.\n\n[Based on what I was filled_fields, I can also …\nreally]\n\n",
            json!({"kind": "final", "final_answer": "The disk is full."}),
        ),
        (
            "Thought: Hm.\nObservation: Error in reasoning, try again\nFinal Answer: Full.",
            json!({"kind": "final", "thought": "Hm.\nObservation: Error in reasoning, try again",
                "final_answer": "Full."}),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(filled_fields(text), expected, "{text}");
    }
}

#[test]
fn a_call_after_a_final_answer_counts_only_with_a_tool_and_its_input() {
    for text in [
        "Final Answer: Full.\nAction: host.df\nAction Input: {}",
        "Final Answer: Full.Action: host.df\nAction Input: {}",
        "Final Answer: Full.\nReally. Action: host.df Action Input: {}",
        "Final Answer: Full.\nAction:\n\nhost.df\n\nAction Input: {}",
    ] {
        assert_eq!(
            (
                reply_json(text)["kind"].clone(),
                reply_json(text)["action"].clone()
            ),
            (json!("action"), json!("host.df")),
            "{text}"
        );
    }
    for text in [
        "Final Answer: Full.\nAction: host.df\nor so",
        "Final Answer: a. Action: host.df",
        "Final Answer: x\nAction: wait\nAction Input: {}",
    ] {
        assert_eq!(reply_json(text)["kind"], "final", "{text}");
    }
}

#[test]
fn an_answer_that_is_neither_call_nor_end_is_malformed_with_a_reason() {
    let table = [
        ("", "nothing at all"),
        ("  \n\t\n ", "nothing at all"),
        ("...!!!???", "none of the sections"),
        ("The disk is full.", "none of the sections"),
        (
            "Thought about it. Final Answer: This is wrong.",
            "none of the sections",
        ),
        (
            "Thought: I take action: look first.\n\nThat is all.",
            "a thought and nothing after it",
        ),
        (
            "Thought: What Action: means here.",
            "a thought and nothing after it",
        ),
        (
            "Thought: Look.\nAction: host.df",
            "an action without its input",
        ),
        (
            "Action: a.b\nAction Input: {}\nAction: c.d",
            "an action without its input",
        ),
        (
            "Thought: Look.\nAction Input: {}",
            "an action input without its action",
        ),
        (
            "Thought: x\nFinal Answer:",
            "a final answer without its text",
        ),
        (
            "Action:\nAction Input: {}",
            "an action without the name of a tool",
        ),
        (
            "Action: a.b\nFinal Answer:",
            "half a call and an empty answer, of Action:, Final Answer:",
        ),
        (
            "Observation: 94 %\nThought: It is full.",
            "an observation of its own",
        ),
        (
            "{\"tool\": \"host.df\", \"arguments\": {}}",
            "a call in another form",
        ),
        ("<tool_call>host.df</tool_call>", "a call in another form"),
    ];
    for (text, problem) in table {
        let reply = read(text, None);
        assert_eq!(
            (reply.kind, reply.problem.as_deref()),
            (ReplyKind::Malformed, Some(problem)),
            "{text}"
        );
        let feedback = reply.feedback.unwrap();
        assert!(
            !feedback.starts_with("Observation:")
                && feedback.contains("exactly one of these two forms"),
            "{feedback}"
        );
    }
}

#[test]
fn the_feedback_names_what_is_missing() {
    insta::assert_snapshot!(
        read("Thought: Look.\nAction: host.df", None)
            .feedback
            .unwrap()
    );
}

#[test]
fn an_unknown_tool_is_answered_with_the_available_ones() {
    let tool = |name: &str, description: &str| ToolSpec {
        original_name: None,
        name: name.to_owned(),
        description: description.to_owned(),
        parameters_schema: "{}".to_owned(),
        read_only: true,
        approval: None,
    };
    let tools = [
        tool("host.df", "Disk space.\nPer file system."),
        tool("db.top.tables", ""),
    ];
    let reply_to = |name: &str, tools: Option<&[ToolSpec]>| {
        let reply = read(&format!("Action: {name}\nAction Input: {{}}"), tools);
        (reply.kind, reply.feedback)
    };
    let list = "Available tools:\n  - host.df: Disk space.\n  - db.top.tables";
    let form = "A tool is called by its full name, 'server.tool'.";
    let unknown = |text: String| {
        (
            ReplyKind::UnknownTool,
            Some(format!("Observation: Error - Unknown tool {text}")),
        )
    };
    assert_eq!(
        reply_to("host.du", Some(&tools)),
        unknown(format!("'host.du'. Did you mean 'host.df'? {list}"))
    );
    assert_eq!(
        reply_to("sh.df", Some(&tools)),
        unknown(format!("'sh.df'. Did you mean 'host.df'? {list}"))
    );
    assert_eq!(
        reply_to("host df", Some(&tools)),
        unknown(format!("'host df'. {form} {list}"))
    );
    assert_eq!(
        reply_to("mail.send", Some(&tools)),
        unknown(format!("'mail.send'. {list}"))
    );
    assert_eq!(
        reply_to("mail.send", Some(&[])),
        unknown("'mail.send'. No tools are available: give your Final Answer.".to_owned())
    );
    assert_eq!(
        reply_to("host df", None),
        unknown(format!("'host df'. {form}"))
    );
    for name in [".df", "host.", "df"] {
        assert_eq!(reply_to(name, None).0, ReplyKind::UnknownTool, "{name}");
    }
    assert_eq!(
        reply_to("db.top.tables", Some(&tools)),
        (ReplyKind::Action, None)
    );
    assert_eq!(reply_to("any.thing", None), (ReplyKind::Action, None));
}

#[test]
fn a_forced_conclusion_is_the_answer_else_the_thought_else_the_text() {
    let analysis = |text| conclude(text, &UntrustedHeaders::default()).analysis;
    assert_eq!(analysis("Thought: a\nFinal Answer: b"), "b");
    assert_eq!(
        analysis("Thought: a\nAction: c.d\nAction Input: {}\nFinal Answer: b"),
        "b"
    );
    assert_eq!(analysis("Thought: a\nAction: c.d\nAction Input: {}"), "a");
    assert_eq!(
        analysis(" Cause: full\nEvidence: df \n"),
        "Cause: full\nEvidence: df"
    );
}
