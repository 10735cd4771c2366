//! Values are read as they were written: bytes exactly, text without NUL.

use serde_json::{Value, json};
use tarsy_core::alert::Severity;
use tarsy_core::chain::LaterWord;
use tarsy_core::execution::entry::{Entry, Mark, ToolResult};
use tarsy_core::execution::event_refs::RecordedEntry;
use tarsy_core::native::Grounding;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{Journal, Outbox, RunStatus, Sessions, StoreError};
use tarsy_reports::{SessionFilter, SessionPage};

use super::fixture::{checkpoint, completed, investigated, prompt, running_session};
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn all_256_byte_values_of_provider_data_come_back() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let written = checkpoint(executions[0], 1);
    store.append(lease, written.clone()).await.unwrap();
    let read = store
        .entries(lease.session_id, executions[0])
        .await
        .unwrap();
    assert_eq!(
        read,
        RecordedEntry::all(written.entries, vec![], Some(written.at)).collect::<Vec<_>>()
    );
    let Entry::Answer(answer) = &read[0].entry else {
        panic!("not an answer")
    };
    assert_eq!(
        answer.provider_data.as_ref().unwrap().payload,
        (0..=255).collect::<Vec<u8>>()
    );
    assert!(database.holds(
        "SELECT octet_length(provider_data) = 256 AND role = 'assistant' AND body -> 'text' IS NULL FROM entries \
         WHERE entry_no = 1"
    ));
    assert_eq!(
        database.number("SELECT count(*) FROM messages WHERE tool_calls IS NOT NULL"),
        1
    );
}

#[tokio::test]
async fn nul_is_replaced_in_every_column() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let mut dirty = checkpoint(executions[0], 1);
    dirty.entries = vec![Entry::ToolResult(ToolResult {
        call_id: "c\0".into(),
        tool: "t\0".into(),
        content: "a\0b".into(),
        is_error: false,
        whole_bytes: 0,
        not_sent: None,
        facts: None,
        spent: None,
    })];
    dirty.events = vec![EventDraft::new(
        EventType::ToolResult,
        "a\0b",
        json!({"k\0": ["v\0"]}),
    )];
    dirty.tool_calls[0].result = Some("\0".into());
    dirty.tool_calls[0].call.arguments = "{\"a\":\"\\u0000\"}".into();
    dirty.model_calls[0].answer.as_mut().unwrap().thinking = "\0".into();
    dirty.error = Some("\0".into());
    store.append(lease, dirty).await.unwrap();
    let read = store
        .entries(lease.session_id, executions[0])
        .await
        .unwrap();
    let clean = Entry::ToolResult(ToolResult {
        call_id: "c\u{fffd}".into(),
        tool: "t\u{fffd}".into(),
        content: "a\u{fffd}b".into(),
        is_error: false,
        whole_bytes: 0,
        not_sent: None,
        facts: None,
        spent: None,
    });
    assert_eq!(
        read.into_iter()
            .map(|recorded| recorded.entry)
            .collect::<Vec<_>>(),
        [clean]
    );
    let event = store
        .events(lease.session_id, 2, 1)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (event.content.as_str(), event.metadata),
        ("a\u{fffd}b", json!({"k\u{fffd}": ["v\u{fffd}"]}))
    );
    assert!(database.holds(r#"SELECT arguments = '{"a":"\u0000"}' FROM tool_interactions"#));
}

#[tokio::test]
async fn an_entry_of_a_newer_version_is_a_conflict() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    store
        .append(lease, prompt(executions[0], 1, "hello"))
        .await
        .unwrap();
    database.execute("UPDATE entries SET kind = 'dreamt'");
    let read = store.entries(lease.session_id, executions[0]).await;
    assert!(
        matches!(&read, Err(StoreError::Conflict(why)) if why.contains("dreamt")),
        "{read:?}"
    );
}

#[tokio::test]
async fn an_unknown_word_in_a_row_is_an_error_for_a_worker() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, _) = running_session(&store, 1).await;
    database.execute("ALTER TABLE alert_sessions DROP CONSTRAINT alert_sessions_end");
    database.execute("UPDATE alert_sessions SET status = 'paused'");
    let status = store.standing(lease.session_id).await;
    assert!(
        matches!(&status, Err(StoreError::Conflict(why)) if why.contains("unknown RunStatus \"paused\"")),
        "{status:?}"
    );
    let report = store.report(lease.session_id).await.unwrap().unwrap();
    assert_eq!(
        report.session.map(|session| session.status),
        Some(RunStatus::Unknown(LaterWord("paused"))),
        "a report shows it"
    );
}

#[tokio::test]
async fn a_text_too_large_for_the_full_text_index_is_stored() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, _) = running_session(&store, 1).await;
    let analysis = (0..200_000).map(|n| format!("w{n} ")).collect::<String>();
    let end = tarsy_engine::ports::SessionEnd {
        final_analysis: Some(analysis.clone()),
        ..completed()
    };
    store.finish(lease, end).await.unwrap();
    let report = store.report(lease.session_id).await.unwrap().unwrap();
    assert_eq!(report.session.unwrap().final_analysis, Some(analysis));
}

#[tokio::test]
async fn the_search_widget_is_stored_with_its_call_and_only_when_configured() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    for (number, kept) in [(1, false), (2, true)] {
        let mut written = checkpoint(executions[0], number);
        let grounding = Grounding {
            search_widget: "<b>wid\0get</b>".into(),
            ..Grounding::default()
        };
        for entry in &mut written.entries {
            if let Entry::Answer(answer) = entry {
                answer.groundings = vec![grounding.clone()];
            }
        }
        written.model_calls[0].answer.as_mut().unwrap().groundings =
            vec![grounding.clone(), grounding];
        written.model_calls[0].provider.keep_search_widget = kept;
        store.append(lease, written).await.unwrap();
    }
    let widgets = "SELECT count(*) FROM llm_interactions WHERE response::text LIKE '%get</b>%'";
    assert_eq!(database.number(widgets), 1);
    let two = "<b>wid\u{fffd}get</b>\n<b>wid\u{fffd}get</b>";
    assert!(database.holds(&format!(
        "SELECT response ->> 'search_widget' = E'{}' FROM llm_interactions WHERE checkpoint = 2",
        two.replace('\n', "\\n")
    )));
    assert_eq!(
        database.number("SELECT count(*) FROM entries WHERE body::text LIKE '%get</b>%'"),
        0
    );
    assert_eq!(
        database
            .number("SELECT count(*) FROM timeline_events WHERE metadata::text LIKE '%get</b>%'"),
        0
    );
}

#[tokio::test]
async fn a_report_has_the_citations_of_its_own_analysis() {
    let database = TestDatabase::create().await;
    let store = database.store();
    for (analysis, expected) in [
        (
            "the disk filled up with logs",
            json!([{"start": 4, "end": 8}]),
        ),
        ("other", Value::Null),
    ] {
        let (lease, executions) = running_session(&store, 1).await;
        let mut written = checkpoint(executions[0], 1);
        let event = |content: &str, citations: Value| {
            EventDraft::new(
                EventType::FinalAnalysis,
                content,
                json!({"citations": citations}),
            )
        };
        written.events = vec![
            event(analysis, json!([{"start": 4, "end": 8}])),
            event("of another agent", json!([{"start": 0}])),
        ];
        store.append(lease, written).await.unwrap();
        store.finish(lease, completed()).await.unwrap();
        let report = store.report(lease.session_id).await.unwrap().unwrap();
        assert_eq!(report.session.unwrap().citations, expected);
    }
}

#[tokio::test]
async fn a_status_of_a_later_version_is_shown_and_hides_no_other_row() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let one = investigated(&store, "one", Severity::High, completed()).await;
    let other = investigated(&store, "other", Severity::High, completed()).await;
    database.execute(&format!(
        "UPDATE alert_sessions SET status = 'paused', mark = 'new' WHERE session_id = '{one}'"
    ));
    let filter = SessionFilter {
        limit: 10,
        ..SessionFilter::default()
    };
    let shown = |status, mark| (status, mark);
    let lines = store.list_sessions(filter.clone()).await.unwrap();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| (line.session_id, shown(line.status, line.mark)))
        .collect();
    let expected = [
        (other, shown(RunStatus::Completed, None)),
        (
            one,
            shown(RunStatus::Unknown(LaterWord("paused")), Some(Mark::Unknown)),
        ),
    ];
    assert_eq!(lines, expected);
    let page = SessionPage {
        filter,
        before: None,
    };
    assert_eq!(store.session_page(page.clone()).await.unwrap().len(), 2);
    assert_eq!(store.status_counts(page).await.unwrap().completed, 1);
    let line = serde_json::to_value(RunStatus::Unknown(LaterWord("paused"))).unwrap();
    assert_eq!(line, json!("paused"), "programs read the word, too");
    let report = store.report(one).await.unwrap().unwrap();
    assert_eq!(
        report.session.map(|session| session.status),
        Some(RunStatus::Unknown(LaterWord("paused")))
    );
}
