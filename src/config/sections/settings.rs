//! The settings that every level may have: defaults < agent < chain < stage < stage agent.

use std::time::Duration;

use super::chains::Names;
use crate::config::read::reader::{Field, Map};
use crate::investigation::plan::Strategy;

/// One layer of an agent's settings; an absent value comes from the layer below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub iteration_strategy: Option<Strategy>,
    /// The name of a provider.
    pub llm_provider: Option<String>,
    /// The MCP servers whose tools the agent may call; replaces the list of the layer below. By default all servers.
    pub mcp_servers: Option<Vec<String>>,
    /// The number of model calls after which the conclusion is forced.
    pub max_iterations: Option<u32>,
    /// The time limit of one iteration, for its model call and its tool calls together.
    pub iteration_timeout: Option<Duration>,
    /// The number of consecutive time-outs that ends the execution.
    pub max_timeouts: Option<u32>,
    /// The longest tool result that the model gets, in tokens.
    pub max_tool_result_tokens: Option<u32>,
    /// The total of tokens after which the conclusion is forced; 0 for no limit.
    pub max_tokens: Option<u32>,
}

impl Settings {
    /// This layer with absent values from a lower one.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        Self {
            iteration_strategy: self.iteration_strategy.or(lower.iteration_strategy),
            llm_provider: self.llm_provider.clone().or_else(|| lower.llm_provider.clone()),
            mcp_servers: self.mcp_servers.clone().or_else(|| lower.mcp_servers.clone()),
            max_iterations: self.max_iterations.or(lower.max_iterations),
            iteration_timeout: self.iteration_timeout.or(lower.iteration_timeout),
            max_timeouts: self.max_timeouts.or(lower.max_timeouts),
            max_tool_result_tokens: self.max_tool_result_tokens.or(lower.max_tool_result_tokens),
            max_tokens: self.max_tokens.or(lower.max_tokens),
        }
    }

    pub(crate) fn read(map: &mut Map<'_>, names: &Names) -> Self {
        Self {
            iteration_strategy: map.get("iteration_strategy").and_then(|field| strategy(&field)),
            llm_provider: map.get("llm_provider").and_then(|field| field.reference(&names.providers)),
            mcp_servers: map
                .get("mcp_servers")
                .and_then(|field| field.list())
                .map(|fields| fields.iter().filter_map(|field| field.reference(&names.servers)).collect()),
            max_iterations: map.get("max_iterations").and_then(|field| field.number(1..=1_000)),
            iteration_timeout: map
                .get("iteration_timeout")
                .and_then(|field| field.duration(Duration::from_secs(1)..=Duration::from_secs(3_600))),
            max_timeouts: map.get("max_timeouts").and_then(|field| field.number(1..=100)),
            max_tool_result_tokens: map.get("max_tool_result_tokens").and_then(|field| field.number(100..=1_000_000)),
            max_tokens: map.get("max_tokens").and_then(|field| field.number(0..=1_000_000_000)),
        }
    }
}

fn strategy(field: &Field<'_>) -> Option<Strategy> {
    let word = field.text()?;
    let known = Strategy::ALL.into_iter().find(|strategy| strategy.as_str() == word);
    if known.is_none() {
        field.not_accepted(&Strategy::ALL.map(Strategy::as_str));
    }
    known
}
