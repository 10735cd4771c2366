//! Arguments of `tools`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::values::{duration, since};
use tarsy_core::clock::Moment;

/// Arguments of `tools`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ToolsArgs {
    #[command(subcommand)]
    pub command: Option<ToolsCommand>,
    #[command(flatten)]
    pub list: ToolsListArgs,
}

/// Arguments of the list of tools.
#[derive(Args, Clone, Debug)]
pub struct ToolsListArgs {
    /// Only those of this server [default: all servers]
    pub server: Option<String>,
    /// For programs: one JSON object a tool
    #[arg(long)]
    pub json: bool,
}

/// The commands about tools.
#[derive(Clone, Debug, Subcommand)]
pub enum ToolsCommand {
    /// Call one tool as an investigation would, and print its result
    Call(ToolsCallArgs),
    /// What investigations could not see, and calls of tools that gave them nothing
    Gaps(ToolsGapsArgs),
}

/// Arguments of `tools gaps`.
#[derive(Args, Clone, Debug)]
pub struct ToolsGapsArgs {
    /// Of the sessions that were opened since then: 24h, 7d, today, 2026-11-27, 2026-11-27T10:00Z
    #[arg(long, value_name = "TIME", value_parser = since, default_value = "30d")]
    pub since: Moment,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tools call`.
#[derive(Args, Clone, Debug)]
pub struct ToolsCallArgs {
    /// The tool, as server.tool
    pub tool: String,
    /// Its arguments, a JSON object
    #[arg(long, value_name = "JSON", value_parser = json_object, default_value = "{}")]
    pub args: String,
    /// Also call a tool that may change something; its server's key allow has to name it
    #[arg(long)]
    pub allow_changes: bool,
    /// How long the call may take [default: that of the server]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Print the whole result, also what a model would not see
    #[arg(long)]
    pub whole: bool,
    /// For programs: one JSON object
    #[arg(long)]
    pub json: bool,
}

fn json_object(text: &str) -> Result<String, String> {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("accepted: a JSON object: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn parsed(args: &[&str]) -> Result<ToolsArgs, clap::Error> {
        let cli = Cli::try_parse_from([&["tarsy", "tools"], args].concat())?;
        let Command::Tools(args) = cli.command else {
            panic!("another command")
        };
        Ok(args)
    }

    #[test]
    fn a_word_is_a_server_unless_it_is_a_command() {
        let list = parsed(&["k8s", "--json"]).unwrap();
        assert_eq!(
            (
                list.list.server.as_deref(),
                list.list.json,
                list.command.is_none()
            ),
            (Some("k8s"), true, true)
        );
        let Some(ToolsCommand::Call(call)) = parsed(&["call", "k8s.get", "--args", r#"{"a": 1}"#])
            .unwrap()
            .command
        else {
            panic!("no call")
        };
        assert_eq!(
            (call.tool.as_str(), call.args.as_str(), call.allow_changes),
            ("k8s.get", r#"{"a": 1}"#, false)
        );
        for wrong in [
            &["call"][..],
            &["call", "a.b", "--args", "[1]"],
            &["call", "a.b", "--args", "x"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}
