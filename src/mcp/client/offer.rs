//! Selects the tools of a server that are offered to a model.

use rmcp::model::Tool;

use super::config::ServerConfig;
use super::{names, rules, schema};
use crate::investigation::mask::Mask;
use crate::investigation::plan::ToolSpec;

/// The tools that may be called, sorted by name: those that are read-only and those that the configuration allows.
/// A tool with an invalid name or schema is left out with a warning.
pub(super) fn offer(config: &ServerConfig, tools: Vec<Tool>, mask: &Mask) -> Vec<ToolSpec> {
    let spec = |tool: &Tool| {
        let read_only = rules::judge(config, tool).ok()?;
        let warn =
            |fault: &String| tracing::warn!(server = config.name, tool = %tool.name, "tool not offered: {fault}");
        let parameters_schema = checked_schema(config, tool, mask).inspect_err(warn).ok()?;
        let (name, description) = (full_name(config, tool), schema::description(tool, mask));
        Some(ToolSpec { name, description, parameters_schema, read_only })
    };
    let mut offered: Vec<ToolSpec> = tools.iter().filter_map(spec).collect();
    offered.sort_by(|one, other| one.name.cmp(&other.name));
    offered.dedup_by(|one, other| one.name == other.name);
    offered
}

/// The name of a tool for models and people.
pub(super) fn full_name(config: &ServerConfig, tool: &Tool) -> String {
    format!("{}.{}", config.name, tool.name)
}

/// The schema of a tool that may be offered; otherwise the fault of its name or schema.
pub(super) fn checked_schema(config: &ServerConfig, tool: &Tool, mask: &Mask) -> Result<String, String> {
    match names::tool_fault(&config.name, &tool.name) {
        Some(fault) => Err(format!("its name {fault}")),
        None => schema::schema(tool, mask),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::{StdioConfig, Transport};

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
            read_only: names(read_only),
            allowed: names(allowed),
            ..ServerConfig::new("s", Transport::Stdio(StdioConfig::default()))
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
