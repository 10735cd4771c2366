//! The rendered pods as processes of this machine: their arguments, variables, files and secrets, with the real binary.
//!
//! What a kubelet would mount is written below a directory, and what listens takes a free port of loopback.

use serde_json::{Value, json};

use super::cluster::container::{Objects, Place, prepare};
use super::helm::{Case, Helm, Release, text};
use crate::safety::permissions::{PASSWORD, guarded};
use crate::support::http;
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::Tarsy;
use crate::support::wait::eventually;

const TOKEN: &str = "t0ken-of-the-receiver";

/// A node: the release, the Secrets of the cluster, and the files of its pods.
struct Node {
    release: Release,
    secrets: Objects,
    files: tempfile::TempDir,
    /// Addresses of services, and where those servers are here.
    services: Vec<(String, String)>,
}

impl Node {
    fn new(release: Release, secrets: &[(&str, &[(&str, &str)])]) -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let secrets = secrets.iter().map(|(name, keys)| {
            (
                ("Secret", (*name).to_owned()),
                keys.iter().map(owned).collect(),
            )
        });
        let (secrets, files) = (secrets.collect(), tempfile::tempdir().unwrap());
        Self {
            release,
            secrets,
            files,
            services: Vec::new(),
        }
    }

    /// Starts the only container of a pod.
    fn start(&self, name: &str) -> Tarsy {
        let pods = self.release.pods();
        let (_, spec) = pods
            .iter()
            .find(|(pod, _)| pod.ends_with(name))
            .unwrap_or_else(|| panic!("no pod {name}"));
        let pod = json!({"metadata": {"name": format!("{name}-0"), "uid": format!("uid of {name}-0")}, "spec": spec});
        let mut objects = self.secrets.clone();
        for config in self.release.of_kind("ConfigMap") {
            let data = config["data"].as_object().unwrap().iter();
            let data = data
                .map(|(key, value)| (key.clone(), text(value).to_owned()))
                .collect();
            objects.insert(
                ("ConfigMap", text(&config["metadata"]["name"]).to_owned()),
                data,
            );
        }
        let (folder, services) = (self.files.path().join(name), self.services.clone());
        let place = Place {
            folder,
            ip: None,
            group: None,
            services,
        };
        let start = prepare(&pod, &pod["spec"]["containers"][0], &objects, &place).unwrap();
        let args: Vec<&str> = start.args.iter().map(String::as_str).collect();
        let env: Vec<(&str, &str)> = start
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Tarsy::spawn(name, &args, &env)
    }

    /// Migrates, and starts the LLM service and a worker, which is ready. Returns both with the address of the worker.
    async fn start_roles(&mut self) -> (Tarsy, Tarsy, String) {
        let mut migrate = self.start("-migrate");
        assert_eq!(migrate.finished().await.0, 0, "{}", migrate.log());
        let mut llm = self.start("-llm-service");
        self.services.push((
            "release-tarsy-llm-service.space.svc:50051".to_owned(),
            llm.ready().await,
        ));
        let mut worker = self.start("-worker");
        let metrics = worker.ready().await;
        eventually("the worker is ready", || async {
            http::get(&metrics, "/readyz").await.status == 200
        })
        .await;
        (llm, worker, metrics)
    }

    /// `helm test`.
    async fn test(&self) {
        let mut test = self.start("-test");
        let (code, output) = test.finished().await;
        assert_eq!(code, 0, "{output}{}", test.log());
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
    let (address, receive_token) = (format!("{}\n", database.url()), format!("{TOKEN}\n"));
    let secrets: [(&str, &[(&str, &str)]); 4] = [
        ("tarsy-nats", &[("url", &nats.url())]),
        ("tarsy-database", &[("url", &address)]),
        ("tarsy-llm-token", &[("token", "t0ken-of-the-llm-service")]),
        ("tarsy-receiver", &[("token", &receive_token)]),
    ];
    let mut node = Node::new(helm.release(Case::with("default", &values())), &secrets);
    let (mut llm, mut worker, worker_metrics) = node.start_roles().await;
    let mut receiver = node.start("-receiver");
    let alerts = receiver.ready().await;
    assert_eq!(http::get(&worker_metrics, "/healthz").await.status, 200);
    assert!(worker.log().contains("-worker-0"), "{}", worker.log());
    node.test().await;

    let bearer = format!("Bearer {TOKEN}");
    let post = |headers: Vec<(&'static str, String)>| {
        let address = alerts.clone();
        async move {
            let headers: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            http::post(&address, "/alert", &headers, b"disk full")
                .await
                .status
        }
    };
    eventually("the receiver takes alerts", || async {
        post(vec![("authorization", bearer.clone())]).await == 202
    })
    .await;
    assert_eq!(post(vec![]).await, 401);

    for role in [&mut worker, &mut receiver, &mut llm] {
        role.terminate();
        assert_eq!(role.finished().await.0, 0, "{}", role.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_with_the_least_rights_at_nats_investigate_an_alert() {
    let Some(helm) = Helm::find() else { return };
    let (nats, database) = (guarded().await, TestDatabase::empty());
    let address = database.url().to_owned();
    // A word of each role's own would not show more: the user decides what is permitted.
    let words = [
        ("worker", PASSWORD),
        ("receiver", PASSWORD),
        ("administrator", PASSWORD),
    ];
    let secrets: [(&str, &[(&str, &str)]); 4] = [
        ("tarsy-nats", &words),
        ("tarsy-database", &[("url", &address)]),
        ("tarsy-llm-token", &[("token", "t0ken-of-the-llm-service")]),
        ("tarsy-receiver", &[("token", TOKEN)]),
    ];
    let login = json!({"kind": "password", "secret": {"name": "tarsy-nats"}});
    let mut set = values();
    set["nats"] = json!({"url": nats.url(), "login": login});
    let mut node = Node::new(helm.release(Case::with("default", &set)), &secrets);
    let (_llm, worker, _) = node.start_roles().await;
    node.test().await;
    let mut receiver = node.start("-receiver");
    let alerts = receiver.ready().await;
    let bearer = format!("Bearer {TOKEN}");
    let posted = async || {
        http::post(
            &alerts,
            "/alert",
            &[("authorization", &bearer)],
            b"disk full",
        )
        .await
        .status
    };
    eventually("the receiver takes alerts", async || posted().await == 202).await;
    let completed =
        "SELECT count(*) FROM alert_sessions WHERE status = 'completed' AND settled_at IS NOT NULL";
    eventually("both alerts are investigated", async || {
        database.number(completed) >= 2
    })
    .await;
    for log in [worker.log(), receiver.log()] {
        assert!(
            !log.to_lowercase().contains("permissions violation"),
            "{log}"
        );
    }

    // The user of another role is not enough: the worker cannot claim.
    set["nats"]["login"]["users"] = json!({"worker": "tarsy-producer"});
    node.release = helm.release(Case::with("default", &set));
    let wrong = node.start("-worker");
    eventually("the broker refuses it", async || {
        wrong.log().to_lowercase().contains("permission")
    })
    .await;
}
