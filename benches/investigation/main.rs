//! Measures the cost of an investigation: time, statements, connections, processor time and memory, and the costs of
//! its parts alone in the same run.
//!
//! `./dev bench` runs it, on servers that it starts itself. An investigation here has three iterations and two tool
//! calls. The model is a recording that answers at once, so every figure is one of tarsy. `TARSY_TEST_PROGRAM` names
//! another tarsy to measure.
//!
//! The memory is measured with `TARSY_BENCH_SESSIONS` sessions, while each waits for the last answer of its model. It
//! comes after `TARSY_BENCH_WAIT_SECS`, which have to be longer than the time in which all sessions are opened.
#![allow(
    clippy::too_many_lines,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "a program of developers fails with its place, and prints its figures"
)]

#[path = "../../tests/it/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "the integration tests use the rest of it"
)]
mod support;
#[path = "../../tests/it/proofs/sizing/meter.rs"]
#[allow(dead_code, reason = "the measurements for sizing use the rest of it")]
mod meter;
#[path = "../../tests/it/adapters/store/fixture.rs"]
#[allow(dead_code, reason = "the tests of the store use the rest of it")]
mod fixture;

mod rig;
mod statements;
mod throughput;
mod memory;
mod alone;

use self::support::process::program;

#[tokio::main]
async fn main() {
    // `cargo bench` passes `--bench`.
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wanted = |part: &str| only.is_empty() || only.iter().any(|name| name == part);
    println!(
        "program: {}, {:.1} MB",
        program(),
        std::fs::metadata(program()).unwrap().len() as f64 / 1e6
    );
    if wanted("statements") {
        statements::measure().await;
        statements::measure_time().await;
    }
    if wanted("throughput") {
        throughput::measure().await;
    }
    if wanted("alone") {
        alone::measure().await;
    }
    if wanted("memory") {
        memory::measure().await;
    }
}

/// Prints one line of the table.
fn line(name: &str, value: std::fmt::Arguments<'_>) {
    let value = value.to_string();
    println!("| {name:<72} | {value:>26} |");
}
