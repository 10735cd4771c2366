//! The processes of a drill: the LLM service and the workers.
//!
//! Each ends with this process, even if this process is killed: its standard input is a pipe that only this process
//! holds.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use chrono::{DateTime, Utc};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::proof::Counters;
use crate::admin::drill::RealModel;
use crate::cli::commands::checks::fetched;
use crate::cli::commands::output::note;
use crate::process::connect::{Addresses, LLM_CREDENTIALS};
use tarsy_core::timeline::TimelineEvent;
use tarsy_drill::Drill;

const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for an answer of a worker about itself.
const METRICS_TIMEOUT: Duration = Duration::from_secs(5);
/// The gauge of the investigations that a worker runs: each has a slot.
const RUNNING: &str = "tarsy_sessions_running";
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
    workers: Vec<Worker>,
}

/// A worker process.
struct Worker {
    name: &'static str,
    child: Child,
    /// The address of its metrics; none after it is killed.
    metrics: Option<SocketAddr>,
}

/// The addresses at which the workers serve their metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics(Vec<SocketAddr>);

impl Metrics {
    /// The investigations that the workers run, as they count them.
    pub(super) async fn sessions_running(&self) -> anyhow::Result<f64> {
        let mut running = 0.0;
        for address in &self.0 {
            let answer = fetched(*address, "/metrics", METRICS_TIMEOUT).await?;
            running += sum(&answer.1);
        }
        Ok(running)
    }
}

/// The sum of the gauge in the metrics of a worker; one that has run nothing yet has none.
fn sum(metrics: &str) -> f64 {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(RUNNING)?;
        let is_gauge = rest.starts_with([' ', '{']);
        is_gauge
            .then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())
            .flatten()
    });
    values.sum()
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
        let address = ready(&mut child).await.with_context(context)?;
        self.workers.push(Worker {
            name,
            child,
            metrics: Some(address.parse().with_context(context)?),
        });
        Ok(())
    }

    /// The metrics of the workers that live.
    pub(super) fn metrics(&self) -> Metrics {
        let addresses = self.workers.iter().filter_map(|worker| worker.metrics);
        Metrics(addresses.collect())
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
        let found = self.workers.iter_mut().find(|worker| worker.name == owner);
        let Some(Worker {
            name,
            child,
            metrics,
        }) = found
        else {
            bail!("the session is owned by {owner}, which is not a worker of this drill");
        };
        let pid = child.id().context("the owner has ended already")?;
        child.start_kill()?;
        *metrics = None;
        remark(&format!(
            "kill -9 worker {name} (pid {pid}): this is the drill, watch what happens"
        ))?;
        Ok((*name).to_owned())
    }

    /// Ends every process, the workers first.
    pub(super) async fn stop(&mut self) {
        let children = self
            .workers
            .drain(..)
            .map(|worker| worker.child)
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

/// Prints what the drill does, between the lines of the timeline.
pub(super) fn remark(text: &str) -> anyhow::Result<()> {
    let clear = if std::io::stderr().is_terminal() {
        "\r\u{1b}[2K"
    } else {
        ""
    };
    note(&format!("{clear}         {text}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gauge_is_summed_with_and_without_labels_and_no_other_one() {
        let text = "# TYPE tarsy_sessions_running gauge\ntarsy_sessions_running 2\n\
                    tarsy_sessions_running{a=\"b c\"} 1\ntarsy_sessions_running_total 7\n";
        assert!((sum(text) - 3.0).abs() < 1e-9);
        assert!(sum("tarsy_worker_slots 4\n").abs() < 1e-9);
    }
}
