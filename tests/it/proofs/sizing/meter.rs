//! Readings: memory and processor time of processes, bytes that pass a port.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::process::children_of;

/// A field of `/proc/<pid>/status` in KiB.
fn status_kib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap();
    line.trim_start_matches(':')
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .unwrap()
}

/// The resident memory of a process now, in MiB.
pub(super) fn memory_mib(pid: u32) -> f64 {
    status_kib(pid, "VmRSS") as f64 / 1024.0
}

/// The processor time of a process, of its children that have ended, and of those that run.
pub(super) fn processor_time(pid: u32) -> Duration {
    let children = children_of(pid, "")
        .into_iter()
        .map(|child| ticks(i64::from(child.as_raw_nonzero().get()), 4));
    time(ticks(i64::from(pid), 4) + children.sum::<u64>())
}

/// The processor time of a process without its children.
#[allow(dead_code, reason = "`benches/investigation` uses it")]
pub(super) fn own_processor_time(pid: u32) -> Duration {
    time(ticks(i64::from(pid), 2))
}

/// The first fields of a process's times: user, system, and both of its children that have ended.
fn ticks(pid: i64, fields: usize) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let (_, times) = stat.rsplit_once(") ").unwrap_or_default();
    times
        .split_whitespace()
        .skip(11)
        .take(fields)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum()
}

fn time(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
}

/// Bytes of both directions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    /// From the client to the server.
    pub(super) sent: u64,
    pub(super) received: u64,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
}

/// A port that forwards to another one and counts the bytes; dropping it ends its connections.
pub(super) struct Counted {
    pub(super) port: u16,
    counters: Arc<Counters>,
    _accepting: JoinSet<()>,
}

impl Counted {
    pub(super) async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let counters = Arc::<Counters>::default();
        let (mut accepting, shared) = (JoinSet::new(), Arc::clone(&counters));
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
                    continue;
                };
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                let (there, back) = (Arc::clone(&shared), Arc::clone(&shared));
                connections
                    .spawn(async move { forward(from_client, to_server, &there.sent).await });
                connections
                    .spawn(async move { forward(from_server, to_client, &back.received).await });
            }
        });
        Self {
            port,
            counters,
            _accepting: accepting,
        }
    }

    pub(super) fn traffic(&self) -> Traffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            sent: read(&self.counters.sent),
            received: read(&self.counters.received),
        }
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, counter: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        counter.fetch_add(count as u64, Ordering::Relaxed);
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
