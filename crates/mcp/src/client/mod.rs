//! The MCP client: runs MCP servers as child processes and implements the port [`Tools`].
//!
//! A server is started when it is first needed, and again for the next call after it died. The client sends a call only
//! once: the engine decides whether a call may be repeated.

mod config;
mod context;
mod server;
mod sessions;
mod slot;
mod session_limit;
mod calls;
mod connection;
mod list;
mod transport;
mod tool_cache;
mod offer;
mod rules;
mod names;
mod schema;
mod listing;
mod result;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, RequestParamsMeta as _,
};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::calls::arguments::{ArgumentChecks, Comparison, as_sent};
use self::calls::pending::RequestTimeouts;
pub use self::config::{Account, HttpConfig, ServerConfig, StdioConfig, Transport, User};
use self::connection::{CallFailure, Connection};
use self::context::ConnectionContext;
pub use self::listing::{Inventory, Listed};
use self::server::Server;
use self::slot::ConnectionSlot;
use self::tool_cache::CachedServer;
use super::Error;
use tarsy_config::server_name_fault;
use tarsy_core::execution::entry::ToolCall;
use tarsy_core::plan::ToolSpec;
use tarsy_engine::ports::{
    Fit, Lease, Listing, SessionAfterRun, ToolMatch, ToolReply, ToolRequest, Tools, Unavailable,
};
use tarsy_engine::trace;
use tarsy_mask::Mask;
use tarsy_reports::system::ServerReport;

/// The time limit for the end of all children: two seconds for calls in flight, then twice three seconds for the
/// process.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for the list of a server with which a tool of a plan is compared.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(10);

/// All configured servers.
#[derive(Debug)]
pub struct Servers {
    servers: BTreeMap<String, Arc<CachedServer>>,
    context: Arc<ConnectionContext>,
    arguments: Arc<ArgumentChecks>,
}

impl Servers {
    /// Prepares the servers without starting a process. When `shutdown` is cancelled, all children end.
    ///
    /// # Errors
    /// When a name cannot be part of a tool's name, or is used twice.
    pub fn start(
        configs: Vec<ServerConfig>,
        mask: Mask,
        shutdown: &CancellationToken,
    ) -> Result<Self, Error> {
        let mut servers = BTreeMap::new();
        for config in configs {
            let name = config.name.clone();
            if let Some(fault) = server_name_fault(&name) {
                return Err(Error::Name { name, fault });
            }
            if servers
                .insert(name.clone(), Arc::new(CachedServer::new(config, &mask)))
                .is_some()
            {
                return Err(Error::Duplicate(name));
            }
        }
        let context = ConnectionContext {
            mask,
            shutdown: shutdown.child_token(),
            tasks: TaskTracker::new(),
        };
        Ok(Self {
            servers,
            context: Arc::new(context),
            arguments: Arc::default(),
        })
    }

    /// Ends all children. Returns when their processes have exited, or after ten seconds.
    pub async fn close(&self) {
        self.context.shutdown.cancel();
        self.context.tasks.close();
        let closing = self.context.tasks.wait();
        if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
            tracing::warn!(
                "mcp servers still running after {CLOSE_TIMEOUT:?}: they will be killed"
            );
        }
    }

    /// The last state of each server, by name, without a request to any.
    pub fn reports(&self) -> Vec<ServerReport> {
        self.servers
            .values()
            .map(|server| server.report())
            .collect()
    }

    fn server(&self, name: &str) -> Result<&Arc<CachedServer>, Error> {
        self.servers
            .get(name)
            .ok_or_else(|| Error::Unknown(name.to_owned()))
    }

    /// The tools that one server offers to a model, or the reason why they are unavailable.
    async fn offered(&self, name: &str) -> Result<Arc<[ToolSpec]>, String> {
        self.server(name)
            .map_err(|unknown| unknown.to_string())?
            .tools(&self.context)
            .await
    }

    /// Lists the tools of a server, for people.
    ///
    /// # Errors
    /// When it is unknown, does not start, or does not answer.
    pub async fn listed(&self, server: &str) -> Result<Inventory, Error> {
        let known = &self.server(server)?.server;
        let shared = known.slot(None);
        let connection = known.connection(&shared, &self.context).await?;
        let tools = connection
            .list_tools(server)
            .await
            .inspect_err(|_| shared.discard(&connection))?;
        Ok(listing::inventory(
            &known.config,
            &tools,
            &self.context.mask,
        ))
    }

    async fn send(&self, request: ToolRequest<'_>) -> Result<ToolReply, Unsent> {
        let begun = Instant::now();
        let timeout = request.timeout;
        let (server, mut params) = self.route(request)?;
        // People have seen the arguments of a call that they approved: these and no other reading are sent.
        if request.spec.is_none_or(|spec| spec.approval.is_none()) {
            self.check_arguments(request.spec, &mut params).await?;
        }
        let _permit = server
            .permit(timeout.saturating_sub(begun.elapsed()))
            .await
            .map_err(Unsent::Unavailable)?;
        let idle = server.config.settings.tool_timeout.min(timeout);
        let total = server.config.settings.max_tool_timeout.min(timeout);
        // The wait for the permit counts for the time-out of the request, and not for that of the server.
        let end = (Instant::now() + total).min(begun + timeout);
        let slot = server.slot(request.lease);
        let connection = connect(server, &slot, &self.context, idle).await?;
        let answer = connection
            .call(params, RequestTimeouts { idle, total, end })
            .await;
        let failure = match answer {
            Ok(result) => return Ok(result::reply(&result, &self.context.mask)),
            Err(failure) => failure,
        };
        if matches!(failure, CallFailure::Unsent(_) | CallFailure::Broken(_)) {
            slot.discard(&connection);
        }
        let tool = &request.call.tool;
        let masked = |fault: String| self.context.masked(&format!("{tool}: {fault}"));
        Ok(match failure {
            CallFailure::Refused(message) => self.error_reply(&message),
            CallFailure::Unsent(fault) => ToolReply::NotSent {
                error: masked(format!("the server did not take the call: {fault}")),
            },
            CallFailure::Broken(fault) | CallFailure::Unreadable(fault) => ToolReply::NoAnswer {
                error: masked(fault),
                timeout: false,
            },
            CallFailure::Timeout(expired) => ToolReply::NoAnswer {
                error: masked(expired.to_string()),
                timeout: true,
            },
        })
    }

    fn route(&self, request: ToolRequest<'_>) -> Result<(&Server, CallToolRequestParams), Unsent> {
        let call = request.call;
        let (name, tool) = call.tool.split_once('.').unwrap_or((&call.tool, ""));
        // The plan has the server's own name of the tool.
        let tool = request.spec.map_or(tool, ToolSpec::tool);
        let server = &self.server(name).map_err(Unsent::Unavailable)?.server;
        let arguments = arguments_of(&call.arguments)
            .map_err(|error| Unsent::Refused(not_an_object(&error)))?;
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(context) = trace::outgoing() {
            params.set_traceparent(&context.to_string());
        }
        Ok((server, params))
    }

    /// Compares the arguments with the schema that the model has seen, and writes them as it wants them.
    async fn check_arguments(
        &self,
        spec: Option<&ToolSpec>,
        params: &mut CallToolRequestParams,
    ) -> Result<(), Unsent> {
        let (Some(spec), Some(arguments)) = (spec, &mut params.arguments) else {
            return Ok(());
        };
        let comparison = self
            .arguments
            .compare(&spec.parameters_schema, arguments)
            .await;
        metrics::counter!("tarsy_tool_argument_checks_total", "outcome" => comparison.as_str())
            .increment(1);
        match comparison {
            Comparison::Fit | Comparison::Unchecked => Ok(()),
            Comparison::Unfit(faults) => Err(Unsent::Refused(faults)),
        }
    }

    /// Whether the server offers this tool now, with the schema that the plan has.
    async fn compared(&self, spec: &ToolSpec) -> Result<bool, Error> {
        let inventory = self.listed(spec.server()).await?;
        let mut offered = inventory.offered.iter();
        Ok(offered.any(|offered| {
            offered.name == spec.name
                && offered.tool() == spec.tool()
                && offered.parameters_schema == spec.parameters_schema
        }))
    }

    /// The faults of arguments, as the model reads them.
    fn faults(&self, text: &str) -> String {
        match self.error_reply(text) {
            ToolReply::Answered { content, .. } => content,
            ToolReply::Refused { .. } | ToolReply::NotSent { .. } | ToolReply::NoAnswer { .. } => {
                self.context.masked(text)
            }
        }
    }

    /// The reply to a call that failed with `text`, which the model reads.
    fn error_reply(&self, text: &str) -> ToolReply {
        let result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result::reply(&result, &self.context.mask)
    }
}

/// The result of comparing the arguments of a call with the schema of its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentFit {
    /// They go to the server as the model wrote them.
    AsWritten,
    /// They have one sensible reading, which goes to the server.
    Fitted,
    /// The call is not sent; the model gets this reason.
    Unfit(String),
}

/// Reads the arguments of a call of `spec` as every call does, without a server.
pub async fn fit_arguments(spec: &ToolSpec, text: &str) -> ArgumentFit {
    match fitted(&Arc::new(ArgumentChecks::default()), spec, text).await {
        Fit::Unfit(faults) => ArgumentFit::Unfit(faults),
        Fit::Arguments(sent) if sent == text => ArgumentFit::AsWritten,
        Fit::Arguments(_) => ArgumentFit::Fitted,
    }
}

/// The arguments of a call as they are sent: the text of the model, unless it needs another reading. Faults are not
/// masked.
async fn fitted(checks: &Arc<ArgumentChecks>, spec: &ToolSpec, text: &str) -> Fit {
    let mut arguments = match arguments_of(text) {
        Ok(arguments) => arguments,
        Err(error) => return Fit::Unfit(not_an_object(&error)),
    };
    match checks
        .compare(&spec.parameters_schema, &mut arguments)
        .await
    {
        Comparison::Unfit(faults) => Fit::Unfit(faults),
        Comparison::Fit | Comparison::Unchecked => {
            let written = serde_json::from_str::<JsonObject>(text).ok();
            if written.as_ref() == Some(&arguments) {
                Fit::Arguments(text.to_owned())
            } else {
                Fit::Arguments(Value::Object(arguments).to_string())
            }
        }
    }
}

fn not_an_object(error: &serde_json::Error) -> String {
    format!("the arguments are not a JSON object: {error}")
}

/// The arguments of a call. Some models write the object as JSON in a text, or `null` for none.
fn arguments_of(text: &str) -> Result<JsonObject, serde_json::Error> {
    if matches!(text.trim(), "" | "null") {
        return Ok(JsonObject::new());
    }
    let fault = match serde_json::from_str::<JsonObject>(text) {
        Ok(arguments) => return Ok(arguments),
        Err(fault) => fault,
    };
    // The fault of the text itself: the model has written that.
    let inner = serde_json::from_str::<String>(text).ok();
    inner
        .and_then(|inner| serde_json::from_str(&inner).ok())
        .ok_or(fault)
}

/// The reason why a call was not sent.
enum Unsent {
    /// The server is unknown or unavailable.
    Unavailable(Error),
    /// The call is invalid. The model gets this reason.
    Refused(String),
}

async fn connect(
    server: &Server,
    slot: &ConnectionSlot,
    context: &ConnectionContext,
    timeout: Duration,
) -> Result<Arc<Connection>, Unsent> {
    let connected = tokio::time::timeout(timeout, server.connection(slot, context)).await;
    connected
        .unwrap_or_else(|_| Err(Error::no_handshake(server.config.name.clone(), timeout)))
        .map_err(Unsent::Unavailable)
}

impl Tools for Servers {
    async fn list(&self, servers: &[String]) -> Listing {
        let offered = join_all(servers.iter().map(|name| self.offered(name))).await;
        let mut listing = Listing::default();
        for (name, offered) in servers.iter().zip(offered) {
            match offered {
                Ok(tools) => listing.tools.extend(tools.iter().cloned()),
                Err(why) => listing.unavailable.push(Unavailable {
                    server: name.clone(),
                    why,
                }),
            }
        }
        listing
            .tools
            .sort_by(|one, other| one.name.cmp(&other.name));
        listing.tools.dedup_by(|one, other| one.name == other.name);
        listing
    }

    async fn call(&self, request: ToolRequest<'_>) -> ToolReply {
        match self.send(request).await {
            Ok(reply) => reply,
            Err(Unsent::Unavailable(error)) => ToolReply::NotSent {
                error: self.context.masked(&error.to_string()),
            },
            Err(Unsent::Refused(fault)) => ToolReply::Refused {
                faults: self.faults(&fault),
            },
        }
    }

    async fn fit(&self, call: &ToolCall, spec: &ToolSpec) -> Fit {
        match fitted(&self.arguments, spec, &call.arguments).await {
            Fit::Unfit(fault) => Fit::Unfit(self.faults(&fault)),
            Fit::Arguments(arguments) => Fit::Arguments(as_sent(arguments)),
        }
    }

    async fn compare(&self, spec: &ToolSpec) -> ToolMatch {
        match tokio::time::timeout(COMPARE_TIMEOUT, self.compared(spec)).await {
            Ok(Ok(true)) => ToolMatch::Same,
            Ok(Ok(false)) => ToolMatch::Changed,
            // The present configuration has no such server.
            Ok(Err(Error::Unknown(_))) => ToolMatch::Changed,
            Ok(Err(error)) => ToolMatch::Unavailable(self.context.masked(&error.to_string())),
            Err(_elapsed) => {
                ToolMatch::Unavailable(format!("no list of tools within {COMPARE_TIMEOUT:?}"))
            }
        }
    }

    fn run_ended(&self, lease: Lease, session: SessionAfterRun) {
        for cached in self.servers.values() {
            cached.server.run_ended(lease, session);
        }
    }
}
