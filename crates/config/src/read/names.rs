//! The names that a file defines. They are read first, because sections refer to each other.

use super::reader::key_text;
use super::yaml::{Data, Node};
use crate::builtin;

/// The names that the configuration defines, the built-in ones included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) providers: Vec<String>,
    pub(crate) servers: Vec<String>,
    pub(crate) agents: Vec<String>,
    pub(crate) chains: Vec<String>,
    /// The policies of `approvals`.
    pub(crate) policies: Vec<String>,
}

impl Names {
    pub(crate) fn collect(root: &Node) -> Self {
        let or = |section: &str, built_in: &str| {
            let names = keys(root, section);
            if names.is_empty() {
                vec![built_in.to_owned()]
            } else {
                names
            }
        };
        Self {
            providers: or("llm_providers", builtin::PROVIDER),
            servers: keys(root, "mcp_servers"),
            agents: or("agents", builtin::AGENT),
            chains: or("agent_chains", builtin::CHAIN),
            policies: below(root, "approvals")
                .map(|approvals| keys(approvals, "policies"))
                .unwrap_or_default(),
        }
    }
}

fn keys(root: &Node, section: &str) -> Vec<String> {
    let entries = below(root, section).map(entries).unwrap_or_default();
    entries.iter().map(|(key, _)| key_text(key)).collect()
}

/// The value of a key.
fn below<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let mut entries = entries(node).iter();
    let found = entries.find(|(name, _)| key_text(name) == key);
    found.map(|(_, value)| value)
}

fn entries(node: &Node) -> &[(Node, Node)] {
    if let Data::Map(pairs) = &node.data {
        pairs
    } else {
        &[]
    }
}
