//! What goes in comes out: bytes exactly, text without NUL.

use serde_json::json;
use tarsy::engine::ports::{Journal, JournalError, Outbox};
use tarsy::investigation::entry::Entry;
use tarsy::investigation::numbers::Recorded;
use tarsy::investigation::timeline::{EventDraft, EventType};

use super::fixture::{checkpoint, prompt, running_session};
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn all_256_byte_values_of_provider_data_come_back() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let written = checkpoint(executions[0], 1);
    store.append(lease, written.clone()).await.unwrap();
    let read = store.entries(lease.session_id, executions[0]).await.unwrap();
    assert_eq!(read, written.entries.into_iter().map(Recorded::from).collect::<Vec<_>>());
    let Entry::Answer(answer) = &read[0].entry else { panic!("not an answer") };
    assert_eq!(answer.provider_data.as_ref().unwrap().payload, (0..=255).collect::<Vec<u8>>());
    assert!(database.holds(
        "SELECT octet_length(provider_data) = 256 AND role = 'assistant' AND body -> 'text' IS NULL FROM entries \
         WHERE entry_no = 1"
    ));
    assert_eq!(database.number("SELECT count(*) FROM messages WHERE tool_calls IS NOT NULL"), 1);
}

#[tokio::test]
async fn nul_is_replaced_wherever_it_comes_in() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let mut dirty = checkpoint(executions[0], 1);
    dirty.entries =
        vec![Entry::ToolResult { call_id: "c\0".into(), tool: "t\0".into(), content: "a\0b".into(), is_error: false }];
    dirty.events = vec![EventDraft::new(EventType::ToolResult, "a\0b", json!({"k\0": ["v\0"]}))];
    dirty.tool_calls[0].result = Some("\0".into());
    dirty.tool_calls[0].call.arguments = "{\"a\":\"\\u0000\"}".into();
    dirty.model_calls[0].answer.as_mut().unwrap().thinking = "\0".into();
    dirty.error = Some("\0".into());
    store.append(lease, dirty).await.unwrap();
    let read = store.entries(lease.session_id, executions[0]).await.unwrap();
    let clean = Entry::ToolResult {
        call_id: "c\u{fffd}".into(),
        tool: "t\u{fffd}".into(),
        content: "a\u{fffd}b".into(),
        is_error: false,
    };
    assert_eq!(read, [clean.into()]);
    let event = store.events(lease.session_id, 2, 1).await.unwrap().remove(0);
    assert_eq!((event.content.as_str(), event.metadata), ("a\u{fffd}b", json!({"k\u{fffd}": ["v\u{fffd}"]})));
    assert!(database.holds(r#"SELECT arguments = '{"a":"\u0000"}' FROM tool_interactions"#));
}

#[tokio::test]
async fn an_entry_of_a_newer_version_is_a_conflict_not_a_guess() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    store.append(lease, prompt(executions[0], 1, "hello")).await.unwrap();
    database.execute("UPDATE entries SET kind = 'dreamt'");
    let read = store.entries(lease.session_id, executions[0]).await;
    assert!(matches!(&read, Err(JournalError::Conflict(why)) if why.contains("dreamt")), "{read:?}");
}

#[tokio::test]
async fn a_text_too_rich_for_the_full_text_index_is_stored_all_the_same() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, _) = running_session(&store, 1).await;
    let analysis = (0..200_000).map(|n| format!("w{n} ")).collect::<String>();
    let end =
        tarsy::engine::ports::SessionEnd { final_analysis: Some(analysis.clone()), ..super::fixture::completed() };
    store.finish(lease, end).await.unwrap();
    let shown = store.show_session(lease.session_id).await.unwrap().unwrap();
    assert_eq!(shown.final_analysis, Some(analysis));
}
