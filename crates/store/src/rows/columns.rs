//! Rows turned into columns, as `unnest` takes them. Each group is built from one list, so its columns have one length.

use serde_json::{Value, json};
use uuid::Uuid;

use tarsy_core::alert::refs::Refs;
use tarsy_core::execution::entry::{Answer, Entry, Usage};
use tarsy_core::plan::ProviderPlan;
use tarsy_core::timeline::{EventDraft, TimelineEvent};
use tarsy_engine::ports::{
    CallFailure, ModelCallRecord, StageChange, StoreError, SubAgentBegin, ToolCallRecord,
};

use super::entry::encode;
use super::{nul, number, stored};

/// The references of an alert; null without any.
pub fn refs(refs: &Refs) -> Option<Value> {
    let fields = refs
        .iter()
        .map(|(name, id)| (name.to_owned(), Value::from(nul::replace(id.to_owned()))));
    (!refs.is_empty()).then(|| Value::Object(fields.collect()))
}

#[derive(Clone, Default)]
pub(crate) struct Events {
    pub event_type: Vec<String>,
    pub status: Vec<String>,
    pub content: Vec<String>,
    pub metadata: Vec<Option<Value>>,
}

impl Events {
    pub(crate) fn new(drafts: Vec<EventDraft>) -> Self {
        let mut all = Self::default();
        for draft in drafts {
            all.event_type.push(draft.event_type.into());
            all.status.push(draft.status.into());
            all.content.push(nul::replace(draft.content));
            all.metadata.push(nul::json_or_null(draft.metadata));
        }
        all
    }

    /// The events as the table has them, numbered from those of `first` on.
    pub(crate) fn committed(&self, first: &TimelineEvent) -> Vec<TimelineEvent> {
        let metadata = self
            .metadata
            .iter()
            .map(|metadata| metadata.clone().map(stored::json).unwrap_or_default());
        let texts = self
            .event_type
            .iter()
            .zip(&self.status)
            .zip(&self.content)
            .zip(metadata);
        let mut events = Vec::with_capacity(self.content.len());
        for (offset, (((event_type, status), content), metadata)) in (0..).zip(texts) {
            events.push(TimelineEvent {
                session_seq: first.session_seq + offset,
                sequence_number: first.sequence_number.map(|number| number + offset),
                event_type: event_type.clone().into(),
                status: status.clone().into(),
                content: content.clone(),
                metadata,
                ..first.clone()
            });
        }
        events
    }
}

#[derive(Default)]
pub(crate) struct Entries {
    pub kind: Vec<&'static str>,
    pub role: Vec<Option<&'static str>>,
    pub content: Vec<Option<String>>,
    pub(crate) tool_call_id: Vec<Option<String>>,
    pub tool_name: Vec<Option<String>>,
    pub body: Vec<Value>,
    pub provider_data: Vec<Option<Vec<u8>>>,
    /// The event that shows the entry, as its number within the checkpoint, from 1.
    pub(crate) event_no: Vec<Option<i32>>,
}

impl Entries {
    pub(crate) fn new(entries: Vec<Entry>, event_no: &[Option<u32>]) -> Result<Self, StoreError> {
        let event_no = event_no
            .iter()
            .map(|event| event.map(number::int))
            .collect();
        let mut all = Self {
            event_no,
            ..Self::default()
        };
        for entry in entries {
            let row =
                encode(entry).map_err(|error| StoreError::Conflict(format!("entry: {error}")))?;
            all.kind.push(row.kind);
            all.role.push(row.role);
            all.content.push(row.content);
            all.tool_call_id.push(row.tool_call_id);
            all.tool_name.push(row.tool_name);
            all.body.push(row.body);
            all.provider_data.push(row.provider_data);
        }
        Ok(all)
    }
}

#[derive(Default)]
pub(crate) struct ModelCalls {
    pub entries_upto: Vec<i32>,
    pub duration_ms: Vec<i64>,
    pub input: Vec<Option<i64>>,
    pub cached: Vec<Option<i64>>,
    pub output: Vec<Option<i64>>,
    pub thinking: Vec<Option<i64>>,
    pub purpose: Vec<&'static str>,
    pub provider: Vec<String>,
    pub backend: Vec<String>,
    pub model: Vec<String>,
    pub error: Vec<Option<String>>,
    pub response: Vec<Option<Value>>,
}

impl ModelCalls {
    pub(crate) fn new(calls: Vec<ModelCallRecord>) -> Self {
        let mut all = Self::default();
        for call in calls {
            let response = call
                .answer
                .as_ref()
                .map(|answer| response(answer, &call.provider));
            let response = response.or_else(|| call.failure.as_ref().map(failure));
            all.response.push(response.map(nul::replace_json));
            let usage = call.answer.as_ref().map(|answer| answer.usage);
            let tokens = |of: fn(Usage) -> u64| usage.map(|usage| number::big(of(usage)));
            all.entries_upto.push(number::int(call.entries_upto));
            all.duration_ms.push(number::millis(call.duration));
            all.input.push(tokens(|usage| usage.input_tokens));
            all.cached.push(tokens(|usage| usage.cached_tokens));
            all.output.push(tokens(|usage| usage.output_tokens));
            all.thinking.push(tokens(|usage| usage.thinking_tokens));
            all.purpose.push(call.purpose.as_str());
            all.provider.push(nul::replace(call.provider.name));
            all.backend.push(nul::replace(call.provider.backend));
            all.model.push(nul::replace(call.provider.model));
            all.error.push(call.error.map(nul::replace));
        }
        all
    }
}

/// A summary of an answer. Its text and calls are in the journal, in the entry after `entries_upto`. `text_length`
/// counts bytes of UTF-8; `tool_calls_count` counts the provider's calls, including those that were not run. The
/// provider's HTML is stored here and nowhere else.
fn response(answer: &Answer, provider: &ProviderPlan) -> Value {
    let code = answer
        .code_executions
        .iter()
        .map(|part| json!({"code": part.code, "result": part.result}));
    let mut response = json!({
        "text_length": answer.text.len(),
        "thinking": answer.thinking,
        "tool_calls_count": answer.calls.len(),
        "code_executions": code.collect::<Vec<_>>(),
        "groundings_count": answer.groundings.len(),
        "finish_reason": answer.finish,
    });
    let widgets = answer
        .groundings
        .iter()
        .map(|grounding| grounding.search_widget.as_str());
    let widgets: Vec<&str> = widgets
        .filter(|widget| provider.keep_search_widget && !widget.is_empty())
        .collect();
    if let (false, Value::Object(response)) = (widgets.is_empty(), &mut response) {
        response.insert("search_widget".to_owned(), widgets.join("\n").into());
    }
    response
}

/// The machine-readable part of a failed call; its message is in `error`.
fn failure(CallFailure { code, provider }: &CallFailure) -> Value {
    let retry_after_ms = provider.retry_after.map(number::millis);
    json!({
        "code": code, "retryable": provider.retryable, "provider_status": provider.status,
        "retry_after_ms": retry_after_ms,
    })
}

#[derive(Default)]
pub(crate) struct ToolCalls {
    pub duration_ms: Vec<i64>,
    pub read_only: Vec<bool>,
    pub state: Vec<&'static str>,
    pub call_id: Vec<String>,
    pub tool: Vec<String>,
    pub arguments: Vec<String>,
    pub result: Vec<Option<String>>,
    pub error: Vec<Option<String>>,
}

impl ToolCalls {
    pub(crate) fn new(calls: Vec<ToolCallRecord>) -> Self {
        let mut all = Self::default();
        for record in calls {
            all.duration_ms.push(number::millis(record.duration));
            all.read_only.push(record.call.read_only);
            all.state.push(record.state.as_str());
            all.call_id.push(nul::replace(record.call.id));
            all.tool.push(nul::replace(record.call.tool));
            all.arguments.push(nul::replace(record.call.arguments));
            all.result.push(record.result.map(nul::replace));
            all.error.push(record.error.map(nul::replace));
        }
        all
    }
}

/// The sub-agents that the entries of a checkpoint begin.
#[derive(Default)]
pub(crate) struct SubAgents {
    pub execution_id: Vec<Uuid>,
    pub call_id: Vec<String>,
    pub agent: Vec<String>,
    pub strategy: Vec<&'static str>,
    pub backend: Vec<String>,
    pub model: Vec<String>,
}

impl SubAgents {
    pub(crate) fn new(begun: Vec<SubAgentBegin>) -> Self {
        let mut all = Self::default();
        for SubAgentBegin { call_id, execution } in begun {
            all.execution_id.push(execution.execution_id.0);
            all.call_id.push(nul::replace(call_id));
            all.agent.push(nul::replace(execution.agent));
            all.strategy.push(execution.strategy.as_str());
            all.backend.push(nul::replace(execution.backend));
            all.model.push(nul::replace(execution.model));
        }
        all
    }
}

/// The rows of one transition of a session: a stage that begins, with its executions, or one that ends.
#[derive(Clone, Default)]
pub(crate) struct Changes {
    pub(crate) stages: Stages,
    pub(crate) executions: Executions,
    pub(crate) ended: EndedStages,
}

#[derive(Clone, Default)]
pub(crate) struct Stages {
    pub stage_no: Vec<i32>,
    pub name: Vec<String>,
    pub policy: Vec<&'static str>,
}

#[derive(Clone, Default)]
pub(crate) struct Executions {
    pub execution_id: Vec<Uuid>,
    pub stage_no: Vec<i32>,
    pub agent_no: Vec<i32>,
    pub agent: Vec<String>,
    pub strategy: Vec<&'static str>,
    pub backend: Vec<String>,
    pub model: Vec<String>,
}

#[derive(Clone, Default)]
pub(crate) struct EndedStages {
    pub stage_no: Vec<i32>,
    pub status: Vec<&'static str>,
    pub error: Vec<Option<String>>,
}

impl Changes {
    pub(crate) fn new(change: StageChange) -> Self {
        let mut changes = Self::default();
        match change {
            StageChange::Begin(begin) => {
                let stage_no = number::int(begin.stage_no);
                changes.stages.stage_no.push(stage_no);
                changes.stages.name.push(nul::replace(begin.name));
                changes.stages.policy.push(begin.success_policy.as_str());
                let executions = &mut changes.executions;
                for execution in begin.executions {
                    executions.execution_id.push(execution.execution_id.0);
                    executions.stage_no.push(stage_no);
                    executions.agent_no.push(number::int(execution.agent_no));
                    executions.agent.push(nul::replace(execution.agent));
                    executions.strategy.push(execution.strategy.as_str());
                    executions.backend.push(nul::replace(execution.backend));
                    executions.model.push(nul::replace(execution.model));
                }
            }
            StageChange::End(end) => {
                let ended = &mut changes.ended;
                ended.stage_no.push(number::int(end.stage_no));
                ended.status.push(end.status.as_str());
                ended.error.push(end.error.map(nul::replace));
            }
        }
        changes
    }
}
