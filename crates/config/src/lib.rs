//! The configuration: values that are parsed once and passed down.
//!
//! `load` reads a file into a [`Config`]. `read` turns YAML into a tree with lines and reads typed values from it, so
//! that all faults are reported at once. `sections` has the types of each section, which declare their keys; `declared`
//! reads values along the schemas of these types, `write` has the form of values in a file, `schema` the schema for
//! editors, and `show` writes a configuration as YAML. Secrets stay references: a [`Template`] or the name of an
//! environment variable.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod examples;
mod compose;
mod declared;
pub mod default_models;
mod load;
mod secret;
pub mod read;
pub mod samples;
pub mod sections;
mod schema;
mod show;
mod hints;
mod tool_pattern;
mod write;
pub mod url_pattern;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use declared::forms::{As, words};
use declared::texts::ChainName;
use tarsy_core::notification::route::{Filters, NamedFilter};
use tarsy_core::plan::SuccessPolicy;

pub use compose::{ComposeError, Composed, compose};
pub use examples::{EXAMPLES, Example, example_of};
pub use hints::hints;
pub use load::{FILE, find, process_env};
pub use read::fault::{Fault, Faults, render_faults};
pub use read::template::{Resolved, Template, TemplateError};
pub use schema::schema;
pub use secret::{Secret, SecretError, SecretSource, environment_fault};
pub use sections::agents::Agent;
pub use sections::approvals::{
    ApprovalKey, ApprovalKeys, ApprovalPolicy, Approvals, DEFAULT_POLICY, EVERYONE, Person,
};
use sections::chains::WrittenChain;
pub use sections::chains::{AgentChain, Stage, StageAgent};
pub use sections::destinations::{
    BUILTIN_DESTINATION_NAMES, BUILTIN_DESTINATIONS, BuiltinDestination, ConfiguredDestination,
};
pub use sections::llm_service::{Concurrency, LlmService, LlmServiceTls};
pub use sections::native_tools::NativeTools;
pub use sections::notifications::{
    EmailRoute, NotificationRoute, RouteKind, Smtp, SmtpLogin, SmtpTls, WebhookAddress,
};
pub use sections::past::PastSettings;
pub use sections::providers::{Backend, Connection, Generation, LlmProvider, Price, VertexAi};
pub use sections::retention::{Database, Retention};
pub use sections::review::{Review, ReviewCondition};
pub use sections::routes::{AlertRoute, Routes};
pub use sections::servers::transport::{McpAddress, McpProgram, McpTransport, SESSION_IN_HEADERS};
pub use sections::servers::{McpServer, ServerScope, ToolProbe, server_name_fault};
pub use sections::settings::Settings;
pub use sections::skills::Skills;
pub use sections::sources::{
    BUILTIN, BUILTIN_SOURCE_NAMES, ConfiguredSource, ConfiguredSources, SourceAuth,
    builtin_sources, parse_source, source_name_fault,
};
pub use sections::streams::{StreamLimits, StreamPlacement, StreamStorage, Streams};
pub use sections::synthesis::Synthesis;
pub use sections::trust::runbooks::{DefaultRunbook, RunbookSource, Runbooks};
pub use sections::trust::{Questions, RECEIVE_HEADERS, Receive, SlackApp};
pub use sections::web::{Web, WebAllow, WebAuth, WebProxyHeaders};
pub use sections::worker::{Dedupe, Masking, Worker};
pub use show::{describe, show, yaml};
pub use tool_pattern::ToolPattern;

/// The commented example that `config example` prints. It has no faults, whichever variables are set.
pub const EXAMPLE: &str = include_str!("../../../examples/tarsy.yaml");

/// The names of the provider, agent and chain that exist if the file defines none.
pub mod builtin {
    /// Replays a recording, so it needs no key.
    pub const PROVIDER: &str = "scripted";
    /// Investigates every alert.
    pub const AGENT: &str = "sre";
    /// Accepts every alert type.
    pub const CHAIN: &str = "default";
    /// Combines the analyses of several agents.
    pub const SYNTHESIS: &str = "synthesis";
}

/// Looks up an environment variable.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The complete configuration; absent keys of the file have their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Config {
    /// The models by their names. By default a recording answers.
    pub llm_providers: BTreeMap<String, LlmProvider>,
    /// The servers of tools by their names.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// The agents by their names. By default there is one, `sre`.
    pub agents: BTreeMap<String, Agent>,
    /// The chains by their names. By default there is one that runs the only agent.
    #[schemars(with = "BTreeMap<String, WrittenChain>")]
    pub agent_chains: BTreeMap<String, AgentChain>,
    /// Rules that decide about the treatment of alerts, in their order.
    #[serde(skip_serializing_if = "write::is_default")]
    pub routes: Routes,
    pub defaults: Defaults,
    pub worker: Worker,
    pub streams: Streams,
    pub dedupe: Dedupe,
    pub receive: Receive,
    pub llm_service: LlmService,
    pub web: Web,
    /// The routes of notifications by their names.
    #[serde(skip_serializing_if = "write::is_default")]
    #[schemars(schema_with = "sections::notifications::schema")]
    pub notifications: BTreeMap<String, NotificationRoute>,
    /// The destinations of notes by their names.
    #[serde(skip_serializing_if = "write::is_default")]
    #[schemars(schema_with = "sections::destinations::schema")]
    pub destinations: BTreeMap<String, ConfiguredDestination>,
    /// The sources of alerts that the file defines, by their names.
    #[serde(skip_serializing_if = "write::is_default")]
    #[schemars(schema_with = "sections::sources::schema")]
    pub sources: ConfiguredSources,
    pub runbooks: Runbooks,
    pub skills: Skills,
    #[serde(skip_serializing_if = "write::is_default")]
    pub approvals: Approvals,
    pub database: Database,
    pub retention: Retention,
    pub masking: Masking,
}

impl Config {
    /// The filters of the notification routes, for the store.
    pub fn notification_filters(&self) -> Filters {
        let routes = self.notification_routes();
        let filters = routes.iter().map(|(name, route)| NamedFilter {
            name: name.clone(),
            filter: route.filter.clone(),
        });
        Filters(filters.collect())
    }

    /// All routes of the outbox by their names: those of notifications, and the destinations.
    pub fn notification_routes(&self) -> BTreeMap<String, NotificationRoute> {
        let destinations = self
            .destinations
            .iter()
            .map(|(name, destination)| (name.clone(), destination.route.clone()));
        self.notifications
            .clone()
            .into_iter()
            .chain(destinations)
            .collect()
    }

    /// The longest cooldown of any alert.
    pub fn longest_cooldown(&self) -> Duration {
        let of_routes = self.routes.iter().filter_map(|route| route.cooldown);
        of_routes.fold(self.dedupe.cooldown, Duration::max)
    }

    /// The chains that a file defines, for processes other than workers, whose file may be another one; `None` when
    /// only the built-in chain is known.
    pub fn named_chains(&self) -> Option<Vec<&str>> {
        let names: Vec<&str> = self.agent_chains.keys().map(String::as_str).collect();
        (names != [builtin::CHAIN]).then_some(names)
    }
}

/// The lowest layer of all settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Defaults {
    /// The chain for alert types that no chain lists; by default the only one, or the one with `default: true`.
    #[serde(with = "As::<ChainName>")]
    pub chain: String,
    /// The condition for a stage to count as completed.
    #[schemars(schema_with = "words::<SuccessPolicy>")]
    pub success_policy: SuccessPolicy,
    #[serde(skip_serializing_if = "write::is_default")]
    pub synthesis: Synthesis,
    #[serde(flatten)]
    pub settings: Settings,
}
