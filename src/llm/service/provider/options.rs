//! Options of a request that every provider has.

use super::error::{ErrorCode, ProviderError};
use crate::llm::proto::{GenerateRequest, TEMPERATURE_OPTION, ThinkingConfig};

/// Options of `llm_config` with the same meaning as the fields of `request.thinking`, which come first.
pub(crate) const LEVEL_OPTION: &str = "thinking_level";
pub(crate) const BUDGET_OPTION: &str = "thinking_budget";

/// The option of `llm_config` that names the field of the output limit in chat completions: `max_tokens` or
/// `max_completion_tokens`.
pub(crate) const OUTPUT_LIMIT_FIELD_OPTION: &str = "output_limit_field";

/// How much the model may think: the fields of the request, or else the options.
///
/// # Errors
/// `invalid_request` when an option is no number.
pub(crate) fn thinking(request: &GenerateRequest) -> Result<ThinkingConfig, ProviderError> {
    let mut wanted = request.thinking.clone().unwrap_or_default();
    let option = |name| request.llm_config.as_ref().and_then(|config| config.options.get(name));
    if wanted.level.is_empty() && wanted.budget.is_none() {
        wanted.level = option(LEVEL_OPTION).cloned().unwrap_or_default();
        wanted.budget = option(BUDGET_OPTION).map(|text| text.parse().map_err(|_error| no_number())).transpose()?;
    }
    Ok(wanted)
}

fn no_number() -> ProviderError {
    ProviderError::new(ErrorCode::InvalidRequest, format!("the option '{BUDGET_OPTION}' is no number of tokens"))
}

/// The temperature that the request asks for.
///
/// # Errors
/// `invalid_request` when it is no number from 0 to 2.
pub(crate) fn temperature(request: &GenerateRequest) -> Result<Option<f64>, ProviderError> {
    let option = request.llm_config.as_ref().and_then(|config| config.options.get(TEMPERATURE_OPTION));
    let number = option.map(|text| text.parse::<f64>().ok().filter(|number| (0.0..=2.0).contains(number)));
    let message = format!("the option '{TEMPERATURE_OPTION}' is no number from 0 to 2");
    number.map(|number| number.ok_or_else(|| ProviderError::new(ErrorCode::InvalidRequest, message))).transpose()
}
