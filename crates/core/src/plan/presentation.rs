//! The plan of presentation: how the results of each server are presented to the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::readable::presentation::Presentation;

/// Per MCP server, how its results are presented. Those of other servers, and of older plans, are shown as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PresentationPlan {
    pub servers: BTreeMap<String, Presentation>,
}

impl PresentationPlan {
    /// The presentation of the results of this tool.
    pub fn for_tool(&self, tool: &str) -> Presentation {
        let server = tool.split_once('.').map(|(server, _)| server);
        server
            .and_then(|server| self.servers.get(server))
            .copied()
            .unwrap_or_default()
    }
}
