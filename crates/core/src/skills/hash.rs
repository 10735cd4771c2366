//! `TextHash`, the SHA-256 of a skill's text, under which the store keeps it.

use std::fmt;

use data_encoding::HEXLOWER_PERMISSIVE;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a text; written in hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TextHash(pub [u8; 32]);

impl TextHash {
    /// The hash of this text.
    pub fn new(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl fmt::Display for TextHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER_PERMISSIVE.encode(&self.0))
    }
}

impl From<TextHash> for String {
    fn from(hash: TextHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for TextHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = HEXLOWER_PERMISSIVE
            .decode(text.as_bytes())
            .ok()
            .and_then(|bytes| bytes.try_into().ok());
        bytes
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no SHA-256"))
    }
}
