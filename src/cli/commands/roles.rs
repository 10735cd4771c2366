//! The commands that run a role, and `tarsy migrate`.

use std::path::Path;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::json;

use super::output::{print, print_json};
use super::{addresses, load_config};
use crate::admin::{drill, migrate};
use crate::cli::args::{
    EvidenceServerArgs, GlobalArgs, LlmServiceArgs, MigrateArgs, ReceiveArgs, WebArgs, WorkerArgs,
};
use crate::cli::exit::Exit;
use crate::process::connect::llm_token;
use crate::process::secrets::SecretFiles;
use crate::process::{guard, secrets, shown, shutdown};
use crate::roles::llm_service::Unauthenticated;
use crate::roles::worker::pod::Pod;
use crate::roles::{llm_service, receive, web, worker};
use tarsy_bus::TopologyChanges;
use tarsy_config::{Config, LlmService, find, process_env};
use tarsy_drill::evidence::Evidence;
use tarsy_drill::gate::Gates;
use tarsy_engine::worker::decisions::Drills;
use tarsy_llm::service::scripted::Unknown;
use tarsy_mcp::evidence_server;
use tarsy_store::Schema;
use tarsy_telemetry::process_mask::ProcessMask;

pub(super) async fn worker(
    global: &GlobalArgs,
    args: WorkerArgs,
    process_mask: &ProcessMask,
) -> anyhow::Result<Exit> {
    guard::guard_process()?;
    let mut config = match &args.drill {
        Some(name) => drill_config(name, &args)?,
        None => load_config(global)?,
    };
    if let Some(slots) = args.slots {
        config.worker.slots = slots;
    }
    let addresses = addresses(global);
    let mask = secrets::mask(&config, Some(&addresses))?;
    process_mask.set(mask.clone());
    let _watch = SecretFiles::of_config(&config).watch(mask.clone());
    let file = find(global.config.clone());
    let options = worker::Options {
        shown: shown::config(&config, file.as_deref(), &mask)?,
        addresses,
        name: args.name.unwrap_or_else(default_name),
        pod: Pod::given(args.pod_uid, args.pod_state),
        listen: args.listen,
        mask,
        clock_offset: args
            .clock_at
            .map_or_else(TimeDelta::zero, |at| at - Utc::now()),
        drills: if args.drill.is_some() {
            Drills::Accept
        } else {
            Drills::Refuse
        },
    };
    let stop = shutdown::on_signals(args.parent.stop_on())?;
    Box::pin(worker::run(options, config, stop)).await?;
    Ok(Exit::Done)
}

fn drill_config(name: &str, args: &WorkerArgs) -> anyhow::Result<Config> {
    let model = args
        .drill_provider
        .as_deref()
        .map(drill::RealModel::parse)
        .transpose()?;
    let mut config = drill::config(name, &std::env::current_exe()?, model)?;
    if let Some(file) = &args.drill_calls_file {
        drill::count_calls(&mut config, file);
    }
    Ok(config)
}

/// Host name and process id. Programs identify a worker by its id, not by this name.
fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() {
        "worker"
    } else {
        host.trim()
    };
    format!("{host}-{}", std::process::id())
}

pub(super) async fn llm_service(
    global: &GlobalArgs,
    args: LlmServiceArgs,
    process_mask: &ProcessMask,
) -> anyhow::Result<Exit> {
    guard::guard_process()?;
    let mut settings = LlmService::load(find(global.config.clone()).as_deref(), &process_env)?;
    settings.allow_key_env.extend(args.allow_key_env);
    settings.allow_base_url.extend(args.allow_base_url);
    let mask = secrets::of_process(Some(&addresses(global)));
    process_mask.set(mask.clone());
    let files = SecretFiles::of_environment().and(settings.token_file.as_deref());
    let _watch = files.watch(mask.clone());
    let options = llm_service::Options {
        settings,
        mask,
        token: llm_token(&process_env)?,
        unauthenticated: if args.allow_unauthenticated {
            Unauthenticated::Everywhere
        } else {
            Unauthenticated::Loopback
        },
        listen: args.listen,
        metrics_listen: args.metrics_listen,
        transcripts: args.transcripts,
        calls_file: args.calls_file,
        gates: args.gates,
        pace: args.pace,
        unknown: if args.answer_unknown {
            Unknown::Generic
        } else {
            Unknown::Refused
        },
    };
    llm_service::run(options, shutdown::on_signals(args.parent.stop_on())?).await?;
    Ok(Exit::Done)
}

pub(super) async fn receive(
    global: &GlobalArgs,
    args: ReceiveArgs,
    process_mask: &ProcessMask,
) -> anyhow::Result<Exit> {
    guard::guard_process()?;
    let config = load_config(global)?;
    let addresses = addresses(global);
    let mask = secrets::mask(&config, Some(&addresses))?;
    process_mask.set(mask.clone());
    let _watch = SecretFiles::of_config(&config).watch(mask);
    let options = receive::Options {
        addresses,
        listen: args.listen,
        metrics_listen: args.metrics_listen,
        token: if args.slack_only {
            None
        } else {
            receive::token()?
        },
    };
    let stop = shutdown::on_end(args.parent.stop_on())?;
    if args.slack_only {
        receive::run_slack(options, &config, stop).await?;
    } else {
        receive::run(options, &config, stop).await?;
    }
    Ok(Exit::Done)
}

pub(super) async fn web(
    global: &GlobalArgs,
    args: WebArgs,
    process_mask: &ProcessMask,
) -> anyhow::Result<Exit> {
    guard::guard_process()?;
    let config = load_config(global)?;
    let addresses = addresses(global);
    let mask = secrets::mask(&config, Some(&addresses))?;
    process_mask.set(mask.clone());
    let _watch = SecretFiles::of_config(&config).watch(mask);
    let options = web::Options {
        addresses,
        listen: args.listen,
        metrics_listen: args.metrics_listen,
    };
    let stop = shutdown::on_end(args.parent.stop_on())?;
    Box::pin(web::run(options, &config, stop)).await?;
    Ok(Exit::Done)
}

pub(super) async fn evidence_server(args: EvidenceServerArgs) -> anyhow::Result<Exit> {
    let folder = Path::new(&args.drill);
    let mut evidence = if folder.is_dir() {
        Evidence::read(folder)?
    } else {
        drill::find(&args.drill)?.evidence()?
    };
    if args.no_delays {
        for answer in evidence.tools.iter_mut().flat_map(|tool| &mut tool.answers) {
            answer.delay = Duration::ZERO;
        }
    }
    evidence_server::serve(evidence, Gates::new(args.gates), args.calls_file).await?;
    Ok(Exit::Done)
}

pub(super) async fn migrate(global: &GlobalArgs, args: MigrateArgs) -> anyhow::Result<Exit> {
    let done = migrate::run(&addresses(global), &load_config(global)?, args.lock_timeout).await?;
    let applied = done.database.applied;
    let TopologyChanges {
        created,
        updated,
        unchanged,
    } = done.ensured;

    let newer = match done.database.schema {
        Schema::Newer(version) => Some(version),
        Schema::Current => None,
    };
    if args.json {
        print_json(&json!({
            "migrations": applied, "newer_schema": newer, "created": created, "updated": updated,
            "unchanged": unchanged,
        }))?;
        return Ok(Exit::Done);
    }
    let kept = newer.map_or_else(String::new, |version| {
        format!(" (its schema {version} is newer than this tarsy, which may use it: no migration is reverted)")
    });
    print(&[format!(
        "database: {} migrations applied{kept}; streams and consumers: {created} created, {updated} updated, \
         {unchanged} unchanged",
        applied.len()
    )])?;
    Ok(Exit::Done)
}
