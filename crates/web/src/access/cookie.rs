//! The login cookie: an expiry time with a keyed hash. Every replica with the token can check it, and a new token
//! ends all logins.

use axum::http::HeaderMap;
use chrono::Utc;
use ring::hmac;
use subtle::ConstantTimeEq as _;

use super::Hosts;
use crate::shell::viewer::cookies;
use tarsy_http::listener::Token;

/// The duration of a login.
const SECONDS: i64 = 12 * 3600;
/// The prefix makes browsers accept the cookie from this host by TLS only. They refuse it on plain HTTP.
const SECURE_NAME: &str = "__Host-tarsy_login";
const PLAIN_NAME: &str = "tarsy_login";
const PURPOSE: &str = "tarsy web login until ";

/// The `Set-Cookie` of a login that begins now.
pub(super) fn issue(token: &Token, hosts: &Hosts) -> String {
    let until = Utc::now().timestamp().saturating_add(SECONDS);
    set(&format!("{until}.{}", seal(token, until)), SECONDS, hosts)
}

/// The `Set-Cookie` that ends a login.
pub(super) fn end(hosts: &Hosts) -> String {
    set("", 0, hosts)
}

fn set(value: &str, seconds: i64, hosts: &Hosts) -> String {
    let (name, secure) = if hosts.is_secure() {
        (SECURE_NAME, "; Secure")
    } else {
        (PLAIN_NAME, "")
    };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

/// Whether the request has a login that this token has made and that has not expired.
pub(super) fn is_valid(headers: &HeaderMap, token: &Token) -> bool {
    // Another site of the domain can set a cookie of the same name: every one of them counts.
    cookies(headers)
        .any(|(name, value)| [SECURE_NAME, PLAIN_NAME].contains(&name) && is_sealed(value, token))
}

fn is_sealed(value: &str, token: &Token) -> bool {
    let Some((until, sent)) = value.split_once('.') else {
        return false;
    };
    let Ok(until) = until.parse::<i64>() else {
        return false;
    };
    let now = Utc::now().timestamp();
    let is_current = now < until && until <= now.saturating_add(SECONDS);
    is_current && bool::from(seal(token, until).as_bytes().ct_eq(sent.as_bytes()))
}

fn seal(token: &Token, until: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &token.digest());
    let tag = hmac::sign(&key, format!("{PURPOSE}{until}").as_bytes());
    tag.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use axum::http::header::COOKIE;

    use super::*;

    fn valid(cookie: &str, token: &Token) -> bool {
        is_valid(
            &HeaderMap::from_iter([(COOKIE, cookie.parse().unwrap())]),
            token,
        )
    }

    #[test]
    fn only_an_unexpired_cookie_of_this_token_is_a_login() {
        let token = Token::new("s3cret").unwrap();
        let other = Token::new("other").unwrap();
        let public = Hosts {
            public_url: Some("https://t.example".to_owned()),
            ..Hosts::default()
        };
        for hosts in [Hosts::default(), public] {
            let issued = issue(&token, &hosts);
            let pair = issued.split(';').next().unwrap();
            assert!(valid(pair, &token) && valid(&format!("a=b; {pair}; theme=dark"), &token));
            assert!(!valid(pair, &other));
            assert!(issued.contains("; HttpOnly; SameSite=Strict"), "{issued}");
            assert_eq!(
                issued.starts_with("__Host-") && issued.ends_with("; Secure"),
                hosts.is_secure(),
                "{issued}"
            );
        }
        let at = |until: i64| format!("tarsy_login={until}.{}", seal(&token, until));
        let now = Utc::now().timestamp();
        assert!(valid(&at(now + 60), &token));
        for forged in [
            at(now - 1),
            at(now + SECONDS + 600),
            format!("tarsy_login={}.{}", now + 61, seal(&token, now + 60)),
            format!("tarsy_login={}", now + 60),
            "tarsy_login=.".to_owned(),
            format!("other={}.{}", now + 60, seal(&token, now + 60)),
        ] {
            assert!(!valid(&forged, &token), "{forged}");
        }
        let shared = token.clone();
        let before = at(now + 60);
        assert!(shared.renew("n3w") && !valid(&before, &token));
    }
}
