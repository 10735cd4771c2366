//! Whole results of tool calls are read by the numbers of their events, and only within their session.

use serde_json::json;
use tarsy_core::execution::entry::{Entry, ToolCall, ToolResult};
use tarsy_core::ids::ExecutionId;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    Checkpoint, Journal, OpenRequest, Opened, Sessions, StoredResult, Timeline, ToolCallRecord,
};

use super::fixture::{checkpoint, completed, new_id, open_request, received, running_session};
use crate::support::postgres::TestDatabase;

/// A checkpoint with the cut result of the call `id`, of which the record has the whole.
fn cut_result(execution: ExecutionId, number: u32, id: &str, whole: Option<&str>) -> Checkpoint {
    let mut written = checkpoint(execution, number);
    let record = written.tool_calls[0].clone();
    let call = ToolCall {
        id: id.to_owned(),
        tool: "k8s.logs".to_owned(),
        ..record.call
    };
    let (call_id, tool, content) = (id.to_owned(), call.tool.clone(), "a part".to_owned());
    written.entries = vec![Entry::ToolResult(ToolResult {
        call_id,
        tool,
        content,
        whole_bytes: 9,
        ..ToolResult::default()
    })];
    written.events = vec![EventDraft::new(
        EventType::ToolResult,
        "a part",
        json!({"call_id": id}),
    )];
    written.tool_calls = vec![ToolCallRecord {
        call,
        result: whole.map(str::to_owned),
        ..record
    }];
    written
}

fn stored(text: Option<&str>) -> Option<StoredResult> {
    Some(StoredResult {
        tool: "k8s.logs".to_owned(),
        text: text.map(str::to_owned),
    })
}

#[tokio::test]
async fn a_whole_result_is_read_by_its_event_within_its_session_only() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 2).await;
    let (other, _) = running_session(&store, 1).await;
    // Two agents may use the same id of a call.
    for (execution, whole) in executions
        .iter()
        .zip([Some("whole of one"), Some("whole of two")])
    {
        store
            .append(lease, cut_result(*execution, 1, "same", whole))
            .await
            .unwrap();
    }
    store
        .append(lease, cut_result(executions[0], 2, "silent", None))
        .await
        .unwrap();
    let session = lease.session_id;
    let read =
        async |session, timeline, event| store.result(session, timeline, event).await.unwrap();
    assert_eq!(
        read(session, Timeline::Own, 3).await,
        stored(Some("whole of one"))
    );
    assert_eq!(
        read(session, Timeline::Own, 4).await,
        stored(Some("whole of two"))
    );
    assert_eq!(read(session, Timeline::Own, 5).await, stored(None));
    for event in [0, 1, 2, 6, u32::MAX] {
        assert_eq!(read(session, Timeline::Own, event).await, None, "{event}");
    }
    assert_eq!(
        read(other.session_id, Timeline::Own, 3).await,
        None,
        "another session"
    );
    assert_eq!(
        read(session, Timeline::Investigation, 3).await,
        None,
        "no question"
    );

    store.finish(lease, completed()).await.unwrap();
    let id = new_id();
    store.receive(received(id, b"why?")).await.unwrap();
    let question = OpenRequest {
        parent: Some(session),
        ..open_request(id, "")
    };
    assert!(matches!(store.open(question).await, Ok(Opened::Session(_))));
    assert_eq!(
        read(id, Timeline::Investigation, 3).await,
        stored(Some("whole of one"))
    );
    assert_eq!(read(id, Timeline::Own, 3).await, None);
}
