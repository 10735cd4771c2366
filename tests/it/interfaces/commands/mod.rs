//! The commands as processes on real servers: their output and exit codes.

mod ask;
mod cluster;
mod dead_letters;
mod doctor;
mod inputs;
mod inspect_reply;
mod inspect_stream;
mod models;
mod prune;
mod queue;
mod search;
mod sessions;
mod shell;
mod routes;
mod destinations;
mod sources;
mod unavailable;
mod usage;

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::support::process::TARSY;
use crate::support::system::TestSystem;

const COMMAND_TIMEOUT: Duration = Duration::from_secs(180);

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    took: Duration,
}

impl Ran {
    /// The objects on standard output.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:?}")))
            .collect()
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

/// Runs tarsy with no other of its variables, and with `input` on standard input.
pub(crate) async fn run_with(env: &[(&str, &str)], args: &[&str], input: &[u8]) -> Ran {
    let mut command = Command::new(TARSY);
    for variable in [
        "NATS_URL",
        "DATABASE_URL",
        "TARSY_LLM_ADDR",
        "TARSY_CONFIG",
        "TARSY_GATES",
        "TARSY_LOG",
    ] {
        command.env_remove(variable);
    }
    command
        .args(args)
        .envs(env.iter().copied())
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "80")
        .env_remove("LC_ALL");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that reads no input may have ended before.
    stdin.write_all(input).await.ok();
    drop(stdin);
    let output = tokio::time::timeout(COMMAND_TIMEOUT, child.wait_with_output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("tarsy {args:?} does not end"))
        .unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        took: begun.elapsed(),
    }
}

/// Runs a command on a system.
pub(crate) async fn run(system: &TestSystem, args: &[&str]) -> Ran {
    let (nats, config) = (system.nats.url(), system.file("tarsy.yaml"));
    let env = [
        ("NATS_URL", nats.as_str()),
        ("DATABASE_URL", system.database.url()),
        ("TARSY_LLM_ADDR", system.llm_addr()),
        ("TARSY_CONFIG", config.to_str().unwrap()),
    ];
    run_with(&env, args, b"").await
}
