//! The names of the options of a provider in requests to the LLM service.

/// The interface: `chat`, `responses` or `ollama`.
pub const API: &str = "api";
/// The field of the output limit in chat completions: `max_tokens` or `max_completion_tokens`.
pub const OUTPUT_LIMIT_FIELD: &str = "output_limit_field";
/// The time limit for the first part of an answer, in milliseconds.
pub const FIRST_CHUNK_TIMEOUT: &str = "first_chunk_timeout_ms";
/// The longest silence of a provider within an answer, in milliseconds.
pub const STALL_TIMEOUT: &str = "stall_timeout_ms";
/// The time limit for a whole answer, in milliseconds.
pub const ANSWER_TIMEOUT: &str = "answer_timeout_ms";
