//! Matches tool results with their calls, so that the results of parallel calls stay readable.

use std::collections::HashMap;

use crate::investigation::ids::ExecutionId;
use crate::investigation::timeline::{EventType, TimelineEvent};

use super::meta::Meta;
use crate::cli::render::style::Charset;

/// The calls of a session so far.
#[derive(Debug, Default)]
pub(super) struct Calls(HashMap<(ExecutionId, String), Call>);

#[derive(Debug)]
struct Call {
    seq: u32,
    iteration: Option<u32>,
    tool: String,
}

impl Calls {
    /// The name of the event's tool. If the iteration called the tool more than once, a result is also named after the
    /// number of its call's event.
    pub(super) fn name(&mut self, event: &TimelineEvent, charset: Charset) -> Option<String> {
        let meta = Meta::new(&event.metadata, charset);
        let tool = meta.text("tool_name");
        let key = event.execution_id.zip(meta.text("call_id"));
        match (&event.event_type, key) {
            (EventType::LlmToolCall | EventType::McpToolCall, Some(key)) => {
                let tool = tool?;
                let call = Call { seq: event.session_seq, iteration: event.iteration, tool: tool.clone() };
                self.0.insert(key, call);
                Some(tool)
            }
            (EventType::ToolResult | EventType::McpToolSummary, Some(key)) => match self.0.get(&key) {
                Some(call) if self.is_ambiguous(key.0, call) => Some(format!("#{} {}", call.seq, call.tool)),
                Some(call) => Some(call.tool.clone()),
                None => tool,
            },
            (_, _) => tool,
        }
    }

    fn is_ambiguous(&self, execution: ExecutionId, call: &Call) -> bool {
        self.0.iter().any(|((other_execution, _), other)| {
            *other_execution == execution
                && other.seq != call.seq
                && other.iteration == call.iteration
                && other.tool == call.tool
        })
    }
}
