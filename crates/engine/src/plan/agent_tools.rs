//! The tools of an agent: those of its servers that its patterns name, as many as a request may declare. Pure.

use std::collections::BTreeMap;

use super::stage_agents::{all_agents, strategy};
use tarsy_config::{Config, Settings};
use tarsy_core::plan::ToolSpec;

/// Tools of servers in a request: OpenAI accepts 128 functions, and four of them may be tarsy's own.
pub const MAX_TOOLS: usize = 124;
/// Bytes of the descriptions and schemas of all tools of an agent, which are a part of every request.
pub const MAX_BYTES: usize = 512 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentTools {
    /// Sorted by name.
    pub tools: Vec<ToolSpec>,
    /// Names of tools that are left out because there are too many, sorted.
    pub left_out: Vec<String>,
}

/// Names of the servers that an agent may use: its own list, or all.
pub(super) fn servers_for(config: &Config, settings: &Settings) -> Vec<String> {
    settings
        .mcp_servers
        .clone()
        .unwrap_or_else(|| config.mcp_servers.keys().cloned().collect())
}

/// The tools of an agent with these settings, of those that servers offer.
pub fn agent_tools(config: &Config, settings: &Settings, offered: &[ToolSpec]) -> AgentTools {
    if !strategy(settings).uses_tools() {
        return AgentTools::default();
    }
    let servers = servers_for(config, settings);
    let mut tools = offered.to_vec();
    tools.retain(|tool| servers.iter().any(|server| server == tool.server()));
    if let Some(patterns) = &settings.tools {
        tools.retain(|tool| {
            patterns
                .iter()
                .any(|pattern| pattern.names(tool.server(), tool.tool()))
        });
    }
    let left_out = leave_out(&mut tools);
    AgentTools { tools, left_out }
}

/// An agent of a chain with its share of the tools that servers offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentShare {
    pub chain: String,
    pub agent: String,
    /// The number of tools that its servers offer.
    pub of_servers: usize,
    pub tools: AgentTools,
}

impl AgentShare {
    /// The number of tools of its servers that its key `tools` does not name.
    pub fn not_named(&self) -> usize {
        self.of_servers
            .saturating_sub(self.tools.tools.len() + self.tools.left_out.len())
    }
}

/// The agents with tools of all chains, and their sub-agents, which get those that only read.
pub fn agents_with_tools(config: &Config, offered: &[ToolSpec]) -> Vec<AgentShare> {
    let only_reading: Vec<ToolSpec> = offered
        .iter()
        .filter(|tool| tool.read_only)
        .cloned()
        .collect();
    let mut shares = Vec::new();
    for (name, chain) in &config.agent_chains {
        for agent in all_agents(config, chain) {
            let settings = agent.settings;
            if !strategy(&settings).uses_tools() {
                continue;
            }
            let offered = if agent.may_change {
                offered
            } else {
                &only_reading
            };
            let tools = agent_tools(config, &settings, offered);
            let unfiltered = Settings {
                tools: None,
                ..settings
            };
            let all = agent_tools(config, &unfiltered, offered);
            let share = AgentShare {
                chain: name.clone(),
                agent: agent.name.to_owned(),
                of_servers: all.tools.len() + all.left_out.len(),
                tools,
            };
            // Two stages may have the same agent with the same tools.
            if !shares.contains(&share) {
                shares.push(share);
            }
        }
    }
    shares
}

/// Removes tools until the rest fits: each time the last one by name of the server that takes most, so that a server
/// with many tools does not displace those of others.
fn leave_out(tools: &mut Vec<ToolSpec>) -> Vec<String> {
    let mut left_out = Vec::new();
    while let Some(server) = crowding_server(tools) {
        let Some(last) = tools.iter().rposition(|tool| tool.server() == server) else {
            break;
        };
        left_out.push(tools.remove(last).name);
    }
    left_out.sort();
    left_out
}

/// The server with the most tools if there are too many, or with the most bytes; `None` when everything fits.
fn crowding_server(tools: &[ToolSpec]) -> Option<String> {
    let mut taken: BTreeMap<&str, Taken> = BTreeMap::new();
    for tool in tools {
        let server = taken.entry(tool.server()).or_default();
        server.tools += 1;
        server.bytes += bytes_of(tool);
    }
    let most = if tools.len() > MAX_TOOLS {
        taken.iter().max_by_key(|(_, taken)| taken.tools)
    } else if taken.values().map(|taken| taken.bytes).sum::<usize>() > MAX_BYTES {
        taken.iter().max_by_key(|(_, taken)| taken.bytes)
    } else {
        None
    };
    most.map(|(server, _)| (*server).to_owned())
}

#[derive(Default)]
struct Taken {
    tools: usize,
    bytes: usize,
}

fn bytes_of(tool: &ToolSpec) -> usize {
    tool.name.len() + tool.description.len() + tool.parameters_schema.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_core::testing::read_only_tool;

    const CONFIG: &str = "
mcp_servers: {a: {command: a}, b: {command: b}, c: {command: c}}
agents:
  all: {}
  some: {mcp_servers: [a, b], tools: ['a.pods_*', 'c.*', '*.files/*']}
  writer: {iteration_strategy: ''}
agent_chains: {x: {stages: [{agents: [{name: all}]}]}}
";

    fn chosen(agent: &str, offered: &[ToolSpec]) -> AgentTools {
        let config = Config::parse("f", CONFIG, &|_| None).unwrap();
        let settings = config.agents[agent]
            .settings
            .over(&config.defaults.settings);
        agent_tools(&config, &settings, offered)
    }

    fn many(server: &str, count: usize) -> Vec<ToolSpec> {
        (0..count)
            .map(|number| read_only_tool(&format!("{server}.t{number:03}")))
            .collect()
    }

    #[test]
    fn an_agent_gets_the_tools_that_its_patterns_name() {
        let renamed = ToolSpec {
            original_name: Some("files/read".to_owned()),
            ..read_only_tool("b.files_read_12345678")
        };
        let offered = [
            read_only_tool("a.pods_get"),
            read_only_tool("a.top"),
            renamed,
            read_only_tool("c.x"),
        ];
        let names = |agent: &str| {
            chosen(agent, &offered)
                .tools
                .into_iter()
                .map(|tool| tool.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("all"),
            ["a.pods_get", "a.top", "b.files_read_12345678", "c.x"]
        );
        assert_eq!(names("some"), ["a.pods_get", "b.files_read_12345678"]);
        assert_eq!(names("writer"), Vec::<String>::new());
    }

    #[test]
    fn the_server_with_most_tools_loses_the_ones_that_do_not_fit() {
        let offered = [many("a", 20), many("b", 300), many("c", 100)].concat();
        let AgentTools { tools, left_out } = chosen("all", &offered);
        let count = |server: &str| tools.iter().filter(|tool| tool.server() == server).count();
        assert_eq!(
            (tools.len(), count("a"), count("b"), count("c")),
            (124, 20, 52, 52)
        );
        assert_eq!((left_out.len(), left_out[0].as_str()), (296, "b.t052"));
        assert_eq!(
            chosen("all", &tools),
            AgentTools {
                tools,
                left_out: vec![]
            }
        );
    }

    #[test]
    fn large_schemas_are_left_out_when_all_together_are_too_large() {
        let mut large = many("a", 20);
        for tool in &mut large {
            tool.parameters_schema = "x".repeat(60_000);
        }
        let AgentTools { tools, left_out } = chosen("all", &[large, many("b", 90)].concat());
        assert_eq!((tools.len(), left_out.len()), (98, 12));
        assert!(
            left_out.iter().all(|name| name.starts_with("a.")),
            "{left_out:?}"
        );
    }
}
