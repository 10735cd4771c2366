//! Checks that a request names only permitted keys and addresses.
//!
//! A key is the name of a variable. Permitted are the variables and addresses of the known providers, each key only
//! with the addresses of its own provider, and the operator's patterns, in every combination. So a request can send no
//! other variable of this process anywhere, and no key to an address that it does not belong to.

use url::Url;

use super::error::ProviderError;
use super::key::{ApiKey, Environment};
use super::known;
use super::status::{AddressStatus, KeyStatus, ProviderStatus};
use crate::proto::LlmConfig;
use tarsy_config::url_pattern::{UrlPattern, glob};
use tarsy_core::vocabulary::Provider;

/// The option that permits a variable.
const KEY_OPTION: &str = "--allow-key-env";
/// The option that permits an address.
const URL_OPTION: &str = "--allow-base-url";

/// The keys and addresses that requests may name.
#[derive(Clone, Debug)]
pub struct Access {
    keys: Vec<String>,
    urls: Vec<UrlPattern>,
    environment: Environment,
}

/// The address and the key for a request.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Without user name, query and fragment.
    pub url: Url,
    /// `None` if the request names none and no variable of the provider is set.
    pub key: Option<ApiKey>,
}

impl Access {
    /// `keys` are patterns of names of variables.
    pub fn new(keys: Vec<String>, urls: Vec<UrlPattern>, environment: Environment) -> Self {
        Self {
            keys,
            urls,
            environment,
        }
    }

    /// The address and the key of a request to a provider.
    ///
    /// # Errors
    /// When the request names a key or an address that it may not use (`credentials`, `invalid_request`), or the key
    /// cannot be read (`credentials`).
    pub async fn endpoint(
        &self,
        provider: &'static Provider,
        config: &LlmConfig,
    ) -> Result<Endpoint, ProviderError> {
        let name = self.key_name(provider, &config.api_key_env);
        let owners = name.map_or_else(|| Ok(vec![provider]), |name| self.owners(name))?;
        let url = self.url(provider, &config.base_url, &owners)?;
        let key = match name {
            Some(name) => Some(ApiKey::read(&self.environment, name).await?),
            None => None,
        };
        Ok(Endpoint { url, key })
    }

    /// Reports the key and the address that [`Self::endpoint`] would use, without their values. The status does not
    /// tell whether a variable is set that requests may not use.
    pub async fn status(&self, provider: &'static Provider, config: &LlmConfig) -> ProviderStatus {
        let name = self.key_name(provider, &config.api_key_env);
        let (owners, key) = match name.map(|name| (name, self.permitted_owners(name))) {
            None => (vec![provider], KeyStatus::NotSet),
            Some((_, owners)) if owners.is_empty() => (vec![provider], KeyStatus::NotPermitted),
            Some((name, owners)) => {
                let key = match ApiKey::read(&self.environment, name).await {
                    Ok(_key) => KeyStatus::Set,
                    Err(_unset) if !self.is_set(name) => KeyStatus::NotSet,
                    Err(_unreadable) => KeyStatus::Unreadable,
                };
                (owners, key)
            }
        };
        let (address, address_status) = match self.url(provider, &config.base_url, &owners) {
            Ok(url) => (shown(&url), AddressStatus::Permitted),
            Err(_refused) => {
                let requested = Url::parse(&config.base_url);
                let shown = requested.as_ref().map(shown).unwrap_or_default();
                (shown, AddressStatus::NotPermitted)
            }
        };
        let key_env = name.or_else(|| provider.keys.first().copied());
        let error = match name {
            Some(name) if key == KeyStatus::NotPermitted => Some(not_permitted(name)),
            Some(_) | None => self.endpoint(provider, config).await.err(),
        };
        ProviderStatus {
            key_env: key_env.unwrap_or_default().to_owned(),
            key,
            address,
            address_status,
            credentials: "",
            error,
        }
    }

    /// Whether the operator has permitted an address in addition to those of the providers.
    pub fn permits(&self, url: &Url) -> bool {
        self.urls.iter().any(|pattern| pattern.matches(url))
    }

    /// Hides a secret that was read from a file.
    pub fn hide(&self, secret: &str) {
        self.environment.hide(secret);
    }

    /// A variable of this service that no request can name.
    pub fn variable(&self, name: &str) -> Option<String> {
        Some(self.environment.read(name)?.trim().to_owned())
    }

    /// The variable of the key: the one that the request names, or the first one of the provider that is set.
    fn key_name<'a>(&self, provider: &'static Provider, requested: &'a str) -> Option<&'a str> {
        if !requested.is_empty() {
            return Some(requested);
        }
        provider.keys.iter().copied().find(|name| self.is_set(name))
    }

    /// The providers to whose addresses a key may be sent; none if requests may not use it.
    fn permitted_owners(&self, name: &str) -> Vec<&'static Provider> {
        let is_for_all = self.keys.iter().any(|pattern| glob(pattern, name));
        known::all()
            .filter(|known| is_for_all || known.keys.contains(&name))
            .collect()
    }

    fn owners(&self, name: &str) -> Result<Vec<&'static Provider>, ProviderError> {
        let owners = self.permitted_owners(name);
        if owners.is_empty() {
            if self.is_set(name) {
                return Err(not_permitted(name));
            }
            // The words of the existing service.
            return Err(ProviderError::credentials(format!(
                "Environment variable '{name}' is not set"
            )));
        }
        Ok(owners)
    }

    fn is_set(&self, name: &str) -> bool {
        [name, &format!("{name}_FILE")]
            .into_iter()
            .any(|name| self.environment.read(name).is_some())
    }

    fn url(
        &self,
        provider: &Provider,
        requested: &str,
        owners: &[&Provider],
    ) -> Result<Url, ProviderError> {
        let configured = self.base_url(provider);
        let (text, is_requested) = match (requested.is_empty(), &configured) {
            (false, _) => (requested, true),
            (true, Some(configured)) => (configured.as_str(), false),
            (true, None) => (
                provider.addresses.first().copied().unwrap_or_default(),
                true,
            ),
        };
        if text.is_empty() {
            return Err(ProviderError::invalid_request(format!(
                "the provider '{}' needs a base URL",
                provider.name
            )));
        }
        let url = Url::parse(text)
            .map_err(|_error| ProviderError::invalid_request("The base URL is no address"))?;
        let is_permitted =
            self.permits(&url) || owners.iter().any(|known| self.belongs(&url, known));
        match (is_permitted, is_requested) {
            (true, _) => Ok(url),
            (false, true) => {
                let shown = shown(&url);
                Err(ProviderError::invalid_request(format!(
                    "The base URL '{shown}' may not be used with this key; permit it with {URL_OPTION} '{shown}'"
                )))
            }
            (false, false) => Err(ProviderError::invalid_request(format!(
                "The base URL in {} may not be used with this key; permit it with {URL_OPTION}",
                provider.base_url_variable
            ))),
        }
    }

    /// Whether an address is one of a provider's, or below the one that its variable names.
    fn belongs(&self, url: &Url, known: &Provider) -> bool {
        let patterns = known.addresses.iter().map(|text| UrlPattern::parse(text));
        let configured = self.base_url(known).map(|text| UrlPattern::parse(&text));
        patterns
            .chain(configured)
            .flatten()
            .any(|pattern| pattern.matches(url))
    }

    /// The address in the variable of a provider.
    fn base_url(&self, known: &Provider) -> Option<String> {
        let name = Some(known.base_url_variable).filter(|name| !name.is_empty())?;
        Some(known::address_of(known, &self.environment.read(name)?))
    }
}

/// Scheme, host and port: the other parts may contain a secret.
fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    }
}

fn not_permitted(name: &str) -> ProviderError {
    ProviderError::credentials(format!(
        "Environment variable '{name}' is not permitted as a key; permit it with {KEY_OPTION} '{name}'"
    ))
}

#[cfg(test)]
mod tests;
