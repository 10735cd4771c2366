//! Selects the tools of a server that are offered to a model, with a reason for each.

use std::borrow::Cow;

use super::config::ServerConfig;
use super::list::declared::Declared;
use super::rules::Offered;
use super::{names, rules, schema};
use tarsy_core::plan::ToolSpec;
use tarsy_mask::Mask;

/// A tool as its server lists it, and whether a model may call it.
pub(super) struct Judged<'a> {
    pub(super) declared: &'a Declared,
    /// The full name, `server.tool`.
    pub(super) name: String,
    pub(super) verdict: Result<(ToolSpec, Offered), Withheld>,
}

/// The reason why a model may not call a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Withheld {
    /// The configuration or the absence of a declaration decides.
    #[error(transparent)]
    Rule(#[from] rules::Withheld),
    /// The tool cannot be offered.
    #[error("{0}")]
    Unusable(String),
}

/// The tools that may be called, sorted by name: those that are read-only and those that the configuration allows.
/// A tool with an invalid name or schema is left out with a warning.
pub(super) fn offer(config: &ServerConfig, tools: &[Declared], mask: &Mask) -> Vec<ToolSpec> {
    for declared in tools
        .iter()
        .filter(|declared| !declared.left_out.is_empty())
    {
        let tool = mask.apply(&declared.tool.name);
        let left_out = declared.left_out.join(", ");
        tracing::warn!(server = config.name, tool = %tool, left_out, "mcp tool definition has unexpected members");
        let members = u64::try_from(declared.left_out.len()).unwrap_or(u64::MAX);
        metrics::counter!("tarsy_mcp_tools_omitted_total", "part" => "member").increment(members);
    }
    let offered = judged(config, tools, mask)
        .into_iter()
        .filter_map(|judged| match judged.verdict {
            Ok((spec, _)) => Some(spec),
            Err(Withheld::Rule(_)) => None,
            Err(Withheld::Unusable(fault)) => {
                tracing::warn!(
                    server = config.name,
                    tool = judged.name,
                    fault,
                    "mcp tool not offered"
                );
                metrics::counter!("tarsy_mcp_tools_omitted_total", "part" => "tool").increment(1);
                None
            }
        });
    offered.collect()
}

/// The tools of a server, sorted by name. A tool that the server lists twice is there once.
pub(super) fn judged<'a>(
    config: &ServerConfig,
    tools: &'a [Declared],
    mask: &Mask,
) -> Vec<Judged<'a>> {
    let mut listed: Vec<&Declared> = tools.iter().collect();
    // Of two with one name, the one that can be called.
    listed.sort_by_key(|declared| (&declared.tool.name, declared.fault.is_some()));
    listed.dedup_by(|one, other| one.tool.name == other.tool.name);
    let mut judged: Vec<Judged<'a>> = listed
        .into_iter()
        .map(|declared| judge(config, declared, mask))
        .collect();
    // A tool whose own name equals the form of another tool's name comes first.
    judged.sort_by_key(|judged| (judged.name.clone(), is_renamed(judged)));
    let mut last = String::new();
    for judged in &mut judged {
        if judged.name == last && judged.verdict.is_ok() {
            judged.verdict = Err(Withheld::Unusable(
                "another tool of the server has its name".to_owned(),
            ));
        }
        last.clone_from(&judged.name);
    }
    judged
}

fn is_renamed(judged: &Judged<'_>) -> bool {
    judged
        .verdict
        .as_ref()
        .is_ok_and(|(spec, _)| spec.original_name.is_some())
}

fn judge<'a>(config: &ServerConfig, declared: &'a Declared, mask: &Mask) -> Judged<'a> {
    let tool = &declared.tool;
    let masked = mask.apply(&tool.name);
    let name = format!("{}.{}", config.name, names::offered(&config.name, &masked));
    let fault = match masked {
        Cow::Owned(_) => Some("its name holds a secret".to_owned()),
        Cow::Borrowed(_) => declared
            .fault
            .clone()
            .or_else(|| names::tool_fault(&tool.name)),
    };
    if let Some(fault) = fault {
        return Judged {
            declared,
            name,
            verdict: Err(Withheld::Unusable(fault)),
        };
    }
    let verdict = rules::judge(&config.settings, tool)
        .map_err(Withheld::from)
        .and_then(|why| {
            let parameters_schema = schema::schema(tool, mask).map_err(Withheld::Unusable)?;
            let is_same = name
                .split_once('.')
                .is_some_and(|(_, offered)| offered == tool.name);
            let spec = ToolSpec {
                name: name.clone(),
                original_name: (!is_same).then(|| tool.name.to_string()),
                description: schema::description(tool, mask),
                parameters_schema,
                read_only: why.is_read_only(),
                approval: None,
            };
            Ok((spec, why))
        });
    Judged {
        declared,
        name,
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{StdioConfig, Transport};

    fn offered(read_only: &[&str], allowed: &[&str]) -> Vec<(String, bool)> {
        let tools = json!([
            {"name": "write", "inputSchema": {"type": "object"}},
            {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "a__b", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            {"name": "delete", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": false}},
        ]);
        let tools: Vec<_> = tools
            .as_array()
            .unwrap()
            .iter()
            .map(Declared::parse)
            .collect();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut config = ServerConfig::new("s", Transport::Stdio(StdioConfig::default()));
        config.settings.read_only = names(read_only);
        config.settings.allow = names(allowed);
        let specs = offer(&config, &tools, &Mask::default());
        specs
            .into_iter()
            .map(|spec| (spec.name, spec.read_only))
            .collect()
    }

    #[test]
    fn only_tools_that_are_declared_read_only_are_offered() {
        assert_eq!(
            offered(&[], &[]),
            [
                ("s.a_b_63e5c1c4".to_owned(), true),
                ("s.read".to_owned(), true)
            ]
        );
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

    #[test]
    fn two_tools_never_share_a_name() {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let form = names::offered("s", "a.b");
        let listed = json!([
            tool("a.b"),
            tool(&form),
            tool("a.b"),
            tool("sk-ant-api03-abcdefghijklmnopqrstuvwxyz012345")
        ]);
        let listed: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(Declared::parse)
            .collect();
        let mut config = ServerConfig::new("s", Transport::Stdio(StdioConfig::default()));
        config.settings.read_only = listed
            .iter()
            .map(|declared| declared.tool.name.to_string())
            .collect();
        let judged = judged(&config, &listed, &Mask::default());
        let facts: Vec<_> = judged
            .iter()
            .map(|judged| {
                (
                    judged.name.as_str(),
                    judged
                        .verdict
                        .as_ref()
                        .map(|_| ())
                        .map_err(ToString::to_string),
                )
            })
            .collect();
        let name = format!("s.{form}");
        let [plain, renamed, secret] = facts.as_slice() else {
            panic!("{facts:?}")
        };
        assert_eq!(plain, &(name.as_str(), Ok(())));
        assert_eq!(
            renamed,
            &(
                name.as_str(),
                Err("another tool of the server has its name".to_owned())
            )
        );
        assert_eq!(secret.1, Err("its name holds a secret".to_owned()));
        assert!(!secret.0.contains("abcdef"), "{secret:?}");
        assert_eq!(offer(&config, &listed, &Mask::default()).len(), 1);
    }
}
