//! The fake API of a cluster, `tests/mcp/fake_kubernetes.py`.

use std::path::Path;

use serde_json::Value;

use super::programs::is_on_path;
use crate::support::process::Tarsy;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/fake_kubernetes.py");
const CHECKOUT: &str = include_str!("../../fixtures/kubernetes/cluster.json");
/// In the kubeconfig.
pub(super) const TOKEN: &str = "kubeconfig-token-of-the-test";

/// The API runs until the value is dropped.
pub(super) struct Cluster {
    pub(super) folder: tempfile::TempDir,
    _api: Tarsy,
}

impl Cluster {
    /// The cluster of the fixtures, in which a pod of the namespace `checkout` was killed; `None` without a Python.
    pub(super) async fn checkout(test: &str) -> Option<Self> {
        Self::start(test, &serde_json::from_str(CHECKOUT).unwrap()).await
    }

    /// Starts the API with these resources and logs. `None`, with a line about the skipped tests, without a Python.
    pub(super) async fn start(test: &str, cluster: &Value) -> Option<Self> {
        if !is_on_path(test, "python3") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let files = ["cluster.json", "requests"].map(|name| folder.path().join(name));
        for (file, text) in files.iter().zip([cluster.to_string(), String::new()]) {
            std::fs::write(file, text).unwrap();
        }
        let [cluster, requests] = files.each_ref().map(|file| file.to_str().unwrap());
        let args = [PROGRAM, cluster, requests];
        let mut api = Tarsy::spawn_program(Path::new("python3"), "the fake Kubernetes", &args, &[]);
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters: [{{name: test, cluster: {{server: 'http://{}'}}}}]\n\
             users: [{{name: test, user: {{token: {TOKEN}}}}}]\n\
             contexts: [{{name: test, context: {{cluster: test, user: test, namespace: checkout}}}}]\n",
            api.ready().await
        );
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        Some(Self { folder, _api: api })
    }

    pub(super) fn kubeconfig(&self) -> String {
        self.folder
            .path()
            .join("kubeconfig")
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// The lines `METHOD path` of all requests.
    pub(super) fn requests(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("requests")).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}
