//! The user that an authenticating proxy names in headers.
//!
//! The headers count only together with the shared secret: without it, every client that reaches the listener could
//! name itself.

use axum::http::HeaderMap;
use axum::http::header::HeaderName;

use super::{Credentials, User};
use tarsy_core::visible::visible;
use tarsy_http::listener::Token;

/// The header of the secret.
pub(super) const SECRET: HeaderName = HeaderName::from_static("x-tarsy-proxy-secret");
/// The names of the user, of which the first counts, and the groups: of a reverse proxy, and of a proxy that answers
/// authentication requests of another one.
static X_FORWARDED: [HeaderName; 4] = [
    HeaderName::from_static("x-forwarded-preferred-username"),
    HeaderName::from_static("x-forwarded-email"),
    HeaderName::from_static("x-forwarded-user"),
    HeaderName::from_static("x-forwarded-groups"),
];
static X_AUTH_REQUEST: [HeaderName; 4] = [
    HeaderName::from_static("x-auth-request-preferred-username"),
    HeaderName::from_static("x-auth-request-email"),
    HeaderName::from_static("x-auth-request-user"),
    HeaderName::from_static("x-auth-request-groups"),
];
/// Characters of a name, which the timeline shows.
const MAX_NAME: usize = 100;

/// A family of headers. A proxy replaces those of one family; one of the other comes from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeaders {
    /// `X-Forwarded-User` and its like, of a reverse proxy.
    XForwarded,
    /// `X-Auth-Request-User` and its like, of a proxy that is asked by another one.
    XAuthRequest,
}

impl ProxyHeaders {
    const ALL: [Self; 2] = [Self::XForwarded, Self::XAuthRequest];

    fn names(self) -> &'static [HeaderName; 4] {
        match self {
            Self::XForwarded => &X_FORWARDED,
            Self::XAuthRequest => &X_AUTH_REQUEST,
        }
    }

    /// Whether a request has one of them.
    fn are_in(self, headers: &HeaderMap) -> bool {
        self.names().iter().any(|name| headers.contains_key(name))
    }
}

/// The proxy in front of the pages.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// It sends this with every request. The token can be renewed.
    pub secret: Token,
    /// The headers that it replaces; `None`: those of one family, whichever a request has.
    pub headers: Option<ProxyHeaders>,
}

/// The user of a request that has the secret; `None` without it, without a name, with headers of a family that is not
/// the proxy's, and for a header that the request has twice: the proxy may have added its own to one of the client.
pub(super) fn user(headers: &HeaderMap, proxy: &Proxy) -> Option<User> {
    let is_of_proxy = only(headers, &SECRET)
        .ok()?
        .is_some_and(|sent| proxy.secret.is(sent));
    if !is_of_proxy {
        return None;
    }
    let sent: Vec<ProxyHeaders> = ProxyHeaders::ALL
        .into_iter()
        .filter(|family| family.are_in(headers))
        .collect();
    let [family] = sent[..] else { return None };
    if proxy.headers.is_some_and(|own| own != family) {
        return None;
    }
    let [preferred, email, user, groups] = family.names();
    let mut name = None;
    for header in [preferred, email, user] {
        let value = only(headers, header)
            .ok()?
            .map(str::trim)
            .filter(|value| !value.is_empty());
        name = name.or(value);
    }
    let groups = only(headers, groups)
        .ok()?
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        // `*` would make a member of every group of `web.allow`.
        .filter(|group| !group.is_empty() && *group != "*")
        .map(str::to_owned)
        .collect();
    let name = visible(name?)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let name: String = name.chars().take(MAX_NAME).collect();
    (!name.is_empty()).then_some(User {
        name: Some(name),
        groups,
        credentials: Credentials::Ambient,
    })
}

/// Removes the headers, so that no handler can use them by mistake.
pub(super) fn strip(headers: &mut HeaderMap) {
    for header in X_FORWARDED.iter().chain(&X_AUTH_REQUEST).chain([&SECRET]) {
        headers.remove(header);
    }
}

/// The value of a header; an error if the request has it twice or if it is no text.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => std::str::from_utf8(value.as_bytes())
            .map(Some)
            .map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sent: &[(&str, &str)]) -> Option<User> {
        named_by(None, sent)
    }

    fn named_by(family: Option<ProxyHeaders>, sent: &[(&str, &str)]) -> Option<User> {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        user(
            &headers,
            &Proxy {
                secret: Token::new("s3cret").unwrap(),
                headers: family,
            },
        )
    }

    #[test]
    fn headers_of_a_family_that_the_proxy_does_not_replace_name_no_user() {
        let secret = ("x-tarsy-proxy-secret", "s3cret");
        let forwarded = Some(ProxyHeaders::XForwarded);
        let asked = Some(ProxyHeaders::XAuthRequest);
        let own = ("x-forwarded-user", "eve");
        let other = ("x-auth-request-user", "eve");
        assert!(
            named_by(forwarded, &[secret, own]).is_some()
                && named_by(asked, &[secret, other]).is_some()
        );
        for (family, sent) in [
            (None, [own, ("x-auth-request-groups", "sre")]),
            (None, [other, ("x-forwarded-preferred-username", "admin")]),
            (None, [own, ("x-auth-request-groups", "")]),
            (forwarded, [own, ("x-auth-request-groups", "sre")]),
            (forwarded, [other, ("x-auth-request-groups", "sre")]),
            (asked, [own, ("x-forwarded-groups", "sre")]),
        ] {
            assert_eq!(
                named_by(family, &[&[secret], &sent[..]].concat()),
                None,
                "{family:?} {sent:?}"
            );
        }
    }

    #[test]
    fn a_user_and_groups_count_only_beside_the_secret() {
        let secret = ("x-tarsy-proxy-secret", "s3cret");
        let known = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            Some(User {
                name: Some(name.to_owned()),
                groups,
                credentials: Credentials::Ambient,
            })
        };
        assert_eq!(
            named(&[secret, ("x-forwarded-user", "ada")]),
            known("ada", &[])
        );
        let sent = [
            secret,
            ("x-auth-request-email", "ada@example.com"),
            ("x-auth-request-groups", "sre, ops,,*"),
        ];
        assert_eq!(named(&sent), known("ada@example.com", &["sre", "ops"]));
        assert_eq!(
            named(&[secret, ("x-forwarded-user", "a\tda \u{202e}x")]),
            known("a da x", &[])
        );
        for hostile in [
            &[("x-forwarded-user", "ada")][..],
            &[
                ("x-tarsy-proxy-secret", "guess"),
                ("x-forwarded-user", "ada"),
            ],
            &[("x-tarsy-proxy-secret", ""), ("x-forwarded-user", "ada")],
            &[secret],
            &[secret, ("x-forwarded-user", " ")],
            &[
                secret,
                ("x-forwarded-user", "eve"),
                ("x-forwarded-user", "ada"),
            ],
            &[secret, secret, ("x-forwarded-user", "ada")],
            &[
                secret,
                ("x-forwarded-user", "ada"),
                ("x-forwarded-groups", "sre"),
                ("x-forwarded-groups", ""),
            ],
        ] {
            assert_eq!(named(hostile), None, "{hostile:?}");
        }
    }
}
