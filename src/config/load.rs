//! Loads a file into a [`Config`], or reports all its faults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::read::reader::{Context, Field, Map};
use super::read::yaml::{self, Data, Node};
use super::sections::chains::{self, Names};
use super::sections::settings::Settings;
use super::sections::synthesis::Synthesis;
use super::{
    Agent, AgentChain, Config, Database, Dedupe, Defaults, Env, Fault, Faults, LlmProvider, Masking, McpServer,
    Receive, Retention, Runbooks, Streams, Worker, builtin,
};
use crate::investigation::plan::{Limits, Strategy};

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
        let context = Context::new(env);
        let config = read(&Field::root(&context, &root), &names(&root));
        let faults = context.into_faults();
        if faults.is_empty() { Ok(config) } else { Err(Faults { file: file.to_owned(), faults }) }
    }
}

fn single(file: &str, line: usize, problem: String) -> Faults {
    Faults { file: file.to_owned(), faults: vec![Fault { key: String::new(), line, problem }] }
}

/// The names that the file defines, with the built-in ones. They are read first, because sections refer to each other.
fn names(root: &Node) -> Names {
    let or = |section: &str, built_in: &str| {
        let names = keys(root, section);
        if names.is_empty() { vec![built_in.to_owned()] } else { names }
    };
    Names {
        providers: or("llm_providers", builtin::PROVIDER),
        servers: keys(root, "mcp_servers"),
        agents: or("agents", builtin::AGENT),
        chains: or("agent_chains", builtin::CHAIN),
    }
}

fn keys(root: &Node, section: &str) -> Vec<String> {
    let section = entries(root).iter().find(|(key, _)| key.data == Data::Text(section.to_owned()));
    let entries = section.map(|(_, value)| entries(value)).unwrap_or_default();
    entries.iter().map(|(key, _)| super::read::reader::key_text(key)).collect()
}

fn entries(node: &Node) -> &[(Node, Node)] {
    match &node.data {
        Data::Map(pairs) => pairs,
        Data::Null | Data::Flag(_) | Data::Integer(_) | Data::Number(_) | Data::Text(_) | Data::List(_) => &[],
    }
}

fn read(root: &Field<'_>, names: &Names) -> Config {
    let mut map = root.map();
    let mut llm_providers = named(&mut map, "llm_providers", |_, field| LlmProvider::read(field));
    if llm_providers.is_empty() {
        llm_providers.insert(builtin::PROVIDER.to_owned(), LlmProvider::scripted());
    }
    let mcp_servers = named(&mut map, "mcp_servers", McpServer::read);
    let mut agents = named(&mut map, "agents", |_, field| Agent::read(field, names));
    if agents.is_empty() {
        agents.insert(builtin::AGENT.to_owned(), Agent::default());
    }
    let (mut agent_chains, marked) =
        map.get("agent_chains").map(|field| chains::read(&field.map(), names)).unwrap_or_default();
    if agent_chains.is_empty() {
        match names.agents.as_slice() {
            [agent] => {
                agent_chains.insert(builtin::CHAIN.to_owned(), AgentChain::of_agent(agent));
            }
            several => map.missing("agent_chains", &format!("chains that say which of {} run", several.join(", "))),
        }
    }
    let defaults = read_defaults(&mut map, names, marked);
    let config = Config {
        worker: map.get("worker").map(|field| Worker::read(field.map())).unwrap_or_default(),
        streams: map.get("streams").map(|field| Streams::read(field.map())).unwrap_or_default(),
        dedupe: map.get("dedupe").map(|field| Dedupe::read(field.map())).unwrap_or_default(),
        receive: map.get("receive").map(|field| Receive::read(field.map())).unwrap_or_default(),
        runbooks: map.get("runbooks").map(|field| Runbooks::read(field.map())).unwrap_or_default(),
        database: map.get("database").map(|field| Database::read(field.map())).unwrap_or_default(),
        retention: map.get("retention").map(|field| Retention::read(field.map())).unwrap_or_default(),
        masking: map.get("masking").map(|field| Masking::read(field.map())).unwrap_or_default(),
        llm_providers,
        mcp_servers,
        agents,
        agent_chains,
        defaults,
    };
    map.finish();
    config
}

fn named<'c, T>(map: &mut Map<'c>, section: &'static str, read: impl Fn(&str, &Field<'c>) -> T) -> BTreeMap<String, T> {
    let entries = map.get(section).map(|field| field.map().entries()).unwrap_or_default();
    entries
        .into_iter()
        .map(|(name, field)| {
            let value = read(&name, &field);
            (name, value)
        })
        .collect()
}

/// `marked` is the chain that is marked as the default.
fn read_defaults(root: &mut Map<'_>, names: &Names, marked: Option<String>) -> Defaults {
    let mut settings = Settings::default();
    let (mut policy, mut synthesis) = (None, Synthesis::default());
    let mut chain = None;
    if let Some(field) = root.get("defaults") {
        let mut map = field.map();
        settings = Settings::read(&mut map, names);
        policy = chains::success_policy(&mut map);
        synthesis = Synthesis::read(&mut map, names);
        if let Some(field) = map.get("chain") {
            chain = field.reference(&names.chains);
            if let (Some(named), Some(marked)) = (&chain, &marked)
                && named != marked
            {
                field.fault(format!("{named:?}, but the chain {marked} is marked as the default"));
            }
        }
        map.finish();
    }
    if settings.llm_provider.is_none() {
        settings.llm_provider = only(&names.providers, root, "defaults.llm_provider");
    }
    let chain = chain.or(marked).or_else(|| only(&names.chains, root, "defaults.chain"));
    Defaults {
        chain: chain.unwrap_or_default(),
        success_policy: policy.unwrap_or_default(),
        synthesis,
        settings: settings.over(&built_in()),
    }
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
        mcp_servers: None,
        max_iterations: Some(limits.max_iterations),
        iteration_timeout: Some(Duration::from_millis(limits.iteration_timeout_ms)),
        max_timeouts: Some(limits.max_timeouts),
        max_tool_result_tokens: Some(limits.max_tool_result_tokens),
        max_tokens: Some(0),
    }
}
