//! The bearer tokens of listed hosts. A token is sent to its own host only, and over TLS only.
//!
//! It is read at each fetch, so a file with another token takes effect at once.

use std::path::Path;

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::location::{GITHUB, GITHUB_RAW};
use tarsy_config::{RunbookSource, SecretSource, process_env};
use tarsy_core::runbook::{RunbookHost, is_listed};
use tarsy_http::outgoing::token::{self, FileFault};
use tarsy_mask::Mask;

const NO_TOKEN: &str = "the token of its host is empty or has blanks or letters beyond ASCII";

/// The hosts with a token.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens {
    hosts: Vec<(RunbookHost, SecretSource)>,
    /// Learns each token before it is sent, because a page may repeat it.
    mask: Mask,
}

impl Tokens {
    pub(super) fn new<'a>(sources: impl Iterator<Item = &'a RunbookSource>, mask: Mask) -> Self {
        let hosts = sources
            .filter_map(|source| Some((source.host.clone(), source.token.clone()?)))
            .collect();
        Self { hosts, mask }
    }

    /// The header `Authorization` for this URL; `None` if its host has no token.
    ///
    /// # Errors
    /// When the URL has no TLS, or the token cannot be read. The text shows neither the token nor its file.
    pub(super) async fn header(&self, url: &Url) -> Result<Option<HeaderValue>, String> {
        let Some(token) = self.token(url) else {
            return Ok(None);
        };
        if url.scheme() != "https" {
            return Err(
                "its host has a token, which is sent over TLS only; the URL begins with http://"
                    .to_owned(),
            );
        }
        let text = match token {
            SecretSource::File(file) => read(file).await?,
            SecretSource::Variable(name) => process_env(name).unwrap_or_default(),
        };
        let header = token::bearer(&text).ok_or_else(|| NO_TOKEN.to_owned())?;
        self.mask.learn([text.trim().to_owned()]);
        Ok(Some(header))
    }

    fn token(&self, url: &Url) -> Option<&SecretSource> {
        let of = |url: &str| {
            self.hosts
                .iter()
                .find(|(host, _)| is_listed(std::slice::from_ref(host), url))
        };
        // Only a page of github.com leads to this host unless it is listed itself.
        let is_file_of_github = url.host_str() == Some(GITHUB_RAW) && url.port().is_none();
        let found = of(url.as_str())
            .or_else(|| is_file_of_github.then(|| of(&format!("https://{GITHUB}/")))?);
        found.map(|(_, token)| token)
    }
}

async fn read(file: &str) -> Result<String, String> {
    let read = token::read_file(Path::new(file)).await;
    read.map_err(|fault| match fault {
        FileFault::Unreadable(error) => format!("the token of its host cannot be read: {error}"),
        FileFault::TooLong(_) => "the token of its host is too long".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(entries: &[(&str, &Path)]) -> Tokens {
        Tokens {
            hosts: entries
                .iter()
                .map(|(host, file): &(&str, &Path)| {
                    (
                        RunbookHost::parse(host).unwrap(),
                        SecretSource::File(file.display().to_string()),
                    )
                })
                .collect(),
            mask: Mask::default(),
        }
    }

    async fn sent(tokens: &Tokens, url: &str) -> Result<Option<HeaderValue>, String> {
        tokens.header(&Url::parse(url).unwrap()).await
    }

    #[tokio::test]
    async fn a_token_reaches_exactly_its_host_and_port_over_tls() {
        let folder = tempfile::tempdir().unwrap();
        let wiki = folder.path().join("wiki");
        let github = folder.path().join("github");

        std::fs::write(&wiki, "wiki-t0ken\n").unwrap();
        std::fs::write(&github, "github-t0ken").unwrap();
        let tokens = tokens(&[("wiki.corp:8443", &wiki), ("github.com", &github)]);
        for (url, expected) in [
            ("https://wiki.corp:8443/a", Some("Bearer wiki-t0ken")),
            ("https://wiki.corp/a", None),
            ("https://x.wiki.corp:8443/a", None),
            ("https://github.com/o/r/wiki", Some("Bearer github-t0ken")),
            (
                "https://raw.githubusercontent.com/o/r/main/x",
                Some("Bearer github-t0ken"),
            ),
            ("https://raw.githubusercontent.com:8443/o/r/main/x", None),
            ("https://gist.github.com/x", None),
            ("https://github.com.evil.test/x", None),
        ] {
            let header = sent(&tokens, url).await.unwrap();
            assert_eq!(
                header.as_ref().map(|header| header.to_str().unwrap()),
                expected,
                "{url}"
            );
            assert!(header.is_none_or(|header| header.is_sensitive()));
        }
        for url in [
            "http://wiki.corp:8443/a",
            "http://github.com/a",
            "http://raw.githubusercontent.com/o/r/main/x",
        ] {
            assert!(
                sent(&tokens, url)
                    .await
                    .unwrap_err()
                    .contains("over TLS only"),
                "{url}"
            );
        }
    }

    #[tokio::test]
    async fn a_token_is_read_anew_for_each_request_and_no_fault_shows_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let tokens = tokens(&[("wiki.corp", &file)]);
        let url = "https://wiki.corp/a";
        let missing = sent(&tokens, url).await.unwrap_err();
        assert!(
            missing.starts_with("the token of its host cannot be read: No such file"),
            "{missing}"
        );
        for text in ["first-t0ken", "second-t0ken"] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(
                sent(&tokens, url).await.unwrap().unwrap(),
                format!("Bearer {text}").as_str()
            );
        }
        let too_long = "x".repeat(17 * 1024);
        for text in ["", " \n", "two w0rds", &too_long] {
            std::fs::write(&file, text).unwrap();
            let fault = sent(&tokens, url).await.unwrap_err();
            assert!(
                fault.starts_with("the token of its host is") && !fault.contains("w0rds"),
                "{fault}"
            );
        }
    }
}
