//! The MCP client: servers as child processes behind the port [`Tools`].
//!
//! A server is started when it is first needed and again for the next call after it died. A call is sent once and
//! never again here: whether it may be repeated is the engine's decision.

mod connection;
mod cut;
mod lines;
mod listing;
mod names;
mod offer;
mod offers;
mod process;
mod result;
mod rules;
mod schema;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connection::{CallFailure, Connection};
pub use self::listing::{Inventory, Listed};
use self::server::Server;
pub use self::server::ServerConfig;
use super::Error;
use crate::engine::ports::{Listing, ToolReply, Tools, Unavailable};
use crate::investigation::execution::entry::ToolCall;
use crate::investigation::mask::Mask;
use crate::investigation::plan::ToolSpec;

/// How long the children are given to end: calls in flight two seconds, then twice three for the process.
const CLOSING: Duration = Duration::from_secs(10);

/// All configured servers.
#[derive(Debug)]
pub struct Servers {
    servers: BTreeMap<String, Arc<Server>>,
    surroundings: Arc<Surroundings>,
}

/// What every connection needs besides its configuration.
#[derive(Debug)]
struct Surroundings {
    mask: Mask,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Servers {
    /// Takes the servers' configuration; starts no process yet. When `shutdown` is cancelled, all children end.
    ///
    /// # Errors
    /// When a name cannot be part of a tool's name, or comes twice.
    pub fn start(configs: Vec<ServerConfig>, mask: Mask, shutdown: &CancellationToken) -> Result<Self, Error> {
        let mut servers = BTreeMap::new();
        for config in configs {
            let name = config.name.clone();
            if let Some(fault) = names::server_fault(&name) {
                return Err(Error::Name { name, fault });
            }
            if servers.insert(name.clone(), Arc::new(Server::new(config))).is_some() {
                return Err(Error::Twice(name));
            }
        }
        let surroundings = Surroundings { mask, shutdown: shutdown.child_token(), tasks: TaskTracker::new() };
        Ok(Self { servers, surroundings: Arc::new(surroundings) })
    }

    /// Ends all children and returns when they are gone, or after ten seconds.
    pub async fn close(&self) {
        self.surroundings.shutdown.cancel();
        self.surroundings.tasks.close();
        if tokio::time::timeout(CLOSING, self.surroundings.tasks.wait()).await.is_err() {
            tracing::warn!("mcp servers still run after {CLOSING:?} and will be killed");
        }
    }

    /// What one server offers to a model, or why it offers nothing now.
    async fn offered(&self, name: &str) -> Result<Arc<[ToolSpec]>, String> {
        match self.servers.get(name) {
            Some(server) => server.offers.of(server, &self.surroundings).await,
            None => Err(Error::Unknown(name.to_owned()).to_string()),
        }
    }

    async fn send(&self, call: &ToolCall, max_result_tokens: u32, timeout: Duration) -> Result<ToolReply, Unsent> {
        let begun = Instant::now();
        let (server, params) = self.route(call)?;
        let timeout = timeout.min(server.config.tool_timeout);
        let connection = connect(server, &self.surroundings, timeout).await?;
        let answer = connection.call(params, timeout.saturating_sub(begun.elapsed())).await;
        Ok(match answer {
            Ok(CallToolResponse::Complete(result)) => {
                result::reply(&result, &self.surroundings.mask, max_result_tokens)
            }
            Ok(_) => self.told("the tool asks for something instead of giving a result", max_result_tokens),
            Err(CallFailure::Refused(message)) => self.told(&message, max_result_tokens),
            Err(CallFailure::Broken(fault)) => {
                server.forget(&connection);
                self.no_answer(&format!("{}: connection lost during the call: {fault}", call.tool), false)
            }
            Err(CallFailure::Timeout) => {
                self.no_answer(&format!("{}: no answer within {} ms", call.tool, timeout.as_millis()), true)
            }
        })
    }

    fn route(&self, call: &ToolCall) -> Result<(&Server, CallToolRequestParams), Unsent> {
        let (name, tool) = call.tool.split_once('.').unwrap_or((&call.tool, ""));
        let server = self.servers.get(name).ok_or_else(|| Unsent::Unavailable(Error::Unknown(name.to_owned())))?;
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let arguments = serde_json::from_str::<JsonObject>(arguments)
            .map_err(|error| Unsent::Refused(format!("the arguments are not a JSON object: {error}")))?;
        Ok((server, CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)))
    }

    fn told(&self, text: &str, max_result_tokens: u32) -> ToolReply {
        result::text_reply(text, true, &self.surroundings.mask, max_result_tokens)
    }

    fn no_answer(&self, error: &str, timeout: bool) -> ToolReply {
        ToolReply::NoAnswer { error: self.masked(error), timeout }
    }

    fn masked(&self, text: &str) -> String {
        masked(&self.surroundings, text)
    }
}

fn masked(surroundings: &Surroundings, text: &str) -> String {
    surroundings.mask.apply(text).into_owned()
}

/// Why a call was not sent.
enum Unsent {
    /// There is nobody to send it to.
    Unavailable(Error),
    /// It is no call; the model has to hear why.
    Refused(String),
}

async fn connect(server: &Server, surroundings: &Surroundings, timeout: Duration) -> Result<Arc<Connection>, Unsent> {
    let connecting = tokio::time::timeout(timeout, server.connection(surroundings)).await;
    let silent = |_| Error::Silent { server: server.config.name.clone(), what: "the handshake", within: timeout };
    connecting.map_err(silent).flatten().map_err(Unsent::Unavailable)
}

impl Tools for Servers {
    async fn list(&self, servers: &[String]) -> Listing {
        let offered = join_all(servers.iter().map(|name| self.offered(name))).await;
        let mut listing = Listing::default();
        for (name, offered) in servers.iter().zip(offered) {
            match offered {
                Ok(tools) => listing.tools.extend(tools.iter().cloned()),
                Err(why) => listing.unavailable.push(Unavailable { server: name.clone(), why }),
            }
        }
        listing.tools.sort_by(|one, other| one.name.cmp(&other.name));
        listing.tools.dedup_by(|one, other| one.name == other.name);
        listing
    }

    async fn call(&self, call: &ToolCall, max_result_tokens: u32, timeout: Duration) -> ToolReply {
        match self.send(call, max_result_tokens, timeout).await {
            Ok(reply) => reply,
            Err(Unsent::Unavailable(error)) => ToolReply::NotSent { error: self.masked(&error.to_string()) },
            Err(Unsent::Refused(fault)) => self.told(&fault, max_result_tokens),
        }
    }
}
