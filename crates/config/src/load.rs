//! Loads a file into a [`Config`], or reports all its faults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::read::context::Context;
use super::read::names::Names;
use super::read::reader::{Field, Map};
use super::read::yaml;
use super::sections::chains;
use super::sections::settings::Settings;
use super::sections::sub_agents;
use super::{
    Agent, AgentChain, Approvals, Config, ConfiguredDestination, ConfiguredSources, Defaults, Env,
    Fault, Faults, LlmProvider, LlmService, McpServer, NativeTools, NotificationRoute,
    PastSettings, Receive, Routes, Runbooks, Web, Worker, builtin,
};
use tarsy_core::past::{DEFAULT_DAYS, DEFAULT_GIVEN};
use tarsy_core::plan::{Limits, PastScope, Strategy};

/// An environment variable of this process.
pub fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The default file in the working directory.
pub const FILE: &str = "tarsy.yaml";

/// The file to load: the named one, else [`FILE`] if it exists.
pub fn find(named: Option<PathBuf>) -> Option<PathBuf> {
    named.or_else(|| Some(PathBuf::from(FILE)).filter(|path| path.exists()))
}

impl Config {
    /// Loads a file. Without a file, the configuration has one agent and a provider that replays a recording.
    ///
    /// # Errors
    /// All faults of the file; an unreadable file has one fault.
    pub fn load(path: Option<&Path>, env: Env<'_>) -> Result<Self, Faults> {
        let Some(path) = path else {
            return Self::parse("built-in", "", env);
        };
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text, env),
            Err(error) => Err(single(&file, 0, format!("cannot be read: {error}"))),
        }
    }

    /// Parses the text of a file; `file` is its name in faults.
    ///
    /// # Errors
    /// All faults of the text.
    pub fn parse(file: &str, text: &str, env: Env<'_>) -> Result<Self, Faults> {
        let root = yaml::to_node(text).map_err(|error| single(file, error.line, error.message))?;
        let context = Context::new(env).with_names(Names::collect(&root));
        let config = Field::root(&context, &root).section(|map| read(map, &context.names));
        let faults = context.into_faults();
        if faults.is_empty() {
            // Each file that a test loads is valid for editors.
            #[cfg(test)]
            assert_eq!(
                crate::schema::tests::refused(text),
                Vec::<String>::new(),
                "{text}"
            );
            Ok(config)
        } else {
            Err(Faults {
                file: file.to_owned(),
                faults,
            })
        }
    }
}

impl LlmService {
    /// Loads this section of a file and ignores the others, whose variables may be set on other machines only. Without
    /// a file, every key has its default.
    ///
    /// # Errors
    /// All faults of the section; an unreadable file has one fault.
    pub fn load(path: Option<&Path>, env: Env<'_>) -> Result<Self, Faults> {
        load_section(path, env, "llm_service")
    }
}

impl Web {
    /// Loads this section of a file and ignores the others, whose variables may be set on other machines only.
    ///
    /// # Errors
    /// All faults of the section; an unreadable file has one fault.
    pub fn load(path: Option<&Path>, env: Env<'_>) -> Result<Self, Faults> {
        load_section(path, env, "web")
    }
}

/// Loads one section of a file; the default without a file or without the section.
fn load_section<T: DeserializeOwned + JsonSchema + Default>(
    path: Option<&Path>,
    env: Env<'_>,
    name: &str,
) -> Result<T, Faults> {
    let Some(path) = path else {
        return Ok(T::default());
    };
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| single(&file, 0, format!("cannot be read: {error}")))?;
    let root = yaml::to_node(&text).map_err(|error| single(&file, error.line, error.message))?;
    let context = Context::new(env);
    let sections = Field::root(&context, &root).entries();
    let section = sections.iter().find(|(key, _)| key == name);
    let read = section
        .map(|(_, field)| field.declared())
        .unwrap_or_default();
    let faults = context.into_faults();
    if faults.is_empty() {
        Ok(read)
    } else {
        Err(Faults { file, faults })
    }
}

fn single(file: &str, line: usize, problem: String) -> Faults {
    Faults {
        file: file.to_owned(),
        faults: vec![Fault {
            key: String::new(),
            line,
            problem,
        }],
    }
}

fn read(map: &mut Map<'_>, names: &Names) -> Config {
    let mut llm_providers = named(map, "llm_providers", |_, field| {
        field.declared_and_checked(LlmProvider::check)
    });
    if llm_providers.is_empty() {
        llm_providers.insert(builtin::PROVIDER.to_owned(), LlmProvider::scripted());
    }
    let mcp_servers = named(map, "mcp_servers", McpServer::read);
    let mut agents = named(map, "agents", |_, field| {
        field.declared_and_checked(Agent::check)
    });
    if agents.is_empty() {
        agents.insert(builtin::AGENT.to_owned(), Agent::default());
    }
    let (mut agent_chains, marked) = map
        .get("agent_chains")
        .map(|field| chains::read(&field))
        .unwrap_or_default();
    if agent_chains.is_empty() {
        match names.agents.as_slice() {
            [agent] => {
                agent_chains.insert(builtin::CHAIN.to_owned(), AgentChain::of_agent(agent));
            }
            several => map.missing(
                "agent_chains",
                &format!("chains that say which of {} run", several.join(", ")),
            ),
        }
    }
    let defaults = read_defaults(map, names, marked);
    let defined = sub_agents::Defined {
        agents: &agents,
        servers: &mcp_servers,
        defaults: &defaults.settings,
    };
    defined.check(map.field().get("agents").as_ref());
    Config {
        defaults,
        routes: Routes::read(map),
        worker: checked(map, "worker", Worker::check),
        streams: map.declared("streams"),
        dedupe: map.declared("dedupe"),
        receive: checked(map, "receive", Receive::check),
        llm_service: map.declared("llm_service"),
        web: map.declared("web"),
        notifications: notifications(map, &names.chains),
        destinations: ConfiguredDestination::read_all(map, &names.chains),
        sources: ConfiguredSources::read(map),
        runbooks: checked(map, "runbooks", Runbooks::check),
        skills: map.declared("skills"),
        approvals: checked(map, "approvals", Approvals::check),
        database: map.declared("database"),
        retention: map.declared("retention"),
        masking: map.declared("masking"),
        llm_providers,
        mcp_servers,
        agents,
        agent_chains,
    }
}

fn checked<T: DeserializeOwned + JsonSchema + Default>(
    map: &mut Map<'_>,
    key: &str,
    check: fn(&mut T, &Field<'_>),
) -> T {
    let field = map.get(key);
    field.map_or_else(T::default, |field| field.declared_and_checked(check))
}

fn notifications(map: &mut Map<'_>, chains: &[String]) -> BTreeMap<String, NotificationRoute> {
    let routes = named(map, "notifications", |_, field| {
        NotificationRoute::read(field, chains)
    });
    routes
        .into_iter()
        .filter_map(|(name, route)| Some((name, route?)))
        .collect()
}

fn named<'c, T>(
    map: &mut Map<'c>,
    section: &'static str,
    read: impl Fn(&str, &Field<'c>) -> T,
) -> BTreeMap<String, T> {
    let mut items = BTreeMap::new();
    for (name, field) in map
        .get(section)
        .map(|field| field.entries())
        .unwrap_or_default()
    {
        let item = read(&name, &field);
        items.insert(name, item);
    }
    items
}

/// `marked` is the chain that is marked as the default.
fn read_defaults(root: &mut Map<'_>, names: &Names, marked: Option<String>) -> Defaults {
    let mut defaults = Defaults::default();
    let mut names_provider = false;
    let mut names_chain = false;
    if let Some(field) = root.get("defaults") {
        defaults =
            field.declared_and_checked(|read: &mut Defaults, field| read.settings.check(field));
        names_provider = field.has("llm_provider");
        names_chain = field.has("chain");
        let chain = &defaults.chain;
        if let Some(marked) = marked
            .as_ref()
            .filter(|marked| !chain.is_empty() && *marked != chain)
        {
            field.at("chain").fault(format!(
                "{chain:?}, but the chain {marked} is marked as the default"
            ));
        }
    }
    if !names_provider {
        defaults.settings.llm_provider = only(&names.providers, root, "defaults.llm_provider");
    }
    if defaults.chain.is_empty() {
        let chain = marked.or_else(|| {
            // A name with a fault is no missing one.
            (!names_chain).then(|| only(&names.chains, root, "defaults.chain"))?
        });
        defaults.chain = chain.unwrap_or_default();
    }
    defaults.settings = defaults.settings.over(&built_in());
    defaults
}

/// The only name; reports a missing key if there are several.
fn only(names: &[String], root: &Map<'_>, key: &str) -> Option<String> {
    match names {
        [name] => Some(name.clone()),
        several => {
            root.missing(key, &several.join(", "));
            None
        }
    }
}

fn built_in() -> Settings {
    let limits = Limits::default();
    Settings {
        iteration_strategy: Some(Strategy::NativeThinking),
        llm_provider: None,
        fallback_providers: None,
        native_tools: NativeTools::default(),
        mcp_servers: None,
        tools: None,
        skills: None,
        required_skills: Vec::new(),
        max_iterations: Some(limits.max_iterations),
        iteration_timeout: Some(Duration::from_millis(limits.iteration_timeout_ms)),
        wrap_up: None,
        max_timeouts: Some(limits.max_timeouts),
        max_tool_result_tokens: Some(limits.max_tool_result_tokens),
        facts: Some(true),
        fold: Some(true),
        tables: Some(true),
        summarize_over: Some(0),
        summarize_with: None,
        max_tokens: Some(0),
        check_figures: Some(true),
        several_actions: Some(false),
        past: PastSettings {
            given: Some(DEFAULT_GIVEN),
            days: Some(DEFAULT_DAYS),
            scope: Some(PastScope::default()),
            tool: Some(true),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> String {
        Config::parse("tarsy.yaml", text, &|_| None)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_wrong_name_is_one_fault_and_a_plain_agent_is_shown_as_a_mapping() {
        let two =
            "llm_providers: {a: {provider: openai, model: m}, b: {provider: openai, model: m}}\n";
        assert_eq!(
            faults(&format!("{two}defaults: {{llm_provider: other}}")),
            "tarsy.yaml: 1 fault\n  defaults.llm_provider   line 2   \"other\" is not defined; defined: a, b"
        );
        assert_eq!(
            faults(
                "agent_chains: {k: {stages: [{agents: [sre]}]}, l: {stages: [{agents: [{name: sre}]}]}}\ndefaults: {chain: k}"
            ),
            "tarsy.yaml: 1 fault\n  agent_chains.k.stages[0].agents[0]   line 1   \"sre\"; expected a mapping, written as \
             \"- name: sre\""
        );
        assert_eq!(
            faults("agent_chains: {k: {stages: [look]}}"),
            "tarsy.yaml: 1 fault\n  agent_chains.k.stages[0]   line 1   \"look\"; expected a mapping",
            "its keys are not reported as missing, too"
        );
    }
}
