//! The secrets that requests carry: where a token is read, and the header that sends it.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;

/// A longer secret is refused.
pub const MAX_BYTES: u64 = 16 * 1024;

/// The source of a token. Its text appears in no debug output.
#[derive(Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// A variable had it. It does not change while the process runs.
    Value(String),
    /// A file, which is read again while the process runs.
    File(PathBuf),
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => formatter.write_str("Value"),
            Self::File(file) => formatter.debug_tuple("File").field(file).finish(),
        }
    }
}

/// A file with a secret cannot be used. The message shows neither its path nor its content.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
    #[error("{0} bytes; at most {MAX_BYTES} are read")]
    TooLong(u64),
}

/// The text of a file of at most [`MAX_BYTES`].
///
/// # Errors
/// When the file cannot be read, is longer, or has other bytes than UTF-8.
pub async fn read_file(file: &Path) -> Result<String, FileFault> {
    let size = tokio::fs::metadata(file).await?.len();
    if size > MAX_BYTES {
        return Err(FileFault::TooLong(size));
    }
    Ok(tokio::fs::read_to_string(file).await?)
}

/// The value of the header `Authorization` that sends a token; no debug output shows it. `None` for an empty text, or
/// one with blanks or letters beyond ASCII.
pub fn bearer(text: &str) -> Option<HeaderValue> {
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}
