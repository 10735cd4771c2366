//! The bearer tokens that the service accepts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tonic::codegen::http::HeaderMap;

use crate::listener::Token;
use crate::llm::pem::FileError;
use crate::llm::token::TokenSource;

/// The tokens as they were read last.
#[derive(Debug)]
pub(super) struct Tokens {
    source: TokenSource,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    accepted: Vec<Token>,
    /// The fault that was logged last.
    fault: Option<FileError>,
}

impl Tokens {
    pub(super) fn load(source: TokenSource) -> Result<Self, FileError> {
        let accepted = accepted(&source)?;
        Ok(Self { source, current: Mutex::new(Current { accepted, fault: None }) })
    }

    /// Whether the headers carry one of the tokens. Each is compared, in constant time.
    pub(super) fn permit(&self, headers: &HeaderMap) -> bool {
        self.current().accepted.iter().fold(false, |permitted, token| token.matches(headers) | permitted)
    }

    pub(super) fn reload(&self) {
        let read = accepted(&self.source);
        let mut current = self.current();
        match read {
            Ok(accepted) => *current = Current { accepted, fault: None },
            Err(fault) if current.fault.as_ref() != Some(&fault) => {
                tracing::error!(%fault, "token not read again: the last one stays in use");
                current.fault = Some(fault);
            }
            Err(_) => {}
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accepted(source: &TokenSource) -> Result<Vec<Token>, FileError> {
    Ok(source.read()?.iter().filter_map(|text| Token::new(text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(tokens: &Tokens, token: &str) -> bool {
        let header = format!("Bearer {token}").parse().unwrap();
        tokens.permit(&HeaderMap::from_iter([(tonic::codegen::http::header::AUTHORIZATION, header)]))
    }

    #[test]
    fn both_tokens_of_a_rotation_are_accepted_and_a_broken_file_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "old\n").unwrap();
        let tokens = Tokens::load(TokenSource::File(file.clone())).unwrap();
        assert!(permits(&tokens, "old") && !permits(&tokens, "new") && !tokens.permit(&HeaderMap::new()));
        std::fs::write(&file, "new\nold\n").unwrap();
        tokens.reload();
        assert!(permits(&tokens, "old") && permits(&tokens, "new"));
        std::fs::write(&file, "new\n").unwrap();
        tokens.reload();
        std::fs::remove_file(&file).unwrap();
        tokens.reload();
        assert!(!permits(&tokens, "old") && permits(&tokens, "new"));
        assert!(Tokens::load(TokenSource::File(file)).is_err());
    }
}
