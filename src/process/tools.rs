//! Starts the MCP servers of a configuration; lists the tools of one server and calls them, for people.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use tarsy_config::{
    Config, McpAddress, McpProgram, McpServer, McpTransport, Template, TemplateError, ToolProbe,
    process_env,
};
use tarsy_core::execution::entry::ToolCall;
use tarsy_core::plan::{Limits, ToolSpec};
use tarsy_core::readable::cut::ReadBack;
use tarsy_core::readable::presentation::{Presentation, present};
use tarsy_engine::ports::{ToolReply, ToolRequest, Tools as _};
use tarsy_http::outgoing::token::TokenSource;
use tarsy_mask::Mask;
use tarsy_mcp::{HttpConfig, Inventory, ServerConfig, Servers, StdioConfig, Transport};

use super::{secrets, users};

const LIST_TIMEOUT: Duration = Duration::from_secs(6);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The configured servers; each process starts at its first use and ends with `end`.
///
/// # Errors
/// When a variable is missing, or the name of a server cannot be part of a tool's name.
pub fn start(config: &Config, mask: Mask, end: &CancellationToken) -> anyhow::Result<Servers> {
    let servers = config
        .mcp_servers
        .iter()
        .map(|(name, server)| resolved(name, server, config.worker.slots));
    Ok(Servers::start(
        servers.collect::<anyhow::Result<_>>()?,
        mask,
        end,
    )?)
}

fn resolved(name: &str, server: &McpServer, slots: u32) -> anyhow::Result<ServerConfig> {
    Ok(ServerConfig {
        name: name.to_owned(),
        transport: match &server.transport {
            McpTransport::Stdio(program) => Transport::Stdio(stdio(program)?),
            McpTransport::Http(address) => Transport::Http(http(address)?),
        },
        max_session_connections: slots,
        settings: server.clone(),
    })
}

fn stdio(program: &McpProgram) -> anyhow::Result<StdioConfig> {
    let args = program
        .args
        .iter()
        .map(|argument| argument.resolve(&process_env));
    Ok(StdioConfig {
        command: program.command.resolve(&process_env)?,
        args: args.collect::<Result<_, _>>()?,
        env: resolved_values(&program.env)?,
        user: program.user.as_deref().map(users::find).transpose()?,
        directory: program.directory.as_ref().map(PathBuf::from),
        max_memory_bytes: program.max_memory,
        max_open_files: program.max_open_files.map(u64::from),
    })
}

fn http(address: &McpAddress) -> anyhow::Result<HttpConfig> {
    let token = match (&address.token_env, &address.token_file) {
        (Some(name), _) => {
            let value = process_env(name);
            let value = value.with_context(|| format!("token_env: variable {name} is not set"))?;
            Some(TokenSource::Value(value))
        }
        (None, Some(file)) => Some(TokenSource::File(file.into())),
        (None, None) => None,
    };
    Ok(HttpConfig {
        url: address.url.clone(),
        headers: resolved_values(&address.headers)?,
        token,
        ca_file: address.ca_file.as_ref().map(PathBuf::from),
        proxy: address
            .proxy
            .as_ref()
            .map(|proxy| proxy.resolve(&process_env))
            .transpose()?,
        not_run_on: address.not_run_on.clone(),
    })
}

fn resolved_values(
    templates: &BTreeMap<String, Template>,
) -> Result<BTreeMap<String, String>, TemplateError> {
    templates
        .iter()
        .map(|(name, template)| Ok((name.clone(), template.resolve(&process_env)?)))
        .collect()
}

/// The tools of one server, masked. Starts a process for the list and ends it afterwards.
///
/// # Errors
/// When the server is not configured, does not start, or does not answer in time.
pub async fn list(config: &Config, server: &str) -> anyhow::Result<Inventory> {
    let client = Client::of_server(config, server)?;
    let listed = client.listed().await;
    client.close().await;
    listed
}

/// The system that a server queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A call has a result.
    Answers { tool: String, took: Duration },
    /// The server answers, and a call ends with an error.
    Fails { tool: String, error: String },
    /// No tool can be called to find out.
    NotChecked,
}

/// The longest wait for the answer of a backend.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Words in the names of tools that ask the backend for little; others may answer from the server's own memory.
const PROBING: [&str; 8] = [
    "health",
    "ping",
    "status",
    "version",
    "list",
    "namespaces",
    "get",
    "query",
];

/// The tools of one server, masked, and whether its backend answers: one call of the tool that the configuration names,
/// else of a read-only one without required arguments.
///
/// # Errors
/// The errors of [`list`]; also when the configuration names a tool that the server does not offer as a read-only one.
pub async fn checked(config: &Config, server: &str) -> anyhow::Result<(Inventory, Backend)> {
    let client = Client::of_server(config, server)?;
    let settings = config.mcp_servers.get(server);
    let checked = client.list_and_probe(settings).await;
    client.close().await;
    checked
}

/// The tool that asks the backend for least, of those that can be called without arguments.
fn harmless(inventory: &Inventory) -> Option<&ToolSpec> {
    let callable = inventory
        .offered
        .iter()
        .filter(|spec| spec.read_only && !has_required_arguments(spec));
    callable.min_by_key(|spec| {
        let words = PROBING
            .iter()
            .position(|word| spec.tool().to_lowercase().contains(word));
        words.unwrap_or(PROBING.len())
    })
}

fn has_required_arguments(spec: &ToolSpec) -> bool {
    let schema: Value = serde_json::from_str(&spec.parameters_schema).unwrap_or_default();
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| !names.is_empty())
}

/// A call of a person.
#[derive(Clone, Debug)]
pub struct ToolCallRequest {
    /// The tool, as `server.tool`, by the name for models or by the server's own.
    pub tool: String,
    /// A JSON object.
    pub arguments: String,
    pub changes: Changes,
    /// `None`: the limit of the server.
    pub timeout: Option<Duration>,
}

/// Whether a call of a person may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    Allowed,
    Refused,
}

/// The result of a call of a person, masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// The full name for models.
    pub tool: String,
    pub read_only: bool,
    /// The whole result.
    pub result: String,
    /// The result as a model of the defaults sees it, if that is not the whole text.
    pub shown: Option<String>,
    /// The tool reports a failure.
    pub is_error: bool,
    pub duration: Duration,
}

/// Calls one tool as an investigation would. Starts a process for the call and ends it afterwards.
///
/// # Errors
/// When no model may call the tool, when it may change something and the request does not allow that, or when the
/// server does not answer.
pub async fn call(config: &Config, request: ToolCallRequest) -> anyhow::Result<CallOutcome> {
    let name = &request.tool;
    let (server, _) = name
        .split_once('.')
        .with_context(|| format!("{name:?} is no tool; accepted: server.tool"))?;
    let client = Client::of_server(config, server)?;
    let called = client.list_and_call(&request).await;
    client.close().await;
    let (spec, result, is_error, duration) = called?;
    let limit = config
        .defaults
        .settings
        .max_tool_result_tokens
        .unwrap_or_else(|| Limits::default().max_tool_result_tokens);
    let keys = config.mcp_servers.get(server);
    let layers = &config.defaults.settings;
    let is_on = |own: Option<bool>, default: Option<bool>| own.or(default).unwrap_or_default();
    let presentation = Presentation {
        facts: is_on(keys.and_then(|keys| keys.facts), layers.facts),
        fold: is_on(keys.and_then(|keys| keys.fold), layers.fold),
        tables: is_on(keys.and_then(|keys| keys.tables), layers.tables),
    };
    let presentation = if is_error {
        presentation.of_error()
    } else {
        presentation
    };
    let presented = present(&result, presentation, ReadBack::No).cut(limit, ReadBack::No);
    let shown = (presented.text != result).then_some(presented.text);
    Ok(CallOutcome {
        tool: spec.name,
        read_only: spec.read_only,
        result,
        shown,
        is_error,
        duration,
    })
}

/// The error for a name that the configuration does not define.
pub fn unknown_server(config: &Config, name: &str) -> String {
    let defined: Vec<&str> = config.mcp_servers.keys().map(String::as_str).collect();
    if defined.is_empty() {
        return format!(
            "there is no MCP server {name:?}: the configuration defines none (mcp_servers)"
        );
    }
    format!(
        "there is no MCP server {name:?}; defined: {}",
        defined.join(", ")
    )
}

/// The connection of a command to one server, which ends with the command.
struct Client<'a> {
    name: &'a str,
    servers: Servers,
    mask: Mask,
    timeout: Duration,
}

impl<'a> Client<'a> {
    fn of_server(config: &Config, name: &'a str) -> anyhow::Result<Self> {
        let settings = config.mcp_servers.get(name);
        let settings = settings.with_context(|| unknown_server(config, name))?;
        let mask = secrets::mask(config, None)?;
        let servers = Servers::start(
            vec![resolved(name, settings, config.worker.slots)?],
            mask.clone(),
            &CancellationToken::new(),
        )?;
        Ok(Self {
            name,
            servers,
            mask,
            timeout: settings.tool_timeout,
        })
    }

    async fn listed(&self) -> anyhow::Result<Inventory> {
        match tokio::time::timeout(LIST_TIMEOUT, self.servers.listed(self.name)).await {
            Ok(Ok(inventory)) => Ok(inventory),
            Ok(Err(error)) => bail!("{}", self.mask.apply(&error.to_string())),
            Err(_) => bail!("no list of tools within {} s", LIST_TIMEOUT.as_secs()),
        }
    }

    async fn list_and_probe(
        &self,
        settings: Option<&McpServer>,
    ) -> anyhow::Result<(Inventory, Backend)> {
        let inventory = self.listed().await?;
        let backend = self.backend(&inventory, settings).await?;
        Ok((inventory, backend))
    }

    async fn list_and_call(
        &self,
        request: &ToolCallRequest,
    ) -> anyhow::Result<(ToolSpec, String, bool, Duration)> {
        self.call(&self.listed().await?, request).await
    }

    async fn call(
        &self,
        inventory: &Inventory,
        request: &ToolCallRequest,
    ) -> anyhow::Result<(ToolSpec, String, bool, Duration)> {
        let spec = permitted(inventory, self.name, request)?;
        let call = ToolCall {
            id: "call".to_owned(),
            tool: spec.name.clone(),
            arguments: request.arguments.clone(),
            read_only: spec.read_only,
        };
        let timeout = request.timeout.unwrap_or(self.timeout);
        let began = Instant::now();
        let reply = self
            .servers
            .call(ToolRequest::new(&call, timeout).with_spec(Some(&spec)))
            .await;
        match reply {
            ToolReply::Answered { content, is_error } => {
                Ok((spec, content, is_error, began.elapsed()))
            }
            ToolReply::Refused { faults } => Ok((spec, faults, true, began.elapsed())),
            ToolReply::NotSent { error } | ToolReply::NoAnswer { error, .. } => bail!("{error}"),
        }
    }

    async fn backend(
        &self,
        inventory: &Inventory,
        settings: Option<&McpServer>,
    ) -> anyhow::Result<Backend> {
        let probe = settings.and_then(|settings| settings.probe.as_ref());
        let (tool, arguments) = match (probe, harmless(inventory)) {
            (Some(ToolProbe { tool, arguments }), _) => (
                format!("{}.{tool}", self.name),
                Value::from(arguments.clone()).to_string(),
            ),
            (None, Some(spec)) => (spec.name.clone(), "{}".to_owned()),
            (None, None) => return Ok(Backend::NotChecked),
        };
        let request = ToolCallRequest {
            tool: tool.clone(),
            arguments,
            changes: Changes::Refused,
            timeout: Some(PROBE_TIMEOUT.min(self.timeout)),
        };
        permitted(inventory, self.name, &request).context("probe")?;
        Ok(match self.call(inventory, &request).await {
            Ok((_, _, false, took)) => Backend::Answers { tool, took },
            Ok((_, error, true, _)) => Backend::Fails { tool, error },
            Err(error) => Backend::Fails {
                tool,
                error: format!("{error:#}"),
            },
        })
    }

    async fn close(&self) {
        // A child process that hangs is killed when it is dropped.
        tokio::time::timeout(CLOSE_TIMEOUT, self.servers.close())
            .await
            .ok();
    }
}

/// The tool of a call that the rules permit.
fn permitted(
    inventory: &Inventory,
    server: &str,
    request: &ToolCallRequest,
) -> anyhow::Result<ToolSpec> {
    let wanted = &request.tool;
    let own_name = wanted
        .strip_prefix(server)
        .and_then(|rest| rest.strip_prefix('.'));
    let Some(listed) = inventory
        .tools
        .iter()
        .find(|tool| tool.name == *wanted || Some(tool.tool.as_str()) == own_name)
    else {
        bail!("{server} has no tool {wanted:?}: tarsy tools {server} lists them");
    };
    if let Some(why) = &listed.withheld {
        bail!("{} is not offered to models: {why}", listed.name);
    }
    let spec = inventory
        .offered
        .iter()
        .find(|spec| spec.name == listed.name);
    let spec = spec.with_context(|| format!("{} is not offered to models", listed.name))?;
    if !spec.read_only && request.changes == Changes::Refused {
        bail!(
            "{} may change something: --allow-changes calls it all the same",
            listed.name
        );
    }
    Ok(spec.clone())
}
