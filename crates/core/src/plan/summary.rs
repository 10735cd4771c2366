//! The plan of summaries: the tool results that are summarised, and the model that summarises them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::provider::ProviderPlan;

/// The choice of results that get a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryPlan {
    /// The model that is asked.
    pub provider: ProviderPlan,
    /// Per MCP server: a result with more tokens is summarised. Results of other servers are not.
    pub over_tokens: BTreeMap<String, u32>,
}

impl SummaryPlan {
    /// Results of this tool with more tokens are summarised.
    pub fn over_tokens(&self, tool: &str) -> Option<u32> {
        let (server, _) = tool.split_once('.')?;
        self.over_tokens.get(server).copied()
    }
}
