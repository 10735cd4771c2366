//! Start and end of a role as a process: signals cancel tokens, and a listening role prints its address.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;

use anyhow::Context;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The event that stops a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOn {
    /// SIGTERM or SIGINT.
    Signal,
    /// A signal, or the end of standard input: the process that started the role has ended.
    SignalOrParentExit,
}

/// The tokens that signals cancel.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// Cancelled by the first signal: the role finishes its calls, then ends.
    pub end: CancellationToken,
    /// Cancelled by the second signal: the role does not wait for its calls.
    pub now: CancellationToken,
}

/// Tokens for SIGTERM and SIGINT. The end of standard input counts as a first signal only.
///
/// # Errors
/// When the process cannot listen to signals, or standard input should be watched and is not a pipe.
pub fn on_signals(stop_on: StopOn) -> anyhow::Result<Signals> {
    let signals = Signals::default();
    let parent = match stop_on {
        StopOn::Signal => None,
        StopOn::SignalOrParentExit => Some(parent()?),
    };
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
    let tokens = signals.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: shutting down"),
            _ = interrupt.recv() => tracing::info!("SIGINT: shutting down"),
            () = gone(parent) => tracing::info!("standard input ended: shutting down"),
        }
        tokens.end.cancel();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::warn!("second signal: shutting down without waiting for running calls");
        tokens.now.cancel();
    });
    Ok(signals)
}

/// A token that the first signal cancels.
///
/// # Errors
/// The errors of [`on_signals`].
pub fn on_end(stop_on: StopOn) -> anyhow::Result<CancellationToken> {
    on_signals(stop_on).map(|signals| signals.end)
}

/// Standard input as a pipe. A blocking read would need a thread that keeps the process alive.
fn parent() -> anyhow::Result<Receiver> {
    let input = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .context("standard input")?;
    Receiver::from_owned_fd(input).context("standard input must be a pipe")
}

/// Returns when the process at the other end of the pipe has ended.
async fn gone(parent: Option<Receiver>) {
    match parent {
        Some(mut pipe) => {
            // A failed read also means that the other process has ended.
            tokio::io::copy(&mut pipe, &mut tokio::io::sink())
                .await
                .ok();
        }
        None => std::future::pending().await,
    }
}

/// Prints `ready <address>`, so that the process that started the role with port 0 learns the port.
///
/// # Errors
/// When standard output is closed.
pub fn print_ready(address: SocketAddr) -> anyhow::Result<()> {
    print(&format!("ready {address}\n"))
}

/// Prints `ready <address>` and `metrics <address>`, for a role that serves metrics and probes on a second address.
///
/// # Errors
/// When standard output is closed.
pub fn print_ready_and_metrics(address: SocketAddr, metrics: SocketAddr) -> anyhow::Result<()> {
    // In one write, because a reader of the first line may close the pipe after it.
    print(&format!("ready {address}\nmetrics {metrics}\n"))
}

fn print(lines: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(lines.as_bytes())?;
    out.flush().context("standard output")
}
