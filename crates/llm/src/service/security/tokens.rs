//! The bearer tokens that the service accepts.

use parking_lot::Mutex;

use tonic::codegen::http::HeaderMap;

use crate::pem::FileError;
use crate::token::tokens;
use tarsy_http::listener::Token;
use tarsy_http::outgoing::token::TokenSource;
use tarsy_mask::Mask;

/// The tokens as they were read last.
#[derive(Debug)]
pub(super) struct Tokens {
    source: TokenSource,
    /// Hides each token from the moment at which it is read.
    mask: Mask,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    accepted: Vec<Token>,
    /// The fault that was logged last.
    fault: Option<FileError>,
}

impl Tokens {
    pub(super) fn load(source: TokenSource, mask: Mask) -> Result<Self, FileError> {
        Ok(Self {
            current: Mutex::new(Current {
                accepted: accepted(&source, &mask)?,
                fault: None,
            }),
            source,
            mask,
        })
    }

    /// Whether the headers carry one of the tokens. Each is compared, in constant time.
    pub(super) fn permit(&self, headers: &HeaderMap) -> bool {
        self.current
            .lock()
            .accepted
            .iter()
            .fold(false, |permitted, token| token.matches(headers) | permitted)
    }

    pub(super) fn reload(&self) {
        let read = accepted(&self.source, &self.mask);
        let mut current = self.current.lock();
        match read {
            Ok(accepted) => {
                *current = Current {
                    accepted,
                    fault: None,
                }
            }
            Err(fault) if current.fault.as_ref() != Some(&fault) => {
                tracing::error!(%fault, "token not reloaded: the previous one stays in use");
                current.fault = Some(fault);
            }
            Err(_) => {}
        }
    }
}

fn accepted(source: &TokenSource, mask: &Mask) -> Result<Vec<Token>, FileError> {
    let texts = tokens(source)?;
    mask.learn(texts.iter().cloned());
    Ok(texts.iter().filter_map(|text| Token::new(text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(tokens: &Tokens, token: &str) -> bool {
        let header = format!("Bearer {token}").parse().unwrap();
        tokens.permit(&HeaderMap::from_iter([(
            tonic::codegen::http::header::AUTHORIZATION,
            header,
        )]))
    }

    #[test]
    fn both_tokens_of_a_rotation_are_accepted_and_a_broken_file_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        std::fs::write(&file, "old-t0ken\n").unwrap();
        let mask = Mask::default();
        let tokens = Tokens::load(TokenSource::File(file.clone()), mask.clone()).unwrap();
        assert!(
            permits(&tokens, "old-t0ken")
                && !permits(&tokens, "new-t0ken")
                && !tokens.permit(&HeaderMap::new())
        );
        std::fs::write(&file, "new-t0ken\nold-t0ken\n").unwrap();
        tokens.reload();
        assert!(permits(&tokens, "old-t0ken") && permits(&tokens, "new-t0ken"));
        std::fs::write(&file, "new-t0ken\n").unwrap();
        tokens.reload();
        assert_eq!(
            mask.apply("old-t0ken, new-t0ken"),
            "[masked], [masked]",
            "both are hidden"
        );
        std::fs::remove_file(&file).unwrap();
        tokens.reload();
        assert!(!permits(&tokens, "old-t0ken") && permits(&tokens, "new-t0ken"));
        assert!(Tokens::load(TokenSource::File(file), mask).is_err());
    }
}
