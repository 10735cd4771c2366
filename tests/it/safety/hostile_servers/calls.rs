//! Single calls of the MCP client.

use std::time::Duration;

use serde_json::json;
use tarsy_core::approvals::Channel;
use tarsy_core::execution::entry::ToolCall;
use tarsy_core::plan::{ApprovalRule, OnTimeout, ToolSpec, WhenResolved};
use tarsy_engine::ports::{ToolReply, ToolRequest, Tools};
use tarsy_mask::Mask;
use tarsy_mcp::{ServerConfig, Servers};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::server::{FAKE, HostileServer};
use crate::support::wait::eventually;

/// Far longer than any step here takes.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

fn start(configs: Vec<ServerConfig>) -> Servers {
    Servers::start(configs, Mask::default(), &CancellationToken::new()).unwrap()
}

fn call(tool: &str) -> ToolCall {
    ToolCall {
        id: "1".to_owned(),
        tool: format!("s.{tool}"),
        arguments: "{}".to_owned(),
        read_only: true,
    }
}

async fn ask(servers: &Servers, tool: &str, timeout: Duration) -> ToolReply {
    let call = call(tool);
    let asked = Box::pin(servers.call(ToolRequest::new(&call, timeout)));
    tokio::time::timeout(LONG, asked)
        .await
        .expect("the call outlives its time-out")
}

fn answered(content: &str) -> ToolReply {
    ToolReply::Answered {
        content: content.to_owned(),
        is_error: false,
    }
}

fn refused(content: &str) -> ToolReply {
    ToolReply::Answered {
        content: content.to_owned(),
        is_error: true,
    }
}

fn expired(error: &str) -> ToolReply {
    ToolReply::NoAnswer {
        error: error.to_owned(),
        timeout: true,
    }
}

#[tokio::test]
async fn after_a_crash_in_a_call_the_next_call_gets_a_new_server() {
    let server = HostileServer::start(&["crash", "crash_midway", "ok"]).await;
    let servers = start(vec![server.config("s")]);
    for (tool, connections) in [("crash", 1), ("crash_midway", 2)] {
        let error = format!("s.{tool}: connection lost during the call: Transport closed");
        assert_eq!(
            ask(&servers, tool, LONG).await,
            ToolReply::NoAnswer {
                error,
                timeout: false
            }
        );
        assert_eq!(
            (server.calls(tool).len(), server.connections()),
            (1, connections),
            "the client sends a call once"
        );
        assert_eq!(ask(&servers, "ok", LONG).await, answered("answer of ok"));
    }
    servers.close().await;
}

#[tokio::test]
async fn a_call_without_an_answer_is_cancelled_at_its_server() {
    let server = HostileServer::start(&["hang", "ok"]).await;
    let servers = start(vec![server.config("s")]);
    assert_eq!(
        ask(&servers, "ok", LONG).await,
        answered("answer of ok"),
        "the server has started"
    );
    assert_eq!(
        ask(&servers, "hang", SHORT).await,
        expired("s.hang: no answer within 300 ms")
    );
    assert_eq!(server.cancelled("hang").await, "\"no answer in time\"");

    let hang = call("hang");
    let mut dropped = Box::pin(servers.call(ToolRequest::new(&hang, LONG)));
    tokio::select! {
        reply = &mut dropped => panic!("answered: {reply:?}"),
        () = server.called("hang", 2) => {}
    }
    drop(dropped);
    assert_eq!(server.cancelled("hang").await, "\"the call was given up\"");
    servers.close().await;
}

#[tokio::test]
async fn a_late_or_second_answer_belongs_to_no_other_call() {
    let server = HostileServer::start(&["late", "twice", "ok"]).await;
    let servers = start(vec![server.config("s")]);
    for _ in 0..3 {
        assert_eq!(
            ask(&servers, "late", SHORT).await,
            expired("s.late: no answer within 300 ms")
        );
        server.cancelled("late").await; // and now the server answers
        assert_eq!(ask(&servers, "ok", LONG).await, answered("answer of ok"));
        assert_eq!(ask(&servers, "twice", LONG).await, answered("once"));
        assert_eq!(ask(&servers, "ok", LONG).await, answered("answer of ok"));
    }
    assert_eq!(server.connections(), 1);
    servers.close().await;
}

#[tokio::test]
async fn garbage_floods_and_wrong_results_cost_at_most_their_own_call() {
    let server = HostileServer::start(&[
        "garbage",
        "flood",
        "wrong_shape",
        "no_content",
        "no_result",
        "fake",
    ])
    .await;
    let servers = start(vec![server.config("s")]);
    assert_eq!(
        ask(&servers, "garbage", LONG).await,
        answered("answer after garbage")
    );
    assert_eq!(
        ask(&servers, "flood", LONG).await,
        answered("answer after the flood")
    );
    assert_eq!(
        ask(&servers, "wrong_shape", LONG).await,
        answered("no list")
    );
    let no_result = "the tool sent a message that is no result of a tool";
    assert_eq!(ask(&servers, "no_content", LONG).await, refused(no_result));
    let error = "s.no_result: the answer has neither a result nor an error".to_owned();
    assert_eq!(
        ask(&servers, "no_result", LONG).await,
        ToolReply::NoAnswer {
            error,
            timeout: false
        }
    );
    assert!(
        matches!(
            ask(&servers, "fake", LONG).await,
            ToolReply::Answered {
                is_error: false,
                ..
            }
        ),
        "{FAKE}"
    );
    assert_eq!(server.connections(), 1);
    servers.close().await;
}

#[tokio::test]
async fn a_result_of_50_megabytes_is_an_error_at_once() {
    let server = HostileServer::start(&["huge", "ok"]).await;
    let servers = start(vec![server.config("s")]);
    let ToolReply::Answered {
        content,
        is_error: true,
    } = ask(&servers, "huge", LONG).await
    else {
        panic!("no error")
    };
    assert!(
        content.starts_with("the answer is too large: 524288"),
        "{content}"
    );
    assert_eq!(ask(&servers, "ok", LONG).await, answered("answer of ok"));
    servers.close().await;
}

#[tokio::test]
async fn progress_extends_a_call_up_to_its_maximum_and_no_other_call() {
    let server = HostileServer::start(&["progress", "other_progress", "steps"]).await;
    let mut limited = server.config("s");
    limited.settings.tool_timeout = SHORT;
    limited.settings.max_tool_timeout = SHORT * 5;
    let servers = start(vec![limited]);
    // On a busy machine the progress itself, or the handshake, may come too late.
    let progressed = async |timeout: Duration| {
        let late = expired("s.progress: no answer within 300 ms");
        let unconnected = ToolReply::NotSent {
            error: "mcp server \"s\": no answer to the handshake within 300 ms".to_owned(),
        };
        for _ in 0..20 {
            let began = Instant::now();
            let reply = ask(&servers, "progress", timeout).await;
            if reply != late && reply != unconnected {
                return (reply, began.elapsed());
            }
        }
        (late, Duration::ZERO)
    };
    let whole = expired("s.progress: progress, but no answer within 1500 ms");
    let (reply, took) = progressed(LONG).await;
    assert_eq!(reply, whole);
    assert!(took >= SHORT * 5, "{took:?}");
    server.cancelled("progress").await;
    assert_eq!(
        ask(&servers, "other_progress", LONG).await,
        expired("s.other_progress: no answer within 300 ms")
    );

    let began = Instant::now();
    let done = async {
        server.called("steps", 1).await;
        tokio::time::sleep_until(began + SHORT * 3).await; // longer than the time-out without progress
        server.go();
    };
    let (reply, ()) = tokio::join!(ask(&servers, "steps", LONG), done);
    assert_eq!(reply, answered("all steps"));
    // The rest of the iteration is a limit, too.
    let rest = expired("s.progress: progress, but no answer within 600 ms");
    assert_eq!(progressed(SHORT * 2).await.0, rest);
    servers.close().await;
}

#[tokio::test]
async fn calls_beyond_the_limit_of_a_server_wait_and_those_of_others_do_not() {
    let (slow, other) = (
        HostileServer::start(&["wait", "hang"]).await,
        HostileServer::start(&["ok"]).await,
    );
    let mut limited = slow.config("s");
    limited.settings.max_concurrent_calls = 2;
    let servers = start(vec![limited, other.config("t")]);
    let (first, second, third) = (
        ask(&servers, "wait", LONG),
        ask(&servers, "wait", LONG),
        async {
            slow.called("wait", 2).await;
            let busy = "mcp server \"s\" is busy: 2 calls in flight".to_owned();
            assert_eq!(
                ask(&servers, "hang", SHORT).await,
                ToolReply::NotSent { error: busy }
            );
            let ok = ToolCall {
                tool: "t.ok".to_owned(),
                ..call("ok")
            };
            assert_eq!(
                servers.call(ToolRequest::new(&ok, LONG)).await,
                answered("answer of ok")
            );
            assert_eq!(slow.calls("hang").len(), 0, "the third call was not sent");
            slow.go();
        },
    );
    let (first, second, ()) = tokio::join!(first, second, third);
    assert_eq!([first, second], [answered("waited"), answered("waited")]);
    servers.close().await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_an_answer_and_no_call() {
    let server = HostileServer::start(&["ok"]).await;
    let servers = start(vec![server.config("s")]);
    let schema =
        json!({"type": "object", "required": ["pod"], "properties": {"pod": {"type": "string"}}})
            .to_string();
    let spec = |schema: &str| ToolSpec {
        name: "s.ok".to_owned(),
        original_name: None,
        description: String::new(),
        parameters_schema: schema.to_owned(),
        read_only: true,
        approval: None,
    };
    let ask = async |arguments: &str, schema: &str| {
        let (call, spec) = (
            ToolCall {
                arguments: arguments.to_owned(),
                ..call("ok")
            },
            spec(schema),
        );
        servers
            .call(ToolRequest::new(&call, LONG).with_spec(Some(&spec)))
            .await
    };
    for (arguments, fault) in [
        ("", "the arguments: \"pod\" is a required property"),
        (r#"{"pod": 7}"#, "/pod: value is not of type \"string\""),
    ] {
        let ToolReply::Refused { faults: content } = ask(arguments, &schema).await else {
            panic!("sent")
        };
        let expected =
            "the call was not sent, because its arguments do not fit the schema of the tool:";
        assert_eq!(
            content,
            format!("{expected}\n- {fault}\nCorrect the arguments and call the tool again.")
        );
    }
    assert_eq!(
        (server.calls("ok").len(), server.connections()),
        (0, 0),
        "not even a process was started"
    );
    assert_eq!(
        ask(r#"{"pod": "a"}"#, &schema).await,
        answered("answer of ok")
    );
    assert_eq!(
        ask(r#"{"pod": 7}"#, "{\"type\": 7}").await,
        answered("answer of ok"),
        "the schema cannot be used"
    );
    eventually("both calls were sent", async || {
        server.calls("ok").len() == 2
    })
    .await;
    servers.close().await;
}

/// A changing tool whose schema wants a list; a person approves its calls if there is a rule.
fn restarting(approval: Option<ApprovalRule>) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"pods": {"type": "array"}}});
    ToolSpec {
        name: "s.ok".to_owned(),
        original_name: None,
        description: String::new(),
        parameters_schema: schema.to_string(),
        read_only: false,
        approval,
    }
}

#[tokio::test]
async fn an_approved_call_is_sent_as_it_was_shown_although_its_schema_has_another_reading() {
    let server = HostileServer::start(&["ok"]).await;
    let servers = start(vec![server.config("s")]);
    let hour = 3_600_000;
    let rule = ApprovalRule {
        policy: "default".to_owned(),
        quorum: 1,
        timeout_ms: hour,
        valid_for_ms: hour,
        on_timeout: OnTimeout::Deny,
        on_resolved: WhenResolved::Withdraw,
        channels: vec![Channel::Cli],
        other_person: false,
    };
    // What people approved, for example before the reading of arguments changed with a version.
    let shown = r#"{"pods":"[\"a\"]"}"#;
    let call = ToolCall {
        arguments: shown.to_owned(),
        read_only: false,
        ..call("ok")
    };
    let mut sent = Vec::new();
    for spec in [restarting(None), restarting(Some(rule))] {
        let request = ToolRequest::new(&call, LONG).with_spec(Some(&spec));
        assert_eq!(servers.call(request).await, answered("answer of ok"));
        server.called("ok", sent.len() + 1).await;
        let last = server.calls("ok").pop().unwrap();
        sent.push(last["params"]["arguments"].to_string());
    }
    assert_eq!(sent, [r#"{"pods":["a"]}"#, shown]);
    servers.close().await;
}
