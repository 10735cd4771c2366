//! A service as a process: its start, its memory and its processor time.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::measure::STREAMS;

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running service. It is killed when it is dropped.
pub(crate) struct ServiceProcess {
    pub(crate) address: String,
    child: Child,
    /// Holds its configuration.
    _folder: Option<TempDir>,
}

impl ServiceProcess {
    /// The program of this build.
    pub(crate) async fn tarsy(provider: SocketAddr) -> Self {
        let folder = TempDir::new().expect("a folder");
        let config = folder.path().join("tarsy.yaml");
        std::fs::write(
            &config,
            format!("llm_service:\n  concurrency: {{google: {STREAMS}}}\n"),
        )
        .expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tarsy"));
        command
            .args([
                "llm-service",
                "--listen",
                "127.0.0.1:0",
                "--log-level",
                "warn",
                "--config",
            ])
            .arg(&config);
        let mut child = spawn(command.stdout(Stdio::piped()), provider);
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let ready = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(address) = line.strip_prefix("ready ") {
                    return address.to_owned();
                }
            }
            panic!("the service has ended")
        };
        let address = tokio::time::timeout(START_TIMEOUT, ready)
            .await
            .expect("the service is ready in time");
        Self {
            address,
            child,
            _folder: Some(folder),
        }
    }

    /// Another service, which listens on the port in `GRPC_PORT`.
    pub(crate) async fn beside(command: &str, provider: SocketAddr) -> Self {
        let held = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = held.local_addr().expect("an address");
        drop(held);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("exec {command}")])
            .env("GRPC_PORT", address.port().to_string());
        let child = spawn(shell.stdout(Stdio::null()), provider);
        let connected = async {
            while TcpStream::connect(address).await.is_err() {
                // The other service does not say when it listens.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(START_TIMEOUT, connected)
            .await
            .expect("the other service listens in time");
        Self {
            address: address.to_string(),
            child,
            _folder: None,
        }
    }

    fn proc(&self, file: &str) -> String {
        let pid = self.child.id().expect("the service runs");
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("the service runs on Linux")
    }

    /// Resident memory in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = self.proc("status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("VmRSS");
        line.trim()
            .trim_end_matches(" kB")
            .parse()
            .expect("a number of KiB")
    }

    /// Processor time of all its threads.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat
            .rsplit_once(") ")
            .expect("a name")
            .1
            .split(' ')
            .collect();
        let ticks = |index: usize| fields[index].parse::<u64>().expect("a number of ticks");
        Duration::from_secs(ticks(11) + ticks(12))
            .div_f64(rustix::param::clock_ticks_per_second() as f64)
    }
}

fn spawn(command: &mut Command, provider: SocketAddr) -> Child {
    for variable in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        command.env_remove(variable);
    }
    command
        .env("GEMINI_API_KEY", "no-key")
        .env("GOOGLE_GEMINI_BASE_URL", format!("http://{provider}"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .expect("the service starts")
}
