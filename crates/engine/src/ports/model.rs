//! The port `Model`: the LLM service.

use std::time::Duration;

pub use tarsy_core::execution::conversation::Message;
use tarsy_core::execution::entry::Answer;
use tarsy_core::execution::request::RequestBody;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::{ProviderPlan, ToolSpec};
use tarsy_core::timeline::DeltaKind;

/// The LLM service.
pub trait Model: Send + Sync + 'static {
    /// Asks for one answer. Pieces go to `deltas` as they arrive. Dropping the future cancels the call.
    fn generate(
        &self,
        request: ModelRequest,
        deltas: impl Fn(DeltaKind, &str) + Send + Sync,
    ) -> impl Future<Output = Result<Answer, ModelError>> + Send;

    /// Whether the health check of the service succeeds.
    fn serving(&self) -> impl Future<Output = bool> + Send;
}

/// One model call.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// For logs on the other side.
    pub session_id: SessionId,
    pub execution_id: ExecutionId,
    /// For logs on both sides: `<execution>:<iteration>`.
    pub request_id: String,
    /// The provider to call.
    pub provider: ProviderPlan,
    /// The whole conversation.
    pub messages: Vec<Message>,
    /// The tools that the model may call; may be empty.
    pub tools: Vec<ToolSpec>,
    /// The tools that are declared and may not be called; may be empty.
    pub declared_tools: Vec<ToolSpec>,
    /// Whether the service forgets what it has cached for the execution: another provider has answered before.
    pub clear_cache: bool,
    /// Sent along as the call's deadline; the engine enforces its own.
    pub timeout: Duration,
}

impl ModelRequest {
    /// The request of an execution with this body.
    pub fn new(
        session_id: SessionId,
        execution_id: ExecutionId,
        body: RequestBody,
        timeout: Duration,
    ) -> Self {
        Self {
            session_id,
            execution_id,
            request_id: format!("{execution_id}:{}", body.name),
            provider: body.provider,
            messages: body.messages,
            tools: body.tools,
            declared_tools: body.declared_tools,
            clear_cache: body.clear_cache,
            timeout,
        }
    }
}

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// No connection, UNAVAILABLE, RESOURCE_EXHAUSTED, not serving: the session is released,
    /// and no attempt is counted.
    #[error("llm service is unavailable: {0}")]
    Unavailable(String),
    /// The connection was there and broke before the first chunk: the service may have died of this very call.
    #[error("llm service broke off: {0}")]
    Broke(String),
    /// The provider failed, or the stream broke after its first chunk: a failed iteration.
    #[error("{message}")]
    Failed {
        /// The service's word: `max_retries`, `partial_stream_error`, …
        code: String,
        /// Text for people.
        message: String,
        /// It took too long.
        timeout: bool,
        provider: ProviderFailure,
    },
}

/// The provider's part of a failure, as the LLM service reports it; empty if no provider has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderFailure {
    /// The provider's own words, for example `429 RESOURCE_EXHAUSTED`.
    pub status: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The delay that the provider asks for, at most a day.
    pub retry_after: Option<Duration>,
}
