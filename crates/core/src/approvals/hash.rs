//! `CallHash`, the identity of a call as a person sees it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The first part of what is hashed; another form of hash needs another one.
const FORM: &str = "tarsy approval 1";

/// SHA-256 of a call: tool, its name at the server, the schema of the plan, and the arguments as they will be sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallHash(pub [u8; 32]);

impl CallHash {
    /// The hash of these parts, each with its length before it.
    pub(crate) fn of_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new();
        for part in std::iter::once(FORM).chain(parts) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallHash({self})")
    }
}

impl TryFrom<String> for CallHash {
    type Error = String;

    fn try_from(hex: String) -> Result<Self, String> {
        Self::parse(&hex).ok_or_else(|| format!("{hex:?} is no hash of a call"))
    }
}

impl From<CallHash> for String {
    fn from(hash: CallHash) -> Self {
        hash.to_string()
    }
}
