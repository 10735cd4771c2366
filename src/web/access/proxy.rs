//! The user that an authenticating proxy names in headers.
//!
//! The headers count only beside the shared secret: without it, every client that reaches the listener could name
//! itself.

use axum::http::HeaderMap;
use axum::http::header::HeaderName;

use super::{Credentials, User};
use crate::investigation::visible::visible;
use crate::listener::Token;

/// The header of the secret.
pub(super) const SECRET: HeaderName = HeaderName::from_static("x-tarsy-proxy-secret");
/// The headers of oauth2-proxy as a reverse proxy, then as an authentication request of another proxy.
const USERS: [HeaderName; 6] = [
    HeaderName::from_static("x-forwarded-preferred-username"),
    HeaderName::from_static("x-forwarded-email"),
    HeaderName::from_static("x-forwarded-user"),
    HeaderName::from_static("x-auth-request-preferred-username"),
    HeaderName::from_static("x-auth-request-email"),
    HeaderName::from_static("x-auth-request-user"),
];
const GROUPS: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-groups"), HeaderName::from_static("x-auth-request-groups")];
/// Characters of a name, which the timeline shows.
const MAX_NAME: usize = 100;

/// The secret that the proxy sends with every request.
#[derive(Clone, Debug)]
pub struct ProxySecret(Token);

impl ProxySecret {
    /// The secret as a token, which can be renewed.
    pub fn of(secret: Token) -> Self {
        Self(secret)
    }
}

/// The user of a request that has the secret; `None` without it, without a name, and for a header that stands twice:
/// the proxy may have added its own to one of the client.
pub(super) fn user(headers: &HeaderMap, secret: &ProxySecret) -> Option<User> {
    let is_of_proxy = only(headers, &SECRET).ok()?.is_some_and(|sent| secret.0.is(sent));
    if !is_of_proxy {
        return None;
    }
    let mut name = None;
    for header in &USERS {
        let value = only(headers, header).ok()?.map(str::trim).filter(|value| !value.is_empty());
        name = name.or(value);
    }
    let mut groups = Vec::new();
    for header in &GROUPS {
        let listed = only(headers, header).ok()?.unwrap_or_default().split(',').map(str::trim);
        groups.extend(listed.filter(|group| !group.is_empty() && *group != "*").map(str::to_owned));
    }
    let name = visible(name?).split_whitespace().collect::<Vec<_>>().join(" ");
    let name: String = name.chars().take(MAX_NAME).collect();
    (!name.is_empty()).then_some(User { name: Some(name), groups, credentials: Credentials::Ambient })
}

/// Removes the headers, so that no handler can use them by mistake.
pub(super) fn strip(headers: &mut HeaderMap) {
    for header in USERS.iter().chain(&GROUPS).chain([&SECRET]) {
        headers.remove(header);
    }
}

/// The value of a header; an error if it stands twice or is no text.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => std::str::from_utf8(value.as_bytes()).map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sent: &[(&str, &str)]) -> Option<User> {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        user(&headers, &ProxySecret::of(Token::new("s3cret").unwrap()))
    }

    #[test]
    fn a_user_and_groups_count_only_beside_the_secret() {
        let secret = ("x-tarsy-proxy-secret", "s3cret");
        let known = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            Some(User { name: Some(name.to_owned()), groups, credentials: Credentials::Ambient })
        };
        assert_eq!(named(&[secret, ("x-forwarded-user", "ada")]), known("ada", &[]));
        let sent = [secret, ("x-auth-request-email", "ada@example.com"), ("x-auth-request-groups", "sre, ops,,*")];
        assert_eq!(named(&sent), known("ada@example.com", &["sre", "ops"]));
        assert_eq!(named(&[secret, ("x-forwarded-user", "a\tda \u{202e}x")]), known("a da x", &[]));
        for hostile in [
            &[("x-forwarded-user", "ada")][..],
            &[("x-tarsy-proxy-secret", "guess"), ("x-forwarded-user", "ada")],
            &[("x-tarsy-proxy-secret", ""), ("x-forwarded-user", "ada")],
            &[secret],
            &[secret, ("x-forwarded-user", " ")],
            &[secret, ("x-forwarded-user", "eve"), ("x-forwarded-user", "ada")],
            &[secret, secret, ("x-forwarded-user", "ada")],
            &[secret, ("x-forwarded-user", "ada"), ("x-forwarded-groups", "sre"), ("x-forwarded-groups", "")],
        ] {
            assert_eq!(named(hostile), None, "{hostile:?}");
        }
    }
}
