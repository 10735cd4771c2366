//! The signature of a published event: an HMAC-SHA-256 of its bytes with a key that only the database has. The broker's
//! permissions restrict who may publish; the signature proves that a worker has published, even where they are too
//! wide.

use async_nats::HeaderMap;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};

use tarsy_engine::ports::EventKey;

/// The header of a timeline message that holds the signature, in hexadecimal digits.
const SIGNATURE: &str = "Tarsy-Seal";

/// Signs events and verifies their signatures.
#[derive(Clone, Debug)]
pub(super) struct EventSigner(Key);

impl EventSigner {
    pub(super) fn new(key: &EventKey) -> Self {
        Self(Key::new(HMAC_SHA256, &key.0))
    }

    /// The headers of an event with these bytes.
    pub(super) fn sign(&self, payload: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let signature: String = sign(&self.0, payload)
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        headers.insert(SIGNATURE, signature);
        headers
    }

    /// Whether the headers hold the signature of these bytes.
    pub(super) fn has_signed(&self, payload: &[u8], headers: Option<&HeaderMap>) -> bool {
        let signature = headers
            .and_then(|headers| headers.get(SIGNATURE))
            .and_then(|value| decoded(value.as_str()));
        signature.is_some_and(|signature| verify(&self.0, payload, &signature).is_ok())
    }
}

fn decoded(digits: &str) -> Option<Vec<u8>> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_valid_only_for_its_bytes_and_its_key() {
        let ours = EventSigner::new(&EventKey(vec![7; 32]));
        let other = EventSigner::new(&EventKey(vec![8; 32]));
        let headers = ours.sign(b"{}");
        assert!(ours.has_signed(b"{}", Some(&headers)));
        assert!(
            !ours.has_signed(b"{ }", Some(&headers))
                && !other.has_signed(b"{}", Some(&headers))
                && !ours.has_signed(b"{}", None)
        );
        for wrong in ["", "zz", "ä", "0"] {
            let mut headers = HeaderMap::new();
            headers.insert(SIGNATURE, wrong);
            assert!(!ours.has_signed(b"{}", Some(&headers)), "{wrong}");
        }
    }
}
