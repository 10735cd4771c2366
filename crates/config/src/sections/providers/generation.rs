//! The generation settings of a provider's model: native tools, thinking, length of answers, temperature.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::backend::Backend;
use crate::read::reader::{Field, Map};
use crate::sections::native_tools::NativeTools;
use crate::write::is_default;
use tarsy_core::plan::{NativeToolsMode, Thinking, ThinkingLevel};

/// The accepted budgets for thinking, in tokens. The LLM service fits a budget to the model.
const BUDGETS: RangeInclusive<u64> = 0..=1_000_000;
/// The accepted lengths of an answer, in tokens.
const OUTPUT_TOKENS: RangeInclusive<u64> = 1..=1_000_000;
const TEMPERATURES: RangeInclusive<f64> = 0.0..=2.0;

/// The settings of every request to the model apart from the conversation; absent values are left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Generation {
    /// The lowest layer of native tools.
    #[serde(skip_serializing_if = "is_default")]
    pub native_tools: NativeTools,
    /// Whether agents with tools of MCP servers have native tools, too.
    #[serde(skip_serializing_if = "is_default")]
    pub native_tools_mode: NativeToolsMode,
    /// The limit on the model's thinking.
    #[serde(skip_serializing_if = "is_default")]
    pub thinking: Option<Thinking>,
    /// The most tokens of an answer, 1 to 1M.
    #[serde(skip_serializing_if = "is_default")]
    pub max_output_tokens: Option<u32>,
    /// The same for the request after an answer that was cut off at this limit; not less.
    #[serde(skip_serializing_if = "is_default")]
    pub max_output_tokens_after_cut: Option<u32>,
    /// The temperature, from 0 to 2.
    #[serde(skip_serializing_if = "is_default")]
    pub temperature: Option<f64>,
}

impl Generation {
    /// `backend` decides which keys are accepted; `None` if the provider is not known.
    pub(super) fn read(map: &mut Map<'_>, backend: Option<Backend>) -> Self {
        let native = |field: &Field<'_>| {
            if backend.is_some_and(|backend| backend != Backend::GoogleNative) {
                field.fault(
                    "only google with the backend google-native has native tools".to_owned(),
                );
            }
        };
        let asked = |field: &Field<'_>| {
            if backend == Some(Backend::Scripted) {
                field.fault("a scripted provider asks no model".to_owned());
            }
        };
        let native_tools = map.get("native_tools").inspect(native);
        let native_tools_mode = map.get("native_tools_mode").inspect(native);
        let thinking = map.get("thinking").inspect(asked);
        let max_output_tokens = map.get("max_output_tokens").inspect(asked);
        let after_cut = map.get("max_output_tokens_after_cut").inspect(asked);
        let temperature = map.get("temperature").inspect(asked);
        let native_tools = native_tools
            .map(|field| field.declared())
            .unwrap_or_default();
        let native_tools_mode = native_tools_mode
            .and_then(|field| field.choice(&NativeToolsMode::ALL, NativeToolsMode::as_str));
        let thinking = thinking.and_then(|field| read_thinking(&field));
        let usual = max_output_tokens
            .as_ref()
            .map(|field| tokens(field, OUTPUT_TOKENS));
        Self {
            native_tools,
            native_tools_mode: native_tools_mode.unwrap_or_default(),
            thinking,
            max_output_tokens: usual.flatten(),
            max_output_tokens_after_cut: after_cut
                .and_then(|field| tokens_after_cut(&field, usual)),
            temperature: temperature.and_then(|field| field.decimal(TEMPERATURES)),
        }
    }
}

/// The raised limit. Without the usual one it could be less than the limit that is sent. `usual` has no value if it has
/// a fault.
fn tokens_after_cut(field: &Field<'_>, usual: Option<Option<u32>>) -> Option<u32> {
    let raised = tokens(field, OUTPUT_TOKENS)?;
    match usual {
        None => field.fault("it raises max_output_tokens, which is not set".to_owned()),
        Some(Some(usual)) if raised < usual => {
            field.fault(format!(
                "{raised}; accepted: at least max_output_tokens, {usual}"
            ));
        }
        Some(_) => return Some(raised),
    }
    None
}

/// Providers accept a level or a budget.
fn read_thinking(field: &Field<'_>) -> Option<Thinking> {
    field.section(|map| {
        let level = map.get("level");
        let budget = map.get("budget");
        if level.is_some() && budget.is_some() {
            field.fault("level and budget; accepted: one of them".to_owned());
        }
        let level =
            level.and_then(|field| field.choice(&ThinkingLevel::ALL, ThinkingLevel::as_str));
        let budget = budget.and_then(|field| tokens(&field, BUDGETS));
        level
            .map(Thinking::Level)
            .or_else(|| budget.map(Thinking::Budget))
    })
}

fn tokens(field: &Field<'_>, range: RangeInclusive<u64>) -> Option<u32> {
    field
        .tokens(range)
        .and_then(|tokens| u32::try_from(tokens).ok())
}
