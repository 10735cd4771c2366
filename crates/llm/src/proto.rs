//! The generated messages, client and server of `proto/llm/v1/llm_service.proto`; the documentation is in that file.
#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::or_fun_call,
    clippy::doc_markdown,
    clippy::missing_errors_doc,
    clippy::too_many_lines,
    clippy::allow_attributes_without_reason,
    reason = "generated code is not ours to lint, and which of these it needs changes with the generator"
)]

tonic::include_proto!("llm.v1");

/// The description of the protocol that reflection serves, as an encoded `FileDescriptorSet`.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/llm.v1.bin"));

/// The largest message that either side accepts: a conversation with all its tool results and provider data.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// The largest answer that a worker reads, provider data included.
pub const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// The value in `accept` of a client that supports [`FinishInfo`].
pub const ACCEPT_FINISH: &str = "finish";

/// The value in `accept` of a client that supports [`ProviderData`].
pub const ACCEPT_PROVIDER_DATA: &str = "provider_data";

/// The value in `accept` of a client that wants every code of errors, not only the seven of the existing service.
pub const ACCEPT_CODES: &str = "codes.v2";

/// The value in `accept` of a client that supports [`RetryNotice`].
pub const ACCEPT_RETRY: &str = "retry";

/// The value in `accept` of a client that supports a [`GroundingDelta`] that has only [`UrlRetrieval`]s.
pub const ACCEPT_URL_RETRIEVALS: &str = "url_retrievals";

/// The value in `accept` of a client that supports [`OtherSource`]s, also a [`GroundingDelta`] that has nothing else.
pub const ACCEPT_OTHER_SOURCES: &str = "other_sources";

/// The name of the backend `genai` that every service understands.
pub(crate) const LANGCHAIN: &str = "langchain";

/// The option of `llm_config` that names the recording for the backend `scripted`.
pub(crate) const TRANSCRIPT_OPTION: &str = "transcript";

/// The option of `llm_config` with the temperature, a number from 0 to 2.
pub(crate) const TEMPERATURE_OPTION: &str = "temperature";

/// The option of `llm_config` for native tools together with functions: `combine` or `exclusive`. Without it they are
/// combined where the model can, as the existing service does.
pub(crate) const NATIVE_TOOLS_OPTION: &str = "native_tools";

/// The role of the messages that are answers of the model.
pub(crate) const ASSISTANT: &str = "assistant";

impl GenerateRequest {
    /// The name of the model; empty if the request names none.
    pub(crate) fn model(&self) -> &str {
        self.llm_config
            .as_ref()
            .map_or("", |config| config.model.as_str())
    }

    /// The value of an option of `llm_config`.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let value = self.llm_config.as_ref()?.options.get(name)?;
        Some(value)
    }
}
