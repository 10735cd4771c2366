//! `agents` of an agent: the faults of its sub-agents, which depend on other sections of the file.

use std::collections::{BTreeMap, BTreeSet};

use super::agents::Agent;
use super::servers::McpServer;
use super::settings::Settings;
use crate::read::reader::Field;

/// The parts of a file on which sub-agents depend.
pub(crate) struct Defined<'a> {
    pub(crate) agents: &'a BTreeMap<String, Agent>,
    pub(crate) servers: &'a BTreeMap<String, McpServer>,
    pub(crate) defaults: &'a Settings,
}

impl Defined<'_> {
    /// Reports the faults of all sub-agents; `section` has the agents of the file.
    pub(crate) fn check(&self, section: Option<&Field<'_>>) {
        let fields = section.map(Field::entries).unwrap_or_default();
        let mut checked = BTreeSet::new();
        for (name, field) in &fields {
            let Some(agent) = self.agents.get(name) else {
                continue;
            };
            if agent.agents.is_empty() {
                if let Some(field) = field.get("max_agents") {
                    field.fault(
                        "without agents, of which it is the number of tasks; add agents, or leave it out"
                            .to_owned(),
                    );
                }
                continue;
            }
            self.check_parent(name, field);
            for sub_agent in &agent.agents {
                let fields = fields.iter().find(|(name, _)| name == sub_agent);
                if let Some((_, field)) = fields
                    && sub_agent != name
                    && checked.insert(sub_agent)
                {
                    self.check_sub_agent(sub_agent, name, field);
                }
            }
        }
    }

    fn check_parent(&self, name: &str, field: &Field<'_>) {
        let mut read: Vec<String> = Vec::new();
        for item in field.items("agents") {
            let Some(sub_agent) = item.resolved() else {
                continue;
            };
            if sub_agent == name {
                item.fault(format!(
                    "{sub_agent:?} names itself; name other agents, to which it gives a part of its work"
                ));
            } else if read.contains(&sub_agent) {
                item.fault(format!("{sub_agent:?} is in the list already"));
            } else {
                read.push(sub_agent);
            }
        }
        self.check_strategy(
            name,
            field,
            "an agent with sub-agents calls a tool for them",
        );
    }

    /// Reports what keeps an agent from being a sub-agent of `parent`.
    fn check_sub_agent(&self, name: &str, parent: &str, field: &Field<'_>) {
        let Some(agent) = self.agents.get(name) else {
            return;
        };
        if !agent.agents.is_empty() && agent.agents.iter().all(|other| other != name) {
            field.at("agents").fault(format!(
                "{name} is a sub-agent of {parent}, and a sub-agent has none itself; remove one of the two"
            ));
        }
        if agent.description.trim().is_empty() {
            field.missing(
                "description",
                &format!("a text that says what {parent} can give to it"),
            );
        }
        self.check_strategy(name, field, "a sub-agent looks with tools");
        let settings = agent.settings.over(self.defaults);
        for (server, tool) in self.changing_tools(&settings) {
            field.at("tools").fault(format!(
                "{name} is a sub-agent of {parent} and only reads, but {server} allows {tool}, which may change \
                 something; list in tools those that it needs"
            ));
        }
        for (server, tool) in self.tools_with_approval(&settings) {
            field.at("tools").fault(format!(
                "{name} is a sub-agent of {parent} and waits for nothing, but a person has to approve each call of \
                 {tool} of {server}; list in tools those that it needs"
            ));
        }
    }

    fn check_strategy(&self, name: &str, field: &Field<'_>, why: &str) {
        let settings = self.agents.get(name).map(|agent| &agent.settings);
        let strategy = settings
            .and_then(|settings| settings.iteration_strategy)
            .or(self.defaults.iteration_strategy);
        if let Some(strategy) = strategy.filter(|strategy| !strategy.uses_tools()) {
            field.at("iteration_strategy").fault(format!(
                "{:?} has no tools, but {why}; accepted: native-thinking, react",
                strategy.as_str()
            ));
        }
    }

    /// The tools of its servers that an agent with these settings may call although they may change something.
    fn changing_tools(&self, settings: &Settings) -> Vec<(&str, &str)> {
        let servers = self.servers.iter();
        let allowed = servers.flat_map(|(name, server)| {
            let changing = server.allow.iter();
            let changing = changing.filter(|tool| !server.read_only.contains(tool));
            changing.map(move |tool| (name, server, tool))
        });
        allowed
            .filter(|(name, server, tool)| has_tool(settings, name, server, tool))
            .map(|(name, _, tool)| (name.as_str(), tool.as_str()))
            .collect()
    }

    /// The tools of its servers whose calls a person has to approve, read-only ones as well.
    fn tools_with_approval(&self, settings: &Settings) -> Vec<(&str, &str)> {
        let servers = self.servers.iter();
        let approved = servers.flat_map(|(name, server)| {
            let tools = server.approve.values().flatten();
            tools.map(move |tool| (name, server, tool))
        });
        approved
            .filter(|(name, server, tool)| has_tool(settings, name, server, tool))
            .map(|(name, _, tool)| (name.as_str(), tool.as_str()))
            .collect()
    }
}

/// Whether an agent with these settings gets the tool of a server.
fn has_tool(settings: &Settings, name: &String, server: &McpServer, tool: &str) -> bool {
    let servers = settings.mcp_servers.as_ref();
    let has_server = servers.is_none_or(|servers| servers.contains(name));
    let patterns = settings.tools.as_ref();
    let is_named =
        patterns.is_none_or(|patterns| patterns.iter().any(|pattern| pattern.names(name, tool)));
    has_server && is_named && may_offer(server, tool)
}

/// Whether the keys of the server leave the tool in.
fn may_offer(server: &McpServer, tool: &str) -> bool {
    let is_listed = server
        .tools
        .as_ref()
        .is_none_or(|tools| tools.iter().any(|known| known == tool));
    is_listed && server.deny.iter().all(|denied| denied != tool)
}

#[cfg(test)]
mod tests {
    use crate::{Config, Settings};

    const SERVERS: &str = "mcp_servers:
  loki: {command: l}
  k8s: {command: k, allow: [restart, top, drain], read_only: [top], deny: [drain]}
";

    fn config(agents: &str) -> Result<Config, String> {
        let text = format!(
            "llm_providers: {{a: {{provider: scripted}}}}\n{SERVERS}agents:\n{agents}agent_chains: {{k: {{stages: [{{agents: [{{name: lead}}]}}]}}}}\n"
        );
        Config::parse("f", &text, &|_| None).map_err(|faults| faults.to_string())
    }

    #[test]
    fn an_agent_has_the_sub_agents_that_its_key_names() {
        let config = config(
            "  lead: {agents: [logs, pods], max_agents: 3}
  logs: {description: Finds what a log shows, mcp_servers: [loki]}
  pods: {description: Looks at pods, mcp_servers: [k8s], tools: ['k8s.get_*', 'k8s.top']}
",
        )
        .unwrap();
        let lead = &config.agents["lead"];
        assert_eq!(lead.agents, ["logs", "pods"]);
        assert_eq!(lead.max_agents, Some(3));
        assert_eq!(
            config.agents["logs"]
                .settings
                .over(&Settings::default())
                .tools,
            None
        );
    }

    #[test]
    fn each_fault_of_sub_agents_says_what_to_do() {
        let faults = config(
            "  lead:
    agents: [logs, lead, other, logs, pods, deep, words]
    max_agents: 9
  logs:
    mcp_servers: [loki]
  pods:
    description: Looks at pods
    tools: ['k8s.*']
  deep:
    description: Has its own
    mcp_servers: []
    agents: [logs]
  words:
    description: Writes
    mcp_servers: []
    iteration_strategy: synthesis
  lone:
    max_agents: 2
  mute:
    iteration_strategy: ''
    agents: [all]
    max_agents: 0
  all:
    description: Has every server
",
        )
        .unwrap_err();
        insta::assert_snapshot!(faults);
    }

    #[test]
    fn a_sub_agent_gets_no_tool_whose_calls_wait_for_a_person() {
        let read = |tools: &str| {
            let text = format!(
                "approvals: {{policies: {{default: {{approvers: [sre]}}}}}}
mcp_servers: {{k8s: {{command: k, read_only: [secrets], approve: [secrets, restart], deny: [restart]}}}}
agents:
  lead: {{agents: [pods]}}
  pods: {{description: Looks at pods, tools: [{tools}]}}
agent_chains: {{k: {{stages: [{{agents: [{{name: lead}}]}}]}}}}
"
            );
            Config::parse("f", &text, &|_| None).map_err(|faults| faults.to_string())
        };
        let fault = read("'k8s.*'").unwrap_err();
        let expected = "pods is a sub-agent of lead and waits for nothing, but a person has to approve each call of \
                        secrets of k8s; list in tools those that it needs";
        assert!(
            fault.contains(expected) && !fault.contains("restart"),
            "{fault}"
        );
        assert!(read("k8s.get").is_ok());
    }

    #[test]
    fn an_agent_that_names_only_itself_is_one_fault() {
        let faults =
            config("  lead: {agents: [lead], description: x, mcp_servers: []}\n").unwrap_err();
        assert_eq!(faults.matches("line").count(), 1, "{faults}");
    }
}
