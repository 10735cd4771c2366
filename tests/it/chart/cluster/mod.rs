//! The chart on a real control plane: a real API server and real controllers, and a kubelet that runs every pod as
//! processes of this machine, with real NATS and Postgres outside.
//!
//! It cannot show what belongs to a node: images, namespaces and cgroups of containers, network policies, DNS.
//! A pod has an address of its own on loopback; a Service is a proxy, and its names become the address of the proxy.

pub(super) mod container;
mod control_plane;
mod api;
mod images;
mod services;
mod probes;
mod pod;
mod kubelet;

mod lifecycle;
mod faults;
mod accepted;
mod trial;
mod sign_in;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use self::api::Api;
use self::control_plane::{ControlPlane, Programs};
use self::kubelet::Node;
use super::helm::{Case, Helm, chart, run, script, text};
use crate::support::wait::eventually_within;

const RELEASE: &str = "release";
/// Limit of what Helm waits for; a rollout takes half a minute.
const HELM_TIMEOUT_SECONDS: u32 = 240;
const TIMEOUT: Duration = Duration::from_secs(240);

/// A namespace with nodes, in which the release `release` is installed.
struct Cluster {
    plane: Arc<ControlPlane>,
    helm: Helm,
    namespace: String,
    node: Arc<Node>,
    kubelet: JoinHandle<()>,
    folder: tempfile::TempDir,
}

impl Cluster {
    /// A namespace that enforces the profile `restricted`, and in which the deployer is an administrator and nothing
    /// outside it. `None`, with a message, where the programs are not installed.
    async fn start(name: &str) -> Option<Self> {
        let (helm, programs) = (Helm::find()?, Programs::find()?);
        let plane = control_plane::shared(&programs).await;
        let folder = tempfile::Builder::new()
            .prefix("tarsy-test-node-")
            .tempdir()
            .unwrap();
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let metadata = json!({"name": name, "labels": labels});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        plane
            .api
            .create("/api/v1/namespaces", &namespace)
            .await
            .unwrap();
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"});
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "deployer"},
            "roleRef": role, "subjects": [{"kind": "User", "name": "deployer"}],
        });
        let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings");
        plane.api.create(&bindings, &binding).await.unwrap();
        let node = Arc::new(Node::register(Arc::clone(&plane), name, folder.path()).await);
        let kubelet = tokio::spawn(Arc::clone(&node).run());
        Some(Self {
            plane,
            helm,
            namespace: name.to_owned(),
            node,
            kubelet,
            folder,
        })
    }

    fn api(&self) -> &Api {
        &self.plane.api
    }

    /// The program tarsy, where pods can read it.
    fn tarsy(&self) -> PathBuf {
        self.node.images.tarsy()
    }

    /// A path of a core resource in the namespace.
    fn path(&self, resource: &str) -> String {
        format!("/api/v1/namespaces/{}/{resource}", self.namespace)
    }

    /// A path of a resource of an API group in the namespace: `apps/v1`, `deployments`.
    fn path_in(&self, group: &str, resource: &str) -> String {
        format!("/apis/{group}/namespaces/{}/{resource}", self.namespace)
    }

    async fn create_secret(&self, name: &str, data: &[(&str, &str)]) {
        let data: Value = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        self.api()
            .create(&self.path("secrets"), &secret)
            .await
            .unwrap();
    }

    /// Asks Helm for an action on the release: its answer, or why it failed.
    async fn helm(&self, action: &str, further: Value) -> Result<Value, String> {
        let mut request = json!({
            "chart": chart(), "name": RELEASE, "action": action, "timeout": HELM_TIMEOUT_SECONDS,
            "config": {"kubeconfig_content": self.plane.kubeconfig(), "namespace": self.namespace},
        });
        request
            .as_object_mut()
            .unwrap()
            .extend(further.as_object().unwrap().clone());
        let python = self.helm.python().to_owned();
        let asked = tokio::task::spawn_blocking(move || {
            run(
                Command::new(python).arg(script("release.py")),
                &request.to_string(),
            )
        });
        let answer: Value = serde_json::from_str(&asked.await.unwrap()).unwrap();
        answer["fault"].as_str().map_or_else(
            || Ok(answer["result"].clone()),
            |fault| Err(fault.to_owned()),
        )
    }

    /// `helm install --wait` or `helm upgrade --wait` with the values of a case.
    async fn apply(&self, action: &str, case: &Case) -> Result<Value, String> {
        self.helm(action, json!({"case": case.values})).await
    }

    /// The pods of a component, oldest first.
    async fn pods(&self, component: &str) -> Vec<Value> {
        let path = self.path(&format!(
            "pods?labelSelector=app.kubernetes.io/component={component}"
        ));
        let mut pods = self.api().list(&path).await.unwrap();
        pods.sort_by_key(|pod| text(&pod["metadata"]["creationTimestamp"]).to_owned());
        pods
    }

    /// The names of the pods of a component that are ready and stay.
    async fn ready(&self, component: &str) -> Vec<String> {
        let pods = self.pods(component).await.into_iter().filter(|pod| {
            pod["metadata"]["deletionTimestamp"].is_null()
                && container::each(&pod["status"]["conditions"])
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        });
        pods.map(|pod| text(&pod["metadata"]["name"]).to_owned())
            .collect()
    }

    /// The log of a pod, with the lines of the kubelet.
    fn log(&self, pod: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("logs/{pod}.log")))
            .unwrap_or_default()
    }

    async fn eventually(&self, what: &str, holds: impl AsyncFnMut() -> bool) {
        eventually_within(TIMEOUT, what, holds).await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kubelet.abort();
        if std::thread::panicking() {
            for log in std::fs::read_dir(self.folder.path().join("logs"))
                .into_iter()
                .flatten()
                .flatten()
            {
                let text = std::fs::read_to_string(log.path()).unwrap_or_default();
                println!("--- {}\n{text}", log.file_name().display());
            }
        }
    }
}
