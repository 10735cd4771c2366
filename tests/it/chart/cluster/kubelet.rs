//! A kubelet that runs the pods of one namespace as processes of this machine.
//!
//! It binds pods to its nodes in turn, because the control plane has no scheduler. A pod has an address of its own on
//! loopback, and the user and group of its security context where this process may set them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use super::super::helm::text;
use super::api::Api;
use super::container::Objects;
use super::control_plane::ControlPlane;
use super::images::Images;
use super::pod::{Pod, Wanted};
use super::services::Services;

const INTERVAL: Duration = Duration::from_millis(100);
pub(super) const NODES: usize = 2;

/// The nodes of a namespace.
pub(super) struct Node {
    plane: Arc<ControlPlane>,
    namespace: String,
    folder: PathBuf,
    pub(super) images: Images,
    services: Mutex<Services>,
    bound: AtomicUsize,
}

/// The pods that run, by the uid of their objects.
type Running = BTreeMap<String, watch::Sender<Wanted>>;

impl Node {
    /// Registers the nodes. Files of pods are written below `folder`.
    pub(super) async fn register(plane: Arc<ControlPlane>, namespace: &str, folder: &Path) -> Self {
        for number in 0..NODES {
            let name = format!("{namespace}-{number}");
            let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
            plane.api.create("/api/v1/nodes", &node).await.unwrap();
            let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
            plane
                .api
                .merge(&format!("/api/v1/nodes/{name}/status"), &ready)
                .await
                .unwrap();
        }
        let services = Mutex::new(Services::new(namespace));
        let (namespace, folder) = (namespace.to_owned(), folder.to_owned());
        Self {
            plane,
            namespace,
            images: Images::new(&folder),
            folder,
            services,
            bound: AtomicUsize::new(0),
        }
    }

    fn api(&self) -> &Api {
        &self.plane.api
    }

    fn path(&self, pod: &Value) -> String {
        format!(
            "/api/v1/namespaces/{}/pods/{}",
            self.namespace,
            text(&pod["metadata"]["name"])
        )
    }

    /// Runs pods until it is dropped.
    pub(super) async fn run(self: Arc<Self>) {
        let (mut running, mut tasks) = (Running::new(), JoinSet::new());
        loop {
            // The API server answers late while the machine is busy; the next round makes up for it.
            if let Ok(pods) = self
                .api()
                .list(&format!("/api/v1/namespaces/{}/pods", self.namespace))
                .await
            {
                self.services
                    .lock()
                    .await
                    .renew(self.api(), self.plane.network)
                    .await
                    .ok();
                for (uid, wanted) in &running {
                    if !pods
                        .iter()
                        .any(|pod| pod["metadata"]["uid"] == uid.as_str())
                    {
                        wanted.send_replace(Wanted::Killed);
                    }
                }
                for pod in pods {
                    self.admit(pod, &mut running, &mut tasks).await;
                }
            }
            while let Some(ended) = tasks.try_join_next() {
                ended.expect("the task of a pod does not panic");
            }
            tokio::time::sleep(INTERVAL).await; // interval between looks at the API
        }
    }

    async fn admit(self: &Arc<Self>, pod: Value, running: &mut Running, tasks: &mut JoinSet<()>) {
        let uid = text(&pod["metadata"]["uid"]).to_owned();
        if let Some(wanted) = running.get(&uid) {
            let grace = pod["metadata"]["deletionGracePeriodSeconds"]
                .as_u64()
                .unwrap_or(30);
            if !pod["metadata"]["deletionTimestamp"].is_null()
                && *wanted.borrow() == Wanted::Running
            {
                wanted.send_replace(Wanted::Ended(Duration::from_secs(grace)));
            }
            return;
        }
        if ["Succeeded", "Failed"].contains(&text(&pod["status"]["phase"])) {
            return;
        }
        if pod["spec"]["nodeName"].is_null() {
            let name = pod["metadata"]["name"].clone();
            let number = self.bound.fetch_add(1, Ordering::Relaxed) % NODES;
            let target = json!({"apiVersion": "v1", "kind": "Node", "name": format!("{}-{number}", self.namespace)});
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target});
            // A pod that was deleted meanwhile cannot be bound.
            self.api()
                .create(&format!("{}/binding", self.path(&pod)), &binding)
                .await
                .ok();
            return;
        }
        let (sender, wanted) = watch::channel(Wanted::Running);
        running.insert(uid, sender);
        tasks.spawn(Pod::new(Arc::clone(self), pod, wanted).run());
    }

    /// A new address of the cluster for a pod.
    pub(super) fn address(&self) -> String {
        self.plane.pod_address()
    }

    /// The directory of a pod's volumes.
    pub(super) fn folder(&self, pod: &Value) -> PathBuf {
        let name = format!(
            "{}-{}",
            text(&pod["metadata"]["name"]),
            text(&pod["metadata"]["uid"])
        );
        self.folder.join("pods").join(name)
    }

    pub(super) async fn services(&self) -> Vec<(String, String)> {
        let mut services = self.services.lock().await;
        services.renew(self.api(), self.plane.network).await.ok();
        services.names()
    }

    /// The `ConfigMap`s and Secrets of the namespace.
    pub(super) async fn objects(&self) -> Objects {
        let mut objects = Objects::new();
        for (kind, path) in [("ConfigMap", "configmaps"), ("Secret", "secrets")] {
            let path = format!("/api/v1/namespaces/{}/{path}", self.namespace);
            for object in self.api().list(&path).await.unwrap_or_default() {
                let data = object["data"].as_object().into_iter().flatten();
                let value = |value| {
                    if kind == "Secret" {
                        decoded(value)
                    } else {
                        text(value).to_owned()
                    }
                };
                let data = data.map(|(key, encoded)| (key.clone(), value(encoded)));
                objects.insert(
                    (kind, text(&object["metadata"]["name"]).to_owned()),
                    data.collect(),
                );
            }
        }
        objects
    }

    /// The file that gets the outputs of a pod.
    pub(super) fn log_file(&self, pod: &Value) -> File {
        let folder = self.folder.join("logs");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{}.log", text(&pod["metadata"]["name"])));
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap()
    }

    /// Adds a line of the kubelet to the log of a pod.
    pub(super) fn log(&self, pod: &Value, event: &str) {
        writeln!(self.log_file(pod), "kubelet: {event}").unwrap();
    }

    /// Reports the status of a pod.
    pub(super) async fn publish(&self, pod: &Value, status: &Value) {
        if let Err(refusal) = self
            .api()
            .merge(&format!("{}/status", self.path(pod)), status)
            .await
            && refusal.code != 404
        {
            self.log(pod, &format!("status refused: {refusal:?}"));
        }
    }

    /// Removes the object of a pod that has ended.
    pub(super) async fn gone(&self, pod: &Value) {
        self.api()
            .delete_exactly(&self.path(pod), text(&pod["metadata"]["uid"]))
            .await
            .ok();
    }
}

/// A value of a Secret, which is base64.
fn decoded(value: &Value) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
    for letter in text(value).bytes().filter(|letter| *letter != b'=') {
        let number = LETTERS
            .iter()
            .position(|known| *known == letter)
            .expect("base64");
        held = (held << 6 | u32::try_from(number).unwrap()) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).unwrap());
        }
    }
    String::from_utf8(bytes).unwrap()
}
