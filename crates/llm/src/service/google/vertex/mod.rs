//! Vertex AI of Google Cloud: the endpoints of its models, and the access tokens of the account that calls them.
//!
//! `account.rs` reads which account it is, `exchange.rs` gets a token for it, and `tokens.rs` keeps the tokens.

mod account;
mod exchange;
mod tokens;
#[cfg(test)]
mod tests;

use url::Url;

pub(super) use self::tokens::{TokenProvider, Tokens};
use super::with_version;
use crate::proto::LlmConfig;
use crate::service::provider::{Access, ProviderError};
use tarsy_core::vocabulary::provider::{VERTEX_AI, VERTEX_AI_ADDRESS};

const GLOBAL: &str = "global";
/// The versions of the API that a base URL may end with. The first one is added to any other address.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Whether a request is for Vertex AI and not for the Developer API.
pub(super) fn is_wanted(config: &LlmConfig) -> bool {
    !config.project.is_empty() || !config.location.is_empty() || !config.credentials_env.is_empty()
}

/// The configuration with the variable of the credentials in place of that of a key.
pub(super) fn named(config: &LlmConfig) -> LlmConfig {
    LlmConfig {
        api_key_env: config.credentials_env.clone(),
        ..config.clone()
    }
}

/// The address of a model, and the account that asks it.
///
/// # Errors
/// `invalid_request` when project or location are missing or have no form in an address, or the address is not
/// permitted; `credentials` when the account cannot be read or its variable is not permitted.
pub(super) async fn endpoint(
    access: &Access,
    tokens: &Tokens,
    config: &LlmConfig,
) -> Result<(Url, TokenProvider), ProviderError> {
    let location = if config.location.is_empty() {
        GLOBAL
    } else {
        &config.location
    };
    for (name, value) in [("project", config.project.as_str()), ("location", location)] {
        if !is_name(value) {
            let message =
                format!("Vertex AI needs a {name}: lower-case letters, digits, '-', '.' and ':'");
            return Err(ProviderError::invalid_request(message));
        }
    }
    let endpoint = access.endpoint(&VERTEX_AI, &named(config)).await?;
    let base = regional(endpoint.url, location)?;
    let url = model_url(base, &config.project, location);
    let account = account::load(access, endpoint.key).await?;
    Ok((url, tokens.provider_for(account)))
}

/// A name that can be a part of an address; the same rule as that of the configuration.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.len() <= 100
        && text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':')
        })
}

/// The default address has the location in its host, unless the location is `global`.
fn regional(mut base: Url, location: &str) -> Result<Url, ProviderError> {
    let is_default = Url::parse(VERTEX_AI_ADDRESS).is_ok_and(|default| default == base);
    if is_default && location != GLOBAL {
        let host = format!("{location}-{}", base.host_str().unwrap_or_default());
        base.set_host(Some(&host)).map_err(|_error| {
            ProviderError::invalid_request(format!("'{location}' is no location of Vertex AI"))
        })?;
    }
    Ok(base)
}

/// The address below which the models of a project are.
fn model_url(base: Url, project: &str, location: &str) -> Url {
    let mut url = with_version(base, &VERSIONS);
    let path = format!(
        "{}/projects/{project}/locations/{location}/publishers/google",
        url.path()
    );
    url.set_path(&path);
    url
}
