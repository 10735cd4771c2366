//! Long operations of a real server: its reports of progress extend a call, and a call without them ends in time.

use serde_json::{Value, json};

use super::investigation::{call, results};
use super::programs::{Node, line};

fn operation(seconds: u32, steps: u32) -> Value {
    call(
        "all.trigger-long-running-operation",
        &json!({"duration": seconds, "steps": steps}),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_of_a_foreign_server_extends_a_call_and_silence_ends_it() {
    let Some(node) = Node::find("progress") else {
        return;
    };
    let mut server = node.everything();
    server["tool_timeout"] = json!("2s");
    // The server reports each step: every 500 ms, and after 4 s.
    let shown = results(&line("all", &server), &[operation(5, 10), operation(4, 1)]).await;
    assert_eq!(
        shown[0].content,
        "Long running operation completed. Duration: 5 seconds, Steps: 10."
    );
    assert!(
        shown[1].is_error && shown[1].content.contains("no answer within 2"),
        "{shown:#?}"
    );
}
