//! A secret of an operator: the value of a variable, or of the file that `<variable>_FILE` names.
//!
//! A file is read each time the secret is needed, so a renewed secret is used without a restart. No message shows the
//! content.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Env, Fault, Faults};

/// A larger file has no secret of ours.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The source of a secret. The `Debug` form leaves its text out.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The variable that has the secret or names its file, for messages.
    variable: String,
    source: Source,
}

/// The place of a secret that a key of the configuration names. It is read for each use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    File(String),
    /// The name of a variable.
    Variable(String),
}

#[derive(Clone, PartialEq, Eq)]
enum Source {
    Value(String),
    File(PathBuf),
}

/// A secret cannot be used. The message names its variable and file, and never shows its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct SecretError {
    /// `NATS_TOKEN`, or `NATS_TOKEN_FILE: /run/secrets/token`.
    pub place: String,
    pub reason: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("place", &self.place())
            .finish_non_exhaustive()
    }
}

impl Secret {
    /// The secret of a variable, or of the file that `<variable>_FILE` names. An empty variable counts as unset. The
    /// file is not read yet.
    ///
    /// # Errors
    /// When both variables are set.
    pub fn find(variable: &str, env: Env<'_>) -> Result<Option<Self>, Faults> {
        let file = Self::file_of(&format!("{variable}_FILE"), env);
        match (env(variable).filter(|text| !text.is_empty()), file) {
            (Some(_), Some(file)) => {
                let problem = format!("is set, and {variable} as well; accepted: only one of them");
                Err(environment_fault(&file.variable, problem))
            }
            (Some(text), None) => Ok(Some(Self {
                variable: variable.to_owned(),
                source: Source::Value(text),
            })),
            (None, file) => Ok(file),
        }
    }

    /// The secret in the file that a variable names. The file is not read yet.
    pub fn file_of(variable: &str, env: Env<'_>) -> Option<Self> {
        let file = env(variable).filter(|file| !file.is_empty())?;
        Some(Self {
            variable: variable.to_owned(),
            source: Source::File(file.into()),
        })
    }

    /// The secret in a file that the key of a configuration names. The file is not read yet.
    pub fn in_file(key: &str, file: &str) -> Self {
        Self {
            variable: key.to_owned(),
            source: Source::File(file.into()),
        }
    }

    /// The secret in a variable that the key of a configuration names. One that is not set counts as empty, which is an
    /// error of each use.
    pub fn in_variable(name: &str, env: Env<'_>) -> Self {
        Self {
            variable: name.to_owned(),
            source: Source::Value(env(name).unwrap_or_default()),
        }
    }

    /// The variable that has the secret or names its file.
    pub fn variable(&self) -> &str {
        &self.variable
    }

    /// Whether a file has the secret, so that it can change while the process runs.
    pub fn is_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// The secret as it is now, without line breaks and blanks around it.
    ///
    /// # Errors
    /// When the file cannot be read, or the secret is empty or longer than a line.
    pub fn read(&self) -> Result<String, SecretError> {
        let text = self.read_lines()?;
        let text = text.trim();
        if text.contains(['\n', '\r', '\0']) {
            return Err(self.fault("has more than one line; accepted: the secret alone"));
        }
        Ok(text.to_owned())
    }

    /// The whole text, which may have several lines.
    ///
    /// # Errors
    /// When the file cannot be read, or the text is empty.
    pub fn read_lines(&self) -> Result<String, SecretError> {
        let text = match &self.source {
            Source::Value(text) => text.clone(),
            Source::File(file) => self.read_file(file)?,
        };
        if text.trim().is_empty() {
            Err(self.fault("is empty"))
        } else {
            Ok(text)
        }
    }

    fn read_file(&self, file: &Path) -> Result<String, SecretError> {
        let unreadable = |error: std::io::Error| {
            if error.kind() == ErrorKind::NotFound {
                self.fault("there is no such file")
            } else if error.kind() == ErrorKind::PermissionDenied {
                self.fault("this process may not read the file")
            } else {
                self.fault(&error.to_string())
            }
        };
        let size = std::fs::metadata(file).map_err(unreadable)?.len();
        if size > MAX_FILE_BYTES {
            return Err(self.fault(&format!(
                "has {size} bytes; at most {MAX_FILE_BYTES} are read"
            )));
        }
        let bytes = std::fs::read(file).map_err(unreadable)?;
        String::from_utf8(bytes).map_err(|_error| self.fault("is not UTF-8 text"))
    }

    /// An error about this secret.
    pub fn fault(&self, reason: &str) -> SecretError {
        SecretError {
            place: self.place(),
            reason: reason.to_owned(),
        }
    }

    fn place(&self) -> String {
        match &self.source {
            Source::Value(_) => self.variable.clone(),
            Source::File(file) => format!("{}: {}", self.variable, file.display()),
        }
    }
}

/// A fault of an environment variable.
pub fn environment_fault(variable: &str, problem: String) -> Faults {
    let fault = Fault {
        key: variable.to_owned(),
        line: 0,
        problem,
    };
    Faults {
        file: "environment".to_owned(),
        faults: vec![fault],
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn found(set: &[(&str, &str)]) -> Result<Option<Secret>, String> {
        let secret = Secret::find("NATS_TOKEN", &|name| {
            let (_, value) = set.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        });
        secret.map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_variable_or_a_file_has_a_secret_but_not_both() {
        assert_eq!(found(&[]), Ok(None));
        assert_eq!(
            found(&[("NATS_TOKEN", ""), ("NATS_TOKEN_FILE", "")]),
            Ok(None)
        );
        let secret = found(&[("NATS_TOKEN", "s3cret")]).unwrap().unwrap();
        assert_eq!(
            (secret.read(), secret.is_file()),
            (Ok("s3cret".to_owned()), false)
        );
        assert_eq!(
            format!("{secret:?}"),
            r#"Secret { place: "NATS_TOKEN", .. }"#
        );
        let both = found(&[("NATS_TOKEN", "s3cret"), ("NATS_TOKEN_FILE", "/f")]).unwrap_err();
        assert!(
            both.contains("NATS_TOKEN_FILE") && both.contains("NATS_TOKEN as well"),
            "{both}"
        );
        assert!(!both.contains("s3cret"), "{both}");
    }

    #[test]
    fn each_fault_of_a_file_is_named_and_a_last_line_break_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let file = path.display().to_string();
        let secret = found(&[("NATS_TOKEN_FILE", &file)]).unwrap().unwrap();
        let reason = || {
            secret
                .read()
                .unwrap_err()
                .to_string()
                .replace(&file, "FILE")
        };
        assert_eq!(reason(), "NATS_TOKEN_FILE: FILE: there is no such file");
        for (content, expected) in [
            ("", "is empty"),
            (" \n", "is empty"),
            (
                "s3cret\nother\n",
                "has more than one line; accepted: the secret alone",
            ),
            (
                &"s3cret".repeat(20_000),
                "has 120000 bytes; at most 65536 are read",
            ),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(reason(), format!("NATS_TOKEN_FILE: FILE: {expected}"));
        }
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(reason(), "NATS_TOKEN_FILE: FILE: is not UTF-8 text");
        for written in ["s3cret", "s3cret\n", "s3cret\r\n"] {
            std::fs::write(&path, written).unwrap();
            assert_eq!(secret.read(), Ok("s3cret".to_owned()));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser may read every file.
        if let Err(error) = std::fs::read(&path) {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            assert_eq!(
                reason(),
                "NATS_TOKEN_FILE: FILE: this process may not read the file"
            );
        }
    }
}
