//! The complete tool list of a server, for people: offered tools, withheld tools and the reasons.

use serde::Serialize;

use super::config::ServerConfig;
use super::list::declared::Declared;
use super::offer::judged;
use super::{rules, schema};
use tarsy_core::plan::ToolSpec;
use tarsy_mask::Mask;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The full name, `server.tool`, as models and people write it.
    pub name: String,
    /// The tool's name at its server, which `name` may have to change. Keys of the configuration name this one.
    pub tool: String,
    pub description: String,
    /// The server or the configuration declares it read-only.
    pub read_only: bool,
    /// A model may call it.
    pub offered: bool,
    /// The reason why a model may call it; `None` when it may not.
    pub because: Option<String>,
    /// The reason why a model may not call it; `None` when it may.
    pub withheld: Option<String>,
    /// Members of its declaration that are not as the protocol has them, and were left out: `annotations`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<&'static str>,
}

/// The tools of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// Sorted by name.
    pub tools: Vec<Listed>,
    /// The tools that a model may call, in the form of a plan.
    pub offered: Vec<ToolSpec>,
    /// Names in the configuration without a tool on the server, each with its key: `deny: pods_exec`.
    pub unknown: Vec<String>,
}

/// The tools of a server as it lists them.
pub(super) fn inventory(config: &ServerConfig, tools: &[Declared], mask: &Mask) -> Inventory {
    let mut inventory = Inventory {
        tools: Vec::new(),
        offered: Vec::new(),
        unknown: rules::unknown(&config.settings, tools),
    };
    for judged in judged(config, tools, mask) {
        let (because, withheld, read_only) = match &judged.verdict {
            Ok((spec, why)) => (Some(why.to_string()), None, spec.read_only),
            Err(why) => (None, Some(why.to_string()), false),
        };
        inventory.tools.push(Listed {
            name: judged.name,
            tool: mask.apply(&judged.declared.tool.name).into_owned(),
            description: schema::description(&judged.declared.tool, mask),
            read_only,
            offered: because.is_some(),
            because,
            withheld,
            left_out: judged.declared.left_out.clone(),
        });
        inventory
            .offered
            .extend(judged.verdict.ok().map(|(spec, _)| spec));
    }
    inventory
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{StdioConfig, Transport};

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
        let mut config = ServerConfig::new("s", Transport::Stdio(StdioConfig::default()));
        config.settings.allow = vec!["delete".to_owned()];
        let tools: Vec<_> = tools
            .as_array()
            .unwrap()
            .iter()
            .map(Declared::parse)
            .collect();
        let found = inventory(&config, &tools, &Mask::default()).tools;
        let facts: Vec<_> = found
            .iter()
            .map(|tool| {
                (
                    tool.name.as_str(),
                    tool.read_only,
                    tool.offered,
                    tool.withheld.is_some(),
                )
            })
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
        assert_eq!(
            found.last().unwrap().withheld.as_deref(),
            Some("it may change something")
        );
        let reasons: Vec<_> = found
            .iter()
            .filter_map(|tool| tool.because.as_deref())
            .collect();
        let declared = "its server declares it read-only";
        assert_eq!(reasons, [declared, "allow names it", declared]);
        assert_eq!(found[1].tool, "a__b");
    }
}
