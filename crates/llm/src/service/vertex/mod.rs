//! Vertex AI of Google Cloud: the endpoints of its models, and the access tokens of the account that calls them.
//!
//! `account.rs` reads which account it is, `exchange.rs` gets a token for it, and `tokens.rs` keeps the tokens. The
//! models of a publisher are asked by the backend that knows their protocol.

mod account;
mod exchange;
mod tokens;
#[cfg(test)]
mod tests;

use url::Url;

pub(super) use self::tokens::{TokenProvider, Tokens};
use super::provider::status::KeyStatus;
use super::provider::{Access, ProviderError, ProviderStatus, known};
use crate::proto::LlmConfig;
use tarsy_core::vocabulary::provider::{VERTEX_AI, VERTEX_AI_ADDRESS};

const GLOBAL: &str = "global";
/// The locations of several regions, whose addresses have another form than that of one region.
const MULTI_REGIONS: [&str; 2] = ["eu", "us"];
/// The versions of the API that a base URL may end with. The first one is added to any other address.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The project whose quota counts.
pub(super) const QUOTA_HEADER: &str = "x-goog-user-project";

/// The maker of the models, as the address names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publisher {
    Google,
    Anthropic,
}

impl Publisher {
    fn as_str(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Anthropic => "anthropic",
        }
    }
}

/// Whether a request is for Vertex AI and not for the provider's own interface.
pub(super) fn is_wanted(config: &LlmConfig) -> bool {
    !config.project.is_empty() || !config.location.is_empty() || !config.credentials_env.is_empty()
}

/// The configuration with the variable of the credentials in place of that of a key.
fn named(config: &LlmConfig) -> LlmConfig {
    LlmConfig {
        api_key_env: config.credentials_env.clone(),
        ..config.clone()
    }
}

/// The address below which the models of a publisher are, and the account that asks them.
#[derive(Debug)]
pub(super) struct VertexEndpoint {
    pub(super) url: Url,
    pub(super) account: TokenProvider,
}

/// Whether a request could be sent, as far as address and account show it. No token is asked for.
pub(super) async fn check(
    access: &Access,
    tokens: &Tokens,
    config: &LlmConfig,
    publisher: Publisher,
) -> ProviderStatus {
    let status = access.status(&VERTEX_AI, &named(config)).await;
    let account = match endpoint(access, tokens, config, publisher).await {
        Ok(endpoint) => endpoint.account,
        Err(error) => return status.with_error(Some(error)),
    };
    let error = account.check().await.err();
    let is_unneeded = error.is_none() && status.key == KeyStatus::NotSet;
    let key = if is_unneeded {
        KeyStatus::NotNeeded
    } else {
        status.key
    };
    ProviderStatus {
        key,
        credentials: account.credentials(),
        error,
        ..status
    }
}

/// Finds the address and the account of a request.
///
/// # Errors
/// `invalid_request` when project or location are missing or have no form in an address, or the address is not
/// permitted; `credentials` when the account cannot be read or its variable is not permitted.
pub(super) async fn endpoint(
    access: &Access,
    tokens: &Tokens,
    config: &LlmConfig,
    publisher: Publisher,
) -> Result<VertexEndpoint, ProviderError> {
    let location = if config.location.is_empty() {
        GLOBAL
    } else {
        &config.location
    };
    if !is_name(&config.project) {
        let message = "Vertex AI needs a project: lower-case letters, digits, '-', '.' and ':'";
        return Err(ProviderError::invalid_request(message));
    }
    // It becomes a part of the host, where other characters would name another host.
    if !is_name(location) || location.contains(['.', ':']) {
        let message = "Vertex AI needs a location: lower-case letters, digits and '-'";
        return Err(ProviderError::invalid_request(message));
    }
    let endpoint = access.endpoint(&VERTEX_AI, &named(config)).await?;
    let base = regional(endpoint.url, location)?;
    let place = Place {
        project: &config.project,
        location,
        publisher,
    };
    let account = account::load(access, endpoint.key).await?;
    Ok(VertexEndpoint {
        url: model_url(base, place),
        account: tokens.provider_for(account),
    })
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
        let default = base.host_str().unwrap_or_default();
        let host = if MULTI_REGIONS.contains(&location) {
            default.replacen('.', &format!(".{location}.rep."), 1)
        } else {
            format!("{location}-{default}")
        };
        let is_set = base.set_host(Some(&host)).is_ok();
        if !is_set || base.host_str() != Some(host.as_str()) {
            let message = format!("'{location}' is no location of Vertex AI");
            return Err(ProviderError::invalid_request(message));
        }
    }
    Ok(base)
}

/// The place of a publisher's models.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    project: &'a str,
    location: &'a str,
    publisher: Publisher,
}

/// The address below which the models of a publisher are.
fn model_url(base: Url, place: Place<'_>) -> Url {
    let mut url = known::with_version(base, &VERSIONS);
    let Place {
        project,
        location,
        publisher,
    } = place;
    let path = format!(
        "{}/projects/{project}/locations/{location}/publishers/{}",
        url.path(),
        publisher.as_str()
    );
    url.set_path(&path);
    url
}
