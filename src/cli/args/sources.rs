//! Arguments of `sources`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::checks::JsonArgs;
use crate::config::source_name_fault;

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
    #[command(after_help = TEST_FILES)]
    Test(SourcesTestArgs),
    /// Print a first source for the bodies of a system that no source knows, guessed from one body
    #[command(after_help = INIT_EXAMPLE)]
    Init(SourcesInitArgs),
}

const TEST_FILES: &str = "\
A folder has <source>/samples/<incident>/<nn>.json, each with <nn>.expected.yaml beside it: title, type, severity and
status, or a list of them. All bodies of one incident need one fingerprint, and no two incidents the same.
Without a folder the samples of the built-in sources are read, with the sources of tarsy.yaml before them.";

const INIT_EXAMPLE: &str = "\
Example:
  tarsy sources init --name shop-watch < body.json >> sources.yaml

The output belongs under `sources:` in tarsy.yaml. Complete it: a body of one moment does not show every word of a
state. tarsy inspect alert --source shop-watch --why shows what each line finds.";

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
