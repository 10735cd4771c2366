//! What makes two alerts the same: header → `groupKey` → the single alert's `fingerprint` → hash of the alert's name
//! and its sorted labels → SHA-256 of the body.

use std::collections::BTreeMap;
use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Longer ones are hashed: a fingerprint is a key of an index.
const MAX_BYTES: usize = 512;

/// A fingerprint as it was said, or its hash when it is too long for an index.
pub(super) fn bounded(said: String) -> String {
    if said.len() <= MAX_BYTES { said } else { hash([said.as_bytes()]) }
}

/// For a body that says nothing else.
pub(super) fn of_body(body: &[u8]) -> String {
    hash([body])
}

/// For an alert with labels: its name and they, in any order.
pub(super) fn of_labels(name: &str, labels: &BTreeMap<String, String>) -> String {
    let pairs = labels.iter().flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]);
    hash(std::iter::once(name.as_bytes()).chain(pairs))
}

/// Lengths go in, so that no two lists of parts are the same bytes; a single part is a plain SHA-256.
fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            hash.update(part.len().to_be_bytes());
        }
        hash.update(part);
    }
    hash.finalize().iter().fold("sha256:".to_owned(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _written = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_hashed_as_everybody_hashes_it() {
        assert_eq!(of_body(b"abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn labels_that_differ_only_in_where_they_are_split_are_different() {
        let labels = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        assert_eq!(of_labels("a", &labels("b", "c")), of_labels("a", &labels("b", "c")));
        assert_ne!(of_labels("a", &labels("b", "cd")), of_labels("a", &labels("bc", "d")));
        assert_ne!(of_labels("a", &labels("b", "c")), of_labels("ab", &labels("", "c")));
    }

    #[test]
    fn a_fingerprint_that_is_too_long_for_an_index_is_hashed() {
        assert_eq!(bounded("x".repeat(512)), "x".repeat(512));
        assert_eq!(bounded("x".repeat(513)).len(), "sha256:".len() + 64);
    }
}
