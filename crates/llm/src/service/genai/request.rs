//! Builds the request of the crate. Fields that the crate would choose by its own table of models are set here.

use std::borrow::Cow;
use std::sync::Arc;

use ::genai::chat::{ChatFrameSink, ChatOptions, ChatRequest, ReasoningEffort};
use serde_json::{Value, json};

use super::correction::{Corrected, Correction, LimitField};
use super::history::{self, History};
use super::models::{Family, Thinking, family_of};
use super::target::{Api, Selection};
use super::thinking::{self, Limits};
use super::tools::{self, Tools};
use crate::proto::{GenerateRequest, ThinkingConfig};
use crate::service::declared_tools;
use crate::service::provider::retry::Signatures;
use crate::service::provider::{ErrorCode, ProviderError, options};

/// The words for `tool_choice` in the refusals of gateways.
const CHOICE_WORDS: [&str; 3] = ["tool_choice", "tool choice", "toolchoice"];

/// A request to a provider.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    request: Cow<'a, GenerateRequest>,
    pub(super) selection: Selection<'a>,
    pub(super) history: History,
    pub(super) tools: Tools,
    family: &'static Family,
    thinking: ThinkingConfig,
    temperature: Option<f64>,
    correction: Correction,
}

impl<'a> Prepared<'a> {
    /// # Errors
    /// `invalid_request` when the request cannot be expressed.
    pub(super) fn new(
        request: &'a GenerateRequest,
        selection: Selection<'a>,
    ) -> Result<Self, ProviderError> {
        Ok(Self {
            request: Cow::Borrowed(request),
            selection,
            history: history::convert_request(request, selection, Signatures::Replayed)?,
            tools: tools::convert(request, selection)?,
            family: family_of(selection.model),
            thinking: options::thinking(request)?,
            temperature: options::temperature(request)?,
            correction: Correction::wanted(request)?,
        })
    }

    /// Builds every answer of the history anew, without its signatures.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub(super) fn rebuild_history(&mut self) -> Result<(), ProviderError> {
        self.history =
            history::convert_request(&self.request, self.selection, Signatures::Rebuilt)?;
        Ok(())
    }

    /// Changes the request as the provider's refusal says. Returns the change; `None` if the same request would follow.
    pub(super) fn correct(&mut self, refused: &ProviderError) -> Option<Corrected> {
        if self.selection.api == Api::Chat && self.correction.learn(refused, self.limit_field()) {
            return Some(Corrected::Parameter);
        }
        if self.leave_out_declared(refused) {
            return Some(Corrected::Parameter);
        }
        self.tools
            .leave_out(refused, &self.request)
            .then_some(Corrected::Tools)
    }

    /// Leaves out the tools that may not be called, if a gateway refuses the word for it. Returns whether something has
    /// changed.
    fn leave_out_declared(&mut self, refused: &ProviderError) -> bool {
        let text = refused.full_text.to_lowercase();
        let is_refusal = refused.code == ErrorCode::InvalidRequest
            && CHOICE_WORDS.iter().any(|word| text.contains(word));
        if !is_refusal {
            return false;
        }
        let Some(without) = declared_tools::without(&self.request) else {
            return false;
        };
        let history = history::convert_request(&without, self.selection, Signatures::Replayed);
        let Ok(history) = history else {
            return false;
        };
        self.tools = Tools::default();
        self.history = history;
        self.request = Cow::Owned(without);
        true
    }

    /// The field of the limit in chat completions.
    fn limit_field(&self) -> LimitField {
        self.correction
            .limit_field
            .unwrap_or_else(|| LimitField::of_model(self.selection.model))
    }

    /// The conversation and the tools.
    pub(super) fn chat_request(&self) -> ChatRequest {
        let tools = &self.tools.list;
        ChatRequest {
            tools: (!tools.is_empty()).then(|| tools.clone()),
            ..ChatRequest::new(self.history.messages.clone())
        }
    }

    /// The options of a request for the crate. `frames` gets the events of the stream.
    pub(super) fn options(&self, frames: Arc<dyn ChatFrameSink>) -> ChatOptions {
        let api = self.selection.api;
        let mut body = if self.correction.is_without("reasoning_effort") {
            serde_json::Map::new()
        } else {
            thinking::fields(api, self.family.thinking, &self.thinking, self.limits())
        };
        let is_thinking = !body.is_empty();
        // The crate cuts words as `-max` and `a::` off the name.
        body.insert("model".to_owned(), json!(self.selection.model));
        if api == Api::Responses {
            body.insert("input".to_owned(), Value::Array(self.history.items.clone()));
        }
        if api == Api::Chat {
            let field = self.limit_field().as_str();
            body.insert(field.to_owned(), json!(self.max_output()));
        }
        let has_body = matches!(api, Api::Messages | Api::Responses | Api::Chat);
        // A model that thinks refuses another temperature than its own.
        let has_temperature = !is_thinking && !self.correction.is_without("temperature");
        let is_reasoning = thinking::is_reasoning(api, self.family.thinking, &self.thinking);
        ChatOptions {
            // The crate selects the field of chat completions by the name of the model.
            max_tokens: (api != Api::Chat).then(|| self.max_output()),
            temperature: if has_temperature {
                self.temperature
            } else {
                None
            },
            tool_choice: self.tools.choice.clone(),
            reasoning_effort: self.effort(),
            extra_body: has_body.then_some(Value::Object(body)),
            prompt_cache_key: self.cache_key(),
            capture_usage: Some(true),
            // For the Responses API this asks for encrypted thoughts.
            capture_reasoning_content: Some(is_reasoning),
            raw_frame_sink: Some(frames),
            ..ChatOptions::default()
        }
    }

    fn max_output(&self) -> u32 {
        match self.request.max_output_tokens {
            0 => self.family.max_output,
            wanted => wanted,
        }
    }

    fn limits(&self) -> Limits {
        let needs_signatures = matches!(self.family.thinking, Thinking::Budget(_));
        Limits {
            max_output: self.max_output(),
            is_impossible: self.tools.is_forced() || (needs_signatures && self.history.is_unsigned),
        }
    }

    /// An effort for which the crate adds no field. Without an effort, the crate would read the name of the model.
    fn effort(&self) -> Option<ReasoningEffort> {
        match self.selection.api {
            Api::Messages => Some(ReasoningEffort::Zero),
            Api::Responses | Api::Chat => Some(ReasoningEffort::Budget(0)),
            Api::Ollama | Api::Converse => {
                ReasoningEffort::from_keyword(&self.thinking.level.to_ascii_lowercase())
            }
        }
    }

    /// OpenAI sends requests with the same key to the same cache.
    fn cache_key(&self) -> Option<String> {
        if !matches!(self.selection.provider(), "openai" | "azure") {
            return None;
        }
        let ids = [&self.request.execution_id, &self.request.session_id];
        ids.into_iter().find(|id| !id.is_empty()).cloned()
    }
}
