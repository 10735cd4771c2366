//! Configuration: plain values, parsed once, passed down.
//!
//! A file is read into a tree with lines ([`yaml`]), the tree into values by a reader that collects every fault
//! before it gives up. Secrets stay references: a [`Template`] or the name of an environment variable.

mod agents;
mod chains;
mod fault;
mod load;
mod providers;
mod reader;
mod retention;
mod servers;
mod settings;
mod show;
mod streams;
mod synthesis;
mod template;
#[cfg(test)]
mod tests;
mod trust;
mod units;
mod worker;
pub mod yaml;

use std::collections::BTreeMap;

use crate::investigation::plan::SuccessPolicy;

pub use agents::Agent;
pub use chains::{AgentChain, Stage, StageAgent};
pub use fault::{Fault, Faults, render_faults};
pub use load::{FILE, check, find, process_env};
pub use providers::{Backend, LlmProvider, Price};
pub use retention::{Database, Retention};
pub use servers::McpServer;
pub use settings::Settings;
pub use show::{describe, show};
pub use streams::{Kept, Streams};
pub use synthesis::Synthesis;
pub use template::{Template, TemplateError};
pub use trust::{Questions, RECEIVE_HEADERS, Receive, Runbooks};
pub use worker::{Dedupe, Masking, Worker};

/// The commented example that `config example` prints. Free of faults whatever variables are set.
pub const EXAMPLE: &str = include_str!("../../examples/tarsy.yaml");

/// Name of the provider, agent and chain that exist when no file defines any.
pub mod builtin {
    /// Replays a recording: needs no key.
    pub const PROVIDER: &str = "scripted";
    /// Investigates whatever comes.
    pub const AGENT: &str = "sre";
    /// Takes every alert type.
    pub const CHAIN: &str = "default";
    /// Puts together what several agents found.
    pub const SYNTHESIS: &str = "synthesis";
}

/// Looks up an environment variable.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything that can be configured, complete: what the file leaves out has its default.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// By name; never empty.
    pub llm_providers: BTreeMap<String, LlmProvider>,
    /// By name; may be empty.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// By name; never empty.
    pub agents: BTreeMap<String, Agent>,
    /// By name; never empty.
    pub agent_chains: BTreeMap<String, AgentChain>,
    /// What holds when agent, chain and stage say nothing.
    pub defaults: Defaults,
    /// How a worker works.
    pub worker: Worker,
    /// Copies, ages and sizes of the streams.
    pub streams: Streams,
    /// When an alert is taken for one that was investigated before.
    pub dedupe: Dedupe,
    /// What `tarsy receive` takes over from a request, and how many clients it has.
    pub receive: Receive,
    /// Whose runbooks an agent is pointed at.
    pub runbooks: Runbooks,
    /// What nobody may see.
    pub masking: Masking,
    /// The database, as a worker uses it.
    pub database: Database,
    /// How long rows are kept.
    pub retention: Retention,
}

/// What holds when nothing else is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// The chain of an alert type that no chain names; always defined.
    pub chain: String,
    /// When a stage counts as completed.
    pub success_policy: SuccessPolicy,
    /// The lowest layer of every synthesis.
    pub synthesis: Synthesis,
    /// The lowest layer of every agent's settings.
    pub settings: Settings,
}
