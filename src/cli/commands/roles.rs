//! The roles, and what brings them up.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::reach::print_json;
use super::{addresses, load_config};
use crate::cli::args::{EvidenceServerArgs, GlobalArgs, JsonArgs, LlmServiceArgs, WorkerArgs};
use crate::cli::exit::Exit;
use crate::drill::evidence::Evidence;
use crate::drill::gate::Gates;
use crate::mcp::evidence_server;
use crate::roles::{drill, llm_service, migrate, shutdown, worker};

pub(super) async fn worker(global: &GlobalArgs, args: WorkerArgs) -> anyhow::Result<Exit> {
    let mut config = match &args.drill {
        Some(name) => drill::config(name, &std::env::current_exe()?)?,
        None => load_config(global)?,
    };
    if let Some(slots) = args.slots {
        config.worker.slots = slots;
    }
    let name = args.name.unwrap_or_else(default_name);
    let options = worker::Options { addresses: addresses(global), name, listen: args.listen };
    worker::run(options, config, shutdown::on_end(args.with_parent)?).await?;
    Ok(Exit::Done)
}

/// Host and process: unique enough for people; programs go by the id of the process.
fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "worker" } else { host.trim() };
    format!("{host}-{}", std::process::id())
}

pub(super) async fn llm_service(args: LlmServiceArgs) -> anyhow::Result<Exit> {
    let LlmServiceArgs { listen, transcripts, with_parent, calls_file, gates, pace } = args;
    let options = llm_service::Options { listen, transcripts, calls_file, gates, pace };
    llm_service::run(options, shutdown::on_end(with_parent)?).await?;
    Ok(Exit::Done)
}

pub(super) async fn evidence_server(args: EvidenceServerArgs) -> anyhow::Result<Exit> {
    let folder = Path::new(&args.drill);
    let mut evidence = if folder.is_dir() { Evidence::read(folder)? } else { drill::find(&args.drill)?.evidence()? };
    if args.no_delays {
        for answer in evidence.tools.iter_mut().flat_map(|tool| &mut tool.answers) {
            answer.delay = Duration::ZERO;
        }
    }
    evidence_server::serve(evidence, Gates::new(args.gates), args.calls_file).await?;
    Ok(Exit::Done)
}

pub(super) async fn migrate(global: &GlobalArgs, args: JsonArgs) -> anyhow::Result<Exit> {
    let done = migrate::run(&addresses(global), &load_config(global)?).await?;
    let (applied, ensured) = (done.migrations.len(), done.ensured);
    if args.json {
        print_json(&json!({
            "migrations": done.migrations, "created": ensured.created, "updated": ensured.updated,
            "unchanged": ensured.unchanged,
        }))?;
        return Ok(Exit::Done);
    }
    writeln!(
        std::io::stdout(),
        "database: {applied} migrations applied; streams and consumers: {} created, {} updated, {} unchanged",
        ensured.created,
        ensured.updated,
        ensured.unchanged
    )?;
    Ok(Exit::Done)
}
