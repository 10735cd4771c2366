//! A separate nats-server for each test.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail the test"
)]

pub(crate) mod cluster;
pub(crate) mod jwt;
pub(crate) mod topology;

pub(crate) use cluster::NatsCluster;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::process::ports::free_port;

const READY_WITHIN: Duration = Duration::from_secs(180);
/// Lame-duck mode waits for its clients.
const ENDED_WITHIN: Duration = Duration::from_secs(60);
const TRIES: u32 = 20;
/// The time between two tries to start a server whose port is taken for a moment.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// A server process with a store directory of its own. Dropping it kills the process and removes the directory.
#[derive(Debug)]
pub(crate) struct NatsServer {
    directory: TempDir,
    settings: String,
    has_jetstream: bool,
    port: u16,
    program: PathBuf,
    process: Option<Child>,
}

impl NatsServer {
    /// Starts a server on a free port and waits until it reports that it is ready.
    pub(crate) async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts a server with more lines in its configuration file.
    pub(crate) async fn start_with(settings: &str) -> Self {
        Self::start_on(free_port(), settings).await
    }

    /// Starts a server on this port.
    pub(crate) async fn start_on(port: u16, settings: &str) -> Self {
        let mut server = Self::stopped(port, settings);
        server.launch().await;
        server
    }

    /// Starts a server that stores no streams.
    pub(crate) async fn start_without_jetstream() -> Self {
        let mut server = Self::stopped(free_port(), "");
        server.has_jetstream = false;
        server.launch().await;
        server
    }

    /// Starts the server again on the same port with streams.
    pub(crate) async fn restart_with_jetstream(&mut self) {
        self.has_jetstream = true;
        self.restart().await;
    }

    /// A server that does not run yet.
    fn stopped(port: u16, settings: &str) -> Self {
        let program = std::env::var_os("TARSY_TEST_NATS_SERVER")
            .expect("TARSY_TEST_NATS_SERVER is not set: run ./dev test");
        let directory = tempfile::Builder::new()
            .prefix("tarsy-test-nats-")
            .tempdir()
            .expect("a directory");
        let (settings, program) = (settings.to_owned(), program.into());
        Self {
            directory,
            settings,
            has_jetstream: true,
            port,
            program,
            process: None,
        }
    }

    /// The URL for clients.
    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The id of the running process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").id()
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("the server can be killed");
            process.wait().expect("the server has ended");
        }
    }

    /// Sends a signal to the process, if it runs.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = self
            .process
            .as_ref()
            .and_then(|process| Pid::from_raw(process.id().cast_signed()))
        {
            kill_process(pid, signal).expect("the server can be signalled");
        }
    }

    /// Starts the server again on the same port with the same store.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        self.launch().await;
    }

    /// Starts the server again on the same port with an empty store.
    pub(crate) async fn restart_empty(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.directory.path().join("store"))
            .expect("the store can be removed");
        self.launch().await;
    }

    /// Starts the server again with other lines in its configuration file.
    pub(crate) async fn restart_with(&mut self, settings: &str) {
        self.settings = settings.to_owned();
        self.restart().await;
    }

    /// Returns when the process has ended by itself.
    pub(crate) async fn ended(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let ended = tokio::task::spawn_blocking(move || process.wait());
        let status = tokio::time::timeout(ENDED_WITHIN, ended)
            .await
            .expect("nats-server ended in time");
        status.expect("the waiting thread").expect("its status");
    }

    /// Starts the server, again if its port is taken for a moment.
    async fn launch(&mut self) {
        let mut last_words = String::new();
        for _ in 0..TRIES {
            match self.try_launch().await {
                Ok(()) => return,
                Err(words) => last_words = words,
            }
            tokio::time::sleep(RETRY_DELAY).await; // pacing of tries
        }
        panic!(
            "nats-server on port {} ended {TRIES} times: {last_words}",
            self.port
        );
    }

    /// Starts the server.
    ///
    /// # Errors
    ///
    /// The last line of its log, if it ended before it was ready.
    async fn try_launch(&mut self) -> Result<(), String> {
        let config = self.directory.path().join("nats.conf");
        let store = self.directory.path().join("store");
        let jetstream = format!(
            "jetstream {{ store_dir: \"{}\", max_file_store: 4G }}",
            store.display()
        );
        let jetstream = if self.has_jetstream {
            jetstream
        } else {
            String::new()
        };
        let text = format!(
            "listen: \"127.0.0.1:{}\"\n{jetstream}\n{}\n",
            self.port, self.settings
        );
        std::fs::write(&config, text).expect("the configuration can be written");

        let mut process = killed_with_this_process(&self.program)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("nats-server at {}: {error}", self.program.display()));
        let log = process.stderr.take().expect("its log");
        self.process = Some(process);
        let (ready, became_ready) = oneshot::channel();
        std::thread::spawn(move || read_log(BufReader::new(log), ready));
        let waited = tokio::time::timeout(READY_WITHIN, became_ready).await;
        let started = waited
            .expect("nats-server was ready in time")
            .expect("the thread that reads its log");
        if started.is_err() {
            self.kill();
        }
        started
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Says when the server is ready, and reads on so that the server never blocks on its log. Says its last line if it
/// ends before.
fn read_log(log: impl BufRead, ready: oneshot::Sender<Result<(), String>>) {
    let mut ready = Some(ready);
    let mut last_line = String::new();
    for line in log.lines().map_while(Result::ok) {
        if line.contains("Server is ready")
            && let Some(ready) = ready.take()
        {
            // The receiver is dropped when the test has timed out.
            ready.send(Ok(())).ok();
        }
        if line.contains("[FTL]") {
            eprintln!("nats-server: {line}");
        }
        last_line = line;
    }
    if let Some(ready) = ready {
        ready.send(Err(last_line)).ok();
    }
}

/// A command that the kernel kills when the test process dies, where a tool for that exists.
pub(crate) fn killed_with_this_process(binary: &Path) -> Command {
    static HAS_TOOL: LazyLock<bool> = LazyLock::new(|| {
        let tried = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "true"])
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    });
    if *HAS_TOOL {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(binary);
        command
    } else {
        Command::new(binary)
    }
}
