//! `tarsy inspect`: shows as JSON how tarsy reads an alert or an answer, without a server.

mod alert;
pub(super) mod message;
mod stream;

use super::output::print;
use super::submit;
use crate::cli::args::{GlobalArgs, InspectCommand, InspectReplyArgs};
use crate::cli::exit::Exit;
use crate::cli::render::json::pretty;
use tarsy_core::plan::ToolSpec;
use tarsy_core::react;

pub(super) fn run(global: &GlobalArgs, command: InspectCommand) -> anyhow::Result<Exit> {
    match command {
        InspectCommand::Alert(args) => alert::run(global, args),
        InspectCommand::Reply(args) => inspect_reply(&args),
        InspectCommand::Stream(args) => stream::run(&args),
    }
}

/// Reads any bytes as an answer; invalid UTF-8 is replaced.
fn inspect_reply(args: &InspectReplyArgs) -> anyhow::Result<Exit> {
    let text = submit::read(&args.file)?;
    let offered: Option<Vec<ToolSpec>> = args.tools.as_ref().map(|names| {
        let names = names.iter().map(|name| name.trim());
        names
            .filter(|name| !name.is_empty())
            .map(|name| tool(name.to_owned()))
            .collect()
    });
    let reply = react::read(&String::from_utf8_lossy(&text), offered.as_deref());
    print(&[pretty(&reply)?])?;
    Ok(Exit::Done)
}

/// A tool with a name and nothing else.
fn tool(name: String) -> ToolSpec {
    ToolSpec {
        name,
        original_name: None,
        description: String::new(),
        parameters_schema: "{}".to_owned(),
        read_only: true,
        approval: None,
    }
}
