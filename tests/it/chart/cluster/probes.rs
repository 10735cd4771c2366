//! The probes of a container, as a kubelet makes them.

use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::helm::text;
use super::container::each;
use crate::support::http;
use crate::support::postgres_server;

/// A probe with its schedule.
#[derive(Debug)]
struct Probe {
    what: Value,
    period: Duration,
    timeout: Duration,
    threshold: u32,
    /// Failures in a row.
    failures: u32,
    due: Instant,
}

/// The probes of a container and their results.
#[derive(Debug)]
pub(super) struct Probes {
    /// The address of the pod here.
    address: String,
    ports: Value,
    startup: Option<Probe>,
    liveness: Option<Probe>,
    readiness: Option<Probe>,
    pub(super) is_started: bool,
    pub(super) is_ready: bool,
}

/// A change of the results.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// `is_started` or `is_ready`.
    Status,
    /// The container has to be restarted; the probe that failed.
    Unhealthy(&'static str),
}

impl Probe {
    fn new(what: &Value) -> Option<Self> {
        let seconds =
            |key: &str, default: u64| Duration::from_secs(what[key].as_u64().unwrap_or(default));
        what.is_object().then(|| Self {
            what: what.clone(),
            period: seconds("periodSeconds", 10),
            timeout: seconds("timeoutSeconds", 1),
            threshold: u32::try_from(what["failureThreshold"].as_u64().unwrap_or(3)).unwrap(),
            failures: 0,
            due: Instant::now() + seconds("initialDelaySeconds", 0),
        })
    }

    /// Makes the probe when it is due. Whether it succeeds; `None` while failures are fewer than its threshold.
    async fn result(&mut self, address: &str, ports: &Value) -> Option<bool> {
        sleep_until(self.due).await; // the schedule of the probe
        self.due = Instant::now() + self.period;
        let holds = timeout(self.timeout, attempt(&self.what, address, ports))
            .await
            .unwrap_or(false);
        self.failures = if holds { 0 } else { self.failures + 1 };
        (holds || self.failures >= self.threshold).then_some(holds)
    }
}

impl Probes {
    pub(super) fn new(container: &Value, address: &str) -> Self {
        let [startup, liveness, readiness] = ["startupProbe", "livenessProbe", "readinessProbe"]
            .map(|probe| Probe::new(&container[probe]));
        let (is_started, is_ready) = (startup.is_none(), startup.is_none() && readiness.is_none());
        let (address, ports) = (address.to_owned(), container["ports"].clone());
        Self {
            address,
            ports,
            startup,
            liveness,
            readiness,
            is_started,
            is_ready,
        }
    }

    /// The next change. Cancel safe.
    pub(super) async fn change(&mut self) -> Change {
        loop {
            if !self.is_started {
                let startup = self
                    .startup
                    .as_mut()
                    .expect("a container starts by its probe");
                match startup.result(&self.address, &self.ports).await {
                    Some(true) => {
                        (self.is_started, self.is_ready) = (true, self.readiness.is_none());
                        return Change::Status;
                    }
                    Some(false) => return Change::Unhealthy("startupProbe"),
                    None => continue,
                }
            }
            let (address, ports) = (&self.address, &self.ports);
            tokio::select! {
                result = result_of(&mut self.liveness, address, ports) => if result == Some(false) {
                    return Change::Unhealthy("livenessProbe");
                },
                result = result_of(&mut self.readiness, address, ports) => {
                    if let Some(ready) = result.filter(|ready| *ready != self.is_ready) {
                        self.is_ready = ready;
                        return Change::Status;
                    }
                }
            }
        }
    }
}

async fn result_of(probe: &mut Option<Probe>, address: &str, ports: &Value) -> Option<bool> {
    match probe {
        Some(probe) => probe.result(address, ports).await,
        None => std::future::pending().await,
    }
}

async fn attempt(probe: &Value, address: &str, ports: &Value) -> bool {
    let at = |port: &Value| {
        let number = port.as_u64().or_else(|| {
            each(ports)
                .find(|named| named["name"] == *port)
                .and_then(|named| named["containerPort"].as_u64())
        });
        format!("{address}:{}", number.expect("a port of the container"))
    };
    if probe["httpGet"].is_object() {
        let (to, path) = (
            at(&probe["httpGet"]["port"]),
            text(&probe["httpGet"]["path"]),
        );
        return http::try_get(&to, path)
            .await
            .is_some_and(|answer| (200..400).contains(&answer.status));
    }
    if probe["tcpSocket"].is_object() {
        return TcpStream::connect(at(&probe["tcpSocket"]["port"]))
            .await
            .is_ok();
    }
    let command: Vec<&str> = each(&probe["exec"]["command"]).map(text).collect();
    let [program, args @ ..] = command.as_slice() else {
        panic!("a probe of another kind: {probe}")
    };
    let args = args
        .iter()
        .map(|arg| if *arg == "127.0.0.1" { address } else { arg });
    let mut command = tokio::process::Command::new(postgres_server::programs().0.join(program));
    let status = command
        .args(args)
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .status();
    status.await.is_ok_and(|status| status.success())
}
