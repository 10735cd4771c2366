//! The providers that this service calls, and the addresses that their variables name.

use url::Url;

use tarsy_core::vocabulary::provider::{self, Protocol, Provider, VERTEX_AI};

/// Every provider that this service calls.
pub fn all() -> impl Iterator<Item = &'static Provider> {
    provider::counted()
        .filter(|provider| provider.protocol != Protocol::Recording)
        .chain([&VERTEX_AI])
}

/// The provider that a request names so. Vertex AI has no name there: a project makes `google` and `anthropic` use it.
pub fn by_name(name: &str) -> Option<&'static Provider> {
    all().find(|provider| provider.name == name && **provider != VERTEX_AI)
}

/// The address that the value of `base_url_variable` names. One without a scheme, as `OLLAMA_HOST` may be, is one
/// of HTTP, and without a port it has that of the default address.
pub fn address_of(provider: &Provider, value: &str) -> String {
    let value = value.trim();
    if value.contains("://") {
        return value.to_owned();
    }
    let (authority, path) = match value.split_once('/') {
        None => (value, String::new()),
        Some((authority, "")) => (authority, String::new()),
        Some((authority, path)) => (authority, format!("/{path}")),
    };
    let has_port = authority.rsplit_once(':').is_some_and(|(_host, port)| {
        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    let default = provider
        .addresses
        .first()
        .and_then(|address| Url::parse(address).ok()?.port());
    match default {
        Some(port) if !has_port => format!("http://{authority}:{port}{path}"),
        Some(_) | None => format!("http://{authority}{path}"),
    }
}

/// A base URL with a version of the API, without `/` at its end. The first one of `versions` is added to an address
/// that ends with none of them.
pub fn with_version(mut base: Url, versions: &[&str]) -> Url {
    let mut path = base.path().trim_end_matches('/').to_owned();
    let has_version = path
        .rsplit('/')
        .next()
        .is_some_and(|last| versions.contains(&last));
    if !has_version && let Some(version) = versions.first() {
        path = format!("{path}/{version}");
    }
    base.set_path(&path);
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_may_name_a_host_without_scheme_and_port() {
        let ollama = by_name("ollama").unwrap();
        for (value, address) in [
            (" gpu.test ", "http://gpu.test:11434"),
            ("gpu.test:80", "http://gpu.test:80"),
            ("[::1]", "http://[::1]:11434"),
            ("[::1]:8", "http://[::1]:8"),
            ("gpu.test/ollama", "http://gpu.test:11434/ollama"),
            ("https://gpu.test", "https://gpu.test"),
        ] {
            assert_eq!(address_of(ollama, value), address, "{value}");
        }
        assert_eq!(
            address_of(by_name("openai").unwrap(), "proxy.test"),
            "http://proxy.test"
        );
    }
}
