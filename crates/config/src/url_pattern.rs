//! Patterns of addresses that a request may name: `scheme://host[:port][/path]`, with `*` for any characters.
//!
//! An address is parsed before it is compared, part by part. So another host cannot pass as part of the user name
//! (`https://api.openai.com@other`), by its beginning (`https://api.openai.com.other`), by its spelling, or by a port.

use std::fmt;

use tarsy_core::vocabulary::Provider;
use tarsy_core::vocabulary::provider::VERTEX_AI;
use url::Url;

/// A pattern of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    scheme: String,
    host: String,
    port: Port,
    /// Without a `/` at its end; empty: every path.
    path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Port {
    Any,
    /// The default port of the scheme.
    Default,
    Number(u16),
}

/// The text is no pattern of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no pattern of addresses: use scheme://host[:port][/path] with http or https")]
pub struct InvalidUrlPattern(String);

/// Whether an address is one of the provider's own, and not that of a gateway.
pub fn is_own_address(address: &str, provider: &Provider) -> bool {
    let Ok(address) = Url::parse(address) else {
        return false;
    };
    let vertex_ai = if provider.protocol.has_vertex_ai() {
        VERTEX_AI.addresses
    } else {
        &[]
    };
    provider
        .addresses
        .iter()
        .chain(vertex_ai)
        .flat_map(|pattern| UrlPattern::parse(pattern))
        .any(|pattern| pattern.matches(&address))
}

impl UrlPattern {
    /// Parses a pattern. `*` alone represents every address.
    ///
    /// # Errors
    /// When the scheme is not `http`, `https` or `*`, or the text has a user name, a query or no host.
    pub fn parse(text: &str) -> Result<Self, InvalidUrlPattern> {
        Self::read(text.trim()).ok_or_else(|| InvalidUrlPattern(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        if text == "*" {
            return Self::read("*://*:*");
        }
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let has_other_parts = authority.contains('@') || rest.contains(['?', '#', '\\']);
        if !["http", "https", "*"].contains(&scheme.as_str()) || has_other_parts {
            return None;
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port_of(port)?),
            Some(_) | None => (
                authority,
                if scheme == "*" {
                    Port::Any
                } else {
                    Port::Default
                },
            ),
        };
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        (!host.is_empty()).then(|| Self {
            scheme,
            host: host.to_ascii_lowercase(),
            port,
            path,
        })
    }

    /// Whether the pattern permits an address. An address with a user name, a query or a fragment is never permitted.
    pub fn matches(&self, url: &Url) -> bool {
        let is_http = matches!(url.scheme(), "http" | "https");
        let has_user = !url.username().is_empty() || url.password().is_some();
        if !is_http || has_user || url.query().is_some() || url.fragment().is_some() {
            return false;
        }
        glob(&self.scheme, url.scheme())
            && url.host_str().is_some_and(|host| self.permits_host(host))
            && self.permits_port(url)
            && self.permits_path(url.path())
    }

    /// A first label `*` represents any number of labels; any other `*` stays within its label.
    fn permits_host(&self, host: &str) -> bool {
        let mut labels = host.rsplit('.');
        let mut patterns = self.host.rsplit('.').peekable();
        while let Some(pattern) = patterns.next() {
            let is_first = patterns.peek().is_none();
            match labels.next() {
                Some(_) if is_first && pattern == "*" => return true,
                Some(label) if glob(pattern, label) => {}
                Some(_) | None => return false,
            }
        }
        labels.next().is_none()
    }

    fn permits_port(&self, url: &Url) -> bool {
        match self.port {
            Port::Any => true,
            // The parser drops the default port of a scheme.
            Port::Default => url.port().is_none(),
            Port::Number(number) => url.port_or_known_default() == Some(number),
        }
    }

    /// A path permits itself and everything below it. A server may read an encoded slash as one that leads out of it.
    fn permits_path(&self, path: &str) -> bool {
        // What joins such a path to an address reads a host in it.
        if path.starts_with("//") {
            return false;
        }
        let path = path.trim_end_matches('/');
        let lower = path.to_ascii_lowercase();
        if !self.path.is_empty() && (lower.contains("%2f") || lower.contains("%5c")) {
            return false;
        }
        self.path.is_empty() || glob(&self.path, path) || glob(&format!("{}/*", self.path), path)
    }
}

impl fmt::Display for UrlPattern {
    /// The pattern as it may stand in a file.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = match self.port {
            Port::Any => ":*".to_owned(),
            Port::Default => String::new(),
            Port::Number(number) => format!(":{number}"),
        };
        write!(
            formatter,
            "{}://{}{port}{}",
            self.scheme, self.host, self.path
        )
    }
}

fn port_of(text: &str) -> Option<Port> {
    if text == "*" {
        Some(Port::Any)
    } else {
        text.parse().ok().map(Port::Number)
    }
}

/// Whether `*` in the pattern can be replaced so that it becomes the text.
pub fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(pattern: &str, url: &str) -> bool {
        UrlPattern::parse(pattern)
            .unwrap()
            .matches(&Url::parse(url).unwrap())
    }

    #[test]
    fn scheme_host_port_and_path_are_compared_after_parsing() {
        for (pattern, url) in [
            ("https://api.openai.com", "https://api.openai.com"),
            ("https://api.openai.com", "HTTPS://API.OpenAI.com:443/v1/"),
            ("https://api.openai.com:443/", "https://api.openai.com"),
            (
                "https://api.openai.com/v1",
                "https://api.openai.com/v1/deep",
            ),
            (
                "https://api.openai.com/v1",
                "https://api.openai.com/v2/../v1",
            ),
            ("http://127.0.0.1:*", "http://127.0.0.1:14300"),
            ("http://127.0.0.1", "http://0x7f.1/"),
            ("http://[::1]:8080", "http://[0:0::1]:8080/v1"),
            ("http://[::1]", "http://[::1]/v1"),
            (
                "https://*.openai.azure.com",
                "https://my.team.openai.azure.com/openai",
            ),
            ("https://host/a/*/c", "https://host/a/b/c/d"),
            (
                "https://bedrock-runtime.*.amazonaws.com",
                "https://bedrock-runtime.eu-west-1.amazonaws.com",
            ),
            ("https://10.0.0.*", "https://10.0.0.7"),
            ("https://host", "https://host/a%2Fb"),
            ("*", "http://anything:99/x"),
            ("*://host", "https://host:8443"),
        ] {
            assert!(permits(pattern, url), "{pattern} {url}");
        }
    }

    #[test]
    fn no_spelling_of_another_address_passes() {
        for (pattern, url) in [
            ("https://api.openai.com", "https://api.openai.com@evil.test"),
            (
                "https://api.openai.com",
                "https://api.openai.com:pw@evil.test/",
            ),
            ("https://api.openai.com", "https://user@api.openai.com"),
            ("https://api.openai.com", "https://api.openai.com.evil.test"),
            (
                "https://api.openai.com",
                "https://evil.test/https://api.openai.com",
            ),
            ("https://api.openai.com", "https://evil.test#api.openai.com"),
            (
                "https://api.openai.com",
                "https://evil.test\\@api.openai.com",
            ),
            (
                "https://api.openai.com",
                "https://api.openai.com//evil.test/v1",
            ),
            ("https://api.openai.com", "https://api.openai.com:8443"),
            ("https://api.openai.com", "http://api.openai.com"),
            ("https://api.openai.com", "http://api.openai.com:443"),
            ("https://api.openai.com", "ftp://api.openai.com"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1evil"),
            (
                "https://api.openai.com/v1",
                "https://api.openai.com/v1/../v2",
            ),
            (
                "https://api.openai.com/v1",
                "https://api.openai.com/v1/%2e%2e/v2",
            ),
            ("https://api.openai.com", "https://api.openai.com/?x=1"),
            ("https://api.openai.com", "https://аpi.openai.com"),
            (
                "https://*.openai.azure.com",
                "https://openai.azure.com.evil.test",
            ),
            (
                "https://*.openai.azure.com",
                "https://evil.test/.openai.azure.com",
            ),
            (
                "https://*.openai.azure.com",
                "https://evil.test:443/x.openai.azure.com",
            ),
            (
                "https://bedrock-runtime.*.amazonaws.com",
                "https://bedrock-runtime.evil.s3.amazonaws.com",
            ),
            (
                "https://bedrock-runtime.*.amazonaws.com",
                "https://bedrock-runtime.amazonaws.com",
            ),
            ("https://gpu-*.test", "https://gpu-a.evil.test"),
            ("https://host/v1", "https://host/v1/..%2f..%2fadmin"),
            ("https://host/v1", "https://host/v1/..%5Cadmin"),
            ("*", "https://user:pw@host"),
            ("*", "file:///etc/passwd"),
        ] {
            assert!(!permits(pattern, url), "{pattern} {url}");
        }
    }

    #[test]
    fn a_shown_pattern_is_the_same_pattern() {
        for text in [
            "*",
            "https://h",
            "http://h:*/v1/",
            "http://[::1]:8080",
            "*://h:7/x",
        ] {
            let pattern = UrlPattern::parse(text).unwrap();
            assert_eq!(
                UrlPattern::parse(&pattern.to_string()),
                Ok(pattern),
                "{text}"
            );
        }
    }

    #[test]
    fn a_pattern_is_an_address() {
        for text in [
            "",
            "api.openai.com",
            "ftp://host",
            "https://",
            "https://u@host",
            "https://host:x",
            "https://h?q",
        ] {
            assert!(UrlPattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, matches) in [
            ("CASE_KEY_*", "CASE_KEY_01_text_only", true),
            ("CASE_KEY_*", "CASE_KEY", false),
            ("*_KEY", "A_KEY", true),
            ("A*B*C", "AxBBxC", true),
            ("A*A", "A", false),
            ("A", "AB", false),
            ("*", "", true),
            ("", "", true),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
    }
}
