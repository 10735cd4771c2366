//! Options of a request that every provider has.

use std::str::FromStr;
use std::time::Duration;

use super::error::ProviderError;
use super::timeouts::Timeouts;
use crate::proto::{GenerateRequest, TEMPERATURE_OPTION, ThinkingConfig};
use tarsy_core::plan::option;

/// Options of `llm_config` with the same meaning as the fields of `request.thinking`, which come first.
pub(crate) const LEVEL_OPTION: &str = "thinking_level";
pub(crate) const BUDGET_OPTION: &str = "thinking_budget";

/// The limit on the model's thinking: the fields of the request, or else the options.
///
/// # Errors
/// `invalid_request` when an option is not a number.
pub fn thinking(request: &GenerateRequest) -> Result<ThinkingConfig, ProviderError> {
    let mut wanted = request.thinking.clone().unwrap_or_default();
    if wanted.level.is_empty() && wanted.budget.is_none() {
        wanted.level = request.option(LEVEL_OPTION).unwrap_or_default().to_owned();
        wanted.budget = parsed(request, BUDGET_OPTION, "number of tokens", |_: &i32| true)?;
    }
    Ok(wanted)
}

/// The temperature that the request asks for.
///
/// # Errors
/// `invalid_request` when it is no number from 0 to 2.
pub fn temperature(request: &GenerateRequest) -> Result<Option<f64>, ProviderError> {
    parsed(
        request,
        TEMPERATURE_OPTION,
        "number from 0 to 2",
        |number| (0.0..=2.0).contains(number),
    )
}

/// The time limits of a provider: `default`, replaced where the request has an option.
///
/// # Errors
/// `invalid_request` when an option is no positive number of milliseconds.
pub fn timeouts(request: &GenerateRequest, default: Timeouts) -> Result<Timeouts, ProviderError> {
    let limit = |name: &str| {
        let millis = parsed(request, name, "positive number of milliseconds", |millis| {
            *millis > 0
        })?;
        Ok::<_, ProviderError>(millis.map(Duration::from_millis))
    };
    Ok(Timeouts {
        first_chunk: limit(option::FIRST_CHUNK_TIMEOUT)?.unwrap_or(default.first_chunk),
        stall: limit(option::STALL_TIMEOUT)?.unwrap_or(default.stall),
        whole: limit(option::ANSWER_TIMEOUT)?.or(default.whole),
        end: default.end,
    })
}

/// The value of an option; `kind` describes the valid values in the error.
fn parsed<T: FromStr>(
    request: &GenerateRequest,
    name: &str,
    kind: &str,
    is_valid: impl Fn(&T) -> bool,
) -> Result<Option<T>, ProviderError> {
    let Some(text) = request.option(name) else {
        return Ok(None);
    };
    let value = text.parse().ok().filter(is_valid);
    value
        .map(Some)
        .ok_or_else(|| ProviderError::invalid_request(format!("the option '{name}' is no {kind}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::provider::ErrorCode;

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
        let first_chunk = Duration::from_secs(300);
        let stall = Duration::from_millis(1);
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
