//! Checks the broker, its streams and the workers that are connected to it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

use super::{Check, Checked, Verdict};
use crate::bus::{self, Nats, TopologySettings};
use crate::roles::connect::Addresses;

/// Long enough for a status of every worker, which are sent every five seconds.
const WORKER_STATUS_TIMEOUT: Duration = Duration::from_secs(6);
/// A smaller limit refuses alerts of the default maximum size.
const MIN_PAYLOAD_BYTES: usize = 1024 * 1024;

/// The connection that the checks of the broker share.
pub(super) type Connecting = Shared<BoxFuture<'static, Result<Nats, String>>>;

pub(super) fn connect(addresses: Arc<Addresses>) -> Connecting {
    async move { addresses.nats_for_command("doctor").await.map_err(|error| own_message(&error)) }.boxed().shared()
}

/// The adapter's message; the command line's advice is the fix of the check.
fn own_message(error: &anyhow::Error) -> String {
    error.downcast_ref::<bus::Error>().map_or_else(|| error.to_string(), ToString::to_string)
}

fn not_checked(check: &str) -> Check {
    Check::new(check, Verdict::Warn, "not checked: nats is unavailable")
}

/// Checks the version, the round trip and the largest message of the server.
pub(super) async fn server(nats: Connecting, addresses: Arc<Addresses>) -> Checked {
    let failed = |detail: String| Check::new("nats", Verdict::Fail, detail);
    let nats = nats.await.map_err(|error| failed(error).fix("start nats-server, or set NATS_URL"))?;
    let info = nats.server();
    let about = format!("{} at {}", info.version, addresses.redacted_nats());
    let rtt = nats.rtt().await.map_err(|error| failed(format!("{about}: {error}")))?;
    let (rtt, payload) = (rtt.as_secs_f64() * 1000.0, info.max_payload / 1024);
    let detail = format!("{about}, rtt {rtt:.1} ms, max_payload {payload} KiB");
    let verdict = if info.max_payload < MIN_PAYLOAD_BYTES { Verdict::Warn } else { Verdict::Ok };
    Ok(vec![Check::new("nats", verdict, detail)])
}

/// Reports each stream and consumer with a fault, or one line for all of them.
pub(super) async fn streams(nats: Connecting, settings: Option<TopologySettings>) -> Checked {
    let nats = nats.await.map_err(|_| not_checked("streams"))?;
    let examined = nats.inspect_topology(&settings.unwrap_or_default()).await;
    let examined = examined.map_err(|error| Check::new("streams", Verdict::Fail, error.to_string()))?;
    let faults: Vec<Check> = examined.iter().filter_map(fault).collect();
    if !faults.is_empty() {
        return Ok(faults);
    }
    let consumers = examined.iter().filter(|object| object.name.contains('/')).count();
    let detail = format!("{} streams, {consumers} consumers", examined.len() - consumers);
    let weak = |weakness| {
        let names = examined.iter().filter(|object| object.status == bus::TopologyStatus::Weak(weakness));
        names.map(|object| object.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (single, unbounded) = (weak(bus::Weakness::OneCopy), weak(bus::Weakness::Unbounded));
    Ok(vec![if !single.is_empty() {
        let detail = format!("{detail}; one copy on a cluster, which is lost with its disk: {single}");
        Check::new("streams", Verdict::Warn, detail).fix("streams: {replicas: 3} in tarsy.yaml, then tarsy migrate")
    } else if !unbounded.is_empty() {
        let detail = format!("{detail}; no max_bytes, so that they may fill the disk: {unbounded}");
        Check::new("streams", Verdict::Warn, detail).fix("tarsy migrate")
    } else {
        Check::new("streams", Verdict::Ok, detail)
    }])
}

fn fault(object: &bus::TopologyReport) -> Option<Check> {
    let kind = if object.name.contains('/') { "consumer" } else { "stream" };
    let failed = |detail: String| Check::new(kind, Verdict::Fail, detail).fix("tarsy migrate");
    match &object.status {
        bus::TopologyStatus::Fine | bus::TopologyStatus::Weak(_) => None,
        bus::TopologyStatus::Missing => Some(failed(format!("{}: missing", object.name))),
        bus::TopologyStatus::Differs(differences) => {
            let each: Vec<String> = differences.iter().map(ToString::to_string).collect();
            Some(failed(each.join("; ")))
        }
        bus::TopologyStatus::Unreadable(why) => {
            Some(Check::new(kind, Verdict::Fail, format!("{}: {why}", object.name)))
        }
    }
}

/// Counts the workers that send their status.
pub(super) async fn workers(nats: Connecting) -> Checked {
    let nats = nats.await.map_err(|_| not_checked("workers"))?;
    let workers = nats.workers(WORKER_STATUS_TIMEOUT).await;
    let workers = workers.map_err(|error| Check::new("workers", Verdict::Fail, error.to_string()))?;
    if workers.is_empty() {
        let detail =
            format!("none sent its status within {} s: alerts wait in the queue", WORKER_STATUS_TIMEOUT.as_secs());
        return Err(Check::new("workers", Verdict::Warn, detail).fix("tarsy worker"));
    }
    let slots: u32 = workers.iter().map(|worker| worker.slots).sum();
    let busy: usize = workers.iter().map(|worker| worker.sessions.len()).sum();
    let idle: Vec<String> = workers
        .iter()
        .filter(|worker| worker.state != "claiming")
        .map(|worker| format!("{} is {}", worker.name, worker.state))
        .collect();
    let many = if workers.len() == 1 { "" } else { "s" };
    let detail = format!("{} worker{many}, {slots} slots, {busy} busy", workers.len());
    Ok(vec![if idle.is_empty() {
        Check::new("workers", Verdict::Ok, detail)
    } else {
        Check::new("workers", Verdict::Warn, format!("{detail}; {}", idle.join(", ")))
    }])
}
