//! The complete tool list of a server, for people: offered tools, withheld tools and the reasons.

use std::collections::BTreeMap;

use rmcp::model::Tool;
use serde::Serialize;

use super::config::ServerConfig;
use super::offer::{checked_schema, full_name};
use super::{rules, schema};
use crate::investigation::mask::Mask;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The full name, `server.tool`.
    pub name: String,
    pub description: String,
    /// The server or the configuration declares it read-only.
    pub read_only: bool,
    /// A model may call it.
    pub offered: bool,
    /// Why a model may not call it; `None` when it may.
    pub withheld: Option<String>,
}

/// The tools of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// Sorted by name.
    pub tools: Vec<Listed>,
    /// Names in the configuration without a tool on the server, each with its key: `deny: pods_exec`.
    pub unknown: Vec<String>,
}

/// The tools of a server as it lists them.
pub(super) fn inventory(config: &ServerConfig, tools: &[Tool], mask: &Mask) -> Inventory {
    let one = |tool: &Tool| {
        let rule = rules::judge(config, tool).map_err(|withheld| withheld.to_string());
        let judged = checked_schema(tool, mask).and(rule);
        let (read_only, withheld) = (judged == Ok(true), judged.err());
        let (name, description) = (full_name(config, tool), schema::description(tool, mask));
        (name.clone(), Listed { name, description, read_only, offered: withheld.is_none(), withheld })
    };
    // The map keeps one entry per name if a server lists a tool twice.
    let listed = tools.iter().map(one).collect::<BTreeMap<_, _>>();
    Inventory { tools: listed.into_values().collect(), unknown: rules::unknown(config, tools) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::{StdioConfig, Transport};

    #[test]
    fn a_withheld_tool_has_a_reason() {
        let tools = json!([
            {"name": "write", "description": "writes", "inputSchema": {"type": "object"}},
            {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "a__b", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "delete", "inputSchema": {"type": "object"}},
        ]);
        let config = ServerConfig {
            allowed: vec!["delete".to_owned()],
            ..ServerConfig::new("s", Transport::Stdio(StdioConfig::default()))
        };
        let tools: Vec<Tool> = serde_json::from_value(tools).unwrap();
        let found = inventory(&config, &tools, &Mask::default()).tools;
        let facts: Vec<_> = found
            .iter()
            .map(|tool| (tool.name.as_str(), tool.read_only, tool.offered, tool.withheld.is_some()))
            .collect();
        assert_eq!(
            facts,
            [
                ("s.", false, false, true),
                ("s.a_b_63e5c1c4", true, true, false),
                ("s.delete", false, true, false),
                ("s.read", true, true, false),
                ("s.write", false, false, true),
            ]
        );
        assert_eq!(found.last().unwrap().withheld.as_deref(), Some("it may change something"));
    }
}
