//! Checks the broker, its streams and the workers that are connected to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

use super::{Check, Checked, Verdict};
use crate::process::connect::Addresses;
use tarsy_bus::{Nats, TopologyReport, TopologySettings, TopologyStatus, Weakness};
use tarsy_core::readable::format;
use tarsy_engine::ports::WorkerStatus;
use tarsy_reports::words::unavailable;

/// The time for a status of every worker. Each sends one every five seconds.
const WORKER_STATUS_TIMEOUT: Duration = Duration::from_secs(6);
/// A smaller limit refuses alerts of the default maximum size.
const MIN_PAYLOAD_BYTES: usize = 1024 * 1024;

/// The connection that the checks of the broker share.
pub(super) type Connecting = Shared<BoxFuture<'static, Result<Nats, Check>>>;

pub(super) fn connect(addresses: Arc<Addresses>) -> Connecting {
    let connected = async move {
        addresses
            .nats_for_command("doctor")
            .await
            .map_err(|error| failed("nats", &error))
    };
    connected.boxed().shared()
}

/// A failed check with the adapter's own fix.
fn failed(check: &str, error: &anyhow::Error) -> Check {
    let fix = error
        .downcast_ref::<tarsy_bus::Error>()
        .and_then(tarsy_bus::Error::fix);
    Check {
        fix: fix.map(str::to_owned),
        ..Check::new(check, Verdict::Fail, error.to_string())
    }
}

fn not_checked(check: &str) -> Check {
    Check::new(check, Verdict::Warn, "skipped: nats is unreachable")
}

/// Checks the version, the round trip and the largest message of the server.
pub(super) async fn server(nats: Connecting, addresses: Arc<Addresses>) -> Checked {
    let nats = nats.await?;
    let info = nats.server();
    let about = format!("{} at {}", info.version, addresses.redacted_nats());
    let rtt = nats
        .rtt()
        .await
        .map_err(|error| Check::new("nats", Verdict::Fail, format!("{about}: {error}")))?;
    let rtt = rtt.as_secs_f64() * 1000.0;
    let payload = info.max_payload / 1024;

    let detail = format!("{about}, rtt {rtt:.1} ms, max_payload {payload} KiB");
    let verdict = if info.max_payload < MIN_PAYLOAD_BYTES {
        Verdict::Warn
    } else {
        Verdict::Ok
    };
    Ok(vec![Check::new("nats", verdict, detail)])
}

/// Reports each stream and consumer with a fault, or one line for all of them.
pub(super) async fn streams(nats: Connecting, settings: Option<TopologySettings>) -> Checked {
    let nats = nats.await.map_err(|_| not_checked("streams"))?;
    let examined = nats.inspect_topology(&settings.unwrap_or_default()).await;
    let examined = examined.map_err(|error| failed("streams", &error.into()))?;
    let faults: Vec<Check> = examined.iter().filter_map(fault).collect();
    if !faults.is_empty() {
        return Ok(faults);
    }
    let consumers = examined
        .iter()
        .filter(|object| object.name.contains('/'))
        .count();
    let detail = format!(
        "{} streams, {consumers} consumers",
        examined.len() - consumers
    );
    for (weakness, risk, fix) in WEAKNESSES {
        let names: Vec<&str> = examined
            .iter()
            .filter(|object| object.status == TopologyStatus::Weak(weakness))
            .map(|object| object.name.as_str())
            .collect();
        if !names.is_empty() {
            let detail = format!("{detail}; {risk}: {}", names.join(", "));
            return Ok(vec![Check::new("streams", Verdict::Warn, detail).fix(fix)]);
        }
    }
    Ok(vec![Check::new("streams", Verdict::Ok, detail)])
}

/// The risks of streams that work, the worst one first, with their texts and fixes.
const WEAKNESSES: [(Weakness, &str, &str); 4] = [
    (
        Weakness::OneCopy,
        "one copy on a cluster, which is lost with its disk",
        "streams: {replicas: 3} in tarsy.yaml, then tarsy migrate",
    ),
    (
        Weakness::InMemory,
        "in memory, so that a stop of all its servers loses the only copy of an alert",
        "storage: file in tarsy.yaml; tarsy migrate then says how to replace the stream",
    ),
    (
        Weakness::Misplaced,
        "not on the servers of the placement in tarsy.yaml",
        "tarsy migrate",
    ),
    (
        Weakness::Unbounded,
        "no max_bytes, so that they may fill the disk",
        "tarsy migrate",
    ),
];

/// Reports the leaders of all copies on a cluster, and each copy that is not up to date. Returns no line without a
/// cluster.
pub(super) async fn replicas(nats: Connecting, settings: Option<TopologySettings>) -> Checked {
    let Ok(nats) = nats.await else {
        return Ok(Vec::new());
    };
    let groups = nats.inspect_copies(&settings.unwrap_or_default()).await;
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let mut leaders = BTreeMap::<&str, usize>::new();
    let mut leaderless = Vec::new();
    let mut behind = BTreeMap::<&str, Vec<String>>::new();
    for group in &groups {
        match &group.leader {
            Some(leader) => *leaders.entry(leader).or_default() += 1,
            None => leaderless.push(group.name.as_str()),
        }
        for copy in &group.behind {
            behind
                .entry(&copy.server)
                .or_default()
                .push(format!("{} ({})", group.name, copy.reason));
        }
    }
    if !leaderless.is_empty() {
        let detail = format!(
            "no leader, since most of their servers are unavailable: {}",
            leaderless.join(", ")
        );
        return Err(Check::new("replicas", Verdict::Fail, detail)
            .fix("start these servers, or connect them"));
    }
    if !behind.is_empty() {
        let checks = behind.iter().map(|(server, objects)| {
            let detail = format!("{server} is not up to date: {}", objects.join(", "));
            Check::new("replicas", Verdict::Warn, detail)
                .fix(format!("start {server}, or look at its log"))
        });
        return Ok(checks.collect());
    }
    let incomplete: Vec<String> = groups
        .iter()
        .filter(|group| group.copies < group.wanted)
        .map(|group| {
            format!(
                "{} has {} of {} copies",
                group.name, group.copies, group.wanted
            )
        })
        .collect();
    if !incomplete.is_empty() {
        let detail = format!("copies are being made: {}", incomplete.join(", "));
        let fix = "wait; `nats server report jetstream` shows the servers";
        return Ok(vec![Check::new("replicas", Verdict::Warn, detail).fix(fix)]);
    }
    let copies = groups.iter().map(|group| group.copies).min();
    let copies = copies.unwrap_or_default();
    let leaders: Vec<String> = leaders
        .iter()
        .map(|(name, count)| format!("{name} leads {count}"))
        .collect();
    let detail = format!(
        "{copies} up to date of each stream and consumer; {}",
        leaders.join(", ")
    );
    Ok(vec![Check::new("replicas", Verdict::Ok, detail)])
}

fn fault(object: &TopologyReport) -> Option<Check> {
    let kind = if object.name.contains('/') {
        "consumer"
    } else {
        "stream"
    };
    let failed = |detail: String| Check::new(kind, Verdict::Fail, detail).fix("tarsy migrate");
    match &object.status {
        TopologyStatus::Fine | TopologyStatus::Weak(_) => None,
        TopologyStatus::Missing => Some(failed(format!("{}: missing", object.name))),
        TopologyStatus::Differs(differences) => {
            let each: Vec<String> = differences.iter().map(ToString::to_string).collect();
            let check = failed(each.join("; "));
            let mut fields = differences
                .iter()
                .filter_map(|difference| difference.field.as_ref());
            // `migrate` cannot change it, and says what to do.
            if fields.any(|field| field.name == "storage") {
                let fix = "tarsy migrate names the two ways: NATS cannot change the storage";
                return Some(check.fix(fix));
            }
            Some(check)
        }
        TopologyStatus::Unreadable(why) => Some(Check::new(kind, Verdict::Fail, why.clone())),
    }
}

/// Counts the workers that send their status.
pub(super) async fn workers(nats: Connecting) -> Checked {
    let nats = nats.await.map_err(|_| not_checked("workers"))?;
    let workers = nats.workers(WORKER_STATUS_TIMEOUT).await;
    let workers =
        workers.map_err(|error| Check::new("workers", Verdict::Fail, error.to_string()))?;
    of_workers(&workers).map(|check| vec![check])
}

/// Counts the workers of these statuses.
pub(super) fn of_workers(workers: &[WorkerStatus]) -> Result<Check, Check> {
    if workers.is_empty() {
        let detail = format!(
            "no worker seen for {} s: alerts wait in the queue",
            WORKER_STATUS_TIMEOUT.as_secs()
        );
        return Err(Check::new("workers", Verdict::Warn, detail).fix("tarsy worker"));
    }
    let slots: u32 = workers.iter().map(|worker| worker.slots).sum();
    let busy: usize = workers.iter().map(|worker| worker.running()).sum();
    let idle: Vec<String> = workers
        .iter()
        .filter(|worker| worker.state != "claiming")
        .map(not_claiming)
        .collect();
    let count = format::count(workers.len(), "worker");
    let detail = format!("{count}, {slots} slots, {busy} busy");
    if idle.is_empty() {
        return Ok(Check::new("workers", Verdict::Ok, detail));
    }
    let detail = format!("{detail}; {}", idle.join("; "));
    Ok(Check::new("workers", Verdict::Warn, detail))
}

/// A worker that claims nothing, with the reason if it is paused.
fn not_claiming(worker: &WorkerStatus) -> String {
    let services: Vec<&str> = worker.unavailable.iter().map(String::as_str).collect();
    let why = if services.is_empty() {
        String::new()
    } else {
        format!(": {}", unavailable(&services))
    };
    format!("{} is {}{why}", worker.name, worker.state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_core::ids::WorkerId;

    #[test]
    fn a_paused_worker_has_its_reason_and_one_that_shuts_down_has_none() {
        let of = |state: &str, unavailable: &[&str]| WorkerStatus {
            worker_id: WorkerId(uuid::Uuid::nil()),
            name: "w1".to_owned(),
            version: String::new(),
            slots: 4,
            sessions: Vec::new(),
            busy: 0,
            state: state.to_owned(),
            unavailable: unavailable
                .iter()
                .map(|service| (*service).to_owned())
                .collect(),
            state_ms: 0,
        };
        let detail = |status: WorkerStatus| of_workers(&[status]).unwrap().detail;
        assert_eq!(
            detail(of("paused", &["providers"])),
            "1 worker, 4 slots, 0 busy; w1 is paused: no provider of models can be called (tarsy models --probe says why)"
        );
        assert_eq!(
            detail(of("paused", &["llm-service"])),
            "1 worker, 4 slots, 0 busy; w1 is paused: the LLM service does not answer"
        );
        assert_eq!(
            detail(of("draining", &[])),
            "1 worker, 4 slots, 0 busy; w1 is draining"
        );
    }
}
