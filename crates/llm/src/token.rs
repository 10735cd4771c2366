//! The bearer tokens for the connection between worker and LLM service.

use std::path::Path;

use super::pem::{self, FileError};
use tarsy_http::outgoing::token::TokenSource;

/// The tokens of a source, at least one: each line of a file is a token. A client sends the first, and a service
/// accepts each.
///
/// # Errors
/// When the file cannot be read, or a line is no token. The message does not show it.
pub fn tokens(source: &TokenSource) -> Result<Vec<String>, FileError> {
    match source {
        TokenSource::Value(text) => {
            lines(text).map_err(|reason| FileError::new(Path::new("TARSY_LLM_TOKEN"), reason))
        }
        TokenSource::File(file) => {
            let text = String::from_utf8(pem::read(file)?)
                .map_err(|_error| FileError::new(file, NO_TOKEN))?;
            lines(&text).map_err(|reason| FileError::new(file, reason))
        }
    }
}

const NO_TOKEN: &str = "is empty or has spaces or letters beyond ASCII; accepted: visible ASCII characters, one token a line";

fn lines(text: &str) -> Result<Vec<String>, &'static str> {
    let tokens: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    if !tokens.is_empty()
        && tokens
            .iter()
            .all(|token| token.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        Ok(tokens)
    } else {
        Err(NO_TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_token_and_none_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        let source = TokenSource::File(file.clone());
        let missing = tokens(&source).unwrap_err().to_string();
        assert!(
            missing.starts_with(&file.display().to_string()),
            "{missing}"
        );
        std::fs::write(&file, "new-1\n\n old-1 \n").unwrap();
        assert_eq!(
            tokens(&source),
            Ok(vec!["new-1".to_owned(), "old-1".to_owned()])
        );
        for text in ["", "\n", "two words", "sécret"] {
            std::fs::write(&file, text).unwrap();
            let error = tokens(&source).unwrap_err().to_string();
            assert!(
                error.contains("is empty or has spaces") && !error.contains("words"),
                "{error}"
            );
        }
        let value = TokenSource::Value("s3cret".to_owned());
        assert_eq!(
            (format!("{value:?}"), tokens(&value)),
            ("Value".to_owned(), Ok(vec!["s3cret".to_owned()]))
        );
    }
}
