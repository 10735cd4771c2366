//! `tarsy drill`: the whole system against recorded evidence, with `kill -9` of the owner if asked for.
//!
//! Every part is a process of its own: the LLM service, two workers, and the workers' MCP server. They end with this
//! one, also when it is killed: their standard input is a pipe that only it holds.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::reach::{note, print, print_json};
use super::watch::follow::Sources;
use super::{addresses, write_error};
use crate::bus::{FINGERPRINT, NewAlert, PARENT_ID, Priority, SESSION_ID};
use crate::cli::args::{DrillArgs, GlobalArgs};
use crate::cli::exit::Exit;
use crate::cli::view::Surroundings;
use crate::cli::watch::{Followed, Options};
use crate::config::Config;
use crate::drill::{BUILTIN, Drill};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::{EventType, TimelineEvent};
use crate::roles::connect::{Addresses, topology};
use crate::roles::{drill, migrate};
use crate::store::{MIGRATION_TIMEOUT, Store};

/// Until a part has to be ready.
const START: Duration = Duration::from_secs(30);
/// Until a part has to be gone after SIGTERM.
const STOP: Duration = Duration::from_secs(5);
/// The iteration in which the owner is killed: the first one is done, so that there is something to resume from.
const KILL_IN_ITERATION: u32 = 2;

pub(super) async fn run(global: &GlobalArgs, args: DrillArgs) -> anyhow::Result<Exit> {
    if args.list {
        return list(args.view.json);
    }
    let drill = drill::find(&args.name)?;
    let program = std::env::current_exe()?;
    let config = drill::config(drill.name, &program)?;
    let mut addresses = addresses(global);
    set_up(&addresses, &config, drill.name).await?;

    let mut stage = Stage { program: &program, quiet: global.log_level.is_none(), workers: Vec::new(), llm: None };
    let result = perform(&mut stage, &mut addresses, (&drill, &config), &args).await;
    stage.strike().await;
    result
}

fn list(as_json: bool) -> anyhow::Result<Exit> {
    for drill in BUILTIN {
        let (name, title) = (drill.name, drill.title()?);
        if as_json {
            print_json(&json!({"name": name, "title": title}))?;
        } else {
            print(&[format!("{name:<16} {title}")])?;
        }
    }
    Ok(Exit::Done)
}

/// Migrates, unless the servers already serve a tarsy of other settings.
async fn set_up(addresses: &Addresses, config: &Config, name: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let nats = addresses.nats_for_command("drill").await?;
    // What differs does not matter here, and migrating would change it under whoever uses it.
    if nats.has_topology().await? && nats.verify_topology(&topology(config)).await.is_err() {
        bail!("these servers are in use with other settings, and a drill needs its own: ./dev demo {name} starts them");
    }
    let done = migrate::run(addresses, config, MIGRATION_TIMEOUT).await?;
    let ensured = done.ensured;
    let fresh = ensured.created + ensured.updated;
    let detail = format!("{} migrations, {fresh} streams and consumers changed", done.database.applied.len());
    ok("migrate", &detail, Some(began))
}

async fn perform(
    stage: &mut Stage<'_>,
    addresses: &mut Addresses,
    (drill, config): (&Drill, &Config),
    args: &DrillArgs,
) -> anyhow::Result<Exit> {
    addresses.llm_addr = stage.start_llm_service().await?;
    ok("llm-service", &format!("{}, SCRIPTED: replays a recording, no model is called", addresses.llm_addr), None)?;
    for name in ["w1", "w2"] {
        stage.start_worker(name, drill.name, addresses).await?;
    }
    let read_only = drill.evidence()?.tools.iter().filter(|tool| tool.read_only).count();
    let (slots, lease) = (config.worker.slots, config.worker.lease.as_secs());
    let detail =
        format!("{slots} slots each; tools: drill ({read_only}, all read-only); lease {lease} s for this drill");
    ok("workers w1, w2", &detail, None)?;

    let session = SessionId(Uuid::now_v7());
    let nats = addresses.nats_for_command("drill").await?;
    let store = Store::new(&addresses.database("tarsy drill")?)?;
    let alert = NewAlert {
        priority: Priority::Critical,
        suffix: "drill".parse().ok(),
        body: drill.alert.as_bytes().to_vec(),
        headers: headers(session),
    };
    let published = nats.publish_alert(alert).await?;
    let short = session.short();
    let subject = &published.subject;
    note(&format!("Alert {} → {subject}        follow elsewhere: tarsy watch {short}\n", drill.name))?;

    let mut seen = Vec::new();
    let mut kill = args.kill;
    let options = Options { ends_with_us: true, ..args.view.options(&Surroundings::of_process()) };
    let sources = Sources { nats, store: Some(store.into()) };
    let exit = sources.show(session, options.clone(), |item| {
        if let Followed::Event(event) = item {
            seen.push(event.clone());
            if kill && is_time_to_kill(event) {
                kill = false;
                return stage.kill_owner(&seen);
            }
        }
        Ok(())
    });
    let exit = exit.await?;
    let exit = if exit == Exit::Done { judge(drill, &seen, args.kill)? } else { exit };
    match &args.ask {
        Some(question) if exit == Exit::Done => ask(&sources, (session, question), options).await,
        Some(_) | None => Ok(exit),
    }
}

/// Asks about the investigation, shows how that is answered, and says whether it was.
async fn ask(sources: &Sources, (parent, question): (SessionId, &str), options: Options) -> anyhow::Result<Exit> {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string(), PARENT_ID: parent.to_string()});
    let (priority, suffix) = (Priority::Critical, "drill".parse().ok());
    let body = question.as_bytes().to_vec();
    sources.nats.publish_question(NewAlert { priority, suffix, body, headers }).await?;
    note(&format!("\nA question: {question}\n"))?;
    let mut seen = Vec::new();
    let exit = sources.show(session, options, |item| {
        if let Followed::Event(event) = item {
            seen.push(event.event_type.clone());
        }
        Ok(())
    });
    let exit = exit.await?;
    let wanted = [EventType::UserQuestion, EventType::FinalAnalysis];
    let missing: Vec<_> = wanted.iter().filter(|wanted| !seen.contains(wanted)).collect();
    for event in &missing {
        write_error(&format!("the question: no event {event}"));
    }
    Ok(if exit == Exit::Done && !missing.is_empty() { Exit::Failed } else { exit })
}

/// A fingerprint of its own: a drill that joined what another one has left behind would show nothing.
fn headers(session: SessionId) -> Value {
    json!({SESSION_ID: session.to_string(), FINGERPRINT: format!("drill {session}")})
}

/// A tool call of the second iteration is committed: its tools run now.
fn is_time_to_kill(event: &TimelineEvent) -> bool {
    event.event_type == EventType::LlmToolCall && event.iteration.is_some_and(|n| n >= KILL_IN_ITERATION)
}

/// Whether the investigation found what the drill expects, and survived what was done to it.
fn judge(drill: &Drill, seen: &[TimelineEvent], killed: bool) -> anyhow::Result<Exit> {
    let expected = drill.expected().map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut faults = expected.check(seen);
    if killed && !seen.iter().any(|event| event.event_type == EventType::SessionResumed) {
        faults.push("the owner was killed, but nobody resumed the session".to_owned());
    }
    for fault in &faults {
        write_error(&format!("drill {}: {fault}", drill.name));
    }
    Ok(if faults.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The processes of a drill.
struct Stage<'p> {
    program: &'p Path,
    quiet: bool,
    llm: Option<Child>,
    workers: Vec<(&'static str, Child)>,
}

impl Stage<'_> {
    async fn start_llm_service(&mut self) -> anyhow::Result<String> {
        let mut command = self.command(["llm-service", "--with-parent", "--listen", "127.0.0.1:0"]);
        let mut child = command.spawn().context("llm-service")?;
        let address = ready(&mut child).await.context("llm-service")?;
        self.llm = Some(child);
        Ok(address)
    }

    async fn start_worker(&mut self, name: &'static str, drill: &str, addresses: &Addresses) -> anyhow::Result<()> {
        let mut command =
            self.command(["worker", "--with-parent", "--listen", "127.0.0.1:0", "--name", name, "--drill", drill]);
        command.env("NATS_URL", &addresses.nats_url).env("TARSY_LLM_ADDR", &addresses.llm_addr);
        command.env("DATABASE_URL", addresses.database_url.as_deref().unwrap_or_default());
        let mut child = command.spawn().with_context(|| format!("worker {name}"))?;
        ready(&mut child).await.with_context(|| format!("worker {name}"))?;
        self.workers.push((name, child));
        Ok(())
    }

    fn command<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = Command::new(self.program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        command
            .env_remove("TARSY_CONFIG")
            .env_remove("TARSY_LISTEN")
            .env_remove("TARSY_METRICS_LISTEN")
            .env_remove("TARSY_WORKER_NAME");
        if self.quiet {
            // Warnings about a killed worker are the point of the drill, not news.
            command.args(["--log-level", "error"]);
        }
        command
    }

    /// `kill -9` of the worker that wrote the last start or resume.
    fn kill_owner(&mut self, seen: &[TimelineEvent]) -> anyhow::Result<()> {
        let owner = seen.iter().rev().find_map(|event| event.metadata.get("worker")?.as_str()).context("no owner")?;
        let found = self.workers.iter_mut().find(|(name, _)| *name == owner);
        let Some((name, child)) = found else {
            bail!("the session is owned by {owner}, which is not a worker of this drill");
        };
        let pid = child.id().context("the owner is gone")?;
        child.start_kill()?;
        let clear = if std::io::stderr().is_terminal() { "\r\u{1b}[2K" } else { "" };
        note(&format!("{clear}         kill -9 worker {name} (pid {pid}): this is the drill, watch what happens"))
    }

    /// Ends every process, the workers first.
    async fn strike(&mut self) {
        let children = self.workers.drain(..).map(|(_, child)| child).chain(self.llm.take());
        for mut child in children.collect::<Vec<_>>() {
            terminate(&child);
            if tokio::time::timeout(STOP, child.wait()).await.is_err() {
                child.kill().await.ok();
            }
        }
    }
}

fn terminate(child: &Child) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended in this very moment.
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
    }
}

/// The address that a role prints when it is ready.
async fn ready(child: &mut Child) -> anyhow::Result<String> {
    let out = child.stdout.take().context("no standard output")?;
    let mut line = String::new();
    let read = tokio::time::timeout(START, BufReader::new(out).read_line(&mut line)).await;
    read.with_context(|| format!("not ready after {} s", START.as_secs()))??;
    ensure!(!line.is_empty(), "ended before it was ready");
    let address =
        line.trim().strip_prefix("ready ").with_context(|| format!("said \"{}\" instead of ready", line.trim()))?;
    Ok(address.to_owned())
}

/// Progress, and so not on standard output: that is for the timeline.
fn ok(what: &str, detail: &str, since: Option<Instant>) -> anyhow::Result<()> {
    let took = since.map(|since| format!("{:.1} s", since.elapsed().as_secs_f64())).unwrap_or_default();
    let line = format!("  ok  {what:<19}  {detail:<50}  {took:>6}");
    note(line.trim_end())
}
