//! The tools that a provider refuses, from the words of its refusal: the request is made again without them.
//!
//! A provider refuses a whole request because of one tool, and names this tool by its name or by its place in the
//! request. Only a tool that the words name for certain is left out. Every other refusal is returned as it is: no tool
//! is left out on suspicion, and never all of them.

mod names;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::echo::without_conversation;
use super::error::{ErrorCode, ProviderError, cut};
use super::key::ApiKey;
use super::names::from_wire;
use crate::proto::{GenerateRequest, RefusedTool};

/// The number of times that one request is repeated without some of its tools. Such a refusal takes no time and no
/// tokens, and some providers name only the first tool of several.
const MAX_CORRECTIONS: u32 = 8;
/// A longer reason is cut.
const MAX_REASON_CHARS: usize = 300;
/// The words of a failure of the model's own call, which may name a tool, too.
const ABOUT_CALLS: [&str; 6] = [
    "tool call validation",
    "failed_generation",
    "tool_use_failed",
    "did not match schema",
    "attempted to call",
    "not in request.tools",
];

/// The layout of the functions in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each function is an item of `tools`.
    List,
    /// All functions are declarations within one item of `tools`.
    Declarations,
}

/// The tools of a request, by their names at the provider and in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'a> {
    pub names: &'a [&'a str],
    pub layout: Layout,
}

/// The tools that were left out of a request so far.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    tools: Vec<RefusedTool>,
    corrections: u32,
}

impl LeftOut {
    /// Learns from a refusal. Returns the places of the tools that have to be left out of the next request; `None` if
    /// the failure has to be returned.
    pub(crate) fn learn(
        &mut self,
        refused: &ProviderError,
        request: &GenerateRequest,
        sent: Sent<'_>,
    ) -> Option<BTreeSet<usize>> {
        let found = if refused.code == ErrorCode::InvalidRequest {
            refused_tools(&refused.full_text, sent)
        } else if refused.code == ErrorCode::ContextWindowExceeded {
            // The text of one tool is too long, and not the conversation.
            places::named(&refused.full_text, sent)
        } else {
            return None;
        };
        let is_forced = found
            .iter()
            .filter_map(|place| sent.names.get(*place))
            .any(|name| from_wire(name) == request.tool_choice);
        if found.is_empty()
            || found.len() >= sent.names.len()
            || is_forced
            || self.corrections >= MAX_CORRECTIONS
        {
            return None;
        }
        let reason = reason(refused, request);
        let names = found.iter().filter_map(|place| sent.names.get(*place));
        self.tools.extend(names.map(|name| RefusedTool {
            name: from_wire(name),
            reason: reason.clone(),
        }));
        self.corrections += 1;
        Some(found)
    }

    /// The tools for the client, without the key in the words of the provider.
    pub(crate) fn tools(&self, key: Option<&ApiKey>) -> Vec<RefusedTool> {
        self.tools
            .iter()
            .map(|tool| RefusedTool {
                name: tool.name.clone(),
                reason: key.map_or_else(|| tool.reason.clone(), |key| key.redact(&tool.reason)),
            })
            .collect()
    }

    /// Logs the tools that are left out of the next request.
    pub(crate) fn log(&self, request: &GenerateRequest, refused: &ProviderError) {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        tracing::warn!(
            request_id = request.request_id,
            provider_status = refused.provider_status,
            tools = tools.join(", "),
            "request corrected: the provider refused some of its tools"
        );
    }
}

/// Removes the items at these places.
pub(crate) fn without<T>(items: &mut Vec<T>, places: &BTreeSet<usize>) {
    let mut place = 0..;
    items.retain(|_item| place.next().is_none_or(|place| !places.contains(&place)));
}

/// The places of the tools that a refusal names. A name counts more than a place: a gateway may have tools of its own.
fn refused_tools(text: &str, sent: Sent<'_>) -> BTreeSet<usize> {
    let lower = text.to_ascii_lowercase();
    if ABOUT_CALLS.iter().any(|words| lower.contains(words)) {
        return BTreeSet::new();
    }
    let named = names::named(text, sent.names);
    if named.is_empty() {
        places::named(text, sent)
    } else {
        named
    }
}

/// The words of the provider in one line, without the conversation.
fn reason(refused: &ProviderError, request: &GenerateRequest) -> String {
    let message = without_conversation(refused.clone(), request).message;
    let words = message.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(words, MAX_REASON_CHARS)
}
