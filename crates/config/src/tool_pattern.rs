//! `tools` of an agent: patterns of the tools that it may call.

use std::fmt;

/// A pattern of full names, `server.tool`; each `*` represents any characters of its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern {
    server: String,
    tool: String,
}

impl ToolPattern {
    /// Reads a pattern; `None` if it is none. Its server may be unknown.
    pub fn parse(text: &str) -> Option<Self> {
        let (server, tool) = text.split_once('.')?;
        let is_complete = !server.is_empty() && !tool.is_empty();
        is_complete.then(|| Self {
            server: server.to_owned(),
            tool: tool.to_owned(),
        })
    }

    /// Whether it may name tools of this server.
    pub fn names_server(&self, server: &str) -> bool {
        matches(&self.server, server)
    }

    /// Its part before the dot.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Whether it names this tool of this server. A tool has the name that its server gives it.
    pub fn names(&self, server: &str, tool: &str) -> bool {
        matches(&self.server, server) && matches(&self.tool, tool)
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server, self.tool)
    }
}

/// Whether `text` is `pattern` with any characters in the place of each `*`. The time is linear in the lengths for one
/// `*`, and at most their product.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_pattern_names_the_tools_whose_parts_it_matches() {
        for (pattern, name, expected) in [
            ("k8s.pods_list", ("k8s", "pods_list"), true),
            ("k8s.pods_*", ("k8s", "pods_list"), true),
            ("k8s.*_list", ("k8s", "pods_list"), true),
            ("k8s.p*l*t", ("k8s", "pods_list"), true),
            ("k8s.**", ("k8s", "x"), true),
            ("*.pods_list", ("k8s", "pods_list"), true),
            ("k8s-*.get", ("k8s-west", "get"), true),
            ("k8s.files/*.v2", ("k8s", "files/read.v2"), true),
            ("k8s.pods", ("k8s", "pods_list"), false),
            ("k8s.pods_*", ("k8s", "nodes_top"), false),
            ("k8s.*a*a", ("k8s", "a"), false),
            ("k8s.*", ("k8s-west", "get"), false),
        ] {
            let parsed = ToolPattern::parse(pattern).unwrap();
            assert_eq!(parsed.names(name.0, name.1), expected, "{pattern} {name:?}");
            assert_eq!(parsed.to_string(), pattern);
        }
        for wrong in ["", "k8s", "k8s.", ".pods"] {
            assert_eq!(ToolPattern::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_pattern_without_a_server_is_a_fault_at_its_line() {
        let text = "mcp_servers: {k8s: {command: k}}\nagents:\n  sre:\n    tools: [k8s.pods_*, pods, prom.query, '*.get']";
        let faults = Config::parse("f", text, &|_| None).unwrap_err().to_string();
        let expected = "f: 2 faults
  agents.sre.tools[1]   line 4   \"pods\"; accepted: a tool as server.tool, where * stands for any characters: k8s.pods_*
  agents.sre.tools[2]   line 4   \"prom.query\": there is no MCP server \"prom\"; defined: k8s";
        assert_eq!(faults, expected);
    }
}
