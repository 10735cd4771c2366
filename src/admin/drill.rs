//! The configuration of a drill: the drill's file with its evidence as the only MCP server and a short lease. A real
//! model may replace the recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;

use tarsy_config::{
    Config, LlmProvider, McpProgram, McpServer, McpTransport, Template, process_env,
};
use tarsy_drill::{Drill, FolderError, builtin};

/// The name of the MCP server that serves the evidence.
pub const SERVER: &str = "drill";
/// Short, so that the second worker takes over soon.
const LEASE: Duration = Duration::from_secs(3);

/// The longest investigation with a real model.
const REAL_SESSION_TIMEOUT: Duration = Duration::from_secs(2 * 3_600);
/// The time for one answer of a model on the user's own machine, which may have to load it first.
const LOCAL_ITERATION_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A model that a drill asks instead of replaying its recording.
#[derive(Clone, Debug, PartialEq)]
pub struct RealModel {
    /// The name of the provider in configurations.
    pub name: String,
    /// It contains no secret: the key is the name of a variable.
    pub provider: LlmProvider,
}

impl RealModel {
    /// The form in which a worker of the drill receives it: a configuration with this provider only.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn written(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&json!({"llm_providers": {&self.name: &self.provider}}))
    }

    /// Reads what [`Self::written`] wrote.
    ///
    /// # Errors
    /// When the text is another one.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut config = Config::parse("drill provider", text, &process_env)?;
        let (name, provider) = config.llm_providers.pop_first().context("no provider")?;
        Ok(Self { name, provider })
    }
}

/// The drill of this name, or in the folder with this path.
///
/// # Errors
/// When there is no such drill, or a file of its folder cannot be read.
pub fn find(name: &str) -> Result<Drill, FolderError> {
    builtin(name).map_or_else(|| Drill::read(Path::new(name)), Ok)
}

/// The configuration of every process of the drill; `program` is this binary. Without `model` it replays its recording.
///
/// # Errors
/// When there is no such drill, or its configuration has a fault.
pub fn config(name: &str, program: &Path, model: Option<RealModel>) -> anyhow::Result<Config> {
    let mut config = system_config(name, program, model)?;
    config.worker.lease = LEASE;
    // The drill has checked its provider before it starts a worker.
    config.worker.probe_models = false;
    // A repeated drill must open a new session.
    config.dedupe.cooldown = Duration::ZERO;
    Ok(config)
}

/// The configuration of a system that continues after the drill: its agents and tools, with the default lease and
/// cooldown.
///
/// # Errors
/// The errors of [`config`].
pub fn system_config(
    name: &str,
    program: &Path,
    model: Option<RealModel>,
) -> anyhow::Result<Config> {
    let drill = find(name)?;
    let mut config = Config::parse(
        &format!("drill {}", drill.reference()),
        drill.config,
        &|_| None,
    )?;
    let program = McpProgram {
        command: Template::new(program.display().to_string()),
        args: ["evidence-server".to_owned(), drill.evidence_reference()]
            .map(|text| Template::new(text.replace("${", "$${")))
            .to_vec(),
        ..McpProgram::default()
    };
    // The calls that wait for a person are a part of the drill.
    let declared = config.mcp_servers.remove(SERVER);
    let server = McpServer {
        tool_timeout: Duration::from_secs(30),
        approve: declared.map(|server| server.approve).unwrap_or_default(),
        ..McpServer::new(McpTransport::Stdio(program))
    };
    config.mcp_servers.insert(SERVER.to_owned(), server);
    if let Some(RealModel { name, provider }) = model {
        config.worker.session_timeout = REAL_SESSION_TIMEOUT;
        config.defaults.settings.llm_provider = Some(name.clone());
        if provider.provider == "ollama" {
            config.defaults.settings.iteration_timeout = Some(LOCAL_ITERATION_TIMEOUT);
        }
        config.llm_providers = BTreeMap::from([(name, provider)]);
    }
    Ok(config)
}

/// Lets the tool server of a drill append each call that arrives to `file`.
pub fn count_calls(config: &mut Config, file: &Path) {
    let server = config.mcp_servers.get_mut(SERVER);
    if let Some(McpTransport::Stdio(program)) = server.map(|server| &mut server.transport) {
        program
            .args
            .extend(["--calls-file".to_owned(), file.display().to_string()].map(Template::new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_drill::BUILTIN;

    #[test]
    fn a_real_model_is_read_as_it_was_written_and_takes_the_place_of_the_recording() {
        let text = "llm_providers: {mine: {provider: google, model: 'a-$${b}', api_key_env: MY_KEY, \
                    base_url: 'http://127.0.0.1:1/', context_window: 1M, temperature: 0.5, \
                    thinking: {level: low}, price: {input: 1, output: 2}}}";
        let model = RealModel::parse(text).unwrap();
        assert_eq!(
            (model.name.as_str(), model.provider.model.as_str()),
            ("mine", "a-${b}")
        );
        assert_eq!(RealModel::parse(&model.written().unwrap()).unwrap(), model);
        for drill in BUILTIN {
            let config = config(drill.name, Path::new("tarsy"), Some(model.clone())).unwrap();
            assert_eq!(
                config.llm_providers.keys().collect::<Vec<_>>(),
                ["mine"],
                "{}",
                drill.name
            );
            assert_eq!(
                config.defaults.settings.llm_provider.as_deref(),
                Some("mine")
            );
            assert!(
                config
                    .agents
                    .values()
                    .all(|agent| agent.settings.llm_provider.is_none())
            );
        }
    }
}
