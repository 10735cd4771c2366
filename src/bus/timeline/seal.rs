//! The seal of a published event: an HMAC-SHA-256 of its bytes with a key that only the database has. The broker's
//! permissions say who may publish; the seal tells what a worker has published, also where they are too wide.

use async_nats::HeaderMap;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};

use crate::engine::ports::EventKey;

/// The header of a timeline message that holds the seal, in hexadecimal digits.
pub(super) const SEAL: &str = "Tarsy-Seal";

/// Seals events, and knows sealed ones.
#[derive(Clone, Debug)]
pub(super) struct Seal(Key);

impl Seal {
    pub(super) fn new(key: &EventKey) -> Self {
        Self(Key::new(HMAC_SHA256, key.bytes()))
    }

    /// The headers of an event with these bytes.
    pub(super) fn headers(&self, payload: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let seal: String = sign(&self.0, payload).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        headers.insert(SEAL, seal);
        headers
    }

    /// Whether these bytes were sealed with this key.
    pub(super) fn is_on(&self, payload: &[u8], headers: Option<&HeaderMap>) -> bool {
        let seal = headers.and_then(|headers| headers.get(SEAL)).and_then(|seal| decoded(seal.as_str()));
        seal.is_some_and(|seal| verify(&self.0, payload, &seal).is_ok())
    }
}

fn decoded(digits: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_its_bytes_and_its_key_and_nothing_else() {
        let (ours, other) = (Seal::new(&EventKey::new(vec![7; 32])), Seal::new(&EventKey::new(vec![8; 32])));
        let headers = ours.headers(b"{}");
        assert!(ours.is_on(b"{}", Some(&headers)));
        assert!(!ours.is_on(b"{ }", Some(&headers)) && !other.is_on(b"{}", Some(&headers)) && !ours.is_on(b"{}", None));
        for wrong in ["", "zz", "ä", "0"] {
            let mut headers = HeaderMap::new();
            headers.insert(SEAL, wrong);
            assert!(!ours.is_on(b"{}", Some(&headers)), "{wrong}");
        }
    }
}
