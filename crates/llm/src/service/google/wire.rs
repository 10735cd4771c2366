//! The messages of Gemini's `streamGenerateContent`, with the fields that this service reads or writes.
//!
//! Parts of an answer, arguments and schemas are kept as raw JSON. They go back to the model byte for byte: a number is
//! not rewritten, the order of keys stays, and fields that are not known here are kept.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Raw JSON.
pub(super) type Raw = Box<RawValue>;

// ---------------------------------------------------------------- the request

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_instruction: Option<&'a Raw>,
    pub(super) contents: &'a [Raw],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) tools: &'a [Tool],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_config: Option<&'a ToolConfig>,
    #[serde(skip_serializing_if = "GenerationConfig::is_empty")]
    pub(super) generation_config: &'a GenerationConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continuation_token: Option<&'a str>,
}

/// One side's turn.
#[derive(Debug, Serialize)]
pub(super) struct Content<P> {
    pub(super) parts: Vec<P>,
    pub(super) role: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum RequestPart<'a> {
    Text(&'a str),
    FunctionResponse(FunctionResponse<'a>),
    #[serde(untagged)]
    Call(CallPart),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallPart {
    pub(super) function_call: FunctionCall,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) response: ToolResult<'a>,
}

/// The result of a call. It has to be an object; of other values the model reads the keys `output` and `error`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ToolResult<'a> {
    Output(Json<'a>),
    Error(Json<'a>),
    #[serde(untagged)]
    Object(&'a RawValue),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Json<'a> {
    Raw(&'a RawValue),
    Text(&'a str),
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    pub(super) include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking_budget: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking_level: Option<String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking_config: Option<ThinkingConfig>,
}

impl GenerationConfig {
    fn is_empty(&self) -> bool {
        self.max_output_tokens.is_none()
            && self.temperature.is_none()
            && self.thinking_config.is_none()
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Tool {
    GoogleSearch {},
    CodeExecution {},
    UrlContext {},
    FunctionDeclarations(Vec<FunctionDeclaration>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionDeclaration {
    pub(super) description: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameters_json_schema: Option<Raw>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_calling_config: Option<FunctionCallingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) include_server_side_tool_invocations: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCallingConfig {
    pub(super) mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) allowed_function_names: Vec<String>,
}

// ---------------------------------------------------------------- both ways

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FunctionCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) args: Option<Raw>,
    /// Whether other parts have more of the arguments. It is not asked for.
    #[serde(default, skip_serializing)]
    pub(super) will_continue: Option<bool>,
}

// ---------------------------------------------------------------- the answer

/// One event of the stream. Every field may be missing or null.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Chunk {
    pub(super) candidates: Option<Vec<Candidate>>,
    pub(super) prompt_feedback: Option<PromptFeedback>,
    pub(super) usage_metadata: Option<UsageMetadata>,
    pub(super) model_version: Option<String>,
    pub(super) response_id: Option<String>,
    pub(super) error: Option<ApiError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Candidate {
    pub(super) content: Option<AnswerContent>,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
    pub(super) grounding_metadata: Option<GroundingMetadata>,
    pub(super) url_context_metadata: Option<UrlContextMetadata>,
    pub(super) continuation_token: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AnswerContent {
    pub(super) parts: Option<Vec<Raw>>,
}

/// A part of an answer. A part of any kind may have a signature; only `thought` makes it thinking.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Part {
    pub(super) text: Option<String>,
    pub(super) thought: Option<bool>,
    pub(super) function_call: Option<FunctionCall>,
    pub(super) executable_code: Option<ExecutableCode>,
    pub(super) code_execution_result: Option<CodeExecutionResult>,
    pub(super) thought_signature: Option<serde_json::Value>,
}

/// A part that has nothing but text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainText {
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) thought: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExecutableCode {
    pub(super) id: Option<String>,
    pub(super) language: Option<String>,
    pub(super) code: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CodeExecutionResult {
    pub(super) id: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) output: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PromptFeedback {
    pub(super) block_reason: Option<String>,
    pub(super) block_reason_message: Option<String>,
}

/// Tokens of the answer so far. A count of 0 is left out.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct UsageMetadata {
    pub(super) prompt_token_count: Option<i64>,
    pub(super) cached_content_token_count: Option<i64>,
    pub(super) candidates_token_count: Option<i64>,
    pub(super) thoughts_token_count: Option<i64>,
    pub(super) tool_use_prompt_token_count: Option<i64>,
    pub(super) total_token_count: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GroundingMetadata {
    pub(super) web_search_queries: Option<Vec<String>>,
    pub(super) search_entry_point: Option<SearchEntryPoint>,
    pub(super) grounding_chunks: Option<Vec<GroundingChunk>>,
    pub(super) grounding_supports: Option<Vec<GroundingSupport>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SearchEntryPoint {
    pub(super) rendered_content: Option<String>,
}

/// A source. A source other than a page of the web has another key, whose value depends on the kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GroundingChunk {
    pub(super) web: Option<Web>,
    #[serde(flatten)]
    pub(super) other: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Web {
    pub(super) uri: Option<String>,
    pub(super) title: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GroundingSupport {
    pub(super) segment: Option<Segment>,
    pub(super) grounding_chunk_indices: Option<Vec<i64>>,
    pub(super) confidence_scores: Option<Vec<f32>>,
}

/// Words of the answer: bytes of the part `part_index`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Segment {
    pub(super) part_index: Option<i64>,
    pub(super) start_index: Option<i64>,
    pub(super) end_index: Option<i64>,
    pub(super) text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct UrlContextMetadata {
    pub(super) url_metadata: Option<Vec<UrlMetadata>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct UrlMetadata {
    pub(super) retrieved_url: Option<String>,
    pub(super) url_retrieval_status: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiError {
    pub(super) code: Option<i64>,
    pub(super) message: Option<String>,
    pub(super) status: Option<String>,
    pub(super) details: Option<Vec<serde_json::Value>>,
}
