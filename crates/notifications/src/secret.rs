//! The secrets of routes: read for each message, and learnt by the mask before they are sent.

use std::path::Path;

use reqwest::Url;
use reqwest::header::HeaderValue;

use tarsy_config::{SecretSource, process_env};
use tarsy_http::outgoing::token::{self, FileFault};
use tarsy_mask::Mask;

/// Reads secrets. The mask learns each of them.
#[derive(Debug)]
pub(super) struct Secrets(pub(super) Mask);

impl Secrets {
    /// The secret without blanks around it.
    ///
    /// # Errors
    /// When it cannot be read, or is empty. The text shows neither the secret nor its file.
    pub(super) async fn text(&self, secret: &SecretSource) -> Result<String, String> {
        let text = match secret {
            SecretSource::File(file) => read(file).await?,
            SecretSource::Variable(name) => {
                process_env(name).ok_or_else(|| format!("the variable {name} is not set"))?
            }
        };
        let text = text.trim().to_owned();
        if text.is_empty() || text.contains(['\n', '\r']) {
            return Err("its secret is empty or has several lines".to_owned());
        }
        self.0.learn([text.clone()]);
        Ok(text)
    }

    /// The secret as a URL.
    ///
    /// # Errors
    /// As [`Self::text`]; also when it is no URL.
    pub(super) async fn url(&self, secret: &SecretSource) -> Result<Url, String> {
        parsed(&self.text(secret).await?)
    }

    /// The secret as a bearer token.
    ///
    /// # Errors
    /// As [`Self::text`]; also when no header can have it.
    pub(super) async fn bearer(&self, secret: &SecretSource) -> Result<HeaderValue, String> {
        let token = self.text(secret).await?;
        token::bearer(&token)
            .ok_or_else(|| "its token has characters that no header can have".to_owned())
    }
}

async fn read(file: &str) -> Result<String, String> {
    let read = token::read_file(Path::new(file)).await;
    read.map_err(|fault| match fault {
        FileFault::Unreadable(error) => format!("its secret cannot be read: {error}"),
        FileFault::TooLong(_) => format!("its secret has {fault}"),
    })
}

/// A URL with `http` or `https`.
///
/// # Errors
/// With a reason that does not show it.
pub(super) fn parsed(text: &str) -> Result<Url, String> {
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| "its address is no URL that begins with http:// or https://".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_secret_is_masked_from_the_moment_at_which_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "s3cret-t0ken\n").unwrap();
        let mask = Mask::default();
        let secrets = Secrets(mask.clone());
        let header = secrets
            .bearer(&SecretSource::File(file.display().to_string()))
            .await
            .unwrap();
        assert_eq!(header, "Bearer s3cret-t0ken");
        assert!(header.is_sensitive());
        assert_eq!(mask.apply("a s3cret-t0ken"), "a [masked]");
    }
}
