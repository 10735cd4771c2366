//! Decides from the configuration and the server's hints whether a model may call a tool.
//!
//! | the first rule that holds | a model |
//! |---|---|
//! | `deny` names the tool | may not call it |
//! | `tools` is set and does not name it | may not call it |
//! | `approve` names it | may call it, once a person has approved the call |
//! | `read_only` names it | may call it, at any time and again |
//! | its server declares it read-only, and `trust_hints` is true | may call it, at any time and again |
//! | `allow` names it | may call it, once |
//! | no rule | may not call it |

use std::fmt;

use rmcp::model::Tool;

use super::list::declared::Declared;
use tarsy_config::McpServer;

/// The reason why a model may call a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// A person decides about each call, by this policy.
    WithApproval(String),
    NamedReadOnly,
    DeclaredReadOnly,
    Allowed,
}

impl Offered {
    /// Whether the tool counts as read-only.
    pub(super) fn is_read_only(&self) -> bool {
        match self {
            Self::NamedReadOnly | Self::DeclaredReadOnly => true,
            // A call that people decide about is sent once, so it counts as one that changes something.
            Self::WithApproval(_) | Self::Allowed => false,
        }
    }
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WithApproval(policy) => write!(
                f,
                "approve names it: each call waits for a person (policy {policy})"
            ),
            Self::NamedReadOnly => f.write_str("read_only names it"),
            Self::DeclaredReadOnly => f.write_str("its server declares it read-only"),
            Self::Allowed => f.write_str("allow names it"),
        }
    }
}

/// The reason why a model may not call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Withheld {
    #[error("deny names it")]
    Denied,
    #[error("tools does not name it")]
    NotAmongTools,
    #[error("only its server declares it read-only, and trust_hints is false")]
    HintNotTrusted,
    #[error("it may change something")]
    MayChange,
}

/// The reason why a model may call the tool, or why it may not.
pub(super) fn judge(config: &McpServer, tool: &Tool) -> Result<Offered, Withheld> {
    let named = |names: &[String]| names.iter().any(|name| *name == tool.name);
    if named(&config.deny) {
        return Err(Withheld::Denied);
    }
    if config.tools.as_deref().is_some_and(|tools| !named(tools)) {
        return Err(Withheld::NotAmongTools);
    }
    if let Some(policy) = config.approval_policy(&tool.name) {
        return Ok(Offered::WithApproval(policy.to_owned()));
    }
    let is_hinted = tool
        .annotations
        .as_ref()
        .and_then(|hints| hints.read_only_hint)
        == Some(true);
    if named(&config.read_only) {
        return Ok(Offered::NamedReadOnly);
    }
    if is_hinted && config.trust_hints {
        return Ok(Offered::DeclaredReadOnly);
    }
    if named(&config.allow) {
        return Ok(Offered::Allowed);
    }
    Err(if is_hinted {
        Withheld::HintNotTrusted
    } else {
        Withheld::MayChange
    })
}

/// Names in the configuration without a tool on the server, each with its key: `deny: pods_exec`.
pub(super) fn unknown(config: &McpServer, tools: &[Declared]) -> Vec<String> {
    let only = config.tools.as_deref().unwrap_or_default();
    let keys = [
        ("tools", only),
        ("deny", &config.deny),
        ("read_only", &config.read_only),
        ("allow", &config.allow),
    ];
    let approve = config
        .approve
        .values()
        .map(|names| ("approve", names.as_slice()));
    let names = keys
        .into_iter()
        .chain(approve)
        .flat_map(|(key, names)| names.iter().map(move |name| (key, name)));
    let unknown = names.filter(|(_, name)| {
        !tools
            .iter()
            .any(|declared| declared.tool.name == name.as_str())
    });
    unknown
        .map(|(key, name)| format!("{key}: {name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use tarsy_config::{McpAddress, McpTransport};

    fn config() -> McpServer {
        McpServer::new(McpTransport::Http(McpAddress::default()))
    }

    fn tools() -> [Tool; 3] {
        let tool = |name: &str, read_only: bool| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": read_only}});
        [
            tool("get", true),
            tool("config", true),
            tool("patch", false),
        ]
        .map(|tool| serde_json::from_value(tool).unwrap())
    }

    /// Tools of the policy `drain`.
    fn approve(tools: &[&str]) -> BTreeMap<String, Vec<String>> {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        BTreeMap::from([("drain".to_owned(), tools)])
    }

    #[test]
    fn a_tool_with_approval_is_offered_with_its_policy() {
        let config = McpServer {
            approve: approve(&["get"]),
            ..config()
        };
        let words = tools().map(|tool| judge(&config, &tool).map(|why| why.to_string()));
        assert_eq!(
            words,
            [
                Ok("approve names it: each call waits for a person (policy drain)".to_owned()),
                Ok("its server declares it read-only".to_owned()),
                Err(Withheld::MayChange)
            ]
        );
    }

    #[test]
    fn the_first_rule_that_holds_decides() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let all = || names(&["get", "config", "patch"]);
        let denied = Err(Withheld::Denied);
        let left_out = Err(Withheld::NotAmongTools);
        let changes = Err(Withheld::MayChange);
        let untrusted = Err(Withheld::HintNotTrusted);
        let cases = [
            (config(), [Ok(true), Ok(true), changes]),
            (
                McpServer {
                    deny: names(&["config"]),
                    ..config()
                },
                [Ok(true), denied, changes],
            ),
            (
                McpServer {
                    deny: all(),
                    tools: Some(all()),
                    read_only: all(),
                    allow: all(),
                    ..config()
                },
                [denied; 3],
            ),
            (
                McpServer {
                    tools: Some(names(&["get"])),
                    ..config()
                },
                [Ok(true), left_out, left_out],
            ),
            (
                McpServer {
                    tools: Some(all()),
                    ..config()
                },
                [Ok(true), Ok(true), changes],
            ),
            (
                McpServer {
                    tools: Some(Vec::new()),
                    read_only: all(),
                    ..config()
                },
                [left_out; 3],
            ),
            (
                McpServer {
                    trust_hints: false,
                    ..config()
                },
                [untrusted, untrusted, changes],
            ),
            (
                McpServer {
                    trust_hints: false,
                    read_only: names(&["get"]),
                    allow: all(),
                    ..config()
                },
                [Ok(true), Ok(false), Ok(false)],
            ),
            (
                McpServer {
                    read_only: all(),
                    allow: all(),
                    ..config()
                },
                [Ok(true); 3],
            ),
            (
                McpServer {
                    approve: approve(&["get", "config"]),
                    read_only: names(&["get"]),
                    allow: names(&["patch"]),
                    ..config()
                },
                [Ok(false); 3],
            ),
            (
                McpServer {
                    approve: approve(&["get", "config", "patch"]),
                    tools: Some(names(&["get", "patch"])),
                    deny: names(&["get"]),
                    ..config()
                },
                [denied, left_out, Ok(false)],
            ),
        ];
        for (config, expected) in cases {
            let rules = (
                &config.tools,
                &config.deny,
                &config.read_only,
                &config.allow,
                &config.approve,
                config.trust_hints,
            );
            let judged: Vec<_> = tools()
                .iter()
                .map(|tool| judge(&config, tool).map(|offered| offered.is_read_only()))
                .collect();
            assert_eq!(judged, expected, "{rules:?}");
        }
    }

    #[test]
    fn an_unknown_name_is_reported_with_its_key() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let config = McpServer {
            tools: Some(names(&["get", "gets"])),
            deny: names(&["exec", "config"]),
            read_only: names(&["get"]),
            allow: names(&["delete"]),
            approve: approve(&["patch", "drain"]),
            ..config()
        };
        assert_eq!(
            unknown(&config, &tools().map(Declared::from)),
            [
                "tools: gets",
                "deny: exec",
                "allow: delete",
                "approve: drain"
            ]
        );
    }
}
