//! A nats-server of its own for each test.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "helpers of tests fail the test")]

pub(crate) mod jwt;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::oneshot;

const READY_WITHIN: Duration = Duration::from_secs(20);
/// An election takes seconds, and several of them when the disk is busy.
const LEADER_WITHIN: Duration = Duration::from_secs(60);

/// A server process with a store directory of its own. Dropping it kills the process and removes the directory.
#[derive(Debug)]
pub(crate) struct NatsServer {
    directory: TempDir,
    settings: String,
    port: u16,
    process: Option<Child>,
}

impl NatsServer {
    /// Starts a server on a free port and waits until it reports that it is ready.
    pub(crate) async fn start() -> Self {
        Self::start_with("").await
    }

    /// Starts a server with more lines in its configuration file.
    pub(crate) async fn start_with(settings: &str) -> Self {
        Self::start_on(0, settings).await
    }

    /// Starts a server on a port that stays reserved while it is down; 0 for any free one.
    pub(crate) async fn start_on(port: u16, settings: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("tarsy-test-nats-").tempdir().expect("a directory");
        let mut server = Self { directory, settings: settings.to_owned(), port, process: None };
        server.launch().await;
        server
    }

    /// The URL for clients.
    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
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
        if let Some(pid) = self.process.as_ref().and_then(|process| Pid::from_raw(process.id().cast_signed())) {
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
        std::fs::remove_dir_all(self.directory.path().join("store")).expect("the store can be removed");
        self.launch().await;
    }

    /// Starts the server again with other lines in its configuration file.
    pub(crate) async fn restart_with(&mut self, settings: &str) {
        self.settings = settings.to_owned();
        self.restart().await;
    }

    async fn launch(&mut self) {
        let binary =
            std::env::var_os("TARSY_TEST_NATS_SERVER").expect("TARSY_TEST_NATS_SERVER is not set: run ./dev test");
        let config = self.directory.path().join("nats.conf");
        // Port -1 is a free one, chosen by the server.
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let store = self.directory.path().join("store");
        let text = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\", max_file_store: 4G }}\n{}\n",
            store.display(),
            self.settings
        );
        std::fs::write(&config, text).expect("the configuration can be written");

        let mut process = killed_with_this_process(Path::new(&binary))
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("nats-server at {}: {error}", binary.display()));
        let log = process.stderr.take().expect("its log");
        self.process = Some(process);
        let (ready, became_ready) = oneshot::channel();
        std::thread::spawn(move || read_log(BufReader::new(log), ready));
        let waited = tokio::time::timeout(READY_WITHIN, became_ready).await;
        self.port = waited.expect("nats-server was ready in time").unwrap_or_else(|_| panic!("nats-server ended"));
    }
}

/// A cluster of three servers on loopback.
#[derive(Debug)]
pub(crate) struct NatsCluster {
    servers: Vec<NatsServer>,
}

impl NatsCluster {
    /// Starts the servers and waits until they have a leader.
    pub(crate) async fn start() -> Self {
        // All ports stay bound until the last one is known, so they differ.
        let listeners: Vec<TcpListener> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
        let ports: Vec<u16> = listeners.iter().map(|held| held.local_addr().expect("a port").port()).collect();
        drop(listeners);
        let routes: Vec<String> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let routes = routes.join(", ");
        let mut servers = Vec::new();
        for (number, port) in ports.iter().enumerate() {
            let cluster = format!("name: tarsy-test, listen: \"127.0.0.1:{port}\", routes: [{routes}]");
            servers.push(NatsServer::start_with(&format!("server_name: n{number}\ncluster {{ {cluster} }}")).await);
        }
        let cluster = Self { servers };
        let client = async_nats::connect(cluster.url()).await.expect("a connection");
        let jetstream = async_nats::jetstream::new(client);
        let led = async {
            // The server answers with an error until there is a leader.
            while jetstream.query_account().await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LEADER_WITHIN, led).await.expect("the servers found a leader in time");
        cluster
    }

    /// The URL of the first server.
    pub(crate) fn url(&self) -> String {
        self.servers[0].url()
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends the port when the server is ready, and reads on so that the server never blocks on its log.
fn read_log(log: impl BufRead, ready: oneshot::Sender<u16>) {
    let mut ready = Some(ready);
    let mut port = 0;
    for line in log.lines().map_while(Result::ok) {
        if let Some((_, address)) = line.split_once("Listening for client connections on ") {
            port = address.rsplit(':').next().and_then(|port| port.trim().parse().ok()).expect("a port");
        }
        if line.contains("[FTL]") {
            eprintln!("nats-server: {line}");
        }
        if line.contains("Server is ready")
            && let Some(ready) = ready.take()
        {
            // The receiver is dropped when the test has timed out.
            ready.send(port).ok();
        }
    }
}

/// A command that the kernel kills when the test process dies, where a tool for that exists.
pub(crate) fn killed_with_this_process(binary: &Path) -> Command {
    let known = Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]).stderr(Stdio::null()).status();
    if known.is_ok_and(|status| status.success()) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(binary);
        command
    } else {
        Command::new(binary)
    }
}
