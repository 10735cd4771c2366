//! Options of a request that every provider has.

use std::time::Duration;

use super::error::{ErrorCode, ProviderError};
use super::timeouts::Timeouts;
use crate::proto::{GenerateRequest, TEMPERATURE_OPTION, ThinkingConfig};
use tarsy_core::plan::option;

/// Options of `llm_config` with the same meaning as the fields of `request.thinking`, which come first.
pub(crate) const LEVEL_OPTION: &str = "thinking_level";
pub(crate) const BUDGET_OPTION: &str = "thinking_budget";

/// The limit on the model's thinking: the fields of the request, or else the options.
///
/// # Errors
/// `invalid_request` when an option is no number.
pub fn thinking(request: &GenerateRequest) -> Result<ThinkingConfig, ProviderError> {
    let mut wanted = request.thinking.clone().unwrap_or_default();
    let option = |name| {
        request
            .llm_config
            .as_ref()
            .and_then(|config| config.options.get(name))
    };
    if wanted.level.is_empty() && wanted.budget.is_none() {
        wanted.level = option(LEVEL_OPTION).cloned().unwrap_or_default();
        wanted.budget = option(BUDGET_OPTION)
            .map(|text| text.parse().map_err(|_error| no_number()))
            .transpose()?;
    }
    Ok(wanted)
}

fn no_number() -> ProviderError {
    ProviderError::new(
        ErrorCode::InvalidRequest,
        format!("the option '{BUDGET_OPTION}' is no number of tokens"),
    )
}

/// The temperature that the request asks for.
///
/// # Errors
/// `invalid_request` when it is no number from 0 to 2.
pub fn temperature(request: &GenerateRequest) -> Result<Option<f64>, ProviderError> {
    let option = request
        .llm_config
        .as_ref()
        .and_then(|config| config.options.get(TEMPERATURE_OPTION));
    let number = option.map(|text| {
        text.parse::<f64>()
            .ok()
            .filter(|number| (0.0..=2.0).contains(number))
    });
    let message = format!("the option '{TEMPERATURE_OPTION}' is no number from 0 to 2");
    number
        .map(|number| number.ok_or_else(|| ProviderError::new(ErrorCode::InvalidRequest, message)))
        .transpose()
}

/// The longest time that the provider may take: `default`, and what the request says instead.
///
/// # Errors
/// `invalid_request` when an option is no positive number of milliseconds.
pub fn timeouts(request: &GenerateRequest, default: Timeouts) -> Result<Timeouts, ProviderError> {
    let limit = |name: &str| {
        let option = request
            .llm_config
            .as_ref()
            .and_then(|config| config.options.get(name));
        let millis = option.map(|text| text.parse::<u64>().ok().filter(|millis| *millis > 0));
        let message = format!("the option '{name}' is no positive number of milliseconds");
        let error = || ProviderError::new(ErrorCode::InvalidRequest, message);
        millis
            .map(|millis| millis.map(Duration::from_millis).ok_or_else(error))
            .transpose()
    };
    Ok(Timeouts {
        first_chunk: limit(option::FIRST_CHUNK_TIMEOUT)?.unwrap_or(default.first_chunk),
        stall: limit(option::STALL_TIMEOUT)?.unwrap_or(default.stall),
        whole: limit(option::ANSWER_TIMEOUT)?.or(default.whole),
        end: default.end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::LlmConfig;

    #[test]
    fn the_times_of_a_request_replace_the_defaults() {
        let read = |options: &[(&str, &str)]| {
            let options = options
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let llm_config = Some(LlmConfig {
                options,
                ..LlmConfig::default()
            });
            timeouts(
                &GenerateRequest {
                    llm_config,
                    ..GenerateRequest::default()
                },
                Timeouts::default(),
            )
        };
        let default = Timeouts::default();
        assert_eq!(read(&[]), Ok(default));
        let (first_chunk, stall) = (Duration::from_secs(300), Duration::from_millis(1));
        let whole = Some(Duration::from_secs(600));
        let options = [
            ("first_chunk_timeout_ms", "300000"),
            ("stall_timeout_ms", "1"),
            ("answer_timeout_ms", "600000"),
        ];
        assert_eq!(
            read(&options),
            Ok(Timeouts {
                first_chunk,
                stall,
                whole,
                ..default
            })
        );
        for value in ["0", "-1", "1s", ""] {
            assert_eq!(
                read(&[("stall_timeout_ms", value)]).unwrap_err().code,
                ErrorCode::InvalidRequest,
                "{value}"
            );
        }
    }
}
