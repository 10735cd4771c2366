//! The settings that every level may have: defaults < agent < chain < stage < stage agent.

use std::time::Duration;

use serde::Serialize;

use super::names::Names;
use super::native_tools::NativeTools;
use crate::config::read::reader::Map;
use crate::config::write::{is_default, written};
use crate::investigation::plan::Strategy;

/// One layer of an agent's settings; an absent value comes from the layer below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Settings {
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub iteration_strategy: Option<Strategy>,
    /// The name of a provider.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub llm_provider: Option<String>,
    /// Above the provider's own layer; without effect for providers that have no native tools.
    #[serde(skip_serializing_if = "is_default")]
    pub native_tools: NativeTools,
    /// The MCP servers whose tools the agent may call; replaces the list of the layer below. By default all servers.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub mcp_servers: Option<Vec<String>>,
    /// The number of model calls after which the conclusion is forced.
    #[serde(skip_serializing_if = "is_default")]
    pub max_iterations: Option<u32>,
    /// The time limit of one iteration, for its model call and its tool calls together.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub iteration_timeout: Option<Duration>,
    /// The number of consecutive time-outs that ends the execution.
    #[serde(skip_serializing_if = "is_default")]
    pub max_timeouts: Option<u32>,
    /// The longest tool result that the model gets, in tokens.
    #[serde(skip_serializing_if = "is_default")]
    pub max_tool_result_tokens: Option<u32>,
    /// The total of tokens after which the conclusion is forced; 0 for no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub max_tokens: Option<u32>,
}

impl Settings {
    /// This layer with absent values from a lower one.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        Self {
            iteration_strategy: self.iteration_strategy.or(lower.iteration_strategy),
            llm_provider: self.llm_provider.clone().or_else(|| lower.llm_provider.clone()),
            native_tools: self.native_tools.over(lower.native_tools),
            mcp_servers: self.mcp_servers.clone().or_else(|| lower.mcp_servers.clone()),
            max_iterations: self.max_iterations.or(lower.max_iterations),
            iteration_timeout: self.iteration_timeout.or(lower.iteration_timeout),
            max_timeouts: self.max_timeouts.or(lower.max_timeouts),
            max_tool_result_tokens: self.max_tool_result_tokens.or(lower.max_tool_result_tokens),
            max_tokens: self.max_tokens.or(lower.max_tokens),
        }
    }

    pub(crate) fn read(map: &mut Map<'_>, names: &Names) -> Self {
        let strategy = map.get("iteration_strategy");
        Self {
            iteration_strategy: strategy.and_then(|field| field.choice(&Strategy::ALL, Strategy::as_str)),
            llm_provider: map.reference("llm_provider", &names.providers),
            native_tools: map.get("native_tools").map(|field| NativeTools::read(&field)).unwrap_or_default(),
            mcp_servers: map.list("mcp_servers", |field| field.reference(&names.servers)),
            max_iterations: map.number("max_iterations", 1..=1_000),
            iteration_timeout: map.duration("iteration_timeout", 1..=3_600),
            max_timeouts: map.number("max_timeouts", 1..=100),
            max_tool_result_tokens: map.number("max_tool_result_tokens", 100..=1_000_000),
            max_tokens: map.number("max_tokens", 0..=1_000_000_000),
        }
    }
}
