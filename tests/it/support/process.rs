//! Roles of tarsy as child processes, with their logs, and signals for them.

pub(crate) mod ports;

use std::collections::VecDeque;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::http;
use super::wait::eventually;

const TIMEOUT: Duration = Duration::from_secs(180);
const KEPT_LINES: usize = 20_000;

/// The program under test.
pub(crate) const TARSY: &str = env!("CARGO_BIN_EXE_tarsy");

/// The program of the roles: the one that `TARSY_TEST_PROGRAM` names, so that a measurement can take an optimised one,
/// or [`TARSY`].
pub(crate) fn program() -> &'static str {
    static PROGRAM: LazyLock<String> =
        LazyLock::new(|| std::env::var("TARSY_TEST_PROGRAM").unwrap_or_else(|_| TARSY.to_owned()));
    &PROGRAM
}

/// A running tarsy. Killed when it is dropped; its log is printed if the test fails.
pub(crate) struct Tarsy {
    name: String,
    /// `None` when the process was never started.
    child: Option<Child>,
    out: mpsc::Receiver<String>,
    log: Arc<Log>,
    /// The task that reads the log to its end.
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Log {
    lines: Mutex<VecDeque<String>>,
    grown: Notify,
}

impl Tarsy {
    /// Starts `tarsy <args>` with these variables of tarsy and no others.
    pub(crate) fn spawn(name: &str, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::spawn_program(Path::new(program()), name, args, env)
    }

    /// Starts another program that behaves like tarsy.
    pub(crate) fn spawn_program(
        program: &Path,
        name: &str,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new(program);
        for (variable, _) in std::env::vars_os() {
            let name = variable.to_string_lossy();
            if name.starts_with("TARSY_") || ["NATS_URL", "DATABASE_URL"].contains(&&*name) {
                command.env_remove(&variable);
            }
        }
        // Most tests are about alerts that no recording knows.
        command.env("TARSY_ANSWER_UNKNOWN", "true");
        command.args(args).envs(env.iter().copied());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (sender, out) = mpsc::channel(4096);
        let stdout = child.stdout.take().unwrap();
        tokio::spawn(async move {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            // A status line ends with a carriage return: every piece is passed on at once.
            while let Some(text) = next_piece(&mut reader, &mut line).await {
                if sender.send(text).await.is_err() {
                    return;
                }
            }
        });
        let log = Arc::new(Log::default());
        let (stderr, keep) = (child.stderr.take().unwrap(), Arc::clone(&log));
        let reader = tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut kept = keep.lines.lock().unwrap();
                if kept.len() == KEPT_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
                drop(kept);
                keep.grown.notify_waiters();
            }
        });
        Self {
            name: name.to_owned(),
            child: Some(child),
            out,
            log,
            reader: Some(reader),
        }
    }

    /// In place of a process that is started later.
    pub(super) fn not_started(name: &str) -> Self {
        let (_, out) = mpsc::channel(1);
        Self {
            name: name.to_owned(),
            child: None,
            out,
            log: Arc::default(),
            reader: None,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child
            .as_ref()
            .and_then(Child::id)
            .expect("the process has ended, or was not started")
    }

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("the process was started")
    }

    /// The address in the role's ready line.
    pub(crate) async fn ready(&mut self) -> String {
        let line = self.line_with("ready ").await;
        // Other output may precede the address on the line.
        line.trim().rsplit("ready ").next().unwrap().to_owned()
    }

    /// The address in the ready line; `None` when the process ends before. Cancel safe.
    pub(crate) async fn ready_or_ended(&mut self) -> Option<String> {
        loop {
            let line = self.out.recv().await?;
            if line.contains("ready ") {
                return Some(
                    line.trim()
                        .rsplit("ready ")
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                );
            }
        }
    }

    /// The next piece of standard output that contains `text`.
    pub(crate) async fn line_with(&mut self, text: &str) -> String {
        let found = tokio::time::timeout(TIMEOUT, async {
            loop {
                let line = self.out.recv().await?;
                if line.contains(text) {
                    return Some(line);
                }
            }
        });
        match found.await {
            Ok(Some(line)) => line,
            Ok(None) => panic!("{} ended without \"{text}\"", self.name),
            Err(_) => panic!("{} did not print \"{text}\" in time", self.name),
        }
    }

    /// Returns when the log has a line with `text`.
    pub(crate) async fn logged(&self, text: &str) -> String {
        let found = async {
            loop {
                let grown = self.log.grown.notified();
                if let Some(line) = self
                    .log
                    .lines
                    .lock()
                    .unwrap()
                    .iter()
                    .find(|line| line.contains(text))
                {
                    return line.clone();
                }
                grown.await;
            }
        };
        tokio::time::timeout(TIMEOUT, found)
            .await
            .unwrap_or_else(|_| panic!("{} does not log \"{text}\" in time", self.name))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Sends `kill -9`; returns when the process has ended.
    pub(crate) async fn kill(&mut self) {
        self.child().kill().await.unwrap();
    }

    /// Sends SIGSTOP.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Sends SIGCONT.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Returns when the process has ended by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        self.child().wait().await.unwrap()
    }

    /// The exit code and the remaining output.
    pub(crate) async fn finished(&mut self) -> (i32, String) {
        self.finished_within(TIMEOUT).await
    }

    /// Like [`Self::finished`], for a process with much to do: a limit against a process that hangs, not for its
    /// speed.
    pub(crate) async fn finished_within(&mut self, timeout: Duration) -> (i32, String) {
        let status = tokio::time::timeout(timeout, self.child().wait()).await;
        let status = status
            .unwrap_or_else(|_| panic!("{} does not end", self.name))
            .unwrap();
        let mut rest = String::new();
        while let Some(line) = self.out.recv().await {
            rest.push_str(&line);
        }
        // The last lines of the log may still be in the pipe.
        if let Some(reader) = self.reader.take() {
            tokio::time::timeout(TIMEOUT, reader)
                .await
                .expect("the log has an end")
                .unwrap();
        }
        (status.code().unwrap_or(-1), rest)
    }

    /// Everything on standard error so far.
    pub(crate) fn log(&self) -> String {
        self.log
            .lines
            .lock()
            .unwrap()
            .iter()
            .map(|line| format!("{line}\n"))
            .collect()
    }
}

/// The peak of the resident memory of a process, in MiB.
pub(crate) fn peak_memory(process: &Tarsy) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim()
        .trim_end_matches(" kB")
        .trim()
        .parse::<u64>()
        .unwrap()
        / 1024
}

/// The child processes whose command line contains `text`; none where the kernel has no `/proc`.
pub(crate) fn children_of(parent: u32, text: &str) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let of = fields
            .split_whitespace()
            .nth(1)
            .and_then(|of| of.parse::<u32>().ok());
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        of == Some(parent) && String::from_utf8_lossy(&line).contains(text)
    };
    pids.filter(is_child).filter_map(Pid::from_raw).collect()
}

/// Whether a process exists and is no zombie; true where the kernel has no `/proc`.
pub(crate) fn is_running(pid: Pid) -> bool {
    match std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        Ok(stat) => stat
            .rsplit_once(") ")
            .is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X'])),
        Err(_) => !Path::new("/proc/self/stat").exists(),
    }
}

impl Drop for Tarsy {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("--- log of {}\n{}", self.name, self.log());
        }
    }
}

async fn next_piece(reader: &mut (impl AsyncRead + Unpin), rest: &mut Vec<u8>) -> Option<String> {
    let mut byte = [0];
    loop {
        if reader.read_exact(&mut byte).await.is_err() {
            let last = std::mem::take(rest);
            return (!last.is_empty()).then(|| String::from_utf8_lossy(&last).into_owned());
        }
        rest.push(byte[0]);
        if matches!(byte[0], b'\n' | b'\r') {
            return Some(String::from_utf8_lossy(&std::mem::take(rest)).into_owned());
        }
    }
}

/// Waits until a metric has this value, because metrics change shortly after the counted event is visible.
pub(crate) async fn metric_is(address: &str, name: &str, labels: &str, value: f64) {
    let what = format!("{name}{{{labels}}} is {value}");
    eventually(&what, async || {
        (metric(address, name, labels).await - value).abs() <= f64::EPSILON
    })
    .await;
}

/// The value of a metric, summed up over its labels that contain `labels`; 0 when there is none.
pub(crate) async fn metric(address: &str, name: &str, labels: &str) -> f64 {
    let body = http::get(address, "/metrics").await.body;
    let ours = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels))
    };
    body.lines()
        .filter(ours)
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}
