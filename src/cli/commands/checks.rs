//! `tarsy doctor`, `tools`, `inspect` and `completions`: what looks and changes nothing.

use std::io::Write as _;
use std::pin::pin;

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use super::reach::{note, print, print_json};
use super::{addresses, inspect_stream, load_config, submit, write_error};
use crate::bus;
use crate::cli::args::{Cli, CompletionsArgs, GlobalArgs, InspectAlertArgs, InspectCommand, JsonArgs, ToolsArgs};
use crate::cli::exit::Exit;
use crate::cli::render::checks;
use crate::cli::view::Surroundings;
use crate::config::find;
use crate::engine::ports::Received;
use crate::investigation::alert::AlertStatus;
use crate::investigation::ids::SessionId;
use crate::investigation::intake::normalise;
use crate::roles::{doctor, intake, tools};

pub(super) async fn doctor(global: &GlobalArgs, args: JsonArgs) -> anyhow::Result<Exit> {
    let style = Surroundings::of_process().style();
    let mut found = Vec::new();
    let mut checks = pin!(doctor::run(&addresses(global), find(global.config.clone())));
    while let Some(check) = checks.next().await {
        if args.json {
            print_json(&check)?
        } else {
            print(&checks::check(&check, &style))?
        }
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
    let style = Surroundings::of_process().style();
    let names: Vec<&String> = match &args.server {
        Some(wanted) => match config.mcp_servers.get_key_value(wanted) {
            Some((name, _)) => vec![name],
            None => {
                let defined: Vec<&str> = config.mcp_servers.keys().map(String::as_str).collect();
                bail!("there is no MCP server {wanted:?}; defined: {}", defined.join(", "));
            }
        },
        None => config.mcp_servers.keys().collect(),
    };
    if names.is_empty() {
        note("no MCP server is configured")?;
        return Ok(Exit::Done);
    }
    let listed = join_all(names.iter().map(|name| tools::list(&config, name))).await;
    let mut exit = Exit::Done;
    for (name, listed) in names.into_iter().zip(listed) {
        match listed {
            Ok(tools) if args.json => tools.iter().try_for_each(print_json)?,
            Ok(tools) => print(&checks::tools(name, &tools, &style))?,
            Err(error) => {
                write_error(&format!("{name}: {}", super::told(&error)));
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

pub(super) fn inspect(global: &GlobalArgs, command: InspectCommand) -> anyhow::Result<Exit> {
    match command {
        InspectCommand::Alert(args) => inspect_alert(global, args),
        InspectCommand::Stream(args) => inspect_stream::run(&args),
    }
}

/// The message that the options describe.
fn received(args: &InspectAlertArgs) -> Received {
    let canonical = |name: &str| bus::ALLOWED.into_iter().find(|allowed| allowed.eq_ignore_ascii_case(name));
    let headers =
        args.headers.iter().filter_map(|(name, value)| Some((canonical(name)?.to_owned(), value.clone().into())));
    Received {
        alert_id: SessionId(Uuid::nil()),
        body_sha256: [0; 32],
        body: None,
        headers: Value::Object(headers.collect()),
        subject: args.priority.map(|priority| format!("tarsy.alerts.{}", priority.as_str())).unwrap_or_default(),
        stream_sequence: 0,
    }
}

/// The same steps as a worker's intake, without a worker.
fn inspect_alert(global: &GlobalArgs, args: InspectAlertArgs) -> anyhow::Result<Exit> {
    let mask = tools::mask(&load_config(global)?);
    let body = submit::read(&args.file)?;
    let hints = intake::hints(&received(&args));
    let alert = normalise(&body, &hints).with_context(|| format!("{} is no alert", submit::named(&args.file)))?;
    let masked = |text: &str| Value::String(mask.apply(text).into_owned());
    let shown = json!({
        "fingerprint": alert.fingerprint,
        "type": masked(&alert.alert_type),
        "severity": alert.severity.as_str(),
        "status": match alert.status {
            AlertStatus::Firing => "firing",
            AlertStatus::Resolved => "resolved",
        },
        "title": masked(&alert.title),
        "source": alert.source,
        "runbook": alert.runbook_url.as_deref().map(masked),
        "text": masked(&alert.text),
    });
    print(&[serde_json::to_string_pretty(&shown)?])?;
    Ok(Exit::Done)
}
