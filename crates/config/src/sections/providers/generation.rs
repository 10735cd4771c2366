//! The generation settings of a provider's model: native tools, thinking, length of answers, temperature.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::backend::Backend;
use crate::declared::forms::{tokens, words};
use crate::read::reader::Field;
use crate::sections::native_tools::NativeTools;
use crate::write::is_default;
use tarsy_core::plan::{NativeToolsMode, Thinking, ThinkingLevel};

/// The settings of every request to the model apart from the conversation; absent values are left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Generation {
    /// The lowest layer of native tools.
    #[serde(skip_serializing_if = "is_default")]
    pub native_tools: NativeTools,
    /// Whether agents with tools of MCP servers have native tools, too.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "words::<NativeToolsMode>")]
    pub native_tools_mode: NativeToolsMode,
    /// The limit on the model's thinking.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "thinking")]
    pub thinking: Option<Thinking>,
    /// The most tokens of an answer, 1 to 1M.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "tokens::<1, 1_000_000>")]
    pub max_output_tokens: Option<u32>,
    /// The same for the request after an answer that was cut off at this limit; not less.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "tokens::<1, 1_000_000>")]
    pub max_output_tokens_after_cut: Option<u32>,
    /// The temperature, from 0 to 2.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
}

/// Providers accept a level or a budget. The LLM service fits a budget to the model.
fn thinking(generator: &mut SchemaGenerator) -> Schema {
    let mut level = words::<ThinkingLevel>(generator);
    level.insert(
        "description".to_owned(),
        "A word for how long a model may think.".into(),
    );
    let mut budget = tokens::<0, 1_000_000>(generator);
    budget.insert("description".to_owned(), "A number of tokens.".into());
    json_schema!({
        "type": "object",
        "properties": {"level": level, "budget": budget},
        "maxProperties": 1
    })
}

impl Generation {
    /// `backend` decides which keys are accepted; `None` if the provider is not known.
    pub(super) fn check(&self, field: &Field<'_>, backend: Option<Backend>) {
        let native = ["native_tools", "native_tools_mode"];
        let asked = ["thinking", "max_output_tokens", AFTER_CUT, "temperature"];
        let is_native = backend.is_none_or(|backend| backend == Backend::GoogleNative);
        for field in native.iter().filter_map(|key| field.get(key)) {
            if !is_native {
                field.fault(
                    "only google with the backend google-native has native tools".to_owned(),
                );
            }
        }
        for field in asked.iter().filter_map(|key| field.get(key)) {
            if backend == Some(Backend::Scripted) {
                field.fault("a scripted provider asks no model".to_owned());
            }
        }
        self.check_tokens_after_cut(field);
    }

    /// Without the usual limit the raised one could be less than the limit that is sent.
    fn check_tokens_after_cut(&self, field: &Field<'_>) {
        let Some(raised) = self.max_output_tokens_after_cut else {
            return;
        };
        let after_cut = field.at(AFTER_CUT);
        if !field.has("max_output_tokens") {
            after_cut.fault("it raises max_output_tokens, which is not set".to_owned());
        } else if let Some(usual) = self.max_output_tokens.filter(|usual| raised < *usual) {
            after_cut.fault(format!(
                "{raised}; accepted: at least max_output_tokens, {usual}"
            ));
        }
    }
}

const AFTER_CUT: &str = "max_output_tokens_after_cut";
