//! The processes of a drill: the LLM service and the workers.
//!
//! Each ends with this process, even if this process is killed: its standard input is a pipe that only this process
//! holds.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use chrono::{DateTime, Utc};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::proof::Counters;
use crate::admin::drill::RealModel;
use crate::cli::commands::output::note;
use crate::process::connect::{Addresses, LLM_CREDENTIALS};
use tarsy_core::timeline::TimelineEvent;
use tarsy_drill::Drill;

const START_TIMEOUT: Duration = Duration::from_secs(30);
/// A process that has not ended this long after SIGTERM is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The variables that the processes of a drill do not get: they are for a role that may run on this machine.
const VARIABLES_OF_ROLES: [&str; 6] = [
    "TARSY_CONFIG",
    "TARSY_LISTEN",
    "TARSY_METRICS_LISTEN",
    "TARSY_WORKER_NAME",
    "TARSY_POD_UID",
    "TARSY_POD_STATE",
];

/// The log level of the processes of a drill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logging {
    /// Errors only: the warnings about a killed worker are expected.
    Errors,
    /// The level that this process has.
    Inherited,
}

/// The drill of a worker.
pub(super) struct Role<'r> {
    pub(super) drill: &'r str,
    /// The model to ask instead of the recording.
    pub(super) model: Option<&'r RealModel>,
    /// The time of its evidence.
    pub(super) now: Option<DateTime<Utc>>,
}

pub(super) struct DrillProcesses<'p> {
    program: &'p Path,
    logging: Logging,
    counters: &'p Counters,
    llm: Option<Child>,
    workers: Vec<(&'static str, Child)>,
}

impl<'p> DrillProcesses<'p> {
    /// No process is started yet; `program` is this binary.
    pub(super) fn new(program: &'p Path, logging: Logging, counters: &'p Counters) -> Self {
        Self {
            program,
            logging,
            counters,
            llm: None,
            workers: Vec::new(),
        }
    }

    /// Starts the LLM service and returns its address. It knows the recordings of `drill`, and may use the key and the
    /// address of `model`.
    pub(super) async fn start_llm_service(
        &mut self,
        drill: &Drill,
        model: Option<&RealModel>,
    ) -> anyhow::Result<String> {
        // The settings of a tarsy.yaml in this folder are for another service.
        let mut command = self.command([
            "llm-service",
            "--with-parent",
            "--listen",
            "127.0.0.1:0",
            "--config",
            "/dev/null",
        ]);
        if let Some(RealModel { provider, .. }) = model {
            for (option, value) in [
                ("--allow-key-env", &provider.api_key_env),
                ("--allow-base-url", &provider.base_url),
            ] {
                if !value.is_empty() {
                    command.args([option, value]);
                }
            }
        }
        if let Some(folder) = drill.folder() {
            command.arg("--transcripts").arg(folder);
        }
        command.arg("--calls-file").arg(self.counters.models());
        let mut child = command.spawn().context("llm-service")?;
        let address = ready(&mut child).await.context("llm-service")?;
        self.llm = Some(child);
        Ok(address)
    }

    pub(super) async fn start_worker(
        &mut self,
        name: &'static str,
        role: &Role<'_>,
        addresses: &Addresses,
    ) -> anyhow::Result<()> {
        let mut command = self.command([
            "worker",
            "--with-parent",
            "--listen",
            "127.0.0.1:0",
            "--name",
            name,
            "--drill",
            role.drill,
        ]);
        if let Some(model) = role.model {
            command.arg("--drill-provider").arg(model.written()?);
        }
        if let Some(now) = role.now {
            command.arg("--clock-at").arg(now.to_rfc3339());
        }
        command.arg("--drill-calls-file").arg(self.counters.tools());
        let database_url = addresses.database_url.as_deref().unwrap_or_default();
        command
            .env("NATS_URL", &addresses.nats_url)
            .env("TARSY_LLM_ADDR", &addresses.llm_addr)
            .env("DATABASE_URL", database_url);
        let context = || format!("worker {name}");
        let mut child = command.spawn().with_context(context)?;
        ready(&mut child).await.with_context(context)?;
        self.workers.push((name, child));
        Ok(())
    }

    fn command<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        // The LLM service of a drill listens on loopback, without TLS, so it needs no credentials either.
        for variable in VARIABLES_OF_ROLES.into_iter().chain(LLM_CREDENTIALS) {
            command.env_remove(variable);
        }
        if self.logging == Logging::Errors {
            command.args(["--log-level", "error"]);
        }
        command
    }

    /// Kills the worker of the last start or resume with SIGKILL, and returns its name.
    pub(super) fn kill_owner(&mut self, events: &[TimelineEvent]) -> anyhow::Result<String> {
        let owner = events
            .iter()
            .rev()
            .find_map(|event| event.metadata.get("worker")?.as_str())
            .context("no owner")?;
        let found = self.workers.iter_mut().find(|(name, _)| *name == owner);
        let Some((name, child)) = found else {
            bail!("the session is owned by {owner}, which is not a worker of this drill");
        };
        let pid = child.id().context("the owner has ended already")?;
        child.start_kill()?;
        let clear = if std::io::stderr().is_terminal() {
            "\r\u{1b}[2K"
        } else {
            ""
        };
        note(&format!(
            "{clear}         kill -9 worker {name} (pid {pid}): this is the drill, watch what happens"
        ))?;
        Ok((*name).to_owned())
    }

    /// Ends every process, the workers first.
    pub(super) async fn stop(&mut self) {
        let children = self
            .workers
            .drain(..)
            .map(|(_, child)| child)
            .chain(self.llm.take());
        for mut child in children.collect::<Vec<_>>() {
            terminate(&child);
            if tokio::time::timeout(STOP_TIMEOUT, child.wait())
                .await
                .is_err()
            {
                child.kill().await.ok();
            }
        }
    }
}

fn terminate(child: &Child) {
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // The process may have ended at this moment.
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
    }
}

/// The address that a role prints when it is ready.
async fn ready(child: &mut Child) -> anyhow::Result<String> {
    let out = child.stdout.take().context("no standard output")?;
    let mut line = String::new();
    let read = tokio::time::timeout(START_TIMEOUT, BufReader::new(out).read_line(&mut line)).await;
    read.with_context(|| format!("not ready after {} s", START_TIMEOUT.as_secs()))??;
    ensure!(!line.is_empty(), "ended before it was ready");
    let address = line
        .trim()
        .strip_prefix("ready ")
        .with_context(|| format!("printed \"{}\" instead of ready", line.trim()))?;
    Ok(address.to_owned())
}
