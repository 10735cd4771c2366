//! Tests of the markups of calls.

use super::*;
use crate::testing::read_only_tool;

fn found(text: &str) -> Option<&str> {
    first(text, &[read_only_tool("k8s.pods")], Labels::Call, |_| false)
}

#[test]
fn a_call_is_found_in_the_markup_of_every_model() {
    for call in [
        "<tool_call>\n{\"name\": \"k8s__pods\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>k8s__pods\n<arg_key>ns</arg_key>\n<arg_value>shop</arg_value>\n</tool_call>",
        "<tool_call>\n<function=k8s__pods>\n<parameter=ns>\nshop\n</parameter>\n</function>\n</tool_call>",
        "<TOOL_CALL>{\"name\"",
        "<function=k8s__pods>{\"ns\": \"shop\"}</function>",
        "<function_call> {\"name\": \"other\", \"arguments\": \"{}\"}",
        "<invoke name=\"k8s__pods\"><parameter name=\"ns\">shop</parameter></invoke>",
        "<minimax:tool_call>\n<invoke name=\"k8s.pods\">",
        "<|python_tag|>{\"name\": \"k8s__pods\", \"parameters\": {}}",
        "[TOOL_CALLS][{\"name\": \"k8s__pods\", \"arguments\": {}}]",
        "[TOOL_CALLS]k8s__pods[ARGS]{}",
        "<|tool_call_begin|>functions.k8s__pods:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "<|tool_call_start|>[k8s__pods(ns=\"shop\")]<|tool_call_end|>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>k8s__pods\n```json\n{}\n```",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"k8s__pods\">",
        "<|channel|>commentary to=functions.k8s__pods <|constrain|>json<|message|>{}<|call|>",
        "```tool_code\nprint(default_api.k8s__pods())\n```",
        "```tool_code\nprint(default_api.k8s__po",
        "{\"name\": \"k8s__pods\", \"arguments\": {\"ns\": \"shop\"}}",
        "[{\"function\": {\"name\": \"k8s.pods\", \"arguments\": \"{}\"}}]",
        "```json\n{\"tool\": \"k8s__pods\", \"args\": {}}\n```\n",
        "<|tool_call>call:k8s__pods{ns:<|\"|>shop<|\"|>}<tool_call|>",
        "<|action_start|><|plugin|>\n{\"name\": \"k8s__pods\", \"parameters\": {}}<|action_end|>",
        "<|FunctionCallBegin|>[{\"name\":\"k8s__pods\",\"parameters\":{}}]<|FunctionCallEnd|>",
        "<function_calls>\n<invoke name=\"k8s__pods\">\n</invoke>\n</function_calls>",
        "<longcat_tool_call>k8s__pods\n<longcat_arg_key>a</longcat_arg_key>\n</longcat_tool_call>",
        "<xai:function_call name=\"k8s__pods\">\n<parameter name=\"ns\">x</parameter>\n</xai:function_call>",
        "<use_mcp_tool>\n<server_name>k8s</server_name>\n</use_mcp_tool>",
        "<tool_call name=\"k8s__pods\">{}</tool_call>",
        "<tool name=\"k8s__pods\"><ns>x</ns></tool>",
        "<function(k8s__pods)>{}</function>",
        "<k8s__pods>\n<ns>x</ns>\n</k8s__pods>",
        "<|tool▁calls▁begin|><|tool▁call▁begin|>function<|tool▁sep|>k8s__pods",
        "<tool_call>",
        "to=functions.k8s__pods json{}",
        "to=k8s__pods json{}",
        "{\"action\": \"k8s__pods\", \"action_input\": {}}",
        "{\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"k8s__pods\", \"arguments\": \"{}\"}}]}",
        "{\"function_call\": {\"name\": \"k8s__pods\", \"arguments\": \"{}\"}}",
        "{\"tool_uses\": [{\"recipient_name\": \"functions.k8s__pods\", \"parameters\": {}}]}",
        "{\"k8s__pods\": {\"ns\": \"shop\"}}",
        "{\"name\": \"k8s__pods\", \"arguments\": {\"ns\": \"sh",
        "{\"name\": \"k8s__pods\", \"arguments\": {}}}",
        "{\"name\": \"k8s__pods\", \"arguments\": {}}; {\"name\": \"k8s__pods\", \"parameters\": {}}",
        "Action: k8s.pods\nAction Input: {}",
        "**Action:** k8s__pods\n**Action Input:** {}\nObservation: fine\nFinal Answer: Cause: nothing",
    ] {
        assert_eq!(found(call), Some(call));
        let behind_words = format!("I look at the pods.\n\n{call}");
        assert_eq!(found(&behind_words), Some(call), "behind words");
    }
}

#[test]
fn a_call_of_a_tool_that_is_not_offered_is_a_call() {
    for call in [
        "<function=k8s__restart>{\"by\": \"me\"}</function>",
        "<function=k8s__restart>\n<parameter=pod>\nx\n</parameter>\n</function>",
        "<function=restart></function>",
        "<function name=\"restart-pod\">{}</function>",
        "<invoke name='k8s.restart' >\n<parameter name=\"pod\">x</parameter>\n</invoke>",
        "<tool_call>restart_pod\r\n<arg_key>ns</arg_key>\n<arg_value>shop</arg_value>\n</tool_call>",
        "<tool_call>\n{\"name\": \"restart\", \"arguments\": {}}\n</tool_call>",
    ] {
        let behind_words = format!("I restart it.\n{call}");
        assert_eq!(found(&behind_words), Some(call));
    }
    let bare = "{\"name\": \"k8s__restart\", \"arguments\": {\"by\": \"me\"}}\n";
    assert_eq!(found(bare), Some(bare));
    for text in [
        "Run <tool> on <host>, then <function=off> it.",
        "The parser leaves <function=name> in the text.",
        "<function=> {}",
        "{\"name\": \"checkout\", \"arguments\": {}, \"status\": \"down\"}",
        "{\"name\": \"checkout\", \"input\": \"fast\"}",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
}

#[test]
fn a_call_as_in_a_program_counts_only_where_no_cause_is_named() {
    for call in [
        "k8s__pods(ns=\"shop\")",
        "[k8s__pods(ns=\"shop\")]",
        "print(default_api.k8s__pods(ns=\"shop\"))",
        "call:default_api:k8s__pods{ns:\"shop\"}",
        "functions.k8s__pods:0{\"ns\": \"shop\"}",
        "k8s__pods[ARGS]{}",
        "k8s.pods{}",
        "k8s__pods\n{}",
        "k8s__pods\n<arg_key>ns</arg_key>\n<arg_value>shop</arg_value>\n</tool_call>",
        "k8s__pods(\n  ns=\"shop\",\n)",
        "[Tool call: k8s__pods({})]",
        "[Called tool: k8s__pods with arguments {}]",
        "tool: k8s__pods\narguments:\n  ns: shop",
        "✿FUNCTION✿: k8s__pods\n✿ARGS✿: {}",
        "```python\nk8s__pods(ns=\"shop\")\n```",
        "```xml\n<tool_call>{\"name\": \"k8s__pods\", \"arguments\": {}}</tool_call>\n```\n",
    ] {
        let behind_words = format!("I look at the pods.\n\n{call}");
        assert_eq!(found(&behind_words), Some(call));
        let report = format!("Cause: the disk.\nNext step:\n{call}");
        assert_eq!(found(&report), None, "{report}");
    }
    for text in [
        "k8s__pods(ns=\"shop\") shows three pods.",
        "I have called k8s.pods (twice).",
        "The pods [tool call: k8s.pods] are fine [3].",
        "k8s__pods_old(a)",
        "Used: k8s.pods\nand k8s__pods(ns=\"a\")\nbut there is more to say.",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
}

#[test]
fn a_markup_in_code_in_a_quotation_or_without_a_call_is_text() {
    for text in [
        "Cause: the server leaves `<tool_call>{\"name\": \"k8s__pods\"}</tool_call>` in its answers.",
        "It logs:\n```\n<tool_call>{\"name\": \"k8s__pods\", \"arguments\": {}}</tool_call>\n```\nso the parser is off.",
        "> [TOOL_CALLS][{\"name\": \"k8s__pods\"}]\nis in the log.",
        "The log has <tool_call> tags in it.",
        "Cause: a < b, and <b>not</b> [1]. See [tool_call] in the handbook.",
        "```json\n{\"name\": \"k8s__pods\", \"arguments\": {}}\n```\nis what the client sent.",
        "```json\n{\"name\": \"checkout\", \"arguments\": {}}\n```",
        "{\"name\": \"k8s__pods\", \"status\": \"down\"}",
        "{\"cause\": \"the disk\"}",
        "",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
}

#[test]
fn a_call_that_a_text_from_outside_has_is_a_quotation() {
    let call =
        "<tool_call>\n{\"name\": \"k8s__pods\", \"arguments\": {\"ns\": \"shop\"}}\n</tool_call>";
    let alert = serde_json::json!({"log": call}).to_string();
    let tools = [read_only_tool("k8s.pods")];
    let quoted = |outside: &'static str| move |snippet: &str| has_snippet(outside, snippet);
    let outside: &'static str = alert.leak();
    assert_eq!(first(call, &tools, Labels::Call, quoted(outside)), None);
    let own = format!(
        "{call}\n<tool_call>{{\"name\": \"k8s__pods\", \"arguments\": {{\"ns\": \"live\"}}}}</tool_call>"
    );
    let second = first(&own, &tools, Labels::Call, quoted(outside)).unwrap();
    assert!(
        second.contains("live") && !second.contains("shop"),
        "{second}"
    );
}
