//! Writes the effective configuration as YAML: with defaults, and with references instead of their values.

use std::error::Error;

use saphyr::{LoadableYamlNode, Yaml, YamlEmitter};
use serde::Serialize;
use serde_json::Value;

use super::Config;

/// The configuration as a file that loads to the same configuration. Only the fields that are resolved when a file is
/// loaded have the values of variables; [`Resolved`](super::Resolved) gives them their
/// references back.
pub fn show(config: &Config) -> String {
    // Only a failing writer fails, and a String does not.
    emit(config).unwrap_or_else(|error| format!("# {error}\n"))
}

/// A value as YAML, one key a line.
pub fn yaml(value: &Value) -> String {
    emit(value).unwrap_or_else(|error| format!("# {error}\n"))
}

fn emit(value: &impl Serialize) -> Result<String, Box<dyn Error>> {
    // JSON is YAML and keeps the order of the keys.
    let json = serde_json::to_string(value)?;
    let mut out = String::new();
    for document in Yaml::load_from_str(&json)? {
        let mut emitter = YamlEmitter::new(&mut out);
        emitter.multiline(true);
        emitter.dump(&document)?;
    }
    Ok(format!("{}\n", out.trim_start_matches("---\n")))
}

/// The number of defined things in one line: `3 chains, 4 agents, 2 providers, 1 MCP server`.
pub fn describe(config: &Config) -> String {
    let counts = [
        (config.agent_chains.len(), "chain"),
        (config.agents.len(), "agent"),
        (config.llm_providers.len(), "provider"),
        (config.mcp_servers.len(), "MCP server"),
    ];
    let each =
        counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    each.join(", ")
}
