//! Arguments of the commands that inspect a system or an input without changing anything.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::values::duration;
use tarsy_core::alert::Severity;

/// Arguments of commands that accept nothing but `--json`.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonArgs {
    /// For programs: one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoctorArgs {
    /// Ask each model that the configuration uses for one word, which the provider may bill: the default
    #[arg(long, conflicts_with = "no_probe")]
    pub probe: bool,
    /// Ask no model
    #[arg(long)]
    pub no_probe: bool,
    /// Instead, show which roles of tarsy the credentials for NATS and Postgres fit, and what they permit beyond that
    #[arg(long, conflicts_with = "probe")]
    pub permissions: bool,
    /// For programs: one JSON object a check
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `queue`.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueArgs {
    /// The largest number of alerts to list
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "5", value_parser = clap::value_parser!(u32).range(0..=200))]
    pub limit: u32,
    /// How long to wait for the statuses of the workers [default: 6s, each sends one every 5 s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,
    /// As one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `health`.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthArgs {
    /// Address of metrics and health of the role
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:9090")]
    pub address: SocketAddr,
    /// How long the role may take for its answer
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
    pub timeout: Duration,
}

/// Arguments of `models`.
#[derive(Args, Clone, Debug)]
pub struct ModelsArgs {
    /// Only this provider [default: every provider]
    pub name: Option<String>,
    /// Ask each model for one call of a tool, or two, and say which strategy fits; the provider may bill the tokens
    #[arg(long)]
    pub probe: bool,
    /// How long a model may take for an answer to --probe [default: as long as the times of its provider allow]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// For programs: one JSON object a model
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `completions`.
#[derive(Args, Clone, Copy, Debug)]
pub struct CompletionsArgs {
    /// bash, elvish, fish, powershell or zsh
    #[arg(hide_possible_values = true)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Args, Clone, Debug)]
pub struct ManArgs {
    /// The command, such as `sessions show` [default: the program]
    #[arg(conflicts_with = "directory")]
    pub command: Vec<String>,
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
}

/// The inputs that can be inspected.
#[derive(Clone, Debug, Subcommand)]
pub enum InspectCommand {
    /// Show an alert as the intake normalises it, as JSON; several of one body as a list
    Alert(InspectAlertArgs),
    /// Show a model's written answer as the parser reads it, as JSON
    Reply(InspectReplyArgs),
    /// Show the timeline events of a model's answer, as JSON, one event a line
    Stream(InspectStreamArgs),
}

/// Arguments of `inspect reply`.
#[derive(Args, Clone, Debug)]
pub struct InspectReplyArgs {
    /// The answer, any text; - reads standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// The tools that are offered, separated by commas [default: whatever has the form server.tool]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,
}

/// Arguments of `inspect stream`.
#[derive(Args, Clone, Debug)]
pub struct InspectStreamArgs {
    /// The answer, one chunk as JSON on every line; - reads standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// The strategy of the agent that gets the answer: native-thinking, react, synthesis or single-call
    #[arg(long, value_enum, hide_possible_values = true, value_name = "STRATEGY")]
    pub controller: Controller,
}

/// The strategies whose timelines differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Controller {
    /// Native tool calls until an answer without a call
    NativeThinking,
    /// One answer without tools
    Synthesis,
    /// Tool calls written as text
    React,
    /// One answer without tools, to an agent without a strategy
    SingleCall,
}

/// Arguments of `inspect alert`.
#[derive(Args, Clone, Debug)]
pub struct InspectAlertArgs {
    /// The alert: any text or JSON; - reads standard input
    #[arg(default_value = "-")]
    pub file: PathBuf,
    #[command(flatten)]
    pub message: MessageArgs,
    /// Also explain each decision in a sentence, and show what gave each field
    #[arg(long)]
    pub why: bool,
}

/// The message around a body that is read without a server.
#[derive(Args, Clone, Debug)]
pub struct MessageArgs {
    /// The queue it would come from: the severity of a body that names none
    #[arg(long, short, value_name = "PRIORITY")]
    pub priority: Option<Severity>,
    /// A header of the message, as 'Name: value'; may be given more than once
    #[arg(long = "header", short = 'H', value_name = "HEADER", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// Read it as a body of this source, as on /hooks/<source> [default: the source whose rule fits]
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| "accepted: 'Name: value'".to_owned())?;
    let name = name.trim();
    let value = value.trim();

    if name.is_empty() || text.chars().any(char::is_control) {
        return Err("accepted: 'Name: value', on one line".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_name_and_a_value() {
        let parsed = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(
            header("Tarsy-Runbook-Url: https://x/y"),
            parsed("Tarsy-Runbook-Url", "https://x/y")
        );
        assert_eq!(header("a:"), parsed("a", ""));
        for wrong in ["a", ": b", "a: b\nc: d"] {
            assert!(header(wrong).is_err(), "{wrong:?}");
        }
    }
}
