//! The output of `tarsy init`: its findings, and the next commands. Pure.

use super::file::{Chosen, RECORDING_ONLY, providers};
use super::findings::{
    CLUSTER_SERVER, ClusterAccess, Findings, OLLAMA_HOST, ServerProgram, VertexAi,
};
use super::ollama::{AddressSource, Ollama, ToolSupport};
use tarsy_config::default_models::LOCAL;

/// One line for each finding: its name and what follows from it.
pub fn found(findings: &Findings) -> Vec<(String, String)> {
    let chosen = providers(findings);
    let mut lines = Vec::new();
    for key in &findings.keys {
        let name = key.starter.name;
        let model = key.starter.default.model;
        let role = match chosen.iter().position(|chosen| chosen.name == name) {
            Some(0) => "the default",
            Some(_) => "takes over when the providers before it fail",
            None => "not used",
        };
        let text = format!("provider {name}, model {model}: {role}");
        lines.push((key.variable.to_owned(), text));
    }
    for (variable, provider) in &findings.other_keys {
        let text = format!("not used: add a provider {provider} with the model that you want");
        lines.push(((*variable).to_owned(), text));
    }
    lines.extend(vertex_ai(findings));
    lines.extend(ollama(findings, &chosen));
    if let Some(cluster) = &findings.cluster {
        let (name, place) = match &cluster.access {
            ClusterAccess::Kubeconfig(file) => ("kubeconfig", file.display().to_string()),
            ClusterAccess::Pod => ("cluster", "the account of this pod".to_owned()),
        };
        let then = match cluster.server {
            ServerProgram::Installed => format!("tools of {CLUSTER_SERVER}, read-only"),
            ServerProgram::Missing => {
                format!("{CLUSTER_SERVER} is not on PATH: its section is a comment")
            }
        };
        lines.push((name.to_owned(), format!("{place}: {then}")));
    }
    if chosen.iter().all(|chosen| chosen.model.is_empty()) {
        lines.push(("no model".to_owned(), RECORDING_ONLY.to_owned()));
    }
    lines
}

fn vertex_ai(findings: &Findings) -> Option<(String, String)> {
    let name = "GOOGLE_CLOUD_PROJECT".to_owned();
    let has_key = findings.keys.iter().any(|key| key.starter.name == "gemini");
    let text = match &findings.vertex_ai {
        VertexAi::Absent => return None,
        VertexAi::WithoutCredentials => {
            "not used: GOOGLE_APPLICATION_CREDENTIALS names no key of a service account (tarsy config example vertex)"
                .to_owned()
        }
        VertexAi::Project(_) if has_key => "not used, because a key of Gemini is set".to_owned(),
        VertexAi::Project(project) => {
            format!("provider gemini by Vertex AI, project {project}: the default")
        }
    };
    Some((name, text))
}

fn ollama(findings: &Findings, chosen: &[Chosen]) -> Option<(String, String)> {
    let is_unused = !chosen.iter().any(|chosen| chosen.name == "local");
    let name = match findings.ollama_source {
        AddressSource::Default => "Ollama".to_owned(),
        AddressSource::Variable => OLLAMA_HOST.to_owned(),
    };
    let text = match &findings.ollama {
        Ollama::Absent if findings.ollama_source == AddressSource::Default => return None,
        Ollama::Absent => "not used: no Ollama answers at this address".to_owned(),
        Ollama::WithoutModel => format!("no model is installed: ollama pull {}", LOCAL.model),
        Ollama::Model { name: model, .. } if is_unused => {
            format!("model {model}: not used, because a key is set (tarsy config example ollama)")
        }
        Ollama::Model {
            name: model,
            tools: ToolSupport::Supported,
        } => format!("provider local, model {model}: the default"),
        Ollama::Model {
            name: model,
            tools: ToolSupport::Unsupported,
        } => format!(
            "provider local, model {model}, which has no tools: the default, with the strategy react"
        ),
    };
    Some((name, text))
}

/// The commands that come next, each with its purpose. `option` is ` --config <file>` or empty.
pub fn next_commands(findings: &Findings, option: &str) -> Vec<(String, String)> {
    let mut variables: Vec<&str> = findings.keys.iter().map(|key| key.variable).collect();
    if findings.keys.is_empty() && matches!(findings.vertex_ai, VertexAi::Project(_)) {
        variables.push("GOOGLE_APPLICATION_CREDENTIALS");
    }
    let chosen = providers(findings);
    if findings.ollama_source == AddressSource::Variable
        && chosen.iter().any(|chosen| chosen.name == "local")
    {
        variables.push(OLLAMA_HOST);
    }
    let needs = if variables.is_empty() {
        String::new()
    } else {
        format!("; needs {}", variables.join(", "))
    };
    let is_recorded = chosen.iter().all(|chosen| chosen.model.is_empty());
    let serves = if is_recorded {
        "replays recordings"
    } else {
        "calls the models"
    };
    let command =
        |words: &str, purpose: &str| (format!("tarsy{option} {words}"), purpose.to_owned());
    vec![
        command("config check", "reports every fault of the file"),
        command("llm-service", &format!("{serves}{needs}")),
        command("models --probe", "asks each model for one word"),
        command(
            "migrate",
            "prepares database (DATABASE_URL) and streams (NATS_URL)",
        ),
        command("worker", "investigates alerts"),
        command("doctor", "checks everything, and says what to do"),
    ]
}
