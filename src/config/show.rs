//! Writes the effective configuration as YAML: with defaults, and with references instead of their values.

use std::collections::BTreeMap;
use std::time::Duration;

use saphyr::{Mapping, Scalar, Yaml, YamlEmitter};

use super::read::units::{show_bytes, show_duration, show_tokens};
use super::{
    Agent, AgentChain, Config, Defaults, Kept, LlmProvider, McpServer, Price, Questions, Retention, Settings, Stage,
    StageAgent, Streams, Synthesis, Template,
};
use crate::investigation::plan::{Strategy, SuccessPolicy};

/// The configuration as a file that loads to the same configuration. It contains no secret.
pub fn show(config: &Config) -> String {
    let worker = &config.worker;
    let hosts: Vec<String> = config.runbooks.hosts.iter().map(ToString::to_string).collect();
    let root = Section::default()
        .put("llm_providers", each(&config.llm_providers, provider))
        .put("mcp_servers", each(&config.mcp_servers, server))
        .put("agents", each(&config.agents, agent))
        .put("agent_chains", each(&config.agent_chains, chain))
        .put("defaults", defaults(&config.defaults))
        .put(
            "worker",
            Section::default()
                .put("slots", integer(worker.slots))
                .put("reserved_critical_slots", integer(worker.reserved_critical_slots))
                .put("lease", duration(worker.lease))
                .put("attempts", integer(worker.attempts))
                .put("drain_timeout", duration(worker.drain_timeout))
                .put("session_timeout", duration(worker.session_timeout))
                .put("sweep_interval", duration(worker.sweep_interval))
                .put("tool_wait", duration(worker.tool_wait))
                .put("max_alert_bytes", text(&show_bytes(worker.max_alert_bytes)))
                .yaml(),
        )
        .put("streams", streams(&config.streams))
        .put("dedupe", Section::default().put("cooldown", duration(config.dedupe.cooldown)).yaml())
        .put(
            "receive",
            Section::default()
                .put("headers", texts(&config.receive.headers))
                .put("connections", integer(config.receive.connections))
                .put("connections_per_address", integer(config.receive.connections_per_address))
                .yaml(),
        )
        .put("runbooks", Section::default().put("hosts", texts(&hosts)).yaml())
        .put("database", Section::default().put("pool_size", integer(config.database.pool_size)).yaml())
        .put("retention", ages(&config.retention))
        .put(
            "masking",
            Section::default()
                .put("variables", texts(&config.masking.variables))
                .put("files", texts(&config.masking.files))
                .yaml(),
        );
    emit(&root.yaml())
}

/// The configured limits only: an existing stream may exceed the default of an absent limit.
fn streams(streams: &Streams) -> Yaml<'static> {
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| text(&show_bytes(bytes)));
    let kept = |kept: &Kept| {
        let age = Section::default().put_if("max_age", kept.max_age.map(duration));
        age.put_if("max_bytes", bytes(kept.max_bytes)).some()
    };
    let alerts = Section::default().put_if("max_bytes", bytes(streams.alerts_max_bytes)).some();
    Section::default()
        .put_if("replicas", streams.replicas.map(integer))
        .put_if("alerts", alerts)
        .put_if("timeline", kept(&streams.timeline))
        .put_if("dead_letters", kept(&streams.dead_letters))
        .put_if("control", kept(&streams.control))
        .yaml()
}

/// The configured ages only: without an age, rows are kept forever.
fn ages(retention: &Retention) -> Yaml<'static> {
    let ages = retention.each().into_iter();
    ages.fold(Section::default(), |section, (key, age)| section.put_if(key, age.map(duration))).yaml()
}

/// The number of defined things in one line: `3 chains, 4 agents, 2 providers, 1 MCP server`.
pub fn describe(config: &Config) -> String {
    let counts = [
        (config.agent_chains.len(), "chain"),
        (config.agents.len(), "agent"),
        (config.llm_providers.len(), "provider"),
        (config.mcp_servers.len(), "MCP server"),
    ];
    let each = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    each.join(", ")
}

fn emit(root: &Yaml<'_>) -> String {
    let mut out = String::new();
    let mut emitter = YamlEmitter::new(&mut out);
    emitter.multiline(true);
    match emitter.dump(root) {
        Ok(()) => format!("{}\n", out.trim_start_matches("---\n")),
        // Only a failing writer fails, and a String does not.
        Err(error) => format!("# {error}\n"),
    }
}

fn provider(provider: &LlmProvider) -> Yaml<'static> {
    Section::default()
        .put("provider", text(&provider.provider))
        .put("backend", text(provider.backend.as_str()))
        .put("model", text(&provider.model))
        .put_some("api_key_env", &provider.api_key_env)
        .put_some("base_url", &provider.base_url)
        .put_some("transcript", &provider.transcript)
        .put_if("context_window", (provider.context_window > 0).then(|| text(&show_tokens(provider.context_window))))
        .put_if("keep_search_widget", provider.keep_search_widget.then_some(Yaml::Value(Scalar::Boolean(true))))
        .put_if("price", provider.price.as_ref().map(price))
        .yaml()
}

fn price(price: &Price) -> Yaml<'static> {
    let amount = |amount: f64| Yaml::Value(Scalar::FloatingPoint(amount.into()));
    Section::default()
        .put("input", amount(price.input))
        .put("cached_input", amount(price.cached_input))
        .put("output", amount(price.output))
        .yaml()
}

fn server(server: &McpServer) -> Yaml<'static> {
    let written = |template: &Template| literal(template.as_str());
    Section::default()
        .put("command", written(&server.command))
        .put("args", Yaml::Sequence(server.args.iter().map(written).collect()))
        .put("env", each(&server.env, written))
        .put("tool_timeout", duration(server.tool_timeout))
        .put("read_only", texts(&server.read_only))
        .put("allow", texts(&server.allow))
        .put_if("tools", server.tools.as_deref().map(texts))
        .put("deny", texts(&server.deny))
        .put("trust_hints", Yaml::Value(Scalar::Boolean(server.trust_hints)))
        .yaml()
}

fn agent(agent: &Agent) -> Yaml<'static> {
    let section =
        Section::default().put_some("description", &agent.description).put_some("instructions", &agent.instructions);
    settings(section, &agent.settings)
}

fn defaults(defaults: &Defaults) -> Yaml<'static> {
    let section = Section::default()
        .put("chain", text(&defaults.chain))
        .put("success_policy", text(defaults.success_policy.as_str()))
        .put_if("synthesis", synthesis(&defaults.synthesis));
    settings(section, &defaults.settings)
}

fn chain(chain: &AgentChain) -> Yaml<'static> {
    let section = Section::default()
        .put_some("description", &chain.description)
        .put("alert_types", texts(&chain.alert_types))
        .put_if("success_policy", policy(chain.success_policy))
        .put_if("synthesis", synthesis(&chain.synthesis))
        .put_if("questions", questions(chain.questions))
        .put("stages", Yaml::Sequence(chain.stages.iter().map(stage).collect()));
    settings(section, &chain.settings)
}

/// `None` for the default.
fn questions(questions: Questions) -> Option<Yaml<'static>> {
    let Questions { changes } = questions;
    changes.then(|| Section::default().put("changes", Yaml::Value(Scalar::Boolean(true))).yaml())
}

fn stage(stage: &Stage) -> Yaml<'static> {
    let section = Section::default()
        .put("name", text(&stage.name))
        .put_if("success_policy", policy(stage.success_policy))
        .put_if("replicas", (stage.replicas > 1).then(|| integer(stage.replicas)))
        .put("agents", Yaml::Sequence(stage.agents.iter().map(stage_agent).collect()))
        .put_if("synthesis", synthesis(&stage.synthesis));
    settings(section, &stage.settings)
}

fn policy(policy: Option<SuccessPolicy>) -> Option<Yaml<'static>> {
    policy.map(SuccessPolicy::as_str).map(text)
}

/// `None` for an empty layer.
fn synthesis(synthesis: &Synthesis) -> Option<Yaml<'static>> {
    let section = Section::default()
        .put_if("agent", synthesis.agent.as_deref().map(text))
        .put_if("llm_provider", synthesis.llm_provider.as_deref().map(text))
        .put_if("iteration_strategy", synthesis.iteration_strategy.map(Strategy::as_str).map(text));
    (*synthesis != Synthesis::default()).then(|| section.yaml())
}

fn stage_agent(agent: &StageAgent) -> Yaml<'static> {
    settings(Section::default().put("name", text(&agent.name)), &agent.settings)
}

fn settings(section: Section, settings: &Settings) -> Yaml<'static> {
    section
        .put_if("iteration_strategy", settings.iteration_strategy.map(Strategy::as_str).map(text))
        .put_if("llm_provider", settings.llm_provider.as_deref().map(text))
        .put_if("mcp_servers", settings.mcp_servers.as_deref().map(texts))
        .put_if("max_iterations", settings.max_iterations.map(integer))
        .put_if("iteration_timeout", settings.iteration_timeout.map(duration))
        .put_if("max_timeouts", settings.max_timeouts.map(integer))
        .put_if("max_tool_result_tokens", settings.max_tool_result_tokens.map(integer))
        .put_if("max_tokens", settings.max_tokens.map(integer))
        .yaml()
}

fn each<T>(items: &BTreeMap<String, T>, show: impl Fn(&T) -> Yaml<'static>) -> Yaml<'static> {
    Yaml::Mapping(items.iter().map(|(name, item)| (literal(name), show(item))).collect())
}

/// A text value. A `${` in it was written as `$${` and must not become a reference.
fn text(value: &str) -> Yaml<'static> {
    literal(&value.replace("${", "$${"))
}

fn literal(text: &str) -> Yaml<'static> {
    Yaml::Value(Scalar::String(text.to_owned().into()))
}

fn texts(values: &[String]) -> Yaml<'static> {
    Yaml::Sequence(values.iter().map(|value| text(value)).collect())
}

fn integer(value: u32) -> Yaml<'static> {
    Yaml::Value(Scalar::Integer(value.into()))
}

fn duration(value: Duration) -> Yaml<'static> {
    text(&show_duration(value))
}

/// A mapping that keeps the order of its keys.
#[derive(Default)]
struct Section(Mapping<'static>);

impl Section {
    fn put(mut self, key: &'static str, value: Yaml<'static>) -> Self {
        self.0.insert(literal(key), value);
        self
    }

    fn put_if(self, key: &'static str, value: Option<Yaml<'static>>) -> Self {
        match value {
            Some(value) => self.put(key, value),
            None => self,
        }
    }

    fn put_some(self, key: &'static str, value: &str) -> Self {
        if value.is_empty() { self } else { self.put(key, text(value)) }
    }

    /// `None` if there is no key.
    fn some(self) -> Option<Yaml<'static>> {
        (!self.0.is_empty()).then(|| self.yaml())
    }

    fn yaml(self) -> Yaml<'static> {
        Yaml::Mapping(self.0)
    }
}
