//! The key of a provider: where it is read, and how it is kept out of every text.

use std::fmt;
use std::sync::Arc;

use super::encoded;
use super::error::{ErrorCode, ProviderError};
use reqwest::header::HeaderValue;
use tarsy_mask::Mask;

/// A larger file is not a key.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Shorter keys are not searched for in messages, because they would be found in other words.
const MIN_REDACTED_CHARS: usize = 6;
const REDACTED: &str = "[key]";

type Read = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The variables from which keys and addresses are read.
#[derive(Clone)]
pub struct Environment {
    read: Arc<Read>,
    /// Hides each key from the moment at which it is read.
    mask: Mask,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    pub fn new(read: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            read: Arc::new(read),
            mask: Mask::default(),
        }
    }

    /// The same variables; each key that is read is added to this mask.
    pub fn masking(self, mask: Mask) -> Self {
        Self { mask, ..self }
    }

    /// Hides the lines of a secret that was read from a file.
    pub fn hide(&self, secret: &str) {
        let lines = secret
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("-----"));
        self.mask.learn(lines.map(ToOwned::to_owned));
    }

    /// The value of a variable; `None` if it is missing or blank.
    pub fn read(&self, name: &str) -> Option<String> {
        (self.read)(name).filter(|value| !value.trim().is_empty())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Environment")
    }
}

/// A key. Its text appears in no debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Reads a key at each request, so that a rotated key is seen: from the variable, or else from the file that
    /// `<NAME>_FILE` names.
    ///
    /// # Errors
    /// When neither is set, or the file cannot be read.
    pub async fn read(environment: &Environment, name: &str) -> Result<Self, ProviderError> {
        if let Some(value) = environment.read(name) {
            return Ok(Self(value.trim().to_owned()));
        }
        let Some(path) = environment.read(&format!("{name}_FILE")) else {
            return Err(credentials(format!(
                "Environment variable '{name}' is not set"
            )));
        };
        let unreadable =
            |reason: &str| credentials(format!("The file that '{name}_FILE' names {reason}"));
        let metadata = tokio::fs::metadata(&path)
            .await
            .map_err(|_error| unreadable("cannot be read"))?;
        if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
            return Err(unreadable("is no file of at most 64 KiB"));
        }
        let text = tokio::fs::read_to_string(&path)
            .await
            .map_err(|_error| unreadable("cannot be read"))?;
        let key = text.trim();
        if key.is_empty() {
            return Err(unreadable("is empty"));
        }
        environment.hide(key);
        Ok(Self(key.to_owned()))
    }

    /// A token that this service got by itself.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The key as the value of a header, which no debug output shows.
    ///
    /// # Errors
    /// When the key has characters that a header cannot carry.
    pub fn header(&self) -> Result<HeaderValue, ProviderError> {
        let mut value = HeaderValue::from_str(&self.0).map_err(|_error| {
            credentials("The key has characters that a header cannot carry".to_owned())
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The key itself, for a client that builds its own headers.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key, also in encoded forms, for messages of a provider that repeat it.
    pub fn redact(&self, text: &str) -> String {
        if self.0.chars().count() < MIN_REDACTED_CHARS {
            return text.to_owned();
        }
        encoded::forms(&self.0)
            .iter()
            .fold(text.to_owned(), |text, form| text.replace(form, REDACTED))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

fn credentials(message: String) -> ProviderError {
    ProviderError::new(ErrorCode::Credentials, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_read_from_its_variable_or_its_file_at_each_request() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let file = path.to_str().unwrap().to_owned();
        let environment = Environment::new(move |name| match name {
            "A" => Some(" key-a\n".to_owned()),
            "B" => Some("  ".to_owned()),
            "B_FILE" | "A_FILE" => Some(file.clone()),
            _ => None,
        });
        let mask = Mask::default();
        let environment = environment.masking(mask.clone());
        let read = |name| ApiKey::read(&environment, name);
        assert_eq!(read("A").await, Ok(ApiKey("key-a".into())));
        assert_eq!(
            read("C").await.unwrap_err().message,
            "Environment variable 'C' is not set"
        );
        assert_eq!(
            read("B").await.unwrap_err().message,
            "The file that 'B_FILE' names cannot be read"
        );
        for (text, key) in [
            ("first-key1\n", "first-key1"),
            ("second-key2", "second-key2"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read("B").await, Ok(ApiKey(key.into())));
        }
        assert_eq!(
            mask.apply("first-key1, second-key2"),
            "[masked], [masked]",
            "both are hidden"
        );
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(
            read("B").await.unwrap_err().message,
            "The file that 'B_FILE' names is empty"
        );
    }

    #[test]
    fn a_key_is_in_no_output_of_debug_and_is_removed_from_texts() {
        let key = ApiKey("secret-key-1".into());
        assert_eq!(
            format!("{key:?} {:?}", key.header().unwrap()),
            "[key] Sensitive"
        );
        assert_eq!(
            key.redact("no secret-key-1, secret-key-1"),
            "no [key], [key]"
        );
        assert_eq!(ApiKey("api".into()).redact("the api"), "the api");
        let key = ApiKey("a+secret/key=".into());
        assert_eq!(
            key.redact("?key=a%2Bsecret%2Fkey%3D&basic=OmErc2VjcmV0L2tleT0="),
            "?key=[key]&basic=Om[key]"
        );
        assert_eq!(
            ApiKey("a\nb".into()).header().unwrap_err().code,
            ErrorCode::Credentials
        );
    }
}
