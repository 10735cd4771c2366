//! The configuration for what was found. Pure.

use super::findings::{
    CLUSTER_SERVER, Cluster, ClusterAccess, Findings, FoundKey, OLLAMA_HOST, ServerProgram, VertexAi,
};
use super::ollama::{LOCAL_OLLAMA, Ollama, Place, ToolSupport};
use super::starters::Starter;
use crate::config::default_models::{GEMINI, LOCAL};

/// A provider of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The name in `llm_providers`.
    pub(super) name: &'static str,
    pub(super) model: String,
    lines: Vec<String>,
}

/// The file. It has no faults, whichever variables are set when it is loaded.
pub fn configuration(findings: &Findings) -> String {
    let mut lines = vec![
        "# The configuration of tarsy, as `tarsy init` found it. `tarsy config example` prints every setting."
            .to_owned(),
        String::new(),
    ];
    let chosen = providers(findings);
    if chosen.iter().all(|chosen| chosen.name == RECORDING) {
        lines.push("# No key and no local model was found: a recording answers every alert, and says so.".to_owned());
        lines.push("# `tarsy config example --list` names examples with a model.".to_owned());
    } else {
        lines.push("# The models. Keys are variables of the LLM service (tarsy llm-service).".to_owned());
    }
    lines.push("llm_providers:".to_owned());
    for provider in &chosen {
        lines.push(format!("  {}:", provider.name));
        lines.extend(provider.lines.iter().map(|line| format!("    {line}")));
    }
    if let Some(cluster) = &findings.cluster {
        lines.push(String::new());
        lines.extend(cluster_lines(cluster));
    }
    lines.extend(AGENT.lines().map(str::to_owned));
    lines.extend(defaults(&chosen, findings));
    lines.push(String::new());
    lines.join("\n")
}

/// The name of the provider without a model.
const RECORDING: &str = "recording";

const AGENT: &str = "
# Who investigates. Tell it what is special about your systems.
agents:
  sre:
    instructions: |
      Look at recent changes first: deployments, configuration, traffic.
";

/// The providers of the file; the first one is the default, the others follow when it fails.
pub(super) fn providers(findings: &Findings) -> Vec<Chosen> {
    let mut chosen: Vec<Chosen> = findings.keys.iter().map(with_key).collect();
    let has_gemini = chosen.iter().any(|chosen| chosen.name == "gemini");
    if let (VertexAi::Project(project), false) = (&findings.vertex_ai, has_gemini) {
        chosen.insert(0, with_vertex_ai(project));
    }
    if chosen.is_empty() {
        chosen.push(match &findings.ollama {
            Ollama::Model { name, .. } => with_ollama(name, findings.ollama_place),
            Ollama::Absent | Ollama::WithoutModel => {
                Chosen { name: RECORDING, model: String::new(), lines: vec!["provider: scripted".to_owned()] }
            }
        });
    }
    chosen
}

fn with_key(found: &FoundKey) -> Chosen {
    let Starter { name, default } = found.starter;
    let lines = vec![
        format!("provider: {}", default.provider),
        format!("model: {}", default.model),
        format!("api_key_env: {}", found.variable),
        format!("context_window: {}", default.context_window),
    ];
    Chosen { name, model: default.model.to_owned(), lines }
}

fn with_vertex_ai(project: &str) -> Chosen {
    let model = GEMINI.model;
    let lines = vec![
        "provider: google               # by Vertex AI of Google Cloud".to_owned(),
        format!("model: {model}"),
        format!("project: ${{GOOGLE_CLOUD_PROJECT:-{project}}}"),
        "location: ${GOOGLE_CLOUD_LOCATION:-global}".to_owned(),
        "credentials_env: GOOGLE_APPLICATION_CREDENTIALS".to_owned(),
        format!("context_window: {}", GEMINI.context_window),
    ];
    Chosen { name: "gemini", model: model.to_owned(), lines }
}

fn with_ollama(model: &str, place: Place) -> Chosen {
    let address = match place {
        Place::Machine => format!("base_url: {LOCAL_OLLAMA}"),
        Place::Variable => format!("# Its address is {OLLAMA_HOST} of the LLM service."),
    };
    let lines = vec![
        format!("provider: {}", LOCAL.provider),
        format!("model: {}", text(model)),
        address,
        "# Ollama cuts longer conversations without an error: start it with OLLAMA_CONTEXT_LENGTH=64000.".to_owned(),
        format!("context_window: {}", LOCAL.context_window),
    ];
    Chosen { name: "local", model: model.to_owned(), lines }
}

fn defaults(chosen: &[Chosen], findings: &Findings) -> Vec<String> {
    let mut lines = Vec::new();
    if let [first, others @ ..] = chosen
        && !others.is_empty()
    {
        let names: Vec<&str> = others.iter().map(|other| other.name).collect();
        lines.push(format!("  llm_provider: {}", first.name));
        let names = names.join(", ");
        lines.push(format!("  fallback_providers: [{names}]   # in this order, when the one before has failed"));
    }
    if chosen.iter().any(|chosen| chosen.name == "local") {
        lines.push("  iteration_timeout: 10m   # a local model is slow, and has to be loaded first".to_owned());
        if matches!(findings.ollama, Ollama::Model { tools: ToolSupport::Unsupported, .. }) {
            lines
                .push("  iteration_strategy: react   # the model has no tools: it writes its calls as text".to_owned());
        }
    }
    if !lines.is_empty() {
        lines.splice(0..0, [String::new(), "defaults:".to_owned()]);
    }
    lines
}

fn cluster_lines(cluster: &Cluster) -> Vec<String> {
    let mut section = vec![
        "mcp_servers:".to_owned(),
        "  k8s:".to_owned(),
        format!("    command: {CLUSTER_SERVER}"),
        "    args: [--read-only]".to_owned(),
        "    deny: [configuration_view]   # it would show the kubeconfig to the model".to_owned(),
    ];
    if let ClusterAccess::Kubeconfig(file) = &cluster.access {
        let file = file.display().to_string();
        // A path with other characters could end the default of the reference.
        let is_plain = file.chars().all(|c| c.is_alphanumeric() || "/._-+@ ".contains(c));
        let value = if is_plain { format!("${{KUBECONFIG:-{file}}}") } else { "${KUBECONFIG:-}".to_owned() };
        section.push(format!("    env: {{KUBECONFIG: '{value}'}}"));
    }
    let mut lines =
        vec!["# Tools for the cluster. The server can read Secrets: give it an account that may not.".to_owned()];
    match cluster.server {
        ServerProgram::Installed => lines.extend(section),
        ServerProgram::Missing => {
            lines.push(format!("# To use them: npm install -g {CLUSTER_SERVER}, and remove the `# ` below."));
            lines.extend(section.into_iter().map(|line| format!("# {line}")));
        }
    }
    lines
}

/// A text as a value of YAML in which no reference is resolved.
fn text(value: &str) -> String {
    let begins = value.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/:-".contains(c);
    if begins && value.chars().all(is_plain) && !value.ends_with(':') && !["true", "false", "null"].contains(&value) {
        return value.to_owned();
    }
    serde_json::Value::String(value.replace("${", "$${")).to_string()
}
