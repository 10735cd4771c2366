//! Converts the thinking setting into the parameters of each provider.
//!
//! The fields are built here and not by the crate, whose table of models is another one.

use serde_json::{Map, Value, json};

use super::models::Thinking;
use super::target::Api;
use crate::proto::ThinkingConfig;

/// A budget up to these numbers of tokens becomes the effort `low` or `medium` where there are efforts only.
const LOW_BUDGET: u32 = 2_048;
const MEDIUM_BUDGET: u32 = 8_192;
/// Anthropic accepts no smaller budget.
const MIN_BUDGET: u32 = 1_024;
const DEFAULT_EFFORT: &str = "high";

/// The output limit of a request, and whether it allows thoughts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) max_output: u32,
    /// Whether the provider would refuse thoughts: an answer of the current turn has none, or a tool is forced.
    pub(super) is_impossible: bool,
}

/// The fields of the request; empty if the model decides by itself or does not think.
pub(super) fn fields(
    api: Api,
    thinking: Thinking,
    wanted: &ThinkingConfig,
    limits: Limits,
) -> Map<String, Value> {
    let fields = match api {
        Api::Messages | Api::Converse => messages(thinking, wanted, limits),
        Api::Responses => reasoning(thinking, wanted),
        // Servers refuse a field that they do not know, so it is sent only if the request asks for it.
        Api::Chat if is_wanted(wanted) => json!({ "reasoning_effort": effort(wanted) }),
        Api::Chat | Api::Ollama => Value::Null,
    };
    serde_json::from_value(fields).unwrap_or_default()
}

/// Whether the model returns thoughts that have to go back.
pub(super) fn is_reasoning(api: Api, thinking: Thinking, wanted: &ThinkingConfig) -> bool {
    api == Api::Responses && (thinking == Thinking::Effort || is_wanted(wanted))
}

fn is_wanted(wanted: &ThinkingConfig) -> bool {
    !wanted.level.is_empty() || wanted.budget.is_some()
}

fn messages(thinking: Thinking, wanted: &ThinkingConfig, limits: Limits) -> Value {
    match thinking {
        Thinking::Budget(_) | Thinking::Adaptive if limits.is_impossible || is_off(wanted) => {
            Value::Null
        }
        Thinking::Budget(default) => budget(default, wanted, limits.max_output),
        Thinking::Adaptive => {
            let display = if wanted.include_thoughts == Some(false) {
                "omitted"
            } else {
                "summarized"
            };
            // Anthropic has no effort `minimal`.
            json!({
                "thinking": { "type": "adaptive", "display": display },
                "output_config": { "effort": effort(wanted).replace("minimal", "low") },
            })
        }
        Thinking::Unspecified | Thinking::Effort => Value::Null,
    }
}

/// A budget leaves at least half of the output for the answer.
fn budget(default: u32, wanted: &ThinkingConfig, max_output: u32) -> Value {
    let tokens = match (wanted.level.to_ascii_lowercase().as_str(), wanted.budget) {
        ("minimal" | "low", _) => LOW_BUDGET,
        ("medium", _) => MEDIUM_BUDGET,
        ("", Some(tokens)) => u32::try_from(tokens).unwrap_or(default).max(MIN_BUDGET),
        (_, _) => default,
    };
    let tokens = tokens.min(max_output / 2);
    if tokens < MIN_BUDGET {
        Value::Null
    } else {
        json!({ "thinking": { "type": "enabled", "budget_tokens": tokens } })
    }
}

fn reasoning(thinking: Thinking, wanted: &ThinkingConfig) -> Value {
    if thinking != Thinking::Effort && !is_wanted(wanted) {
        return Value::Null;
    }
    let effort = effort(wanted);
    if wanted.include_thoughts == Some(false) {
        return json!({ "reasoning": { "effort": effort } });
    }
    json!({ "reasoning": { "effort": effort, "summary": "auto" } })
}

fn is_off(wanted: &ThinkingConfig) -> bool {
    matches!(wanted.level.to_ascii_lowercase().as_str(), "none" | "off")
        || (wanted.level.is_empty() && wanted.budget == Some(0))
}

/// A word that is not known here is sent as it is: a newer model may know it.
fn effort(wanted: &ThinkingConfig) -> String {
    let level = wanted.level.to_ascii_lowercase();
    let budget = wanted.budget.and_then(|tokens| u32::try_from(tokens).ok());
    match (level.as_str(), budget) {
        ("off", _) => "none".to_owned(),
        ("", Some(tokens)) if tokens <= LOW_BUDGET => "low".to_owned(),
        ("", Some(tokens)) if tokens <= MEDIUM_BUDGET => "medium".to_owned(),
        ("", _) => DEFAULT_EFFORT.to_owned(),
        (_, _) => level,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::genai::models::family_of;

    fn sent(api: Api, model: &str, wanted: (&str, Option<i32>), limits: Limits) -> String {
        let wanted = ThinkingConfig {
            level: wanted.0.into(),
            budget: wanted.1,
            include_thoughts: None,
        };
        Value::Object(fields(api, family_of(model).thinking, &wanted, limits)).to_string()
    }

    #[test]
    fn each_family_gets_its_own_words() {
        let adaptive = |effort: &str| {
            format!(
                r#"{{"thinking":{{"type":"adaptive","display":"summarized"}},"output_config":{{"effort":"{effort}"}}}}"#
            )
        };
        let enabled = |tokens: u32| {
            format!(r#"{{"thinking":{{"type":"enabled","budget_tokens":{tokens}}}}}"#)
        };
        let reasoning =
            |effort: &str| format!(r#"{{"reasoning":{{"effort":"{effort}","summary":"auto"}}}}"#);
        let none = || "{}".to_owned();
        for (api, model, level, budget, max_output, expected) in [
            (
                Api::Messages,
                "claude-sonnet-4-5",
                "",
                None,
                64_000,
                enabled(32_000),
            ),
            (
                Api::Messages,
                "claude-sonnet-4-5",
                "low",
                None,
                64_000,
                enabled(2_048),
            ),
            (
                Api::Messages,
                "claude-sonnet-4-5",
                "",
                Some(5),
                64_000,
                enabled(1_024),
            ),
            (
                Api::Messages,
                "claude-sonnet-4-5",
                "",
                None,
                4_000,
                enabled(2_000),
            ),
            (Api::Messages, "claude-sonnet-4-5", "", None, 1_000, none()),
            (
                Api::Messages,
                "claude-sonnet-4-5",
                "",
                Some(0),
                64_000,
                none(),
            ),
            (
                Api::Messages,
                "claude-sonnet-5",
                "",
                None,
                64_000,
                adaptive("high"),
            ),
            (
                Api::Messages,
                "claude-opus-4-8",
                "MINIMAL",
                None,
                64_000,
                adaptive("low"),
            ),
            (
                Api::Messages,
                "claude-opus-4-8",
                "",
                Some(5_000),
                64_000,
                adaptive("medium"),
            ),
            (Api::Messages, "claude-3-5-haiku", "", None, 8_192, none()),
            (Api::Responses, "gpt-5.1", "", None, 9, reasoning("high")),
            (Api::Responses, "gpt-5.1", "off", None, 9, reasoning("none")),
            (Api::Responses, "gpt-4o", "", None, 9, none()),
            (Api::Chat, "grok-4", "", None, 9, none()),
            (
                Api::Chat,
                "grok-3-mini",
                "low",
                None,
                9,
                r#"{"reasoning_effort":"low"}"#.to_owned(),
            ),
        ] {
            let sent = sent(
                api,
                model,
                (level, budget),
                Limits {
                    max_output,
                    is_impossible: false,
                },
            );
            assert_eq!(sent, expected, "{model} {level} {budget:?} {max_output}");
        }
        let impossible = Limits {
            max_output: 64_000,
            is_impossible: true,
        };
        assert_eq!(
            sent(Api::Messages, "claude-sonnet-4-5", ("", None), impossible),
            "{}"
        );
    }
}
