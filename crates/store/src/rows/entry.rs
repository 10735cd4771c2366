//! Entries of a journal as rows: the text and the provider's bytes have columns of their own, the rest is JSON.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde_json::Value;

use tarsy_core::execution::entry::{Entry, Role};

use super::nul;
use crate::schema::entries;

/// A row of `entries` without its numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EntryRow {
    pub(super) kind: &'static str,
    pub(super) role: Option<&'static str>,
    pub(super) content: Option<String>,
    pub(super) tool_call_id: Option<String>,
    pub(super) tool_name: Option<String>,
    pub(super) body: Value,
    pub(super) provider_data: Option<Vec<u8>>,
}

/// A row of `entries`, as it is read back.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = entries, check_for_backend(diesel::pg::Pg))]
pub(crate) struct StoredEntry {
    kind: String,
    content: Option<String>,
    body: Value,
    provider_data: Option<Vec<u8>>,
    pub event_seq: Option<i32>,
    pub created_at: DateTime<Utc>,
}

pub(super) fn encode(mut entry: Entry) -> Result<EntryRow, serde_json::Error> {
    let provider_data = take_payload(&mut entry);
    let tool_call_id = entry.call_id().map(str::to_owned);
    let tool_name = entry.result().map(|result| result.tool.clone());
    let mut body = nul::replace_json(serde_json::to_value(&entry)?);
    let mut content = None;
    if let Value::Object(fields) = &mut body {
        fields.remove("kind");
        if let Some(Value::String(text)) = fields.remove(content_field(entry.kind())) {
            content = Some(text);
        }
    }
    Ok(EntryRow {
        kind: entry.kind(),
        role: entry.role().map(Role::as_str),
        content,
        tool_call_id: tool_call_id.map(nul::replace),
        tool_name: tool_name.map(nul::replace),
        body,
        provider_data,
    })
}

/// The entry of a row.
///
/// # Errors
/// When this version does not know the kind or the shape of the entry.
pub(crate) fn decode(row: StoredEntry) -> Result<Entry, serde_json::Error> {
    let StoredEntry {
        kind,
        content,
        mut body,
        provider_data,
        ..
    } = row;
    if let Value::Object(fields) = &mut body {
        if let Some(content) = content {
            fields.insert(content_field(&kind).to_owned(), Value::String(content));
        }
        fields.insert("kind".to_owned(), Value::String(kind));
    }
    let mut entry: Entry = serde_json::from_value(body)?;
    if let (Entry::Answer(answer), Some(payload)) = (&mut entry, provider_data)
        && let Some(data) = &mut answer.provider_data
    {
        data.payload = payload;
    }
    Ok(entry)
}

fn take_payload(entry: &mut Entry) -> Option<Vec<u8>> {
    let Entry::Answer(answer) = entry else {
        return None;
    };
    answer
        .provider_data
        .as_mut()
        .map(|data| std::mem::take(&mut data.payload))
}

/// The field that is stored in the column `content`.
fn content_field(kind: &str) -> &'static str {
    if kind == "answer" { "text" } else { "content" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_core::execution::entry::{
        About, AlertUpdated, Answer, FailureSource, Finish, NotSent, Outcome, ParsedReply,
        ProviderData, RefusedTool, SentCall, StopReason, Summary, ToolCall, ToolResult, Usage,
    };
    use tarsy_core::native::{
        CodePart, Confidence, Grounding, OtherSource, Retrieval, Source, Support,
    };
    use tarsy_core::react::ReplyKind;

    fn answer() -> Entry {
        Entry::Answer(Answer {
            text: "looking".into(),
            thinking: "hm".into(),
            calls: vec![ToolCall {
                id: "c1".into(),
                tool: "k8s.get".into(),
                arguments: "{\"b\":1,\"a\":2.50}".into(),
                read_only: true,
            }],
            usage: Usage {
                input_tokens: 1,
                cached_tokens: 2,
                output_tokens: 3,
                thinking_tokens: u64::MAX,
            },
            finish: Finish::ToolCalls,
            is_signed: true,
            code_executions: vec![CodePart {
                code: "1+1".into(),
                result: "2".into(),
                ..CodePart::default()
            }],
            groundings: vec![Grounding {
                queries: vec!["q".into()],
                sources: vec![Source {
                    uri: "https://x".into(),
                    title: "X".into(),
                }],
                supports: vec![Support {
                    start_index: 1,
                    end_index: 2,
                    text: "a".into(),
                    grounding_chunk_indices: vec![0],
                    confidence_scores: vec![Confidence::from_score(0.97)],
                    part_index: 1,
                }],
                retrievals: vec![Retrieval {
                    url: "https://y".into(),
                    status: "PAYWALL".into(),
                }],
                other_sources: vec![OtherSource {
                    kind: "maps".into(),
                    text: "a".into(),
                    supports: vec![Support::default()],
                    ..OtherSource::default()
                }],
                search_widget: String::new(),
            }],
            reading: Some(Box::new(ParsedReply {
                kind: ReplyKind::Action,
                thought: Some("look".into()),
                problem: None,
                quotes: false,
            })),
            provider_data: Some(Box::new(ProviderData {
                provider: "google".into(),
                model: "gemini".into(),
                format: "parts".into(),
                payload: (0..=255).collect(),
            })),
            masked_calls: vec!["c1".into()],
            refused_tools: vec![RefusedTool {
                tool: "k8s.odd".into(),
                reason: "bad schema".into(),
            }],
            unmasked: None,
        })
    }

    fn one_of_each() -> Vec<Entry> {
        vec![
            Entry::Prompt {
                role: Role::System,
                content: "be brief".into(),
            },
            answer(),
            Entry::Answer(Answer::default()),
            Entry::ToolResult(ToolResult {
                call_id: "c1".into(),
                tool: "k8s.get".into(),
                content: "ok".into(),
                is_error: false,
                whole_bytes: 0,
                not_sent: Some(NotSent::UnfitArguments),
                facts: None,
                spent: None,
            }),
            Entry::Observation(ToolResult {
                call_id: "c".into(),
                tool: "a.b".into(),
                content: "Observation: x".into(),
                is_error: true,
                whole_bytes: 0,
                not_sent: None,
                facts: None,
                spent: None,
            }),
            Entry::Feedback {
                content: "again".into(),
                about: None,
            },
            Entry::Feedback {
                content: "later".into(),
                about: Some(About::Waited),
            },
            Entry::AlertUpdated(AlertUpdated {
                content: "n2".into(),
                upto: 3,
                firing: 1,
                ..AlertUpdated::default()
            }),
            Entry::Failed {
                error: "slow".into(),
                timeout: true,
                source: FailureSource::Model,
                code: "deadline_exceeded".into(),
            },
            Entry::Started {
                call_id: "c2".into(),
            },
            Entry::Lost {
                call_id: "c2".into(),
            },
            Entry::SentBefore {
                recovery: 1,
                calls: vec![SentCall {
                    tool: "k8s.restart".into(),
                    identity: "0f".into(),
                }],
            },
            Entry::Switched { provider: 1 },
            Entry::Concluding {
                reason: StopReason::MaxIterations,
            },
            Entry::elided(4),
            Entry::Summarised(Summary {
                call_id: "c1".into(),
                content: "3 pods".into(),
                ..Summary::default()
            }),
            Entry::Summarised(Summary {
                call_id: "c1".into(),
                error: "slow".into(),
                ..Summary::default()
            }),
            Entry::Stopped {
                reason: StopReason::Deadline,
            },
            Entry::Ended {
                outcome: Outcome::Completed {
                    analysis: "disk".into(),
                    reason: StopReason::FinalAnswer,
                    mark: None,
                    review: None,
                },
            },
            Entry::Ended {
                outcome: Outcome::Cancelled,
            },
        ]
    }

    #[test]
    fn every_entry_is_read_as_it_was_written() {
        for entry in one_of_each() {
            let EntryRow {
                kind,
                content,
                body,
                provider_data,
                ..
            } = encode(entry.clone()).unwrap();
            let created_at = DateTime::UNIX_EPOCH;
            let stored = StoredEntry {
                kind: kind.into(),
                content,
                body,
                provider_data,
                event_seq: None,
                created_at,
            };
            assert_eq!(decode(stored).unwrap(), entry);
        }
    }

    #[test]
    fn text_and_provider_bytes_are_left_out_of_the_json() {
        let row = encode(answer()).unwrap();
        assert_eq!(
            (row.kind, row.role, row.content.as_deref()),
            ("answer", Some("assistant"), Some("looking"))
        );
        assert_eq!(row.provider_data, Some((0..=255).collect()));
        assert_eq!(row.body.get("text"), None);
        assert_eq!(row.body["calls"][0]["arguments"], "{\"b\":1,\"a\":2.50}");
        assert!(!row.body.to_string().contains("payload"));
    }

    #[test]
    fn an_unknown_kind_is_an_error() {
        let kind = "dreamt".to_owned();
        let body = serde_json::json!({});
        let created_at = DateTime::UNIX_EPOCH;
        let row = StoredEntry {
            kind,
            content: None,
            body,
            provider_data: None,
            event_seq: None,
            created_at,
        };
        assert!(decode(row).is_err());
    }
}
