//! Arguments of the commands that write or print a configuration.

use std::path::PathBuf;

use clap::Args;

use tarsy_config::{EXAMPLES, example_of};

/// Arguments of `config example`.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct ExampleArgs {
    /// The case; --list names them [default: a file with every setting]
    #[arg(value_parser = case)]
    pub case: Option<String>,
    /// Name the cases and print none
    #[arg(long, conflicts_with = "case")]
    pub list: bool,
    /// Add the case to this file, whose own lines stay as they are, and print none
    #[arg(long, value_name = "FILE", requires = "case")]
    pub into: Option<PathBuf>,
}

/// Arguments of `init`.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct InitArgs {
    /// Where to write it [default: tarsy.yaml, or the file that --config names]
    #[arg(long, value_name = "FILE", conflicts_with = "stdout")]
    pub path: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(long, conflicts_with = "stdout")]
    pub force: bool,
    /// Print the file and write none
    #[arg(long)]
    pub stdout: bool,
}

/// A case of the examples.
fn case(text: &str) -> Result<String, String> {
    if example_of(text).is_some() {
        return Ok(text.to_owned());
    }
    let cases: Vec<&str> = EXAMPLES.iter().map(|example| example.case).collect();
    Err(format!(
        "there is no example {text:?}; there are: {}",
        cases.join(", ")
    ))
}
