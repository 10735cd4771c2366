//! Inspects the machine for `tarsy init`: keys, Vertex AI, a local Ollama, a cluster. Changes nothing.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::ollama::{self, AddressSource, Ollama};
use super::starters::{STARTERS, Starter};
use tarsy_config::Env;
use tarsy_config::default_models::LOCAL;
use tarsy_core::vocabulary::provider::{PROVIDERS, Provider};
use tarsy_llm::service::provider::known;

/// The program that gives an agent tools for a cluster.
pub(super) const CLUSTER_SERVER: &str = "kubernetes-mcp-server";

/// Names the address of Ollama, for its own programs and for the LLM service.
pub(super) const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// A larger file cannot be the key of an account.
const MAX_CREDENTIALS_BYTES: u64 = 64 * 1024;

/// The findings about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// The starters in the order of preference.
    pub(super) keys: Vec<FoundKey>,
    /// Variables with keys of providers for which no model can be guessed, with the provider's word.
    pub(super) other_keys: Vec<(&'static str, &'static str)>,
    pub(super) vertex_ai: VertexAi,
    pub(super) ollama: Ollama,
    pub(super) ollama_source: AddressSource,
    pub(super) cluster: Option<Cluster>,
}

impl Findings {
    /// Whether the machine can reach a cluster.
    pub fn has_cluster(&self) -> bool {
        self.cluster.is_some()
    }
}

/// A provider whose key is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundKey {
    pub(super) starter: &'static Starter,
    /// The variable, whose value or file has the key.
    pub(super) variable: &'static str,
}

/// The findings about Vertex AI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VertexAi {
    Absent,
    /// A project without the key of a service account.
    WithoutCredentials,
    Project(String),
}

/// A cluster that this machine can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) access: ClusterAccess,
    pub(super) server: ServerProgram,
}

/// The access to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClusterAccess {
    Kubeconfig(PathBuf),
    /// The account of the pod that this process runs in.
    Pod,
}

/// Whether the program with tools for a cluster is on PATH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerProgram {
    Installed,
    Missing,
}

/// Looks at variables, files and the Ollama at `OLLAMA_HOST`, otherwise at this address, which is written as
/// `http://host:port`.
pub async fn find(env: Env<'_>, local_ollama: &str) -> Findings {
    let is_key_set = |name: &str| {
        variable(env, name).is_some() || variable(env, &format!("{name}_FILE")).is_some()
    };
    let keys = STARTERS.iter().filter_map(|starter| {
        let keys = known::by_name(starter.default.provider)?.keys;
        let variable = keys.iter().copied().find(|name| is_key_set(name))?;
        Some(FoundKey { starter, variable })
    });
    let named = known::by_name(LOCAL.provider)
        .and_then(|known| Some(known::address_of(known, &variable(env, OLLAMA_HOST)?)));
    let (address, ollama_source) = match &named {
        Some(address) => (address.as_str(), AddressSource::Variable),
        None => (local_ollama, AddressSource::Default),
    };
    let ollama = ollama::ask(address, ollama_source).await;
    Findings {
        keys: keys.collect(),
        other_keys: other_keys(is_key_set),
        vertex_ai: vertex_ai(env),
        cluster: cluster(env),
        ollama,
        ollama_source,
    }
}

/// The keys of providers for which no model can be guessed: their models come and go, or need an address.
fn other_keys(is_key_set: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str)> {
    PROVIDERS
        .iter()
        .filter(|provider| !has_default_model(provider))
        .filter_map(|provider| {
            let name = provider.keys.iter().find(|name| is_key_set(name))?;
            Some((*name, provider.name))
        })
        .collect()
}

fn has_default_model(provider: &Provider) -> bool {
    provider.name == LOCAL.provider
        || STARTERS
            .iter()
            .any(|starter| starter.default.provider == provider.name)
}

/// The value of a variable that is not blank.
fn variable(env: Env<'_>, name: &str) -> Option<String> {
    env(name).filter(|value| !value.trim().is_empty())
}

fn vertex_ai(env: Env<'_>) -> VertexAi {
    let Some(project) = variable(env, "GOOGLE_CLOUD_PROJECT") else {
        return VertexAi::Absent;
    };
    // A text with other characters cannot be the id of a project, and could break the written file.
    let is_id = project
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !is_id {
        return VertexAi::Absent;
    }
    match variable(env, "GOOGLE_APPLICATION_CREDENTIALS") {
        Some(file) if is_service_account(Path::new(&file)) => VertexAi::Project(project),
        Some(_) | None => VertexAi::WithoutCredentials,
    }
}

/// Whether a file is the key of a service account, the only kind of file that the LLM service can use.
fn is_service_account(file: &Path) -> bool {
    let is_small = file
        .metadata()
        .is_ok_and(|metadata| metadata.len() <= MAX_CREDENTIALS_BYTES);
    let Some(text) = is_small.then(|| std::fs::read(file).ok()).flatten() else {
        return false;
    };
    serde_json::from_slice::<CredentialsKind>(&text)
        .is_ok_and(|credentials| credentials.kind == "service_account")
}

/// The part of a file of credentials that is not secret.
#[derive(serde::Deserialize)]
struct CredentialsKind {
    #[serde(rename = "type")]
    kind: String,
}

fn cluster(env: Env<'_>) -> Option<Cluster> {
    let listed = variable(env, "KUBECONFIG");
    let usual = variable(env, "HOME").map(|home| Path::new(&home).join(".kube/config"));
    let files: Vec<PathBuf> = match &listed {
        Some(listed) => std::env::split_paths(listed).collect(),
        None => usual.into_iter().collect(),
    };
    let access = match files.into_iter().find(|file| file.is_file()) {
        Some(file) => ClusterAccess::Kubeconfig(file),
        None if variable(env, "KUBERNETES_SERVICE_HOST").is_some() => ClusterAccess::Pod,
        None => return None,
    };
    let path = variable(env, "PATH").unwrap_or_default();
    let is_installed =
        std::env::split_paths(&path).any(|folder| is_program(&folder.join(CLUSTER_SERVER)));
    let server = if is_installed {
        ServerProgram::Installed
    } else {
        ServerProgram::Missing
    };
    Some(Cluster { access, server })
}

fn is_program(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
