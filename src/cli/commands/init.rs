//! `tarsy init`: writes a first configuration, and prints the findings and the next commands.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::output::{note, print};
use crate::admin::init::{self, Existing, LOCAL_OLLAMA};
use crate::cli::args::{GlobalArgs, InitArgs};
use crate::cli::exit::Exit;
use tarsy_config::{Config, FILE, process_env};

/// Columns of the name of a finding.
const FOUND_COLUMNS: usize = 28;
const COMMAND_COLUMNS: usize = 28;

pub(super) async fn run(global: &GlobalArgs, args: InitArgs) -> anyhow::Result<Exit> {
    // A variable names the file of a running system, which a new one does not replace.
    let of_system = std::env::var_os("TARSY_CONFIG").map(PathBuf::from);
    let config = global
        .config
        .clone()
        .filter(|config| of_system.as_ref() != Some(config));
    let path = args.path.or(config).unwrap_or_else(|| PathBuf::from(FILE));
    let findings = init::find(&process_env, LOCAL_OLLAMA).await;
    let folder = std::path::absolute(&path)?
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let text = init::configuration(&findings, &folder);
    Config::parse(&path.display().to_string(), &text, &process_env)?;
    let is_found = path == Path::new(FILE) && of_system.is_none();
    let option = if is_found {
        String::new()
    } else {
        format!(" --config {}", path.display())
    };
    let found = lines("Found:", init::found(&findings), FOUND_COLUMNS);
    let next = lines(
        "Next:",
        init::next_commands(&findings, &option),
        COMMAND_COLUMNS + option.len(),
    );
    if args.stdout {
        note(&found.join("\n"))?;
        if findings.has_cluster() {
            let file = folder.join(init::CLUSTER_SERVER_FILE);
            note(&format!(
                "The server needs {}:\n{}",
                file.display(),
                init::CLUSTER_SERVER_SETTINGS.trim_end()
            ))?;
        }
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    let existing = if args.force {
        Existing::Replace
    } else {
        Existing::Keep
    };
    let file = path.display();
    if let Err(error) = init::write(&path, &text, existing) {
        if error.kind() == ErrorKind::AlreadyExists {
            bail!("{file} exists and is kept: --force replaces it, --stdout prints the new one");
        }
        return Err(error).with_context(|| format!("cannot write {file}"));
    }
    let mut wrote = vec![format!("Wrote {file}")];
    if findings.has_cluster() {
        wrote.push(write_cluster_settings(&folder)?);
    }
    print(&[found, wrote, next].concat())?;
    Ok(Exit::Done)
}

/// Writes the file that denies Secrets. One that exists is kept, because the operators may have added to it.
fn write_cluster_settings(folder: &Path) -> anyhow::Result<String> {
    let file = folder.join(init::CLUSTER_SERVER_FILE);
    match init::write(&file, init::CLUSTER_SERVER_SETTINGS, Existing::Keep) {
        Ok(()) => Ok(format!("Wrote {}", file.display())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok(format!("Kept {}", file.display()))
        }
        Err(error) => Err(error).with_context(|| format!("cannot write {}", file.display())),
    }
}

/// A title, and one indented line for each pair.
fn lines(title: &str, pairs: Vec<(String, String)>, columns: usize) -> Vec<String> {
    let mut lines = vec![title.to_owned()];
    lines.extend(
        pairs
            .into_iter()
            .map(|(left, right)| format!("  {left:<columns$}  {right}")),
    );
    lines
}
