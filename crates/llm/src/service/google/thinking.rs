//! Converts the thinking setting into the parameters of each family of Gemini models.

use super::models::{Model, Thinking};
use super::wire::ThinkingConfig;
use crate::proto::GenerateRequest;
use crate::service::provider::{ProviderError, options};

/// A budget up to these numbers of tokens becomes the level LOW or MEDIUM where a family has levels only.
const LOW_BUDGET: i32 = 2_048;
const MEDIUM_BUDGET: i32 = 8_192;

/// The configuration for a request; `None` if the family has none.
///
/// # Errors
/// `invalid_request` when an option is not a number.
pub(super) fn config(
    request: &GenerateRequest,
    model: Model<'_>,
) -> Result<Option<ThinkingConfig>, ProviderError> {
    let wanted = options::thinking(request)?;
    let level = Some(wanted.level.to_ascii_uppercase()).filter(|level| !level.is_empty());
    let (level, budget) = match model.family.thinking {
        Thinking::Level(levels) => (
            Some(level_of(levels, level.as_deref(), wanted.budget)),
            None,
        ),
        Thinking::Budget { min, max } => {
            let tokens = match (level.as_deref(), wanted.budget) {
                (Some("MINIMAL"), _) => min,
                (Some("LOW"), _) => LOW_BUDGET.clamp(min, max),
                (Some("MEDIUM"), _) => MEDIUM_BUDGET.clamp(min, max),
                (Some(_), _) | (None, None) => max,
                // The model decides.
                (None, Some(-1)) => -1,
                (None, Some(tokens)) => tokens.clamp(min, max),
            };
            (None, Some(tokens))
        }
        Thinking::Unspecified | Thinking::Unsupported if level.is_some() => (level, None),
        Thinking::Unspecified => (None, wanted.budget),
        Thinking::Unsupported if wanted.budget.is_some() => (None, wanted.budget),
        Thinking::Unsupported => return Ok(None),
    };
    Ok(Some(ThinkingConfig {
        include_thoughts: wanted.include_thoughts.unwrap_or(true),
        thinking_budget: budget,
        thinking_level: level,
    }))
}

/// The level of a family with levels. An unknown word is sent as it is: a newer model may know it.
fn level_of(levels: &[&str], level: Option<&str>, budget: Option<i32>) -> String {
    let lowest = levels.first().copied().unwrap_or("LOW");
    let level = match (level, budget) {
        (Some("MINIMAL"), _) if !levels.contains(&"MINIMAL") => lowest,
        (Some(level), _) => level,
        (None, Some(0)) => lowest,
        (None, Some(1..=LOW_BUDGET)) => "LOW",
        (None, Some(1..=MEDIUM_BUDGET)) => "MEDIUM",
        (None, Some(_) | None) => levels.last().copied().unwrap_or("HIGH"),
    };
    level.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{LlmConfig, ThinkingConfig as Wanted};
    use crate::service::provider::ErrorCode;
    use crate::service::provider::options::{BUDGET_OPTION, LEVEL_OPTION};

    fn sent(model: &str, level: &str, budget: Option<i32>) -> String {
        let thinking = Wanted {
            level: level.into(),
            budget,
            include_thoughts: None,
        };
        let request = GenerateRequest {
            thinking: Some(thinking),
            ..GenerateRequest::default()
        };
        serde_json::to_string(&config(&request, Model::parse(model).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn each_family_gets_its_own_words_and_never_two_of_them() {
        for (model, level, budget, expected) in [
            (
                "gemini-2.5-pro",
                "",
                None,
                r#"{"includeThoughts":true,"thinkingBudget":32768}"#,
            ),
            (
                "gemini-2.5-pro",
                "",
                Some(0),
                r#"{"includeThoughts":true,"thinkingBudget":128}"#,
            ),
            (
                "gemini-2.5-pro",
                "",
                Some(-1),
                r#"{"includeThoughts":true,"thinkingBudget":-1}"#,
            ),
            (
                "gemini-2.5-flash",
                "low",
                None,
                r#"{"includeThoughts":true,"thinkingBudget":2048}"#,
            ),
            (
                "gemini-2.5-flash",
                "",
                Some(0),
                r#"{"includeThoughts":true,"thinkingBudget":0}"#,
            ),
            (
                "gemini-3-flash-preview",
                "",
                None,
                r#"{"includeThoughts":true,"thinkingLevel":"HIGH"}"#,
            ),
            (
                "gemini-3-flash-preview",
                "minimal",
                Some(9),
                r#"{"includeThoughts":true,"thinkingLevel":"MINIMAL"}"#,
            ),
            (
                "gemini-4-argon",
                "MINIMAL",
                None,
                r#"{"includeThoughts":true,"thinkingLevel":"LOW"}"#,
            ),
            (
                "gemini-4-argon",
                "",
                Some(5_000),
                r#"{"includeThoughts":true,"thinkingLevel":"MEDIUM"}"#,
            ),
            (
                "gemini-flash-latest",
                "",
                None,
                r#"{"includeThoughts":true}"#,
            ),
            ("gemma-3-27b", "", None, "null"),
            (
                "new-model",
                "HIGH",
                None,
                r#"{"includeThoughts":true,"thinkingLevel":"HIGH"}"#,
            ),
        ] {
            assert_eq!(
                sent(model, level, budget),
                expected,
                "{model} {level} {budget:?}"
            );
        }
    }

    #[test]
    fn options_count_where_the_request_says_nothing() {
        let ask = |name: &str, value: &str| {
            let options = [(name.to_owned(), value.to_owned())].into();
            let llm_config = Some(LlmConfig {
                options,
                ..LlmConfig::default()
            });
            let request = GenerateRequest {
                llm_config,
                ..GenerateRequest::default()
            };
            config(&request, Model::parse("gemini-2.5-pro").unwrap())
                .map(|config| config.unwrap().thinking_budget)
        };
        assert_eq!(ask(BUDGET_OPTION, "500"), Ok(Some(500)));
        assert_eq!(ask(LEVEL_OPTION, "medium"), Ok(Some(8_192)));
        assert_eq!(
            ask(BUDGET_OPTION, "much").unwrap_err().code,
            ErrorCode::InvalidRequest
        );
    }
}
