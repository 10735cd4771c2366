//! The body of a request.

use super::history::{self, History};
use super::models::Model;
use super::thinking;
use super::tools::{self, Api, Tools};
use super::wire::{GenerationConfig, Request};
use crate::proto::GenerateRequest;
use crate::service::provider::retry::Signatures;
use crate::service::provider::{ProviderError, options};

/// A request in the words of the provider.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    request: &'a GenerateRequest,
    pub(super) model: Model<'a>,
    pub(super) history: History,
    pub(super) tools: Tools,
    generation: GenerationConfig,
}

impl<'a> Prepared<'a> {
    /// # Errors
    /// `invalid_request` when the request cannot be expressed.
    pub(super) fn new(request: &'a GenerateRequest, api: Api) -> Result<Self, ProviderError> {
        let model = Model::parse(request.model())?;
        let generation = GenerationConfig {
            max_output_tokens: Some(request.max_output_tokens).filter(|tokens| *tokens > 0),
            temperature: options::temperature(request)?,
            thinking_config: thinking::config(request, model)?,
        };
        Ok(Self {
            request,
            model,
            history: history::convert(&request.messages, model, Signatures::Replayed)?,
            tools: tools::convert(request, model, api)?,
            generation,
        })
    }

    /// Builds every answer of the history anew, without its signatures.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub(super) fn rebuild_history(&mut self) -> Result<(), ProviderError> {
        self.history = history::convert(&self.request.messages, self.model, Signatures::Rebuilt)?;
        Ok(())
    }

    /// Leaves the refused tools out, if the refusal names them. Returns whether something has changed.
    pub(super) fn leave_out(&mut self, refused: &ProviderError) -> bool {
        self.tools.leave_out(refused, self.request)
    }

    /// The body; with a token it asks for the rest of an answer.
    ///
    /// # Errors
    /// When the body cannot be serialized.
    pub(super) fn body(&self, continuation_token: Option<&str>) -> Result<Vec<u8>, ProviderError> {
        let body = Request {
            system_instruction: self.history.system.as_ref(),
            contents: &self.history.contents,
            tools: &self.tools.list,
            tool_config: self.tools.config.as_ref(),
            generation_config: &self.generation,
            continuation_token,
        };
        serde_json::to_vec(&body).map_err(|error| ProviderError::unreadable(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::TEMPERATURE_OPTION;
    use crate::proto::{ConversationMessage, LlmConfig, ToolDefinition};
    use crate::service::provider::ErrorCode;
    use crate::service::provider::options::temperature;

    fn request(model: &str) -> GenerateRequest {
        let message = |role: &str, content: &str| ConversationMessage {
            role: role.into(),
            content: content.into(),
            ..ConversationMessage::default()
        };
        let tool = ToolDefinition {
            name: "s.a".into(),
            ..ToolDefinition::default()
        };
        GenerateRequest {
            messages: vec![message("system", "sys"), message("user", "u")],
            llm_config: Some(LlmConfig {
                model: model.into(),
                ..LlmConfig::default()
            }),
            tools: vec![tool],
            max_output_tokens: 7,
            ..GenerateRequest::default()
        }
    }

    #[test]
    fn the_same_request_gives_the_same_bytes() {
        let request = request("gemini-3-flash-preview");
        let body = |token| {
            String::from_utf8(
                Prepared::new(&request, Api::Developer)
                    .unwrap()
                    .body(token)
                    .unwrap(),
            )
            .unwrap()
        };
        let expected = concat!(
            r#"{"systemInstruction":{"parts":[{"text":"sys"}],"role":"user"},"#,
            r#""contents":[{"parts":[{"text":"u"}],"role":"user"}],"#,
            r#""tools":[{"functionDeclarations":[{"description":"","name":"s__a"}]}],"#,
            r#""generationConfig":{"maxOutputTokens":7,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}}"#
        );
        assert_eq!(body(None), expected);
        let with_token =
            expected.trim_end_matches('}').to_owned() + r#"}},"continuationToken":"t"}"#;
        assert_eq!(body(Some("t")), with_token);
    }

    #[test]
    fn an_option_that_is_no_number_is_refused() {
        let with = |value: &str| {
            let mut request = request("gemini-2.5-pro");
            let config = request.llm_config.as_mut().unwrap();
            config
                .options
                .insert(TEMPERATURE_OPTION.into(), value.into());
            temperature(&request)
        };
        assert_eq!(with("0.5"), Ok(Some(0.5)));
        for value in ["hot", "NaN", "3"] {
            assert_eq!(
                with(value).unwrap_err().code,
                ErrorCode::InvalidRequest,
                "{value}"
            );
        }
        assert_eq!(
            Prepared::new(&request("a/b"), Api::Developer)
                .unwrap_err()
                .code,
            ErrorCode::InvalidRequest
        );
    }
}
