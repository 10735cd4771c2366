//! The values of the labels of the LLM service, which [`super::names`] uses in its table.

/// The values of `llm_providers.<name>.provider`; `other` represents any other word of a request.
pub const PROVIDER_WORDS: &[&str] = &[
    "google",
    "openai",
    "anthropic",
    "xai",
    "mistral",
    "groq",
    "deepseek",
    "openrouter",
    "together",
    "fireworks",
    "cohere",
    "azure",
    "bedrock",
    "ollama",
    "openai-compatible",
    "scripted",
    "other",
];
/// The values of `gen_ai.provider.name`.
pub(super) const GEN_AI_PROVIDERS: &[&str] = &[
    "gcp.gemini",
    "gcp.vertex_ai",
    "openai",
    "anthropic",
    "x_ai",
    "mistral_ai",
    "groq",
    "deepseek",
    "openrouter",
    "together",
    "fireworks",
    "cohere",
    "azure.ai.openai",
    "aws.bedrock",
    "ollama",
    "openai-compatible",
    "scripted",
    "other",
];
/// The values of `gen_ai.operation.name`.
pub(super) const GEN_AI_OPERATIONS: &[&str] = &["chat"];
/// The values of `error.type`, few because each of them has a histogram: no error, the errors of a provider that are
/// worth a curve, and `_OTHER`, the word of the conventions for the rest.
pub const GEN_AI_ERRORS: &[&str] = &[
    "",
    "credentials",
    "deadline_exceeded",
    "invalid_request",
    "rate_limited",
    "unavailable",
    "_OTHER",
];
/// The codes of errors.
pub const LLM_ERRORS: &[&str] = &[
    "credentials",
    "invalid_request",
    "provider_error",
    "empty_response",
    "partial_stream_error",
    "invalid_backend",
    "internal",
    "rate_limited",
    "unavailable",
    "context_window_exceeded",
    "blocked",
    "thought_signature",
    "model_not_found",
    "deadline_exceeded",
    "cancelled",
    "max_tokens",
    "malformed_tool_call",
    "max_retries",
    "stream_broken",
    "shutting_down",
    "abandoned",
    "other",
];
/// The reasons for the end of an answer.
pub const FINISH_REASONS: &[&str] = &[
    "stop",
    "tool_calls",
    "max_tokens",
    "safety",
    "recitation",
    "malformed_tool_call",
    "context_window",
    "paused",
    "error",
    "unknown",
    "other",
];
