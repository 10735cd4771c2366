//! HMAC-SHA256 over the raw body, in hexadecimal.
//!
//! A header may carry several signatures, separated by commas, and the receiver may have two secrets: during a rotation
//! one pair has to match. With a header for the time, the signature covers `<time>:<body>` and ends after five minutes.

use parking_lot::RwLock;
use std::sync::Arc;

use data_encoding::HEXLOWER_PERMISSIVE;
use hyper::HeaderMap;
use hyper::header::HeaderName;
use ring::{digest, hmac};

use super::Signed;
use crate::response::Rejection;
use tarsy_core::ids::SessionId;

/// The greatest difference between the time of a signature and the clock of this machine, in seconds.
const MAX_SKEW_SECS: i64 = 300;
/// Each signature is compared once for each secret, over the whole body.
const MAX_SIGNATURES: usize = 8;

/// A rule for signatures with a shared secret.
#[derive(Debug)]
pub struct Hmac {
    /// The header of the signatures.
    pub header: HeaderName,
    /// The text before each signature, such as `v1=`; may be empty.
    pub prefix: String,
    /// The header of the Unix time in seconds that is signed with the body.
    pub time_header: Option<HeaderName>,
    pub keys: HmacKeys,
}

/// The keys of a source. Clones share them, so that they can be renewed.
#[derive(Clone, Default)]
pub struct HmacKeys(Arc<RwLock<Vec<hmac::Key>>>);

impl std::fmt::Debug for HmacKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HmacKeys")
    }
}

impl HmacKeys {
    /// Keys of these secrets.
    pub fn new(secrets: &[String]) -> Self {
        let keys = Self::default();
        keys.renew(secrets);
        keys
    }

    /// Accepts signatures with these secrets in place of the present ones.
    pub fn renew(&self, secrets: &[String]) {
        let keys = secrets
            .iter()
            .map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
            .collect();
        *self.0.write() = keys;
    }

    /// Whether one of the keys has made this signature. Takes the same time for every wrong one.
    pub(crate) fn any_verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let keys = self.0.read();
        keys.iter()
            .any(|key| hmac::verify(key, message, signature).is_ok())
    }
}

impl Hmac {
    /// Checks the signatures of a body. The id is the same for each repetition of a signature with a time: a replay is
    /// the same alert. Without a time a repetition may be another alert.
    pub(super) fn check(&self, signed: Signed<'_>) -> Result<Option<SessionId>, Rejection> {
        let Signed {
            source,
            headers,
            body,
            sender: _,
            now,
        } = signed;
        let Some(time_header) = &self.time_header else {
            return self.verify(headers, body).map(|()| None);
        };
        let time = headers
            .get(time_header)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let seconds = match time.parse::<i64>() {
            // `parse` accepts a sign, too.
            Ok(seconds) if time.bytes().all(|byte| byte.is_ascii_digit()) => seconds,
            Ok(_) | Err(_) => {
                return Err(Rejection::Unproven(format!(
                    "header {time_header} has to have the Unix time in seconds"
                )));
            }
        };
        if now.timestamp().abs_diff(seconds) > MAX_SKEW_SECS.unsigned_abs() {
            let reason = format!(
                "the time in header {time_header} differs by more than {MAX_SKEW_SECS} s from this clock"
            );
            return Err(Rejection::Unproven(reason));
        }
        let message = [time.as_bytes(), b":", body].concat();
        self.verify(headers, &message)?;
        let hash = digest::digest(&digest::SHA256, &message);
        let sent_at_ms = u64::try_from(seconds)
            .unwrap_or_default()
            .saturating_mul(1_000);
        Ok(Some(SessionId::of_message(
            &[source.as_bytes(), hash.as_ref()],
            sent_at_ms,
        )))
    }

    fn verify(&self, headers: &HeaderMap, message: &[u8]) -> Result<(), Rejection> {
        let values = headers
            .get_all(&self.header)
            .into_iter()
            .filter_map(|value| value.to_str().ok());
        let signatures = values
            .flat_map(|value| value.split(','))
            .take(MAX_SIGNATURES);
        let mut decoded = signatures.filter_map(|text| {
            let hex = text.trim().strip_prefix(self.prefix.as_str())?;
            HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()
        });
        if decoded.any(|signature| self.keys.any_verifies(message, &signature)) {
            return Ok(());
        }
        Err(Rejection::Unproven(format!(
            "no signature in header {} belongs to this body",
            self.header
        )))
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};
    use data_encoding::{HEXLOWER, HEXUPPER};
    use hyper::header::HeaderValue;

    use super::*;

    const BODY: &[u8] = br#"{"check": "cpu"}"#;
    const NOW: i64 = 1_790_000_000;

    fn rule(prefix: &str, time: Option<&'static str>) -> Hmac {
        Hmac {
            header: HeaderName::from_static("x-signature"),
            prefix: prefix.to_owned(),
            time_header: time.map(HeaderName::from_static),
            keys: HmacKeys::new(&["0ld".to_owned(), "n3w".to_owned()]),
        }
    }

    fn sign(secret: &str, message: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        HEXLOWER.encode(hmac::sign(&key, message).as_ref())
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    fn check(
        rule: &Hmac,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Option<SessionId>, Rejection> {
        let now = DateTime::<Utc>::from_timestamp(NOW, 0).unwrap();
        let sender = std::net::Ipv4Addr::LOCALHOST.into();
        rule.check(Signed {
            source: "shop",
            headers,
            body,
            sender,
            now,
        })
    }

    #[test]
    fn a_signature_of_the_standard_is_accepted() {
        // RFC 4231, test case 2.
        let rule = Hmac {
            keys: HmacKeys::new(&["Jefe".to_owned()]),
            ..rule("", None)
        };
        let signature = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let headers = headers(&[("x-signature", signature)]);
        assert_eq!(
            check(&rule, &headers, b"what do ya want for nothing?"),
            Ok(None)
        );
    }

    #[test]
    fn one_of_several_signatures_has_to_be_of_one_of_two_secrets() {
        let rule = rule("v1=", None);
        let old = sign("0ld", BODY);
        let new = sign("n3w", BODY);
        let foreign = sign("other", BODY);
        for value in [
            format!("v1={old}"),
            format!("v1={new}"),
            format!("v1={foreign},v1={new}"),
            format!("v0=ab, v1=xyz, v1={old}"),
            format!(
                "v1={}",
                HEXUPPER.encode(&HEXLOWER.decode(new.as_bytes()).unwrap())
            ),
        ] {
            assert_eq!(
                check(&rule, &headers(&[("x-signature", &value)]), BODY),
                Ok(None),
                "{value}"
            );
        }
        let two_lines = headers(&[
            ("x-signature", &format!("v1={foreign}")),
            ("x-signature", &format!("v1={new}")),
        ]);
        assert_eq!(check(&rule, &two_lines, BODY), Ok(None));
        let behind_too_many = format!("{}v1={new}", "v1=ab,".repeat(MAX_SIGNATURES));
        for value in [
            "",
            "v1=",
            &new,
            &format!("v1={foreign}"),
            &format!("v1={}", new.get(..62).unwrap()),
            &format!("v1={new}00"),
            &behind_too_many,
        ] {
            assert!(
                check(&rule, &headers(&[("x-signature", value)]), BODY).is_err(),
                "{value}"
            );
        }
        assert!(check(&rule, &HeaderMap::new(), BODY).is_err());
        rule.keys.renew(&["n3w".to_owned()]);
        assert!(
            check(
                &rule,
                &headers(&[("x-signature", &format!("v1={old}"))]),
                BODY
            )
            .is_err(),
            "a secret was removed"
        );
    }

    #[test]
    fn any_changed_byte_of_the_body_is_refused() {
        let rule = rule("", None);
        let headers = headers(&[("x-signature", &sign("n3w", BODY))]);
        for at in 0..BODY.len() {
            let mut body = BODY.to_vec();
            body[at] ^= 1;
            assert!(check(&rule, &headers, &body).is_err(), "byte {at}");
        }
        assert!(check(&rule, &headers, &[BODY, b"\n"].concat()).is_err());
    }

    #[test]
    fn a_signature_with_a_time_ends_after_five_minutes_and_its_replay_has_the_same_id() {
        let rule = rule("", Some("x-time"));
        let at = |seconds: i64, body: &[u8]| {
            let signature = sign("n3w", &[format!("{seconds}:").as_bytes(), body].concat());
            check(
                &rule,
                &headers(&[
                    ("x-signature", &signature),
                    ("x-time", &seconds.to_string()),
                ]),
                body,
            )
        };
        let first = at(NOW, BODY).unwrap().expect("an id");
        assert_eq!(at(NOW, BODY), Ok(Some(first)));
        assert_ne!(at(NOW - 1, BODY), Ok(Some(first)));
        assert_ne!(at(NOW, b"{}"), Ok(Some(first)));
        assert!(at(NOW - MAX_SKEW_SECS, BODY).is_ok() && at(NOW + MAX_SKEW_SECS, BODY).is_ok());
        assert!(
            at(NOW - MAX_SKEW_SECS - 1, BODY).is_err()
                && at(NOW + MAX_SKEW_SECS + 1, BODY).is_err()
        );
        // The time is signed, so a late signature cannot be given another time.
        let late = sign("n3w", &[b"1:", BODY].concat());
        assert!(
            check(
                &rule,
                &headers(&[("x-signature", &late), ("x-time", &NOW.to_string())]),
                BODY
            )
            .is_err()
        );
        for time in [
            "",
            "now",
            "+1790000000",
            "1790000000.0",
            "99999999999999999999",
        ] {
            let signature = sign("n3w", &[format!("{time}:").as_bytes(), BODY].concat());
            assert!(
                check(
                    &rule,
                    &headers(&[("x-signature", &signature), ("x-time", time)]),
                    BODY
                )
                .is_err(),
                "{time}"
            );
        }
        let without = headers(&[("x-signature", &sign("n3w", BODY))]);
        assert!(
            check(&rule, &without, BODY).is_err(),
            "a signature over the body alone"
        );
    }
}
