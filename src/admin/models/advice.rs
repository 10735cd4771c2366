//! Advice for a provider that cannot be called. Pure.

use std::time::Duration;

use tarsy_config::LlmProvider;
use tarsy_core::vocabulary::ErrorCode;
use tarsy_llm::client::CheckError;
use tarsy_llm::proto::ProviderCheck;

/// The setting or command after a check that found an error.
pub(super) fn of_check(check: &ProviderCheck, name: &str, llm: &LlmProvider) -> Option<String> {
    if check.backend.is_empty() {
        return Some(format!(
            "run an LLM service of this version: llm_providers.{name} needs {}",
            llm.backend().as_str()
        ));
    }
    let key = check.key_env.as_str();
    let address = check.address.as_str();

    match (check.key_status.as_str(), check.address_status.as_str()) {
        ("not_permitted", _) => Some(format!(
            "set {key} where the LLM service runs: tarsy llm-service --allow-key-env '{key}'"
        )),
        (_, "not_permitted") if !address.is_empty() => Some(format!(
            "tarsy llm-service --allow-base-url '{address}', or another base_url"
        )),
        (_, "not_permitted") => Some(format!(
            "set base_url of llm_providers.{name} to an address"
        )),
        ("not_set", _) if key.is_empty() && !llm.vertex_ai.project.is_empty() => Some(format!(
            "run the LLM service on a machine of Google Cloud, or set credentials_env of llm_providers.{name} to the \
             variable with the key of a service account"
        )),
        ("not_set", _) if key.is_empty() => {
            Some(format!("set api_key_env of llm_providers.{name}"))
        }
        ("not_set", _) => Some(set_key(key)),
        ("unreadable", _) => Some(format!(
            "{key}_FILE has to name a file that the LLM service can read"
        )),
        _ => None,
    }
}

fn set_key(key: &str) -> String {
    format!("set {key} (or {key}_FILE) where the LLM service runs, and start it again")
}

/// The setting or command when the LLM service itself does not answer.
pub(super) fn of_service(error: &CheckError) -> Option<String> {
    match error {
        CheckError::Unsupported => {
            Some("tarsy models --probe asks the models themselves".to_owned())
        }
        CheckError::Unavailable(_) => Some("tarsy llm-service, or set TARSY_LLM_ADDR".to_owned()),
        CheckError::Refused(_) => Some(
            "set TARSY_LLM_TOKEN to the token of the LLM service; tarsy doctor checks it"
                .to_owned(),
        ),
    }
}

/// The setting or command after a call that failed with this code.
pub(super) fn of_code(
    code: &str,
    name: &str,
    key: &str,
    retry_after: Option<Duration>,
) -> Option<String> {
    match ErrorCode::parse(code) {
        ErrorCode::Credentials if key.is_empty() => Some(format!(
            "set api_key_env (with Vertex AI credentials_env) of llm_providers.{name}"
        )),
        ErrorCode::Credentials => Some(format!(
            "put a key that the provider accepts into {key} where the LLM service runs"
        )),
        ErrorCode::RateLimited => {
            let wait = retry_after.map_or_else(
                || "wait".to_owned(),
                |delay| format!("wait {} s", delay.as_secs().max(1)),
            );
            Some(format!(
                "{wait}, or raise the limits of the account at the provider"
            ))
        }
        ErrorCode::ModelNotFound => Some(format!(
            "set model of llm_providers.{name} to one that the account may use"
        )),
        ErrorCode::Unavailable => {
            Some("check base_url, and the network and proxy of the LLM service".to_owned())
        }
        ErrorCode::DeadlineExceeded => {
            Some("try a longer --timeout: a local model may have to be loaded first".to_owned())
        }
        ErrorCode::MaxTokens => Some(format!(
            "a larger max_output_tokens or a smaller thinking of llm_providers.{name}"
        )),
        ErrorCode::Other if code == "no_strategy" => Some(format!(
            "set model of llm_providers.{name} to one that calls tools"
        )),
        ErrorCode::InvalidBackend => Some("run an LLM service of this version".to_owned()),
        ErrorCode::InvalidRequest
        | ErrorCode::Provider
        | ErrorCode::EmptyResponse
        | ErrorCode::PartialStream
        | ErrorCode::Internal
        | ErrorCode::ContextWindowExceeded
        | ErrorCode::Blocked
        | ErrorCode::ThoughtSignature
        | ErrorCode::Cancelled
        | ErrorCode::MalformedToolCall
        | ErrorCode::MaxRetries
        | ErrorCode::StreamBroken
        | ErrorCode::ShuttingDown
        | ErrorCode::Abandoned
        | ErrorCode::Empty
        | ErrorCode::CallInText
        | ErrorCode::Timeout
        | ErrorCode::AnswerTooLarge
        | ErrorCode::Other => None,
    }
}
