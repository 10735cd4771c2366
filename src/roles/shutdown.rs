//! The end of a process: signals become a token, and a listening role says where it listens.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use anyhow::Context;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What signals ask for.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The first one: finish what is under way, then end.
    pub end: CancellationToken,
    /// The second one: do not wait for it.
    pub now: CancellationToken,
}

/// SIGTERM and SIGINT, and with `with_parent` the end of standard input, which counts as a first signal only.
///
/// # Errors
/// When the process cannot listen to signals, or standard input is no pipe.
pub fn on_signals(with_parent: bool) -> anyhow::Result<Signals> {
    let signals = Signals::default();
    let parent = with_parent.then(parent).transpose()?;
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
    let asked = signals.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: shutting down"),
            _ = interrupt.recv() => tracing::info!("SIGINT: shutting down"),
            () = gone(parent) => tracing::info!("standard input has ended: shutting down"),
        }
        asked.end.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::warn!("another signal: calls under way are not waited for");
        asked.now.cancel();
    });
    Ok(signals)
}

/// A token that the first signal cancels.
///
/// # Errors
/// As [`on_signals`].
pub fn on_end(with_parent: bool) -> anyhow::Result<CancellationToken> {
    on_signals(with_parent).map(|signals| signals.end)
}

/// Standard input, without a thread that would wait in a read until the process ends.
fn parent() -> anyhow::Result<Receiver> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().context("standard input")?;
    Receiver::from_owned_fd(input).context("standard input has to be a pipe")
}

/// Returns when whoever holds the other end of the pipe has ended, however that came.
async fn gone(parent: Option<Receiver>) {
    match parent {
        Some(mut pipe) => {
            // A failed read says the same as the end: nobody is there.
            tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await.ok();
        }
        None => std::future::pending().await,
    }
}

/// Prints `ready <address>`: whoever started the role with port 0 learns the port, and that it may be used.
///
/// # Errors
/// When standard output is closed.
pub fn say_ready(address: SocketAddr) -> anyhow::Result<()> {
    say(&format!("ready {address}\n"))
}

/// Prints `ready <address>` and `metrics <address>`: the second is where a role that serves something else has its
/// metrics and probes.
///
/// # Errors
/// When standard output is closed.
pub fn say_ready_and_metrics(address: SocketAddr, metrics: SocketAddr) -> anyhow::Result<()> {
    // At once: whoever needs only the first line may close the pipe after it.
    say(&format!("ready {address}\nmetrics {metrics}\n"))
}

fn say(lines: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(lines.as_bytes())?;
    out.flush().context("standard output")
}
