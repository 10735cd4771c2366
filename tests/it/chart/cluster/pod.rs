//! A pod that runs: its containers as processes, its status, its end.

use std::sync::Arc;
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::super::helm::text;
use super::container::{Place, each, prepare};
use super::images::id;
use super::kubelet::Node;
use super::probes::{Change, Probes};
use super::services::here;

/// The pause before a container starts again; a real kubelet begins with ten seconds.
const BACK_OFF: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(200);

/// The desired state of a pod in the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Running,
    /// Ended within this time.
    Ended(Duration),
    /// Gone: the object does not exist any more.
    Killed,
}

/// The end of a process.
enum Outcome {
    Exited(i32),
    Unhealthy(&'static str),
    Stopped,
}

pub(super) struct Pod {
    node: Arc<Node>,
    pod: Value,
    /// Its address in the cluster.
    ip: String,
    wanted: watch::Receiver<Wanted>,
    phase: &'static str,
    ready: bool,
    ready_since: String,
    /// The status of each container that has started, by its name.
    init: Vec<Value>,
    main: Value,
}

/// Returns when the pod is to end.
async fn left(wanted: &mut watch::Receiver<Wanted>) {
    if wanted
        .wait_for(|wanted| *wanted != Wanted::Running)
        .await
        .is_err()
    {
        std::future::pending().await
    }
}

async fn killed(wanted: &mut watch::Receiver<Wanted>) {
    if wanted
        .wait_for(|wanted| *wanted == Wanted::Killed)
        .await
        .is_err()
    {
        std::future::pending().await
    }
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl Pod {
    pub(super) fn new(node: Arc<Node>, pod: Value, wanted: watch::Receiver<Wanted>) -> Self {
        let ip = node.address();
        let (init, main) = (Vec::new(), Value::Null);
        Self {
            node,
            pod,
            ip,
            wanted,
            phase: "Pending",
            ready: false,
            ready_since: now(),
            init,
            main,
        }
    }

    /// Runs the pod to its end.
    pub(super) async fn run(mut self) {
        let containers: Vec<Value> = each(&self.pod["spec"]["containers"]).cloned().collect();
        let [main] = containers.as_slice() else {
            panic!("one container beside those that start before it")
        };
        for container in each(&self.pod["spec"]["initContainers"])
            .cloned()
            .collect::<Vec<_>>()
        {
            assert!(
                container["restartPolicy"].is_null(),
                "a container that outlives the main one"
            );
            let name = container["name"].clone();
            self.init.push(json!({"name": name, "image": container["image"], "imageID": "", "restartCount": 0}));
            if !self.run_container(&container).await {
                return self.end().await;
            }
        }
        let (name, image) = (&main["name"], &main["image"]);
        self.main =
            json!({"name": name, "image": image, "imageID": "", "restartCount": 0, "ready": false});
        self.run_container(main).await;
        self.end().await;
    }

    fn is_wanted(&self) -> bool {
        *self.wanted.borrow() == Wanted::Running
    }

    fn status_of(&mut self) -> &mut Value {
        if self.main.is_null() {
            self.init.last_mut().expect("a container")
        } else {
            &mut self.main
        }
    }

    /// Runs a container until it has ended for good. Whether the next one may start.
    async fn run_container(&mut self, container: &Value) -> bool {
        let policy = text(&self.pod["spec"]["restartPolicy"]).to_owned();
        let always = policy == "Always" && !self.main.is_null();
        loop {
            let Some((mut child, address)) = self.start(container).await else {
                return false;
            };
            self.phase = if self.main.is_null() {
                "Pending"
            } else {
                "Running"
            };
            let mut probes = Probes::new(container, &address);
            self.mark(json!({"running": {"startedAt": now()}}), &probes)
                .await;
            let outcome = self.watch(&mut child, &mut probes).await;
            let code = match outcome {
                Outcome::Exited(code) => code,
                Outcome::Unhealthy(probe) => {
                    self.node.log(&self.pod, &format!("{probe} failed"));
                    self.stop(&mut child, Duration::from_secs(30)).await
                }
                Outcome::Stopped => {
                    let wanted = *self.wanted.borrow();
                    let code = match wanted {
                        Wanted::Ended(grace) => {
                            self.end_container(container, &mut child, grace).await
                        }
                        Wanted::Killed | Wanted::Running => {
                            self.stop(&mut child, Duration::ZERO).await
                        }
                    };
                    self.terminated(code).await;
                    return false;
                }
            };
            self.terminated(code).await;
            if code == 0 && !always {
                return true;
            }
            if policy == "Never" {
                return false;
            }
            let count = self.status_of()["restartCount"].as_u64().unwrap_or(0);
            self.status_of()["restartCount"] = json!(count + 1);
            self.unless_stopped(sleep(BACK_OFF)).await; // the pause before the next start
            if !self.is_wanted() {
                return false;
            }
        }
    }

    /// Starts a process, as soon as its volumes can be filled. `None` when the pod is not wanted any more.
    async fn start(&mut self, container: &Value) -> Option<(Child, String)> {
        let address = here(&self.ip);
        loop {
            if !self.is_wanted() {
                return None;
            }
            let context = &self.pod["spec"]["securityContext"];
            let place = Place {
                folder: self.node.folder(&self.pod),
                ip: Some(address.clone()),
                group: id(context, "fsGroup").filter(|_| rustix::process::geteuid().is_root()),
                services: self.node.services().await,
            };
            let reason = match self.node.images.command(&self.pod, container, &address) {
                None => "ErrImagePull".to_owned(),
                Some(mut command) => {
                    match prepare(&self.pod, container, &self.node.objects().await, &place) {
                        Err(fault) => fault,
                        Ok(start) => {
                            let log = self.node.log_file(&self.pod);
                            command
                                .args(&start.args)
                                .envs(start.env)
                                .stdin(std::process::Stdio::null());
                            command
                                .stdout(log.try_clone().unwrap())
                                .stderr(log)
                                .kill_on_drop(true);
                            command.current_dir("/");
                            return Some((command.spawn().unwrap(), address));
                        }
                    }
                }
            };
            *self.status_of() = merged(
                self.status_of(),
                json!({"state": {"waiting": {"reason": reason}}}),
            );
            self.publish().await;
            self.unless_stopped(sleep(RETRY)).await; // the interval of a kubelet that waits for an object
        }
    }

    async fn unless_stopped(&mut self, time: impl Future<Output = ()>) {
        let mut wanted = self.wanted.clone();
        tokio::select! {
            () = time => {}
            () = left(&mut wanted) => {}
        }
    }

    async fn watch(&mut self, child: &mut Child, probes: &mut Probes) -> Outcome {
        let mut wanted = self.wanted.clone();
        loop {
            tokio::select! {
                status = child.wait() => return Outcome::Exited(status.unwrap().code().unwrap_or(137)),
                () = left(&mut wanted) => return Outcome::Stopped,
                change = probes.change() => match change {
                    Change::Unhealthy(probe) => return Outcome::Unhealthy(probe),
                    Change::Status => {
                        let state = self.status_of()["state"].clone();
                        self.mark(state, probes).await;
                    }
                },
            }
        }
    }

    /// Ends a container as its pod is deleted: the hook before it, SIGTERM, and SIGKILL after the grace period.
    async fn end_container(
        &mut self,
        container: &Value,
        child: &mut Child,
        grace: Duration,
    ) -> i32 {
        let limit = Instant::now() + grace;
        if let Some(seconds) = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64() {
            timeout(Duration::from_secs(seconds).min(grace), child.wait())
                .await
                .ok();
        }
        let left = limit
            .saturating_duration_since(Instant::now())
            .max(Duration::from_secs(2));
        self.stop(child, left).await
    }

    async fn stop(&self, child: &mut Child, grace: Duration) -> i32 {
        if let Some(pid) = child.id().filter(|_| grace > Duration::ZERO) {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
            let mut wanted = self.wanted.clone();
            tokio::select! {
                ended = timeout(grace, child.wait()) => if let Ok(status) = ended {
                    return status.unwrap().code().unwrap_or(143);
                },
                () = killed(&mut wanted) => {}
            }
            self.node.log(&self.pod, "SIGKILL");
        }
        child.kill().await.ok();
        137
    }

    async fn mark(&mut self, state: Value, probes: &Probes) {
        let ready = !self.main.is_null() && probes.is_ready;
        if ready != self.ready {
            (self.ready, self.ready_since) = (ready, now());
        }
        *self.status_of() = merged(
            self.status_of(),
            json!({"state": state, "ready": probes.is_ready, "started": probes.is_started}),
        );
        self.publish().await;
    }

    async fn terminated(&mut self, code: i32) {
        if self.ready {
            (self.ready, self.ready_since) = (false, now());
        }
        let reason = if code == 0 { "Completed" } else { "Error" };
        let ended =
            json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": now()}});
        let ready = code == 0 && self.main.is_null();
        *self.status_of() = merged(self.status_of(), json!({"state": ended, "ready": ready}));
        self.node.log(&self.pod, &format!("exit code {code}"));
        self.publish().await;
    }

    /// Reports the end of the pod, and removes its object once it is to be deleted.
    async fn end(mut self) {
        if *self.wanted.borrow() != Wanted::Killed {
            let failed = text(&self.pod["spec"]["restartPolicy"]) == "Always"
                || self.main["state"]["terminated"]["exitCode"] != json!(0);
            self.phase = if failed { "Failed" } else { "Succeeded" };
            self.publish().await;
        }
        left(&mut self.wanted.clone()).await;
        self.node.gone(&self.pod).await;
    }

    async fn publish(&self) {
        if *self.wanted.borrow() == Wanted::Killed {
            return;
        }
        let condition = |name: &str, holds: bool, since: &str| json!({"type": name, "status": if holds { "True" } else { "False" }, "lastTransitionTime": since});
        let began = text(&self.pod["metadata"]["creationTimestamp"]);
        let initialized = !self.main.is_null();
        let status = json!({"status": {
            "phase": self.phase,
            "hostIP": "192.0.2.2",
            "podIP": self.ip,
            "podIPs": [{"ip": self.ip}],
            "startTime": began,
            "initContainerStatuses": self.init,
            "containerStatuses": if initialized { json!([self.main]) } else { json!([]) },
            "conditions": [
                condition("PodScheduled", true, began),
                condition("Initialized", initialized, began),
                condition("ContainersReady", self.ready, &self.ready_since),
                condition("Ready", self.ready, &self.ready_since),
            ],
        }});
        self.node.publish(&self.pod, &status).await;
    }
}

fn merged(object: &Value, fields: Value) -> Value {
    let mut object = object.as_object().cloned().unwrap_or_default();
    object.extend(fields.as_object().cloned().unwrap_or_default());
    Value::Object(object)
}
