//! Configuration: plain values, parsed once, passed down.
//!
//! A file is read into a tree with lines ([`yaml`]), the tree into values by a reader that collects every fault
//! before it gives up. Secrets stay references: a [`Template`] or the name of an environment variable.

mod load;
pub mod read;
pub mod sections;
mod show;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::investigation::plan::SuccessPolicy;

pub use load::{FILE, check, find, process_env};
pub use read::fault::{Fault, Faults, render_faults};
pub use read::template::{Template, TemplateError};
pub use sections::agents::Agent;
pub use sections::chains::{AgentChain, Stage, StageAgent};
pub use sections::providers::{Backend, LlmProvider, Price};
pub use sections::retention::{Database, Retention};
pub use sections::servers::McpServer;
pub use sections::settings::Settings;
pub use sections::streams::{Kept, Streams};
pub use sections::synthesis::Synthesis;
pub use sections::trust::{Questions, RECEIVE_HEADERS, Receive, Runbooks};
pub use sections::worker::{Dedupe, Masking, Worker};
pub use show::{describe, show};

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
