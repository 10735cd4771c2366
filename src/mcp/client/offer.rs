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
        let parameters_schema = checked_schema(tool, mask).inspect_err(warn).ok()?;
        let (name, description) = (full_name(config, tool), schema::description(tool, mask));
        let original_name = (names::offered(&config.name, &tool.name) != tool.name).then(|| tool.name.to_string());
        Some(ToolSpec { name, original_name, description, parameters_schema, read_only })
    };
    let mut offered: Vec<ToolSpec> = tools.iter().filter_map(spec).collect();
    // A tool whose own name equals the form of another tool's name comes first, and the other one is left out.
    offered.sort_by(|one, other| (&one.name, &one.original_name).cmp(&(&other.name, &other.original_name)));
    offered.dedup_by(|one, other| one.name == other.name);
    offered
}

/// The name of a tool for models and people.
pub(super) fn full_name(config: &ServerConfig, tool: &Tool) -> String {
    format!("{}.{}", config.name, names::offered(&config.name, &tool.name))
}

/// The schema of a tool that may be offered; otherwise the fault of its name or schema.
pub(super) fn checked_schema(tool: &Tool, mask: &Mask) -> Result<String, String> {
    match names::tool_fault(&tool.name) {
        Some(fault) => Err(fault),
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
        assert_eq!(offered(&[], &[]), [("s.a_b_63e5c1c4".to_owned(), true), ("s.read".to_owned(), true)]);
    }

    #[test]
    fn the_configuration_can_declare_and_allow_further_tools() {
        assert_eq!(
            offered(&["write"], &["delete"]),
            [
                ("s.a_b_63e5c1c4".to_owned(), true),
                ("s.delete".to_owned(), false),
                ("s.read".to_owned(), true),
                ("s.write".to_owned(), true)
            ]
        );
    }
}
