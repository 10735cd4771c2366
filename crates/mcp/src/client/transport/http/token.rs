//! The bearer token of a server: a fixed value, or a file that is read again when the server refuses the token.

use parking_lot::Mutex;
use std::path::Path;

use reqwest::header::HeaderValue;

use super::HttpFault;
use tarsy_http::outgoing::token::{self, FileFault, TokenSource};
use tarsy_mask::Mask;

/// The token that is sent now. Its text appears in no debug output.
pub(in crate::client) struct BearerToken {
    source: TokenSource,
    /// Hides each token from the moment at which it is read.
    mask: Mask,
    /// The value of the header `Authorization`.
    current: Mutex<Option<HeaderValue>>,
}

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BearerToken")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl BearerToken {
    pub(in crate::client) fn new(source: TokenSource, mask: Mask) -> Self {
        Self {
            source,
            mask,
            current: Mutex::new(None),
        }
    }

    /// The header with the token; it is read at its first use.
    pub(super) async fn header(&self) -> Result<HeaderValue, HttpFault> {
        let current = self.current.lock().clone();
        match current {
            Some(header) => Ok(header),
            None => self.read().await,
        }
    }

    /// The header with a token that differs from the refused one, read again; `None` if it is still the same.
    pub(super) async fn renewed(
        &self,
        refused: &HeaderValue,
    ) -> Result<Option<HeaderValue>, HttpFault> {
        let current = self.current.lock().clone();
        // Another request may have read the new token already.
        if let Some(other) = current.filter(|header| header != refused) {
            return Ok(Some(other));
        }
        Ok(Some(self.read().await?).filter(|header| header != refused))
    }

    async fn read(&self) -> Result<HeaderValue, HttpFault> {
        let text = match &self.source {
            TokenSource::Value(text) => text.clone(),
            TokenSource::File(file) => read(file).await?,
        };
        self.mask.learn([text.trim().to_owned()]);
        let header = token::bearer(&text).ok_or_else(|| HttpFault::Token(NO_TOKEN.to_owned()))?;
        *self.current.lock() = Some(header.clone());
        Ok(header)
    }
}

const NO_TOKEN: &str = "the bearer token is empty or has blanks or letters beyond ASCII";

async fn read(file: &Path) -> Result<String, HttpFault> {
    let file_name = file.display();
    let read = token::read_file(file).await;
    read.map_err(|fault| {
        HttpFault::Token(match fault {
            FileFault::Unreadable(error) => {
                format!("the file of the bearer token cannot be read ({file_name}): {error}")
            }
            FileFault::TooLong(_) => {
                format!("the file of the bearer token is too long ({file_name})")
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_again_only_when_its_token_was_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "first-t0ken\n").unwrap();
        let mask = Mask::default();
        let token = BearerToken::new(TokenSource::File(file.clone()), mask.clone());
        let first = token.header().await.unwrap();
        assert_eq!(first, "Bearer first-t0ken");
        assert_eq!(
            token.renewed(&first).await.unwrap(),
            None,
            "the file has not changed"
        );
        std::fs::write(&file, "second-t0ken").unwrap();
        assert_eq!(
            token.header().await.unwrap(),
            first,
            "the token still works"
        );
        let second = token.renewed(&first).await.unwrap().unwrap();
        assert_eq!(second, "Bearer second-t0ken");
        assert_eq!(
            mask.apply("first-t0ken, second-t0ken"),
            "[masked], [masked]",
            "both are hidden"
        );
        std::fs::remove_file(&file).unwrap();
        assert_eq!(
            token.renewed(&first).await.unwrap().unwrap(),
            second,
            "another call has read it already"
        );
        let missing = token.renewed(&second).await.unwrap_err().to_string();
        assert!(
            missing.contains("/token)") && missing.contains("No such file"),
            "{missing}"
        );
        assert!(!format!("{token:?} {first:?}").contains("t0ken"));
    }

    #[tokio::test]
    async fn a_text_that_no_header_can_carry_is_no_token() {
        for text in ["", " \n", "two words", "sécret"] {
            let fault = BearerToken::new(TokenSource::Value(text.to_owned()), Mask::default());
            let fault = fault.header().await.unwrap_err();
            assert_eq!(fault.to_string(), NO_TOKEN);
        }
    }
}
