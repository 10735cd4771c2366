//! `tarsy tools`: the tools of the MCP servers, with the reason why each is offered or not, and calls of them.

use anyhow::ensure;
use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use serde_json::json;

use super::database::Database;
use super::output::{json_lines, note, print, print_json, style};
use super::{load_config, one_line_error, write_error};
use crate::cli::args::{
    GlobalArgs, ToolsArgs, ToolsCallArgs, ToolsCommand, ToolsGapsArgs, ToolsListArgs,
};
use crate::cli::exit::Exit;
use crate::cli::render::tables::{checks, gaps as gap_tables};
use crate::cli::render::text;
use crate::process::tools::{self, Changes, ToolCallRequest};
use tarsy_config::Config;
use tarsy_core::clock::Moment;
use tarsy_core::plan::ToolSpec;
use tarsy_engine::plan::agent_tools::agents_with_tools;

pub(super) async fn run(global: &GlobalArgs, args: ToolsArgs) -> anyhow::Result<Exit> {
    match args.command {
        None => list(global, args.list).await,
        Some(ToolsCommand::Call(args)) => call(global, args).await,
        Some(ToolsCommand::Gaps(args)) => gaps(global, args).await,
    }
}

async fn list(global: &GlobalArgs, args: ToolsListArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let style = style();
    let mut names: Vec<&str> = config.mcp_servers.keys().map(String::as_str).collect();
    if let Some(wanted) = &args.server {
        ensure!(
            names.contains(&wanted.as_str()),
            tools::unknown_server(&config, wanted)
        );
        names.retain(|name| name == wanted);
    }
    if names.is_empty() {
        note("no MCP server is configured")?;
        return Ok(Exit::Done);
    }
    let listed = join_all(names.iter().map(|name| tools::list(&config, name))).await;
    let mut exit = Exit::Done;
    let mut offered = Vec::new();

    for (name, listed) in names.into_iter().zip(listed) {
        match listed {
            Ok(inventory) => {
                let lines = if args.json {
                    json_lines(&inventory.tools)?
                } else {
                    checks::tools(name, &inventory.tools, &style)
                };
                print(&lines)?;
                if !inventory.unknown.is_empty() {
                    let unknown = inventory.unknown.join(", ");
                    note(&format!(
                        "{name}: the server has no tool of these names: {unknown}"
                    ))?;
                }
                offered.extend(inventory.offered);
            }
            Err(error) => {
                write_error(&format!("{name}: {}", one_line_error(&error)));
                exit = Exit::Failed;
            }
        }
    }
    note_agents(&config, &offered)?;
    Ok(exit)
}

/// Notes the agents that do not get every tool of their servers.
fn note_agents(config: &Config, offered: &[ToolSpec]) -> anyhow::Result<()> {
    for share in agents_with_tools(config, offered) {
        let agent = format!("agent {} of chain {}", share.agent, share.chain);
        let tools = share.tools.tools.len();

        let not_named = share.not_named();
        let left_out = share.tools.left_out.len();

        if not_named > 0 {
            note(&format!(
                "{agent} gets {tools} tools: its key tools does not name {not_named} others"
            ))?;
        }
        if left_out > 0 {
            note(&format!(
                "{agent} gets {tools} tools, and {left_out} do not fit: its key tools can choose"
            ))?;
        }
    }
    Ok(())
}

async fn call(global: &GlobalArgs, args: ToolsCallArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let request = ToolCallRequest {
        tool: args.tool,
        arguments: args.args,
        changes: if args.allow_changes {
            Changes::Allowed
        } else {
            Changes::Refused
        },
        timeout: args.timeout,
    };
    let outcome = tools::call(&config, request).await?;
    let tool = &outcome.tool;
    let bytes = outcome.result.len();
    // A result that fits has no shorter form for a model.
    let (text, is_cut) = match outcome.shown {
        Some(shown) if !args.whole => (shown, true),
        Some(_) | None => (outcome.result, false),
    };
    if args.json {
        print_json(&json!({
            "tool": tool, "read_only": outcome.read_only, "is_error": outcome.is_error, "bytes": bytes,
            "cut": is_cut, "duration_ms": u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            "result": text,
        }))?;
    } else {
        print(&[text::clean(&text, style().charset)])?;
        if is_cut {
            note(&format!(
                "cut as for a model: {bytes} bytes in all; --whole prints them"
            ))?;
        }
    }
    if outcome.is_error {
        note(&format!("{tool} reports an error"))?;
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

async fn gaps(global: &GlobalArgs, args: ToolsGapsArgs) -> anyhow::Result<Exit> {
    let since = match args.since {
        Moment::At(at) => at,
        Moment::Ago(ago) => Utc::now() - TimeDelta::from_std(ago)?,
    };
    let database = Database::new(global, "tools gaps")?;
    let gaps = database.call(database.store.gaps(since)).await?;
    if args.json {
        print_json(&gaps)?;
        return Ok(Exit::Done);
    }
    print(&gap_tables::gaps(&gaps, &style()))?;
    if gaps.has_older {
        note(&format!(
            "only the newest {} sessions since then",
            gaps.sessions
        ))?;
    }
    Ok(Exit::Done)
}
