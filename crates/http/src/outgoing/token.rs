//! The secrets that requests carry: where a token is read, and the header that sends it.

use std::fmt;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

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
    // The file may grow meanwhile, and a pipe or a device has no size.
    let mut text = String::new();
    let mut bounded = File::open(file).await?.take(MAX_BYTES + 1);
    bounded.read_to_string(&mut text).await?;
    if bounded.limit() == 0 {
        return Err(FileFault::TooLong(MAX_BYTES + 1));
    }
    Ok(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_without_a_size_is_read_up_to_the_limit() {
        let fault = read_file(Path::new("/dev/zero")).await.unwrap_err();
        assert_eq!(fault.to_string(), "16385 bytes; at most 16384 are read");
    }
}
