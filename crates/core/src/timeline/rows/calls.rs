//! Matches tool results with their calls, so that the results of parallel calls stay readable.

use std::collections::HashMap;

use crate::ids::ExecutionId;
use crate::timeline::{EventType, TimelineEvent};

use super::meta::Meta;
use crate::readable::text::Charset;

/// The calls of a session so far.
#[derive(Debug, Default)]
pub(super) struct Calls(HashMap<(ExecutionId, String), Call>);

#[derive(Debug)]
struct Call {
    seq: u32,
    iteration: Option<u32>,
    tool: String,
    is_open: bool,
}

/// The tool of an event.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// The name of the tool. If the iteration called it more than once, a result is also named after the number of its
    /// call's event.
    pub(super) tool: Option<String>,
    /// The number of the event of the call, for a result.
    pub(super) call: Option<u32>,
}

impl Calls {
    /// Adds a call or a result, and names its tool.
    pub(super) fn add(&mut self, event: &TimelineEvent, charset: Charset) -> Named {
        let meta = Meta::new(&event.metadata, charset);
        let tool = meta.text("tool_name");
        let key = event.execution_id.zip(meta.text("call_id"));
        match (&event.event_type, key) {
            (EventType::LlmToolCall | EventType::McpToolCall, Some(key)) => {
                let Some(tool) = tool else {
                    return Named::default();
                };
                let call = Call {
                    seq: event.session_seq,
                    iteration: event.iteration,
                    tool: tool.clone(),
                    is_open: true,
                };
                self.0.insert(key, call);
                Named {
                    tool: Some(tool),
                    call: None,
                }
            }
            (EventType::ToolResult | EventType::McpToolSummary, Some(key)) => {
                self.result(&key, tool)
            }
            (_, _) => Named { tool, call: None },
        }
    }

    /// The numbers of the events of the calls without a result.
    pub(super) fn open(&self) -> Vec<u32> {
        let mut open: Vec<u32> = self
            .0
            .values()
            .filter(|call| call.is_open)
            .map(|call| call.seq)
            .collect();
        open.sort_unstable();
        open
    }

    fn result(&mut self, key: &(ExecutionId, String), tool: Option<String>) -> Named {
        let Some(call) = self.0.get_mut(key) else {
            return Named { tool, call: None };
        };
        call.is_open = false;
        let Some(call) = self.0.get(key) else {
            return Named { tool, call: None };
        };
        let name = if self.is_ambiguous(key.0, call) {
            format!("#{} {}", call.seq, call.tool)
        } else {
            call.tool.clone()
        };
        Named {
            tool: Some(name),
            call: Some(call.seq),
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
