//! Arguments of `sources`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::checks::JsonArgs;
use tarsy_config::source_name_fault;

/// The commands about the sources of alerts.
#[derive(Clone, Debug, Subcommand)]
pub enum SourcesCommand {
    /// List the sources: where each is from, which statuses it knows, how its senders prove who they are
    #[command(alias = "ls")]
    List(JsonArgs),
    /// Print a source as YAML, with everything that it has from the one that it is like
    #[command(alias = "get")]
    Show(SourcesShowArgs),
    /// Read recorded bodies and compare their alerts with the expected ones; exit code 1 if one differs
    Test(SourcesTestArgs),
    /// Print a first source for the bodies of a system that no source knows, guessed from one body
    Init(SourcesInitArgs),
}

/// Arguments of `sources show`.
#[derive(Args, Clone, Debug)]
pub struct SourcesShowArgs {
    /// The name, as sources list shows it
    pub name: String,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `sources test`.
#[derive(Args, Clone, Debug)]
pub struct SourcesTestArgs {
    /// The folder of the samples [default: the samples of the built-in sources]
    #[arg(value_name = "DIRECTORY")]
    pub folder: Option<PathBuf>,
    /// For programs: one JSON object a sample
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `sources init`.
#[derive(Args, Clone, Debug)]
pub struct SourcesInitArgs {
    /// One body that the system sends, as JSON; - reads standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// The name of the source, and the last part of its path [default: my-source]
    #[arg(long, value_name = "NAME", value_parser = source_name)]
    pub name: Option<String>,
}

fn source_name(text: &str) -> Result<String, String> {
    match source_name_fault(text) {
        Some(fault) => Err(fault),
        None => Ok(text.to_owned()),
    }
}
