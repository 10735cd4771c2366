//! The spans of requests that a role of tarsy serves.

use tracing::field::Empty;
use tracing::{Span, info_span};

use super::TARGET;
use tarsy_core::ids::SessionId;
use tarsy_core::trace_context::TraceContext;

/// The LLM service answers a call. A trace that begins here has the id of the session, as that of the worker has.
/// `execution_id` is what the client has sent.
pub fn generate(
    session_id: Option<SessionId>,
    execution_id: &str,
    parent: Option<TraceContext>,
) -> Span {
    info_span!(
        target: TARGET, "generate",
        otel.name = "llm.v1.LLMService/Generate", otel.kind = "server",
        session_id = session_id.map(display), execution_id, trace.id = session_id.map(display),
        trace.parent = parent.map(display),
        rpc.system = "grpc", rpc.service = "llm.v1.LLMService", rpc.method = "Generate", error.type = Empty,
    )
}

/// The receiver answers a request. `path` is one of a closed set.
pub fn receive(path: &str, parent: Option<TraceContext>) -> Span {
    info_span!(
        target: TARGET, "receive",
        otel.name = format!("POST /{path}"), otel.kind = "server", trace.parent = parent.map(display),
        http.request.method = "POST", http.route = format!("/{path}"), http.response.status_code = Empty,
        error.type = Empty,
    )
}
