//! Selects the tools of a server that are offered to a model.

use rmcp::model::Tool;

use super::{ServerConfig, names, rules, schema};
use crate::investigation::mask::Mask;
use crate::investigation::plan::ToolSpec;

/// The tools that may be called, sorted by name: those that are read-only and those that the configuration allows.
/// A tool with an invalid name or schema is left out with a warning.
pub(super) fn offer(config: &ServerConfig, tools: Vec<Tool>, mask: &Mask) -> Vec<ToolSpec> {
    let mut offered: Vec<ToolSpec> = tools.iter().filter_map(|tool| spec(config, tool, mask)).collect();
    offered.sort_by(|one, other| one.name.cmp(&other.name));
    offered.dedup_by(|one, other| one.name == other.name);
    offered
}

fn spec(config: &ServerConfig, tool: &Tool, mask: &Mask) -> Option<ToolSpec> {
    let read_only = rules::judge(config, tool).ok()?;
    if let Some(fault) = names::tool_fault(&config.name, &tool.name) {
        tracing::warn!(server = config.name, tool = %tool.name, "tool not offered: its name {fault}");
        return None;
    }
    let parameters_schema = schema::schema(tool, mask);
    let parameters_schema = parameters_schema
        .inspect_err(|fault| tracing::warn!(server = config.name, tool = %tool.name, "tool not offered: {fault}"));
    Some(ToolSpec {
        name: format!("{}.{}", config.name, tool.name),
        description: schema::description(tool, mask),
        parameters_schema: parameters_schema.ok()?,
        read_only,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn offered(read_only: &[&str], allowed: &[&str]) -> Vec<(String, bool)> {
        let tools = serde_json::from_value(json!([
            {"name": "write", "inputSchema": {"type": "object"}},
            {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "a__b", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "delete", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": false}},
        ]));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let config = ServerConfig {
            name: "s".to_owned(),
            command: String::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            tool_timeout: Duration::ZERO,
            read_only: names(read_only),
            allowed: names(allowed),
            tools: None,
            deny: Vec::new(),
            trust_hints: true,
        };
        let specs = offer(&config, tools.unwrap(), &Mask::default());
        specs.into_iter().map(|spec| (spec.name, spec.read_only)).collect()
    }

    #[test]
    fn only_tools_that_are_declared_read_only_are_offered() {
        assert_eq!(offered(&[], &[]), [("s.read".to_owned(), true)]);
    }

    #[test]
    fn the_configuration_can_declare_and_allow_further_tools() {
        assert_eq!(
            offered(&["write"], &["delete"]),
            [("s.delete".to_owned(), false), ("s.read".to_owned(), true), ("s.write".to_owned(), true)]
        );
    }
}
