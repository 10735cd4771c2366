//! The port `Tools`: the MCP servers.

use std::time::Duration;

use super::lease::Lease;
use tarsy_core::execution::entry::ToolCall;
use tarsy_core::plan::ToolSpec;

/// The MCP servers.
pub trait Tools: Send + Sync + 'static {
    /// Lists the tools of the named servers. Bounded by some seconds: it may be what a server listed some minutes ago.
    fn list(&self, servers: &[String]) -> impl Future<Output = Listing> + Send;

    /// Sends one call once. Bounded by the request's time-out. Dropping the future cancels the call.
    fn call(&self, request: ToolRequest<'_>) -> impl Future<Output = ToolReply> + Send;

    /// The arguments of a call as sending it would write them, without a request to its server.
    fn fit(&self, call: &ToolCall, spec: &ToolSpec) -> impl Future<Output = Fit> + Send;

    /// Compares a tool of a plan with the one that its server offers now. Asks the server, whatever is cached. Bounded
    /// by some seconds.
    fn compare(&self, spec: &ToolSpec) -> impl Future<Output = ToolMatch> + Send;

    /// Closes the connections that only the run with this lease has used. Returns at once. This run sends no further
    /// call.
    fn run_ended(&self, lease: Lease, session: SessionAfterRun);
}

/// The state of a session after one of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionAfterRun {
    /// The end of the session is committed: no run follows.
    Ended,
    /// It was released, its lease is lost, or the run failed: another run may continue with it.
    Continues,
}

/// A call to send.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'a> {
    pub call: &'a ToolCall,
    /// The called tool as the session's plan froze it; `None` when the plan does not have it.
    pub spec: Option<&'a ToolSpec>,
    /// The lease of the run that calls; `None` for a call of a person.
    pub lease: Option<Lease>,
    pub timeout: Duration,
}

impl<'a> ToolRequest<'a> {
    /// A request for a tool that the server knows by the name of the call.
    pub fn new(call: &'a ToolCall, timeout: Duration) -> Self {
        Self {
            call,
            spec: None,
            lease: None,
            timeout,
        }
    }

    /// The same request for a tool of a plan.
    #[must_use]
    pub fn with_spec(self, spec: Option<&'a ToolSpec>) -> Self {
        Self { spec, ..self }
    }

    /// The same request of a run with this lease.
    #[must_use]
    pub fn under(self, lease: Lease) -> Self {
        Self {
            lease: Some(lease),
            ..self
        }
    }
}

/// The tools that servers offer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by name, each name once.
    pub tools: Vec<ToolSpec>,
    /// Servers whose tools are not among them because they cannot be reached, sorted.
    pub unavailable: Vec<Unavailable>,
}

/// A server that did not list its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// Its name.
    pub server: String,
    /// The reason, masked.
    pub why: String,
}

/// The arguments of a call, compared with the schema of its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// As they will be sent.
    Arguments(String),
    /// The call cannot be sent as it is; the faults are for the model, masked.
    Unfit(String),
}

/// A tool of a plan, compared with those that its server offers now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolMatch {
    /// It is offered, with the schema of the plan.
    Same,
    /// It is not offered, or has another schema.
    Changed,
    /// The server does not answer, for this reason.
    Unavailable(String),
}

/// The outcome of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolReply {
    /// The tool answered.
    Answered {
        /// The whole result: flattened to text, cleaned and masked.
        content: String,
        /// The tool reports a failure, which is an answer, too.
        is_error: bool,
    },
    /// The call was never sent, and cannot be as it is: its arguments do not fit.
    Refused {
        /// For the model, masked.
        faults: String,
    },
    /// The call was never sent (no such server, no connection): it may be sent again.
    NotSent {
        /// Text for people.
        error: String,
    },
    /// The call was sent and no answer came: only a read-only call may be sent again.
    NoAnswer {
        /// Text for people.
        error: String,
        /// It took too long.
        timeout: bool,
    },
}
