//! `tarsy doctor`, `tarsy tools` and `tarsy completions`.

use std::io::Write as _;
use std::pin::pin;

use anyhow::ensure;
use clap::CommandFactory as _;
use futures_util::StreamExt as _;
use futures_util::future::join_all;

use super::output::{json_line, json_lines, note, print};
use super::{addresses, load_config, one_line_error, write_error};
use crate::cli::args::{Cli, CompletionsArgs, DoctorArgs, GlobalArgs, ToolsArgs};
use crate::cli::exit::Exit;
use crate::cli::render::tables::checks;
use crate::cli::view::TerminalEnv;
use crate::config::find;
use crate::mcp::Inventory;
use crate::roles::models::Ask;
use crate::roles::{doctor, tools};

pub(super) async fn doctor(global: &GlobalArgs, args: DoctorArgs) -> anyhow::Result<Exit> {
    let style = TerminalEnv::of_process().style();
    let mut found = Vec::new();
    let ask = if args.probe { Ask::OneWord(doctor::PROBE_TIMEOUT) } else { Ask::Nothing };
    let mut checks = pin!(doctor::run(&addresses(global), find(global.config.clone()), ask));
    while let Some(check) = checks.next().await {
        let lines = if args.json { vec![json_line(&check)?] } else { checks::check(&check, &style) };
        print(&lines)?;
        found.push(check);
    }
    if !args.json {
        print(&[checks::sum(&found)])?;
    }
    let failed = found.iter().any(|check| check.verdict == doctor::Verdict::Fail);
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

pub(super) async fn tools(global: &GlobalArgs, args: ToolsArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let style = TerminalEnv::of_process().style();
    let mut names: Vec<&str> = config.mcp_servers.keys().map(String::as_str).collect();
    if let Some(wanted) = &args.server {
        let defined = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ensure!(names.contains(&wanted.as_str()), "there is no MCP server {wanted:?}; defined: {defined}");
        names.retain(|name| name == wanted);
    }
    if names.is_empty() {
        note("no MCP server is configured")?;
        return Ok(Exit::Done);
    }
    let listed = join_all(names.iter().map(|name| tools::list(&config, name))).await;
    let mut exit = Exit::Done;
    for (name, listed) in names.into_iter().zip(listed) {
        match listed {
            Ok(Inventory { tools, unknown }) => {
                let lines = if args.json { json_lines(&tools)? } else { checks::tools(name, &tools, &style) };
                print(&lines)?;
                if !unknown.is_empty() {
                    note(&format!("{name}: the server has no tool of these names: {}", unknown.join(", ")))?;
                }
            }
            Err(error) => {
                write_error(&format!("{name}: {}", one_line_error(&error)));
                exit = Exit::Failed;
            }
        }
    }
    Ok(exit)
}

pub(super) fn completions(args: CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tarsy", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}
