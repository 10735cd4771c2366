//! Conversations with a backend: keys and prompts, results of calls, and answers as lines.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::proto::generate_response::Content;
use crate::proto::{
    ConversationMessage, ErrorInfo, GenerateRequest, GenerateResponse, ProviderData, ToolCall,
    ToolDefinition,
};
use crate::service::backend::Backend;
use crate::service::call::{Call, Deadline};
use crate::service::provider::timeouts::Timeouts;
use crate::service::writer::ResponseWriter;

/// The key of every request. It may be in no message and no log.
pub(crate) const KEY: &str = "seeded-key-5d41402abc4b2a76";
/// A text in every prompt. It may be in no message and no log either.
pub(crate) const PROMPT: &str =
    "seeded prompt: why does the pod web-1 of the team payments crash every two minutes?";
pub(crate) const TIMEOUTS: Timeouts = Timeouts {
    first_chunk: Duration::from_millis(400),
    stall: Duration::from_millis(400),
    whole: None,
    end: Duration::from_millis(100),
};

pub(crate) fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        ..ToolDefinition::default()
    }
}

pub(crate) fn message(role: &str, content: &str) -> ConversationMessage {
    ConversationMessage {
        role: role.into(),
        content: content.into(),
        ..ConversationMessage::default()
    }
}

/// The request after this answer, with a result for each of its calls.
pub(crate) fn continued(
    mut request: GenerateRequest,
    answer: &[GenerateResponse],
) -> GenerateRequest {
    let mut assistant = message("assistant", "");
    for response in answer {
        match response.content.clone() {
            Some(Content::Text(text)) => assistant.content.push_str(&text.content),
            Some(Content::ToolCall(call)) => {
                assistant.tool_calls.push(ToolCall {
                    id: call.call_id,
                    name: call.name,
                    arguments: call.arguments,
                });
            }
            Some(Content::ProviderData(data)) => assistant.provider_data = Some(data),
            _ => {}
        }
    }
    let results: Vec<_> = assistant
        .tool_calls
        .iter()
        .map(|call| ConversationMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            ..message("tool", r#"{"ok":true}"#)
        })
        .collect();
    request.messages.push(assistant);
    request.messages.extend(results);
    request
}

pub(crate) fn provider_data(answer: &[GenerateResponse]) -> Option<ProviderData> {
    answer
        .iter()
        .find_map(|response| match response.content.clone() {
            Some(Content::ProviderData(data)) => Some(data),
            _ => None,
        })
}

/// The whole answer of a backend.
pub(crate) async fn answer(
    backend: &Backend,
    request: &GenerateRequest,
    deadline: Deadline,
) -> Vec<GenerateResponse> {
    let (sender, mut receiver) = mpsc::channel(32);
    let writer = ResponseWriter::new(sender, &request.accept);
    let answered = async move {
        backend
            .generate(&Call {
                request,
                deadline,
                writer: &writer,
            })
            .await;
        drop(writer);
    };
    let mut responses = Vec::new();
    let read = async {
        while let Some(response) = receiver.recv().await {
            responses.push(response.unwrap());
        }
    };
    tokio::join!(answered, read);
    responses
}

/// The error at the end of an answer.
pub(crate) fn error(answer: &[GenerateResponse]) -> ErrorInfo {
    match answer.last() {
        Some(GenerateResponse {
            content: Some(Content::Error(error)),
            is_final: true,
        }) => error.clone(),
        other => panic!("no error: {other:?}"),
    }
}

/// An answer as lines. Ids that this service made up become `call_…`, ids of failures `[id]`.
pub(crate) fn lines(answer: &[GenerateResponse]) -> Vec<String> {
    answer.iter().map(line).collect()
}

fn line(response: &GenerateResponse) -> String {
    match response.content.clone() {
        Some(Content::Text(text)) => format!("text {}", text.content),
        Some(Content::Thinking(text)) => format!("thinking {}", text.content),
        Some(Content::ToolCall(call)) => {
            let id = if call.call_id.starts_with("call_") {
                "call_…"
            } else {
                &call.call_id
            };
            format!("call {id} {} {}", call.name, call.arguments)
        }
        Some(Content::CodeExecution(code)) => {
            [code.id, code.language, code.code, code.outcome, code.result]
                .join("|")
                .replace('\n', "\\n")
        }
        Some(Content::Grounding(grounding)) => {
            let supports = grounding.grounding_supports.iter().map(|support| {
                let start = support.start_index;
                let end = support.end_index;
                format!(
                    "{}@{start}..{end}{:?}",
                    support.text, support.grounding_chunk_indices
                )
            });
            let sources = grounding
                .grounding_chunks
                .iter()
                .map(|source| source.uri.as_str())
                .collect::<Vec<_>>();
            let supports = supports.collect::<Vec<_>>();
            format!(
                "grounding {:?} {} {}",
                grounding.web_search_queries,
                sources.join(" "),
                supports.join(" ")
            )
        }
        Some(Content::Finish(finish)) => [
            finish.reason,
            finish.provider_reason,
            finish.message,
            finish.response_id,
            finish.model_version,
        ]
        .join("|"),
        Some(Content::ProviderData(data)) => {
            format!("data {}", String::from_utf8(data.payload).unwrap())
        }
        Some(Content::Usage(usage)) => format!(
            "usage {} {} {} {} {} {}",
            usage.input_tokens,
            usage.output_tokens,
            usage.total_tokens,
            usage.thinking_tokens,
            usage.cache_read_tokens,
            usage.tool_use_prompt_tokens
        ),
        Some(Content::Error(error)) => {
            format!("error {} {}", error.code, without_id(&error.message))
        }
        Some(Content::Retry(retry)) => format!("retry {} {}", retry.attempt, retry.code),
        None => "end".to_owned(),
    }
}

pub(crate) fn without_id(message: &str) -> String {
    match message.split_once('[') {
        Some((start, rest)) if rest.get(8..9) == Some("]") => {
            format!("{start}[id{}", rest.get(8..).unwrap())
        }
        Some(_) | None => message.to_owned(),
    }
}
