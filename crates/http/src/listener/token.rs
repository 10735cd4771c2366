//! The bearer token that the clients of a listener have to send.

use parking_lot::RwLock;
use std::sync::Arc;

use data_encoding::BASE64;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

/// The token that clients have to send. Only its SHA-256 hash is kept. Clones share it, so that it can be renewed.
#[derive(Clone)]
pub struct Token(Arc<RwLock<[u8; 32]>>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// `None` if no client can send `text` as a token: it is empty, or has spaces or characters beyond ASCII.
    pub fn new(text: &str) -> Option<Self> {
        is_sendable(text).then(|| Self(Arc::new(RwLock::new(Sha256::digest(text).into()))))
    }

    /// Accepts this token in place of the present one, unless no client can send it. Returns whether it is accepted.
    pub fn renew(&self, text: &str) -> bool {
        let accepted = is_sendable(text);
        if accepted {
            *self.0.write() = Sha256::digest(text).into();
        }
        accepted
    }

    /// Whether these headers carry the token, compared in constant time.
    pub fn matches(&self, headers: &HeaderMap) -> bool {
        credentials(headers, "bearer ").is_some_and(|sent| self.is_bytes(sent))
    }

    /// Whether these headers carry the token as the password of the scheme Basic, with any user.
    pub fn matches_password(&self, headers: &HeaderMap) -> bool {
        let Some(sent) = credentials(headers, "basic ").and_then(|sent| BASE64.decode(sent).ok())
        else {
            return false;
        };
        let colon = sent.iter().position(|byte| *byte == b':');
        let password = colon.and_then(|at| sent.get(at + 1..));
        password.is_some_and(|password| self.is_bytes(password))
    }

    /// Whether `sent` is the token, compared in constant time.
    pub fn is(&self, sent: &str) -> bool {
        self.is_bytes(sent.as_bytes())
    }

    /// The hash of the token, as a key that only those have who know it.
    pub fn digest(&self) -> [u8; 32] {
        *self.0.read()
    }

    fn is_bytes(&self, sent: &[u8]) -> bool {
        Sha256::digest(sent).as_slice().ct_eq(&self.digest()).into()
    }
}

/// The credentials after the scheme in the header `Authorization`; `scheme` ends with a space.
fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a [u8]> {
    // One of two may be of a client whose proxy adds its own.
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else {
        return None;
    };
    let (sent, rest) = only.as_bytes().split_at_checked(scheme.len())?;
    sent.eq_ignore_ascii_case(scheme.as_bytes())
        .then(|| rest.trim_ascii())
}

fn is_sendable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn only_the_whole_token_after_its_scheme_matches() {
        let token = Token::new("s3cret").unwrap();
        let matches = |value: &str| {
            let headers =
                HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())]);
            token.matches(&headers)
        };
        assert!(matches("Bearer s3cret") && matches("bearer  s3cret"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer s3cre",
            "Bearer s3cret2",
            "Basic s3cret",
            "s3cret",
            "Bearers3cret",
        ] {
            assert!(!matches(wrong), "{wrong}");
        }
        assert!(!token.matches(&HeaderMap::new()));
        let mut twice =
            HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"))]);
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer guess"));
        assert!(!token.matches(&twice), "two headers");
        assert_eq!(format!("{token:?}"), "Token");
        assert!(token.is("s3cret") && !token.is("s3cret ") && !token.is(""));
        let shared = token.clone();
        assert!(!shared.renew("two words") && matches("Bearer s3cret"));
        assert!(shared.renew("n3w") && matches("Bearer n3w") && !matches("Bearer s3cret"));
    }

    #[test]
    fn the_token_is_the_password_of_any_user_of_basic() {
        let token = Token::new("s3:cret").unwrap();
        let matches = |text: &str| {
            let value = HeaderValue::from_str(&format!("bAsIc {}", BASE64.encode(text.as_bytes())))
                .unwrap();
            token.matches_password(&HeaderMap::from_iter([(AUTHORIZATION, value)]))
        };
        assert!(matches("tarsy:s3:cret") && matches(":s3:cret"));
        for wrong in [
            "",
            "s3:cret",
            "tarsy",
            "tarsy:",
            "tarsy:s3:cre",
            "tarsy:s3:cret ",
        ] {
            assert!(!matches(wrong), "{wrong}");
        }
        for value in ["Basic", "Basic s3:cret", "Basic !", "Bearer OnMzOmNyZXQ="] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]);
            assert!(!token.matches_password(&headers), "{value}");
        }
        assert!(!token.matches_password(&HeaderMap::new()));
    }

    #[test]
    fn a_text_that_cannot_be_sent_in_a_header_is_not_a_token() {
        for text in ["", " ", "a b", "a\n", "ä"] {
            assert!(Token::new(text).is_none(), "{text:?}");
        }
    }
}
