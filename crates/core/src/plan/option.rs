//! The names of the options of a provider in requests to the LLM service.

/// The interface: `chat`, `responses` or `ollama`.
pub const API: &str = "api";
/// The field of the output limit in chat completions: `max_tokens` or `max_completion_tokens`.
pub const OUTPUT_LIMIT_FIELD: &str = "output_limit_field";
/// How many milliseconds the first part of an answer may take.
pub const FIRST_CHUNK_TIMEOUT: &str = "first_chunk_timeout_ms";
/// How many milliseconds a provider may be silent within an answer.
pub const STALL_TIMEOUT: &str = "stall_timeout_ms";
/// How many milliseconds a whole answer may take.
pub const ANSWER_TIMEOUT: &str = "answer_timeout_ms";
