//! Answers with headers in other styles than the prompt asks for, and texts that only resemble headers.

use serde_json::json;

use super::{filled_fields, reply_json};
use crate::react::read;

#[test]
fn an_answer_is_understood_in_every_header_style() {
    let call = json!({"kind": "action", "thought": "Full?", "action": "host.df", "action_input": "{\"path\": \"/\"}",
        "arguments": {"path": "/"}});
    for text in [
        "**Thought:** Full?\n**Action:** host.df\n**Action Input:** {\"path\": \"/\"}",
        "**Thought**: Full?\n**Action**: `host.df`\n**Action Input**: {\"path\": \"/\"}",
        "**Thought: Full?**\n**Action: host.df**\n**Action Input: {\"path\": \"/\"}**",
        "### Thought\nFull?\n\n### Action\nhost.df\n\n### Action Input\n{\"path\": \"/\"}",
        "_Thought:_ Full?\n_Action:_ [host.df]\n_Action Input:_ {\"path\": \"/\"}",
        "THOUGHT: Full?\nACTION: host.df\nACTION INPUT: {\"path\": \"/\"}\nOBSERVATION: 94 %",
        "thought: Full?\naction: host.df\naction input: {\"path\": \"/\"}",
        "Thought : Full?\nAction : host.df\nAction Input : {\"path\": \"/\"}",
        "Thought：Full?\nAction：host.df()\nAction Input：{\"path\": \"/\"}",
        "- Thought: Full?\n- Action: host.df\n- Action Input: {\"path\": \"/\"}",
        "1. **Thought:** Full?\n2. **Action:** host.df\n3. **Action Input:** {\"path\": \"/\"}",
        "Thought 1: Full?\nAction 1: host.df\nAction Input 1: {\"path\": \"/\"}",
        "Thought: Full?\nAction: host.df\nAction_Input: {\"path\": \"/\"}",
        "\u{feff}Thought: Full?\r\nAction: host.df\r\nAction Input: {\"path\": \"/\"}\r\n",
        "\u{200b}Thought: Full?\n\u{200b}Action: host.df\nAction Input: {\"path\": \"/\"}\u{200b}",
        "```\nThought: Full?\nAction: host.df\nAction Input: {\"path\": \"/\"}\n```",
        "\n~~~text\n\nThought: Full?\nAction: host.df\nAction Input: {\"path\": \"/\"}\n~~~\n",
        "```\nThought: Full?\nAction: host.df\nAction Input: {\"path\": \"/\"}\n",
        "    Thought: Full?\n    Action: host.df\n    Action Input: {\"path\": \"/\"}\n    Observation: 94 %",
        "Thought: Full? **Action:** host.df **Action Input:** {\"path\": \"/\"}",
        "Thought: First.\nAction: host.du\nThought: Full?\n**Action:** host.df\n**Action Input:** {\"path\": \"/\"}",
    ] {
        assert_eq!(filled_fields(text), call, "{text}");
    }
    let ended = json!({"kind": "final", "thought": "Known.", "final_answer": "**Cause**: full"});
    for text in [
        "**Thought:** Known.\n**Final Answer:** **Cause**: full",
        "**Thought**\nKnown.\n\n**Final Answer**\n\n**Cause**: full\n",
        "## Thought\nKnown.\n## Final Answer:\n**Cause**: full",
        "Thought: Known.\nFinal answer: **Cause**: full",
        "Thought: Known. **Final Answer:** **Cause**: full",
        "- Thought: Known.\n- Final Answer: **Cause**: full",
        "```markdown\nThought: Known.\nFinal Answer: **Cause**: full\n```",
        "Thought: Known.\nAction: None\nAction Input: None\nFinal Answer: **Cause**: full",
        "Thought: Known.\nAction: N/A\nFinal Answer: **Cause**: full",
    ] {
        assert_eq!(filled_fields(text), ended, "{text}");
    }
}

#[test]
fn a_code_fence_inside_an_answer_stays_in_it() {
    let report = "Full.\n\n```sh\ndf -h\n```";
    for text in [
        format!("Final Answer: {report}"),
        format!("```\nFinal Answer: {report}\n```"),
        format!("````md\nThought: x\nFinal Answer: {report}\n````"),
    ] {
        assert_eq!(reply_json(&text)["final_answer"], report, "{text}");
    }
    let text = "```\nAction: host.df\nAction Input:\n```json\n{\"a\": 1}\n```\n```";
    assert_eq!(reply_json(text)["action_input"], "```json\n{\"a\": 1}\n```");
}

#[test]
fn a_text_that_only_mentions_actions_has_none() {
    let table = [
        (
            "Thought: a plan:\n- Action: look at the logs\n- Action: restart\n- Final Answer: then",
            "a thought and nothing after it",
        ),
        (
            "Thought: I go on.\naction: restart it\n**Action:** none of these",
            "a thought and nothing after it",
        ),
        (
            "Thought: I go on.\naction: restart\nAction Input: {}",
            "an action input without its action",
        ),
        (
            "Thought: the next action input: later",
            "a thought and nothing after it",
        ),
        (
            "Our Final Answer: wait\nThe Action: wait",
            "none of the sections",
        ),
    ];
    for (text, problem) in table {
        assert_eq!(read(text, None).problem.as_deref(), Some(problem), "{text}");
    }
    let report = "Do this:\n**Action:** restart\n### Action\nrestart now\n- Action: wait\nObservation: none\n**Action Input:** no\naction: a.b\n**Thought:** x";
    assert_eq!(
        filled_fields(&format!("Final Answer: {report}")),
        json!({"kind": "final", "final_answer": report})
    );
}

#[test]
fn an_input_is_data_up_to_the_next_header_at_its_own_depth() {
    let call = |text: &str| {
        (
            filled_fields(text)["action"].clone(),
            filled_fields(text)["arguments"].clone(),
        )
    };
    let table = [
        (
            "Action: a.b\nAction Input:\naction: restart\nthought: x\nobservation: y",
            json!({"action": "restart", "thought": "x", "observation": "y"}),
        ),
        (
            "Action: a.b\nAction Input:\ntext: |\n  Action: x.y\n  Observation: z\n  [Based on it]",
            json!({"text": "Action: x.y\nObservation: z\n[Based on it]"}),
        ),
        (
            "Action: a.b\nAction Input: x: It ends. Final Answer: no",
            json!({"x": "It ends. Final Answer: no"}),
        ),
        ("Action: a.b\nAction Input: {}\n Observation: 1", json!({})),
        (
            "Action: a.b\nAction Input: {\"x\": 1}\n**Observation:** 2",
            json!({"x": 1}),
        ),
        (
            "  Action: a.b\n  Action Input: x: 1\n  y:\n    z: 2\n  Thought: then",
            json!({"x": 1, "y": {"z": 2}}),
        ),
    ];
    for (text, arguments) in table {
        assert_eq!(call(text), (json!("a.b"), arguments), "{text}");
    }
    let next = "Action: a.b\nAction Input: {}\naction: c.d\naction input: {\"x\": 1}";
    assert_eq!(call(next), (json!("c.d"), json!({"x": 1})));
}
