//! A real Prometheus and a real Alertmanager. `./dev test` fetches them; if it cannot, their tests are skipped with a
//! message.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use tokio::sync::oneshot;

use super::nats::killed_with_this_process;

const READY_WITHIN: Duration = Duration::from_secs(180);

/// A program that `./dev test` names in the environment. `None` is reported on standard error, past libtest's capture.
pub(crate) fn program(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).filter(|path| !path.is_empty());
    if found.is_none() {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        writeln!(
            std::io::stderr(),
            "\n!!! SKIPPED {test}: {variable} is not set; ./dev test sets it\n"
        )
        .ok();
    }
    found.map(PathBuf::from)
}

/// A server that writes `msg="Listening on" … address=…` to its log. Killed when it is dropped.
pub(crate) struct Server {
    process: Child,
    address: String,
}

impl Server {
    pub(crate) async fn start(program: &Path, args: &[OsString]) -> Self {
        let mut command = killed_with_this_process(program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = command
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let log = BufReader::new(process.stderr.take().unwrap());
        let (sender, listening) = oneshot::channel();
        std::thread::spawn(move || {
            let mut sender = Some(sender);
            // Reads to the end, so that the server never blocks on its log.
            for line in log.lines().map_while(Result::ok) {
                let address = line
                    .contains("Listening on")
                    .then(|| line.split_once("address="))
                    .flatten();
                if let Some((_, address)) = address
                    && let Some(sender) = sender.take()
                {
                    sender
                        .send(address.split_whitespace().next().unwrap().to_owned())
                        .ok();
                }
            }
        });
        let mut server = Self {
            process,
            address: String::new(),
        };
        let waited = tokio::time::timeout(READY_WITHIN, listening).await;
        server.address = waited
            .expect("the server is ready in time")
            .unwrap_or_else(|_| panic!("{} ended", program.display()));
        server
    }

    /// `127.0.0.1:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// `--name=value`, where the value may be a path.
pub(crate) fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}
