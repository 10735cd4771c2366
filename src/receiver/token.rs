//! The bearer token of the door.

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use sha2::{Digest, Sha256};

/// What clients have to show. Only its hash is kept.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// `None` for a text that no client can send as a token: an empty one, or one with spaces or beyond ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Self(Sha256::digest(text).into()))
    }

    /// Whether these headers show it. Takes as long for a token that is nearly right as for any other.
    pub(super) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked("bearer ".len()));
        let Some((_, shown)) = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer ")) else {
            return false;
        };
        let shown: [u8; 32] = Sha256::digest(shown.trim_ascii()).into();
        let difference = self.0.iter().zip(shown).fold(0, |difference, (own, shown)| difference | (own ^ shown));
        std::hint::black_box(difference) == 0
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn only_the_whole_token_behind_its_scheme_opens() {
        let token = Token::new("s3cret").unwrap();
        let shows = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())]);
            token.is_shown(&headers)
        };
        assert!(shows("Bearer s3cret") && shows("bearer  s3cret"));
        for wrong in
            ["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret", "Bearers3cret"]
        {
            assert!(!shows(wrong), "{wrong}");
        }
        assert!(!token.is_shown(&HeaderMap::new()));
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn what_cannot_be_sent_is_no_token() {
        for text in ["", " ", "a b", "a\n", "ä"] {
            assert!(Token::new(text).is_none(), "{text:?}");
        }
    }
}
