//! Authenticates the sender of a webhook: a token in one of three places, a signature over the body, or the
//! certificate of Amazon SNS.
//!
//! A token is compared before the body is read. A signature is over the bytes of the body as they arrived, so it is
//! verified before they are parsed. Secrets are renewed while the receiver runs; none of them is logged.

mod hmac;
pub mod sns;

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use hyper::HeaderMap;
use hyper::header::HeaderName;

pub use self::hmac::{Hmac, HmacKeys};
use self::sns::Sns;
use super::response::Rejection;
use tarsy_core::ids::SessionId;
use tarsy_http::listener::Token;

/// The proof that one source asks for.
#[derive(Debug)]
pub enum Proof {
    /// The token of the receiver, if it has one; otherwise only programs of this machine can send.
    OfReceiver,
    /// A dedicated token, as the bearer token or as the password of Basic.
    Token(Token),
    /// A dedicated token at the end of the path.
    InPath(Token),
    /// A dedicated token as the value of a header.
    InHeader { name: HeaderName, token: Token },
    /// A signature with a shared secret.
    Hmac(Hmac),
    /// A signature of Amazon SNS.
    Sns(Box<Sns>),
}

/// The head of a request: headers and query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) headers: &'a HeaderMap,
    /// The part of the path after the name of the source.
    pub(super) path_token: Option<&'a str>,
}

/// The kind of a body with a valid proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Proven {
    /// It is an alert. The id, if there is one, is the same for each repetition of the request.
    Alert(Option<SessionId>),
    /// It is no alert: a message about the subscription, which was answered or logged.
    Control(String),
}

/// A body with its source, its sender and its time of arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'a> {
    pub(super) source: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    /// The address at the other end, which may be that of a proxy.
    pub(super) sender: IpAddr,
    pub(super) now: DateTime<Utc>,
}

impl Proof {
    /// Whether a signature covers the body. No header of such a request is covered, so none describes the alert.
    pub(super) fn is_of_body(&self) -> bool {
        matches!(self, Self::Hmac(_) | Self::Sns(_))
    }

    /// Checks what can be checked before the body is read. `receiver` is the token of the receiver.
    ///
    /// # Errors
    /// When the request lacks the token. A wrong token in the path looks like an unknown path.
    pub(super) fn check_head(
        &self,
        head: Head<'_>,
        receiver: Option<&Token>,
    ) -> Result<(), Rejection> {
        let Head {
            headers,
            path_token,
        } = head;
        if let Self::InPath(token) = self {
            return if path_token.is_some_and(|sent| token.is(sent)) {
                Ok(())
            } else {
                Err(Rejection::UnknownPath)
            };
        }
        if path_token.is_some() {
            return Err(Rejection::UnknownPath);
        }
        let accepts = |token: &Token| token.matches(headers) || token.matches_password(headers);
        let is_proven = match self {
            Self::OfReceiver => receiver.is_none_or(accepts),
            Self::Token(token) => accepts(token),
            Self::InHeader { name, token } => {
                let sent = headers.get(name).and_then(|value| value.to_str().ok());
                return if sent.is_some_and(|sent| token.is(sent.trim())) {
                    Ok(())
                } else {
                    Err(Rejection::Unproven(format!(
                        "header {name} has to have the token of this source"
                    )))
                };
            }
            Self::InPath(_) | Self::Hmac(_) | Self::Sns(_) => true,
        };
        if is_proven {
            Ok(())
        } else {
            Err(Rejection::Unauthorized)
        }
    }

    /// Checks the body, as it arrived.
    ///
    /// # Errors
    /// When the signature does not belong to the body, or cannot be checked now.
    pub(super) async fn check_body(&self, signed: Signed<'_>) -> Result<Proven, Rejection> {
        match self {
            Self::Hmac(hmac) => hmac.check(signed).map(Proven::Alert),
            Self::Sns(sns) => sns.check(signed).await,
            Self::OfReceiver | Self::Token(_) | Self::InPath(_) | Self::InHeader { .. } => {
                Ok(Proven::Alert(None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderValue};

    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    fn checked(
        proof: &Proof,
        headers: &HeaderMap,
        path_token: Option<&str>,
    ) -> Result<(), Rejection> {
        let receiver = Token::new("r3ceiver").unwrap();
        proof.check_head(
            Head {
                headers,
                path_token,
            },
            Some(&receiver),
        )
    }

    fn token(text: &str) -> Token {
        Token::new(text).unwrap()
    }

    #[test]
    fn each_proof_has_its_own_token_in_its_own_place() {
        let bearer = |token: &str| headers(AUTHORIZATION, &format!("Bearer {token}"));
        let none = HeaderMap::new();
        let own = Proof::Token(token("own"));
        assert_eq!(
            checked(&Proof::OfReceiver, &bearer("r3ceiver"), None),
            Ok(())
        );
        assert_eq!(
            checked(
                &Proof::OfReceiver,
                &headers(AUTHORIZATION, "Basic eDpyM2NlaXZlcg=="),
                None
            ),
            Ok(())
        );
        assert_eq!(
            checked(&Proof::OfReceiver, &none, None),
            Err(Rejection::Unauthorized)
        );
        assert_eq!(checked(&own, &bearer("own"), None), Ok(()));
        assert_eq!(
            checked(&own, &bearer("r3ceiver"), None),
            Err(Rejection::Unauthorized)
        );
        assert_eq!(
            checked(&own, &bearer("own"), Some("own")),
            Err(Rejection::UnknownPath)
        );

        let in_path = Proof::InPath(token("own"));
        assert_eq!(checked(&in_path, &none, Some("own")), Ok(()));
        for path_token in [None, Some(""), Some("owm"), Some("r3ceiver")] {
            assert_eq!(
                checked(&in_path, &bearer("own"), path_token),
                Err(Rejection::UnknownPath)
            );
        }

        let name = HeaderName::from_static("x-token");
        let in_header = Proof::InHeader {
            name: name.clone(),
            token: token("own"),
        };
        assert_eq!(
            checked(&in_header, &headers(name.clone(), "own"), None),
            Ok(())
        );
        for wrong in [headers(name, "owm"), bearer("own"), none] {
            assert!(matches!(
                checked(&in_header, &wrong, None),
                Err(Rejection::Unproven(_))
            ));
        }
        assert_eq!(
            Proof::OfReceiver.check_head(
                Head {
                    headers: &HeaderMap::new(),
                    path_token: None
                },
                None
            ),
            Ok(())
        );
    }
}
