//! Measures the LLM service as a process: the speed of its streams, the delay of a first chunk, and its memory.
//!
//! `./dev bench` runs it. The provider is part of this program and answers over loopback, so the figures contain no
//! network. `TARSY_BENCH_BESIDE` is the command of another service with the same protocol: it is measured as well, and
//! its figures are a column in addition to those of tarsy. It listens on the port in `GRPC_PORT`.
#![allow(
    clippy::too_many_lines,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of developers fails with its place, and prints its figures"
)]

mod provider;
mod script;
mod process;
mod client;
mod measure;
mod table;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::process::ServiceProcess;
use self::provider::Provider;

/// Time since the start of this program, which provider and client share.
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Lets this program and the services have a socket for each of many streams.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    )
    .expect("the limit of open files");
}

#[tokio::main]
async fn main() {
    clock();
    raise_file_limit();
    let provider = Provider::start().await;
    let mut columns = Vec::new();
    let tarsy = ServiceProcess::tarsy(provider.address).await;
    columns.push(("tarsy", measure::all(&tarsy).await));
    drop(tarsy);
    match std::env::var("TARSY_BENCH_BESIDE") {
        Ok(command) => {
            let beside = ServiceProcess::beside(&command, provider.address).await;
            columns.push(("beside", measure::all(&beside).await));
        }
        Err(_) => eprintln!("only tarsy is measured: TARSY_BENCH_BESIDE names no other service"),
    }
    println!("{}", table::rendered(&columns));
}
