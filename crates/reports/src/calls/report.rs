//! A model call for people and programs, whole or in pages of messages.

use std::iter::repeat;

use serde::Serialize;
use serde_json::Value;

use super::{NumberedCall, RebuiltCall};
use tarsy_core::execution::conversation::Message;
use tarsy_core::execution::entry::{Answer, Finish, ProviderData, Role, ToolCall, Usage};
use tarsy_core::execution::request::RequestBody;
use tarsy_core::execution::state::{MessageForm, MessageSource};
use tarsy_core::plan::{Thinking, ToolSpec};

/// A call with more bytes has its messages in pages.
const MAX_BYTES: usize = 1024 * 1024;
/// Messages of one page.
const PAGE: usize = 100;

/// A model call: what the model saw, and what it answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallReport {
    #[serde(flatten)]
    pub call: NumberedCall,
    /// The number of calls that the session has.
    pub calls: u32,
    /// `None` when it cannot be made again.
    pub request: Option<RequestReport>,
    /// The reason why the request cannot be made again.
    pub not_rebuilt: Option<String>,
    /// `None` for a call without an answer, and for a summary.
    pub answer: Option<AnswerReport>,
    /// The summary that a call for one has made.
    pub summary: Option<String>,
}

/// The request of a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestReport {
    /// `<execution>:<iteration>`, of a summary also the number of the result's event.
    pub request_id: String,
    /// The number of its messages.
    pub message_count: usize,
    /// The messages of the request, in order.
    pub messages: Vec<MessageReport>,
    /// The number of the first message of the next page; `None` on the last one.
    pub next: Option<usize>,
    /// The tools that the model may call.
    pub tools: Vec<ToolReport>,
    /// The number of tools that were declared and could not be called.
    pub declared_tools: usize,
    pub max_output_tokens: Option<u32>,
    pub thinking: Option<Thinking>,
    pub temperature: Option<f64>,
    /// The provider's own tools.
    pub native_tools: Vec<&'static str>,
    /// Whether the service forgot what it had cached: another provider had answered before.
    pub clear_cache: bool,
}

/// A message of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageReport {
    /// The number of the message in its request, from 1.
    pub number: usize,
    pub role: Role,
    pub content: String,
    pub tool_calls: Vec<RequestedCall>,
    /// The id of the call that a result answers.
    pub tool_call_id: Option<String>,
    /// The tool that has given a result.
    pub tool: Option<String>,
    pub is_error: bool,
    /// The provider's own form of the answer, which is sent instead of the text.
    pub own_form: Option<OwnForm>,
    /// The number of its entry in the journal; `None` in the request for a summary.
    pub entry: Option<u32>,
    /// The number of its event, if it is a result.
    pub event: Option<u32>,
    /// A note stands in the place of the result, which was removed to save space.
    pub is_blanked: bool,
    /// A summary stands in the place of the result.
    pub is_summary: bool,
}

/// A call that an answer requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestedCall {
    pub id: String,
    pub tool: String,
    /// The arguments as the model wrote them, masked.
    pub arguments: String,
}

/// The opaque state of a provider, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnForm {
    pub provider: String,
    pub model: String,
    pub format: String,
    pub bytes: usize,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolReport {
    pub name: String,
    pub description: String,
    /// The JSON schema of its arguments; a text that is no JSON is a string.
    pub parameters_schema: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerReport {
    pub text: String,
    pub thinking: String,
    pub tool_calls: Vec<RequestedCall>,
    pub finish: Finish,
    pub usage: Usage,
    pub own_form: Option<OwnForm>,
}

impl CallReport {
    /// The report with all messages if it is small, else with the first of them.
    pub fn new(call: RebuiltCall) -> Self {
        let mut report = Self::whole(call);
        let is_long = report
            .request
            .as_ref()
            .is_some_and(|request| request.bytes() > MAX_BYTES);
        if is_long {
            report.keep_from(1);
        }
        report
    }

    /// The report with a page of messages, which begins with this number.
    pub fn from(call: RebuiltCall, first: usize) -> Self {
        let mut report = Self::whole(call);
        report.keep_from(first);
        report
    }

    /// The report with all messages.
    pub fn whole(call: RebuiltCall) -> Self {
        let mut report = Self {
            call: call.call,
            calls: call.calls,
            request: None,
            not_rebuilt: None,
            answer: None,
            summary: None,
        };
        match call.rebuilt {
            Ok(rebuilt) => {
                let request = RequestReport::new(&report.call, rebuilt.request, rebuilt.sources);
                report.request = Some(request);
                report.answer = rebuilt.answer.map(AnswerReport::from);
                let summary = rebuilt.summary.map(|summary| summary.content);
                report.summary = summary.filter(|content| !content.is_empty());
            }
            Err(reason) => report.not_rebuilt = Some(reason),
        }
        report
    }

    fn keep_from(&mut self, first: usize) {
        let Some(request) = &mut self.request else {
            return;
        };
        let end = first.saturating_add(PAGE);
        request
            .messages
            .retain(|message| (first..end).contains(&message.number));
        request.next = (end <= request.message_count).then_some(end);
    }
}

impl RequestReport {
    fn new(call: &NumberedCall, request: RequestBody, sources: Vec<MessageSource>) -> Self {
        let provider = request.provider;
        let sources = sources.into_iter().map(Some).chain(repeat(None));
        let numbered = (1..).zip(request.messages).zip(sources);
        let messages: Vec<MessageReport> = numbered
            .map(|((number, message), source)| MessageReport::new(number, message, source))
            .collect();
        let native_tools = provider.native_tools.iter().map(|tool| tool.as_str());
        Self {
            request_id: format!("{}:{}", call.call.execution_id, request.name),
            message_count: messages.len(),
            messages,
            next: None,
            tools: request.tools.into_iter().map(ToolReport::from).collect(),
            declared_tools: request.declared_tools.len(),
            max_output_tokens: provider.max_output_tokens,
            thinking: provider.thinking,
            temperature: provider.temperature,
            native_tools: native_tools.collect(),
            clear_cache: request.clear_cache,
        }
    }

    /// The bytes of its texts.
    fn bytes(&self) -> usize {
        let calls = self.messages.iter().flat_map(|message| &message.tool_calls);
        let arguments: usize = calls.map(|call| call.arguments.len()).sum();
        let contents = self.messages.iter().map(|message| message.content.len());
        arguments + contents.sum::<usize>()
    }
}

impl MessageReport {
    fn new(number: usize, message: Message, source: Option<MessageSource>) -> Self {
        let form = source.map(|source| source.form);
        Self {
            number,
            role: message.role,
            content: message.content,
            tool_calls: requested(message.tool_calls),
            tool_call_id: message.tool_call_id,
            tool: message.tool_name,
            is_error: message.is_error,
            own_form: message.provider_data.as_deref().map(OwnForm::new),
            entry: source.map(|source| source.entry),
            event: source.and_then(|source| source.event),
            is_blanked: form == Some(MessageForm::Blanked),
            is_summary: form == Some(MessageForm::Summarised),
        }
    }
}

fn requested(calls: Vec<ToolCall>) -> Vec<RequestedCall> {
    let calls = calls.into_iter().map(|call| RequestedCall {
        id: call.id,
        tool: call.tool,
        arguments: call.arguments,
    });
    calls.collect()
}

impl OwnForm {
    fn new(data: &ProviderData) -> Self {
        Self {
            provider: data.provider.clone(),
            model: data.model.clone(),
            format: data.format.clone(),
            bytes: data.payload.len(),
        }
    }
}

impl From<ToolSpec> for ToolReport {
    fn from(tool: ToolSpec) -> Self {
        let schema = serde_json::from_str(&tool.parameters_schema)
            .unwrap_or(Value::String(tool.parameters_schema));
        Self {
            name: tool.name,
            description: tool.description,
            parameters_schema: schema,
        }
    }
}

impl From<Answer> for AnswerReport {
    fn from(answer: Answer) -> Self {
        Self {
            text: answer.text,
            thinking: answer.thinking,
            tool_calls: requested(answer.calls),
            finish: answer.finish,
            usage: answer.usage,
            own_form: answer.provider_data.as_deref().map(OwnForm::new),
        }
    }
}
