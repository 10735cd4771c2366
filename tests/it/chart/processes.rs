//! The rendered pods as processes of this machine: their arguments, variables, files and secrets, with the real binary.
//!
//! What a kubelet would mount is written below a directory, and what listens takes a free port of loopback.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::helm::{Case, Helm, Release, text};
use crate::support::http;
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::Tarsy;
use crate::support::wait::eventually;

const TOKEN: &str = "t0ken-of-the-receiver";

/// A node: the release, the Secrets of the cluster, and the files of its pods.
struct Node {
    release: Release,
    /// By name and key.
    secrets: BTreeMap<(String, String), String>,
    files: tempfile::TempDir,
    /// Addresses in variables, and where those servers are here.
    addresses: Vec<(String, String)>,
}

impl Node {
    fn pod(&self, name: &str) -> &Value {
        let pods = self.release.pods();
        pods.into_iter().find(|(pod, _)| pod.ends_with(name)).unwrap_or_else(|| panic!("no pod {name}")).1
    }

    /// Starts the only container of a pod.
    fn start(&self, name: &str) -> Tarsy {
        let pod = self.pod(name);
        let container = &pod["containers"][0];
        let folder = self.files.path().join(name);
        let mounts = container["volumeMounts"].as_array().unwrap().iter().map(|mount| {
            let path = folder.join(text(&mount["name"]));
            self.fill(pod, text(&mount["name"]), &path);
            (text(&mount["mountPath"]), path.display().to_string())
        });
        let mounts: Vec<(&str, String)> = mounts.filter(|(path, _)| *path != "/tmp").collect();
        let here = |value: &str| {
            let (path, file) = mounts.iter().find(|(path, _)| value.starts_with(&format!("{path}/")))?;
            Some(value.replacen(path, file, 1))
        };
        let variables = container["env"].as_array().unwrap().iter().map(|variable| {
            let value = text(&variable["value"]);
            let address = self.addresses.iter().find(|(known, _)| known == value).map(|(_, address)| address.clone());
            let value = match text(&variable["valueFrom"]["fieldRef"]["fieldPath"]) {
                "metadata.name" => format!("{name}-0"),
                _ => address.or_else(|| here(value)).unwrap_or_else(|| value.to_owned()),
            };
            (text(&variable["name"]), value)
        });
        let variables: Vec<(&str, String)> = variables.collect();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let args = container["args"].as_array().unwrap().iter().map(|arg| match text(arg) {
            listen if listen.starts_with("0.0.0.0:") => "127.0.0.1:0".to_owned(),
            arg => here(arg).unwrap_or_else(|| arg.to_owned()),
        });
        let args: Vec<String> = args.collect();
        Tarsy::spawn(name, &args.iter().map(String::as_str).collect::<Vec<_>>(), &variables)
    }

    /// Writes the files of a volume, as a kubelet does.
    fn fill(&self, pod: &Value, volume: &str, folder: &Path) {
        let volumes = pod["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|found| found["name"] == volume).unwrap();
        let write = |path: PathBuf, content: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        };
        for source in volume["projected"]["sources"].as_array().into_iter().flatten() {
            let name = text(&source["secret"]["name"]);
            for item in source["secret"]["items"].as_array().unwrap() {
                let key = (name.to_owned(), text(&item["key"]).to_owned());
                write(folder.join(text(&item["path"])), self.secrets.get(&key).unwrap_or_else(|| panic!("{key:?}")));
            }
        }
        if let Some(name) = volume["configMap"]["name"].as_str() {
            let data = &self.release.object("ConfigMap", name)["data"];
            let items = volume["configMap"]["items"].as_array();
            let renamed = items
                .map(|items| items.iter().map(|item| (text(&item["key"]), text(&item["path"]))).collect::<Vec<_>>());
            let keys = data.as_object().unwrap().keys();
            for (key, path) in renamed.unwrap_or_else(|| keys.map(|key| (key.as_str(), key.as_str())).collect()) {
                write(folder.join(path), text(&data[key]));
            }
        }
    }
}

fn values() -> Value {
    json!({
        "nats": {"url": "", "urlSecret": {"name": "tarsy-nats"}},
        "config": {"worker": {"slots": 2, "lease": "5s"}, "dedupe": {"cooldown": "0s"}},
        "receiver": {"enabled": true, "token": {"secret": {"name": "tarsy-receiver"}}},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rendered_pods_migrate_investigate_the_alert_of_the_test_and_drain() {
    let Some(helm) = Helm::find() else { return };
    let (nats, database) = (NatsServer::start().await, TestDatabase::empty());
    let secrets = [
        (("tarsy-nats", "url"), nats.url()),
        (("tarsy-database", "url"), format!("{}\n", database.url())),
        (("tarsy-llm-token", "token"), "t0ken-of-the-llm-service".to_owned()),
        (("tarsy-receiver", "token"), format!("{TOKEN}\n")),
    ];
    let secrets = secrets.into_iter().map(|((name, key), value)| ((name.to_owned(), key.to_owned()), value)).collect();
    let release = helm.release(Case::with("default", &values()));
    let mut node = Node { release, secrets, files: tempfile::tempdir().unwrap(), addresses: Vec::new() };

    let mut migrate = node.start("-migrate");
    assert_eq!(migrate.finished().await.0, 0, "{}", migrate.log());
    let mut llm = node.start("-llm-service");
    let address = llm.ready().await;
    node.addresses.push(("release-tarsy-llm-service.space.svc:50051".to_owned(), address));
    let (mut worker, mut receiver) = (node.start("-worker"), node.start("-receiver"));
    let (worker_metrics, alerts) = (worker.ready().await, receiver.ready().await);
    eventually("the worker is ready", || async { http::get(&worker_metrics, "/readyz").await.status == 200 }).await;
    assert_eq!(http::get(&worker_metrics, "/healthz").await.status, 200);
    assert!(worker.log().contains("-worker-0"), "{}", worker.log());

    // `helm test`.
    let mut test = node.start("-test");
    let (code, output) = test.finished().await;
    assert_eq!(code, 0, "{output}{}", test.log());

    let bearer = format!("Bearer {TOKEN}");
    let post = |headers: Vec<(&'static str, String)>| {
        let address = alerts.clone();
        async move {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            http::post(&address, "/alert", &headers, b"disk full").await.status
        }
    };
    eventually("the receiver takes alerts", || async { post(vec![("authorization", bearer.clone())]).await == 202 })
        .await;
    assert_eq!(post(vec![]).await, 401);

    for role in [&mut worker, &mut receiver, &mut llm] {
        role.terminate();
        assert_eq!(role.finished().await.0, 0, "{}", role.log());
    }
}
