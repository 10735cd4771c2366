//! `tarsy init`: a first `tarsy.yaml`, based on what the machine has.
//!
//! `findings` looks at variables, files and a local Ollama and changes nothing; `file` turns the findings into a
//! configuration, and `summary` into sentences. No value of a key is read.

mod starters;
mod ollama;
mod findings;
mod file;
mod summary;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

pub use self::file::{CLUSTER_SERVER_FILE, CLUSTER_SERVER_SETTINGS, configuration};
pub use self::findings::{Findings, find};
pub use self::ollama::LOCAL_OLLAMA;
pub use self::summary::{found, next_commands};

/// The handling of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Keep,
    Replace,
}

/// Writes the configuration.
///
/// # Errors
/// `AlreadyExists` for a file that is to be kept; any other error of the file system.
pub fn write(path: &Path, text: &str, existing: Existing) -> io::Result<()> {
    match existing {
        Existing::Keep => OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)?
            .write_all(text.as_bytes()),
        Existing::Replace => {
            // A link stays a link, and a file that others may not read stays so.
            let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".new");
            let new = path.with_file_name(name);
            fs::write(&new, text)?;
            if let Ok(replaced) = fs::metadata(path) {
                fs::set_permissions(&new, replaced.permissions())?;
            }
            fs::rename(&new, path)
        }
    }
}

#[cfg(test)]
mod tests;
