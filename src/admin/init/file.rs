//! Writes the configuration for the findings. Pure.

use std::path::Path;

use super::findings::{
    CLUSTER_SERVER, Cluster, ClusterAccess, Findings, FoundKey, OLLAMA_HOST, ServerProgram,
    VertexAi,
};
use super::ollama::{AddressSource, LOCAL_OLLAMA, Ollama, ToolSupport};
use super::starters::Starter;
use tarsy_config::default_models::{GEMINI, LOCAL};
use tarsy_config::example_of;

/// A provider of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The name in `llm_providers`.
    pub(super) name: &'static str,
    pub(super) model: String,
    lines: Vec<String>,
}

/// Denies Secrets: the configuration of the program with tools for a cluster.
pub const CLUSTER_SERVER_FILE: &str = "kubernetes-mcp-server.toml";
/// The content of [`CLUSTER_SERVER_FILE`].
pub const CLUSTER_SERVER_SETTINGS: &str =
    include_str!("../../../examples/mcp/kubernetes-mcp-server.toml");

/// The text of the file. It has no faults, whichever variables are set when it is loaded. `folder` gets the file and
/// [`CLUSTER_SERVER_FILE`].
pub fn configuration(findings: &Findings, folder: &Path) -> String {
    let mut lines = vec![
        "# The configuration of tarsy, as `tarsy init` found it. `tarsy config example` prints every setting."
            .to_owned(),
        String::new(),
    ];
    let chosen = providers(findings);
    if chosen.iter().all(|chosen| chosen.name == RECORDING) {
        lines.push("# No key and no local model was found:".to_owned());
        lines.push(format!("# {RECORDING_ONLY}."));
        lines.push("# `tarsy config example --list` names examples with a model.".to_owned());
    } else {
        lines.push(
            "# The models. Keys are variables of the LLM service (tarsy llm-service).".to_owned(),
        );
    }
    lines.push("llm_providers:".to_owned());
    for provider in &chosen {
        lines.push(format!("  {}:", provider.name));
        lines.extend(provider.lines.iter().map(|line| format!("    {line}")));
    }
    if let Some(cluster) = &findings.cluster {
        lines.push(String::new());
        lines.extend(cluster_lines(cluster, folder));
    }
    lines.extend(AGENT.lines().map(str::to_owned));
    lines.extend(defaults(&chosen, findings));
    lines.push(String::new());
    lines.join("\n")
}

/// The remark about a configuration without a model.
pub(super) const RECORDING_ONLY: &str =
    "a recording knows the alerts of `tarsy drill --list` only; any other alert fails";
/// The name of the provider without a model.
const RECORDING: &str = "recording";

const AGENT: &str = "
# Who investigates. Tell it what is special about your systems.
agents:
  sre:
    instructions: |
      Look at recent changes first: deployments, configuration, traffic.

# Notes of your own about how to look at something, one file each: docs/skills.md.
# skills: {directories: [/etc/tarsy/skills]}
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
            Ollama::Model { name, .. } => with_ollama(name, findings.ollama_source),
            Ollama::Absent | Ollama::WithoutModel => Chosen {
                name: RECORDING,
                model: String::new(),
                lines: vec!["provider: scripted".to_owned()],
            },
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
    Chosen {
        name,
        model: default.model.to_owned(),
        lines,
    }
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
    Chosen {
        name: "gemini",
        model: model.to_owned(),
        lines,
    }
}

fn with_ollama(model: &str, source: AddressSource) -> Chosen {
    let address = match source {
        AddressSource::Default => format!("base_url: {LOCAL_OLLAMA}"),
        AddressSource::Variable => format!("# Its address is {OLLAMA_HOST} of the LLM service."),
    };
    let lines = vec![
        format!("provider: {}", LOCAL.provider),
        format!("model: {}", text(model)),
        address,
        "# Ollama cuts longer conversations without an error: start it with OLLAMA_CONTEXT_LENGTH=64000.".to_owned(),
        format!("context_window: {}", LOCAL.context_window),
    ];
    Chosen {
        name: "local",
        model: model.to_owned(),
        lines,
    }
}

fn defaults(chosen: &[Chosen], findings: &Findings) -> Vec<String> {
    let mut lines = Vec::new();
    if let [first, others @ ..] = chosen
        && !others.is_empty()
    {
        let names: Vec<&str> = others.iter().map(|other| other.name).collect();
        lines.push(format!("  llm_provider: {}", first.name));
        lines.push(format!(
            "  fallback_providers: [{}]   # in this order, when the one before has failed",
            names.join(", ")
        ));
    }
    if chosen.iter().any(|chosen| chosen.name == "local") {
        lines.push(
            "  iteration_timeout: 10m   # a local model is slow, and has to be loaded first"
                .to_owned(),
        );
        if matches!(
            findings.ollama,
            Ollama::Model {
                tools: ToolSupport::Unsupported,
                ..
            }
        ) {
            lines
                .push("  iteration_strategy: react   # the model has no tools: it writes its calls as text".to_owned());
        }
    }
    if !lines.is_empty() {
        lines.splice(0..0, [String::new(), "defaults:".to_owned()]);
    }
    lines
}

fn cluster_lines(cluster: &Cluster, folder: &Path) -> Vec<String> {
    let section = cluster_section(cluster, folder);
    let mut lines = vec![
        format!(
            "# Tools for the cluster; `tarsy config example {CLUSTER_EXAMPLE}` says more. {CLUSTER_SERVER_FILE} denies"
        ),
        "# Secrets; give the server an account that may not read them either, such as one with the role `view`."
            .to_owned(),
    ];
    match cluster.server {
        ServerProgram::Installed => lines.extend(section),
        ServerProgram::Missing => {
            lines.push(format!(
                "# To use them: npm install -g {CLUSTER_SERVER}, and remove the `# ` below."
            ));
            lines.extend(section.into_iter().map(|line| format!("# {line}")));
        }
    }
    lines
}

/// The example with tools for a cluster, whose section the file gets.
const CLUSTER_EXAMPLE: &str = "kubernetes";
/// The reference in it to the configuration of the server.
const SETTINGS_OF_EXAMPLE: &str = "/etc/tarsy/kubernetes-mcp-server.toml";
/// The reference in it to the cluster.
const KUBECONFIG_OF_EXAMPLE: &str = "/etc/tarsy/kubeconfig";

/// The section `mcp_servers` of the example, with the files of this machine.
fn cluster_section(cluster: &Cluster, folder: &Path) -> Vec<String> {
    let example = example_of(CLUSTER_EXAMPLE).map_or("", |example| example.text);
    let section = example
        .lines()
        .skip_while(|line| *line != "mcp_servers:")
        .take_while(|line| !line.is_empty());
    let settings = folder.join(CLUSTER_SERVER_FILE).display().to_string();
    let settings = if is_plain(&settings) {
        &settings
    } else {
        CLUSTER_SERVER_FILE
    };
    let section = section.map(|line| line.replace(SETTINGS_OF_EXAMPLE, settings));
    match &cluster.access {
        ClusterAccess::Kubeconfig(file) => {
            let file = file.display().to_string();
            let file = if is_plain(&file) { &file } else { "" };
            section
                .map(|line| line.replace(KUBECONFIG_OF_EXAMPLE, file))
                .collect()
        }
        ClusterAccess::Pod => section
            .filter(|line| !line.contains(KUBECONFIG_OF_EXAMPLE))
            .collect(),
    }
}

/// Whether a path can be the default of a reference. One with other characters could end it.
fn is_plain(path: &str) -> bool {
    path.chars()
        .all(|c| c.is_alphanumeric() || "/._-+@ ".contains(c))
}

/// A text as a value of YAML in which no reference is resolved.
fn text(value: &str) -> String {
    let is_plain = value.starts_with(|first: char| first.is_ascii_alphabetic())
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._/:-".contains(c))
        && !value.ends_with(':')
        && !["true", "false", "null"].contains(&value);
    if is_plain {
        return value.to_owned();
    }
    serde_json::Value::String(value.replace("${", "$${")).to_string()
}
