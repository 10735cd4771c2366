//! `PublicUrl`, the address under which people reach the pages of `tarsy web`, and the links that begin with it.

use std::fmt;

use super::approvals::RequestId;
use super::ids::SessionId;

/// An address with `http` or `https`, in ASCII, without a user name, a query, a fragment and a `/` at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// Parses an address; `None` if it is not of this form.
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().trim_end_matches('/').split_once("://")?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let is_web = matches!(scheme, "http" | "https")
            && is_authority(authority)
            && path
                .chars()
                .all(|c: char| c.is_ascii_alphanumeric() || "-._~%/+,=:".contains(c));
        is_web.then(|| {
            Self(format!(
                "{scheme}://{}{path}",
                authority.to_ascii_lowercase()
            ))
        })
    }

    /// Host and port, as a browser sends them.
    pub fn authority(&self) -> &str {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// The page of an investigation, or of an alert that opened none.
    pub fn session(&self, session: SessionId) -> String {
        format!("{}/sessions/{session}", self.0)
    }

    /// The page of a call that waits for a person.
    pub fn approval(&self, request: RequestId) -> String {
        format!("{}/approvals/{request}", self.0)
    }

    /// The address itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A host with or without a port.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (text, None),
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match inner {
        Some(address) => {
            !address.is_empty()
                && address
                    .chars()
                    .all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.')
        }
        None => {
            !host.is_empty()
                && host
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
        }
    };
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_the_address_and_the_path_of_the_session() {
        let session = SessionId::parse("019a2b3c-0000-7000-8000-000000000001").unwrap();
        for (address, link) in [
            (
                "https://tarsy.example.com",
                "https://tarsy.example.com/sessions/",
            ),
            (
                "https://Ops.example.com:8443/tarsy/",
                "https://ops.example.com:8443/tarsy/sessions/",
            ),
            (" http://127.0.0.1:8476 ", "http://127.0.0.1:8476/sessions/"),
        ] {
            assert_eq!(
                PublicUrl::parse(address).unwrap().session(session),
                format!("{link}{session}")
            );
        }
        let authority = |text: &str| PublicUrl::parse(text).unwrap().authority().to_owned();
        assert_eq!(
            authority("https://Ops.example.com:8443/tarsy/"),
            "ops.example.com:8443"
        );
        assert_eq!(authority("http://[::1]:80"), "[::1]:80");
    }

    #[test]
    fn an_address_that_could_hold_a_secret_or_leads_nowhere_is_none() {
        for address in [
            "",
            "tarsy.example.com",
            "ftp://tarsy.example.com",
            "javascript:alert(1)",
            "https://",
            "https://user@tarsy.example.com",
            "https://:word@tarsy.example.com",
            "https://tarsy.example.com/?token=1",
            "https://tarsy.example.com/#a",
            "https://tarsy.example.com:port",
            "https://tarsy.example.com/<b>",
            "https://tärsy.example.com",
        ] {
            assert_eq!(PublicUrl::parse(address), None, "{address}");
        }
    }
}
