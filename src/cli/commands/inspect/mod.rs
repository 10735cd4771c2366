//! `tarsy inspect`: shows as JSON how tarsy reads an alert or an answer, without a server.

mod stream;

use anyhow::Context as _;
use serde_json::{Value, json};
use uuid::Uuid;

use super::output::print;
use super::{load_config, submit};
use crate::bus;
use crate::cli::args::{GlobalArgs, InspectAlertArgs, InspectCommand, InspectReplyArgs};
use crate::cli::exit::Exit;
use crate::cli::render::json::pretty;
use crate::engine::ports::Received;
use crate::investigation::ids::SessionId;
use crate::investigation::intake::Intake;
use crate::investigation::plan::ToolSpec;
use crate::investigation::react;
use crate::roles::worker::intake;
use crate::roles::{masked, secrets};

pub(super) fn run(global: &GlobalArgs, command: InspectCommand) -> anyhow::Result<Exit> {
    match command {
        InspectCommand::Alert(args) => inspect_alert(global, args),
        InspectCommand::Reply(args) => inspect_reply(&args),
        InspectCommand::Stream(args) => stream::run(&args),
    }
}

/// The message that the arguments describe.
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

/// Takes the same steps as the intake of a worker.
fn inspect_alert(global: &GlobalArgs, args: InspectAlertArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let mask = secrets::mask(&config, None)?;
    let body = submit::read(&args.file)?;
    let hints = intake::hints(&received(&args));
    let reading = Intake::new(config.sources.all());
    let masked = masked::alert(&mask, &reading, &body, &hints)
        .with_context(|| format!("{} is not an alert", submit::named(&args.file)))?;
    let alert = masked.alert;
    let shown = json!({
        "fingerprint": alert.fingerprint,
        "type": alert.alert_type,
        "severity": alert.severity.as_str(),
        "status": alert.status,
        "title": alert.title,
        "source": alert.source,
        "runbook": alert.runbook_url,
        "text": alert.text,
    });
    print(&[pretty(&shown)?])?;
    Ok(Exit::Done)
}

/// Reads any bytes as an answer; invalid UTF-8 is replaced.
fn inspect_reply(args: &InspectReplyArgs) -> anyhow::Result<Exit> {
    let text = submit::read(&args.file)?;
    let offered = args.tools.as_ref().map(|names| {
        let names = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        names.map(|name| tool(name.to_owned())).collect::<Vec<_>>()
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
    }
}
