//! The report of a worker about itself, for people without a shell: its effective configuration without secrets, and
//! what it knows of its tool servers and providers.
//!
//! Workers publish it on the broker. It has no value of a secret: see `process/shown.rs`.

use serde::{Deserialize, Serialize};

use tarsy_core::ids::WorkerId;

/// The report of one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemReport {
    /// The process.
    pub worker_id: WorkerId,
    /// Its name for people.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// The time since its start in milliseconds.
    pub uptime_ms: u64,
    pub config: ShownConfig,
    /// By name.
    pub servers: Vec<ServerReport>,
    /// By name.
    pub providers: Vec<ProviderReport>,
}

/// The effective configuration without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownConfig {
    /// As `tarsy config show` prints it; `None` if it is too large for the broker.
    pub text: Option<String>,
    pub bytes: u64,
    /// A hash of the text without secrets, to compare workers.
    pub hash: String,
}

/// A tool server, as a worker knows it from its own requests. It makes none for this report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    pub name: String,
    pub state: ServerState,
    /// The tools of the last list; `None` before the first one.
    pub tools: Option<ToolCounts>,
    /// The last failed request for the list, masked, since the last success.
    pub error: Option<String>,
    /// The time since the last answer to a request for the list, in milliseconds.
    pub asked_ms: Option<u64>,
}

/// Whether a tool server answers, as far as the worker knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// The connection that the last list came from is open.
    Reachable,
    /// The last request failed.
    Unreachable,
    /// No connection is open: a server is started again when it is needed.
    NotConnected,
    /// No investigation of this worker needed it yet.
    NotAsked,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// The tools of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCounts {
    /// Offered to models, and read-only.
    pub read_only: u32,
    /// Offered to models, and may change something.
    pub changing: u32,
    /// Not offered to models.
    pub left_out: u32,
}

/// A provider of models, as a worker knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderReport {
    pub name: String,
    pub state: ProviderState,
    /// The reason why it cannot be called, masked.
    pub error: Option<String>,
    /// The time since the check in milliseconds.
    pub checked_ms: Option<u64>,
}

/// The result of the check of a provider before the first claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderState {
    Usable,
    Unusable,
    /// The LLM service could not tell.
    NotKnown,
    /// Not checked: no chain uses it, the check has not ended, or `worker.probe_models` is off.
    NotChecked,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}
