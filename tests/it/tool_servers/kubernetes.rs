//! A cluster through `kubernetes-mcp-server`, configured as the example `kubernetes` has it: an investigation finds why
//! a pod was killed, and can neither read a Secret nor change the cluster.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tarsy_config::{Config, example_of};
use tarsy_core::timeline::EventType;

use super::cluster::{Cluster, TOKEN};
use super::investigation::{Shown, ended, publish, shown};
use super::programs::Node;
use crate::safety::traces;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};

const TRANSCRIPT: &str = include_str!("../../fixtures/kubernetes/transcript.yaml");
/// Denies Secrets.
const CONFIG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/mcp/kubernetes-mcp-server.toml"
);
/// The value of the Secret, also decoded; a password in the pod; and the token of the kubeconfig.
const SECRETS: [&str; 4] = [
    "Z2F0ZXdheS1rZXktdGhhdC1uby1tb2RlbC1tYXktc2Vl",
    "gateway-key-that-no-model-may-see",
    "not-a-real-password-7Kq2",
    TOKEN,
];

/// The variables that the example needs, for a process that finds the server on PATH.
struct Variables {
    path: String,
    kubeconfig: String,
    config: String,
}

impl Variables {
    fn new(node: &Node, cluster: &Cluster) -> Self {
        let program = node.program("kubernetes-mcp-server");
        let folder = Path::new(&program).parent().unwrap().display().to_string();
        Self {
            path: format!("{folder}:{}", std::env::var("PATH").unwrap()),
            kubeconfig: cluster.kubeconfig(),
            config: CONFIG.to_owned(),
        }
    }

    fn each(&self) -> [(&str, &str); 3] {
        [
            ("PATH", &self.path),
            ("KUBECONFIG", &self.kubeconfig),
            ("KUBERNETES_MCP_CONFIG", &self.config),
        ]
    }
}

/// The lines below `mcp_servers` of the example.
fn servers_of_the_example() -> String {
    let text = example_of("kubernetes").unwrap().text;
    let (_, servers) = text.split_once("\nmcp_servers:\n").unwrap();
    servers
        .lines()
        .take_while(|line| line.starts_with(' '))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The results of a tool, in the order of its calls.
fn of<'a>(shown: &'a [Shown], tool: &str) -> Vec<&'a Shown> {
    shown.iter().filter(|result| result.tool == tool).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_was_killed_is_explained_through_a_real_server_and_secrets_are_denied() {
    let Some(node) = Node::find("kubernetes") else {
        return;
    };
    let Some(cluster) = Cluster::checkout("kubernetes").await else {
        return;
    };
    let servers = servers_of_the_example();
    let setup = Setup {
        servers: &servers,
        transcript: Some(TRANSCRIPT.to_owned()),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (variables, environment) = (
        Variables::new(&node, &cluster),
        system.env(system.database.url()),
    );
    let environment = [&environment.each()[..], &variables.each()[..]].concat();
    let mut worker = Tarsy::spawn(
        "worker",
        &["worker", "--name", "w1", "--log-level", "debug"],
        &environment,
    );
    worker.ready().await;
    let alert = tarsy_drill::builtin("oom-killed")
        .unwrap()
        .alert
        .replace("KubePodOOMKilled", "KubePodKilled");
    let session = publish(&system, &alert).await;
    let seen = ended(&system, session).await;
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);

    let shown = shown(&system, session);
    let only = |tool: &str| of(&shown, tool)[0].content.clone();
    let pod = only("kubernetes.pods_get");
    assert!(
        [
            "OOMKilled",
            "exitCode: 137",
            "restartCount: 4",
            "memory: 512Mi"
        ]
        .iter()
        .all(|text| pod.contains(text)),
        "{pod}"
    );
    assert_eq!(
        only("kubernetes.events_list")
            .matches("Memory cgroup out of memory")
            .count(),
        4
    );
    assert_eq!(
        only("kubernetes.pods_list_in_namespace")
            .matches("checkout-7d9f8b6c5-")
            .count(),
        3
    );
    assert!(only("kubernetes.pods_log").contains("direct 59M"));
    let resources = of(&shown, "kubernetes.resources_get");
    assert!(
        resources[0].content.contains("-Xmx320m") && resources[1].content.contains("-Xmx480m"),
        "{resources:#?}"
    );

    let secret = [resources[2], of(&shown, "kubernetes.resources_list")[0]];
    let is_denied = |result: &&Shown| {
        result.is_error && result.content.contains(" not allowed: /v1, Kind=Secret")
    };
    assert!(secret.iter().all(is_denied), "{secret:#?}");
    for tool in ["configuration_view", "pods_exec", "pods_delete"] {
        let name = format!("kubernetes.{tool}");
        let called = format!("kubernetes__{tool}");
        let result = &of(&shown, &name)[0];
        assert!(
            result.is_error && result.content.contains(&format!("unknown tool '{called}'")),
            "{result:?}"
        );
    }
    let requests = cluster.requests();
    assert!(
        requests
            .iter()
            .any(|request| request.contains("/pods/checkout-7d9f8b6c5-x2x9p/log")),
        "{requests:#?}"
    );
    let changes = |request: &&String| request.contains("/secrets") || !request.starts_with("GET ");
    assert_eq!(
        requests.iter().filter(changes).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );

    let mut traces = traces::streams(&system).await;
    traces.extend(traces::tables(&system));
    assert!(
        traces
            .iter()
            .any(|(_, text)| text.contains("OOMKilled") && text.contains("DB_PASSWORD"))
    );
    traces.extend([
        ("worker".to_owned(), worker.log()),
        ("llm-service".to_owned(), system.llm.log()),
    ]);
    for secret in SECRETS {
        let places = traces
            .iter()
            .filter(|(_, text)| text.contains(secret))
            .map(|(place, _)| place);
        assert_eq!(
            places.collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "{secret}"
        );
    }
}

/// The names of tools that `tarsy tools` prints with this value of `offered`.
fn names(printed: &str, offered: bool) -> BTreeSet<String> {
    let tools = printed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let tools = tools.filter(|tool| tool["offered"] == offered);
    tools
        .map(|tool| tool["name"].as_str().unwrap().replace("kubernetes.", ""))
        .collect()
}

#[tokio::test]
async fn the_example_names_every_tool_of_the_server_without_those_that_change_the_cluster() {
    let Some(node) = Node::find("kubernetes") else {
        return;
    };
    let Some(cluster) = Cluster::checkout("kubernetes").await else {
        return;
    };
    let variables = Variables::new(&node, &cluster);
    let file = cluster.folder.path().join("tarsy.yaml");
    let printed = async |text: &str| {
        std::fs::write(&file, text).unwrap();
        let args = [
            "--config",
            file.to_str().unwrap(),
            "tools",
            "kubernetes",
            "--json",
        ];
        let mut tools = Tarsy::spawn("tools", &args, &variables.each());
        let (code, printed) = tools.finished().await;
        let log = tools.log();
        assert_eq!(code, 0, "{log}");
        assert!(!log.contains("no tool of these names"), "{log}");
        printed
    };
    let example = example_of("kubernetes").unwrap().text;
    let config = Config::parse("example", example, &|_| None).unwrap();
    let server = &config.mcp_servers["kubernetes"];
    let of_example = printed(example).await;
    let named = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        names(&of_example, true),
        named(server.tools.as_deref().unwrap())
    );
    assert_eq!(names(&of_example, false), named(&server.deny));

    let all = printed(&example.replace("      - --read-only\n", "")).await;
    let (all, kept): (BTreeSet<_>, BTreeSet<_>) = (
        &names(&all, true) | &names(&all, false),
        names(&of_example, true),
    );
    let removed = &(&all - &kept) - &named(&server.deny);
    let comment: String = example
        .lines()
        .filter(|line| line.trim_start().starts_with('#'))
        .collect();
    assert_eq!(removed.len(), 6, "{removed:?}");
    assert!(
        removed.iter().all(|tool| comment.contains(tool.as_str())),
        "{removed:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_finds_a_dead_cluster_behind_a_living_server() {
    let Some(node) = Node::find("kubernetes") else {
        return;
    };
    let Some(cluster) = Cluster::checkout("kubernetes").await else {
        return;
    };
    let servers = servers_of_the_example();
    let system = TestSystem::start_with(Setup {
        servers: &servers,
        ..Setup::default()
    })
    .await;
    let check = async || {
        let (variables, environment) = (
            Variables::new(&node, &cluster),
            system.env(system.database.url()),
        );
        let environment = [&environment.each()[..], &variables.each()[..]].concat();
        let mut doctor = Tarsy::spawn("doctor", &["doctor", "--json"], &environment);
        let (_, found) = doctor.finished().await;
        let checks = found
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        checks
            .into_iter()
            .find(|check| check["check"] == "mcp kubernetes")
            .unwrap()
    };
    let alive = check().await;
    assert_eq!(alive["verdict"], "ok", "{alive}");
    assert!(
        alive["detail"].as_str().unwrap().contains(" answers in "),
        "{alive}"
    );
    let kubeconfig = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
    let (before, behind) = kubeconfig.split_once("http://").unwrap();
    let (_, behind) = behind.split_once('\'').unwrap();
    std::fs::write(
        cluster.kubeconfig(),
        format!("{before}http://127.0.0.1:1'{behind}"),
    )
    .unwrap();
    let dead = check().await;
    assert_eq!(dead["verdict"], "fail", "{dead}");
    assert!(
        dead["detail"]
            .as_str()
            .unwrap()
            .contains("the server answers, but kubernetes."),
        "{dead}"
    );
}
