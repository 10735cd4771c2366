use super::*;
use crate::plan::ToolNames;
use crate::testing::{agent_plan, read_only_tool};

#[test]
fn an_observation_has_the_outcome_and_the_timeline_only_the_output() {
    let call = ToolCall {
        id: "c".into(),
        tool: "k8s.get".into(),
        arguments: "{}".into(),
        read_only: true,
    };
    let texts = |entry: &Entry| {
        let Entry::Observation(ToolResult { content, .. }) = entry else {
            panic!("{entry:?}")
        };
        (content.clone(), plain("k8s.get", content).to_owned())
    };
    let shown = |entry: Entry, content: &str, output: &str| {
        assert_eq!(texts(&entry), (content.to_owned(), output.to_owned()));
    };
    let react = Strategy::React;
    shown(
        answered(
            react,
            &call,
            ToolOutput {
                content: "12 pods".into(),
                is_error: false,
                whole_bytes: 0,
                facts: None,
            },
        ),
        "Observation: 12 pods",
        "12 pods",
    );
    let refused = answered(
        react,
        &call,
        ToolOutput {
            content: "forbidden".into(),
            is_error: true,
            whole_bytes: 0,
            facts: None,
        },
    );
    shown(
        refused,
        "Observation: Error executing k8s.get: forbidden",
        "forbidden",
    );
    let silent = "Error - Tool execution failed: no answer within 3 s";
    let entries = unanswered(
        react,
        &call,
        CallError {
            message: "no answer within 3 s",
            timeout: true,
        },
    );
    shown(
        entries[0].clone(),
        &format!("Observation: {silent}"),
        silent,
    );
    assert!(
        texts(&lost(react, &call)[1])
            .0
            .starts_with("Observation: Error - the connection was lost")
    );
}

#[test]
fn a_time_out_is_recognised_by_its_words() {
    let late = [
        "no answer: Timeout",
        "the request timed out",
        "context deadline exceeded",
        "READ TIMEOUT",
        "timeouts",
    ];
    assert!(late.iter().all(|error| is_timeout(error)));
    for other in [
        "connection refused",
        "",
        "time out of range",
        "the deadline is tomorrow",
    ] {
        assert!(!is_timeout(other), "{other}");
    }
    let call = ToolCall {
        id: "c".into(),
        tool: "k8s.get".into(),
        arguments: "{}".into(),
        read_only: true,
    };
    let counted = |error: &str, timeout| match unanswered(
        Strategy::React,
        &call,
        CallError {
            message: error,
            timeout,
        },
    )
    .pop()
    {
        Some(Entry::Failed {
            timeout,
            source: FailureSource::Tool,
            ..
        }) => timeout,
        other => panic!("{other:?}"),
    };
    assert!(
        counted("upstream timed out", false) && counted("slow", true) && !counted("reset", false)
    );
}

#[test]
fn a_model_with_bound_tools_gets_the_outcome_in_a_tool_result() {
    let call = ToolCall {
        id: "c".into(),
        tool: "k8s.got".into(),
        arguments: "{}".into(),
        read_only: true,
    };
    let native = Strategy::NativeThinking;
    let result = |content: &str| {
        Entry::ToolResult(ToolResult {
            call_id: "c".into(),
            tool: "k8s.got".into(),
            content: content.into(),
            is_error: true,
            whole_bytes: 0,
            not_sent: None,
            facts: None,
            spent: None,
        })
    };
    assert_eq!(
        answered(
            native,
            &call,
            ToolOutput {
                content: "forbidden".into(),
                is_error: true,
                whole_bytes: 0,
                facts: None,
            }
        ),
        result("forbidden")
    );
    assert_eq!(
        unanswered(
            native,
            &call,
            CallError {
                message: "reset",
                timeout: false
            }
        )[0],
        result("Error: reset")
    );
    let tools = ["k8s.get", "k8s.top"].map(|name| ToolSpec {
        original_name: None,
        name: name.into(),
        description: String::new(),
        parameters_schema: "{}".into(),
        read_only: true,
        approval: None,
    });
    let unknown = "Error: unknown tool 'k8s.got'. Available tools: k8s.get, k8s.top";
    assert_eq!(
        unknown_tool(&agent_plan(native, vec![]), &call, &tools),
        marked(result(unknown), NotSent::UnknownTool)
    );
    let plan = AgentPlan {
        tool_names: ToolNames::AsCalled,
        ..agent_plan(native, vec![])
    };
    let unknown = "Error: unknown tool 'k8s__got'. Available tools: k8s__get, k8s__top";
    assert_eq!(
        unknown_tool(&plan, &call, &tools),
        marked(result(unknown), NotSent::UnknownTool)
    );
    let several = ["a.got", "b.got"].map(read_only_tool);
    let bare = ToolCall {
        tool: "got".into(),
        ..call
    };
    let unknown = unknown_tool(&plan, &bare, &several);
    assert!(matches!(
        unknown,
        Entry::ToolResult(ToolResult { content, .. })
            if content == "Error: several servers have a tool 'got'. Call one of them by its whole name: a__got, b__got"
    ));
}
