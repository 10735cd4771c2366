//! Tests of the values that the chart passes to the binary, and of their effect.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};
use tarsy::cli::args::Cli;
use tarsy_config::{Config, LlmService};

use super::helm::{Case, Helm, own_containers, text};

fn arguments(container: &Value) -> Vec<OsString> {
    let args = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| OsString::from(text(arg)));
    std::iter::once(OsString::from("tarsy"))
        .chain(args)
        .collect()
}

#[test]
fn the_binary_understands_the_arguments_of_every_container() {
    let Some(helm) = Helm::find() else { return };
    let further = json!({"llmService": {"allowUnauthenticated": true, "allowKeyEnv": ["A_*"], "allowBaseUrl": ["https://a.example.com"]}});
    let options = (
        "options".to_owned(),
        helm.release(Case::with("default", &further)),
    );
    let mut seen = BTreeSet::new();
    for (case, release) in helm.releases().iter().chain([&options]) {
        for (pod, container) in own_containers(release) {
            let args = arguments(container);
            assert!(Cli::read(args.clone()).is_ok(), "{case}: {pod}: {args:?}");
            seen.insert(args[1].clone());
        }
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        [
            "llm-service",
            "migrate",
            "receive",
            "submit",
            "web",
            "worker"
        ]
    );
}

#[test]
fn the_binary_reads_every_variable_that_the_chart_sets() {
    let Some(helm) = Helm::find() else { return };
    let mut source = String::new();
    for tree in ["src", "crates"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        read_all(&root.join(tree), &mut source);
    }
    let knows = |name: &str| source.contains(&format!("\"{name}\""));
    let mut unknown = BTreeSet::new();
    for (_, release) in helm.releases() {
        for (_, container) in own_containers(release) {
            let variables = container["env"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|variable| text(&variable["name"]));
            // What the configuration of a values file refers to.
            let own = variables.filter(|name| !["GRAFANA_TOKEN"].contains(name));
            let missing =
                own.filter(|name| !knows(name) && !name.strip_suffix("_FILE").is_some_and(knows));
            unknown.extend(missing.map(str::to_owned));
        }
    }
    assert_eq!(unknown, BTreeSet::new());
}

fn read_all(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn each_role_logs_in_to_nats_with_its_own_file() {
    let Some(helm) = Helm::find() else { return };
    for (kind, variable) in [
        ("creds", "NATS_CREDS_FILE"),
        ("nkey", "NATS_NKEY_FILE"),
        ("token", "NATS_TOKEN_FILE"),
        ("password", "NATS_PASSWORD_FILE"),
    ] {
        let login = json!({"nats": {"login": {"kind": kind, "secret": {"name": "logins"}}}});
        let release = helm.release(Case::with("default", &login));
        for (pod, key, user) in [
            ("-worker", "worker", "tarsy-worker"),
            ("-migrate", "administrator", "tarsy-administrator"),
        ] {
            let (_, spec) = release
                .pods()
                .into_iter()
                .find(|(name, _)| name.ends_with(pod))
                .unwrap();
            let item = json!({"key": key, "path": format!("nats/{kind}")});
            assert!(
                spec["volumes"].to_string().contains(&item.to_string()),
                "{kind}: {}",
                spec["volumes"]
            );
            let variables = spec["containers"][0]["env"].as_array().unwrap();
            let value = |name: &str| {
                variables
                    .iter()
                    .find(|found| found["name"] == name)
                    .map(|found| text(&found["value"]))
            };
            assert_eq!(
                value(variable),
                Some(format!("/var/run/secrets/tarsy/nats/{kind}").as_str())
            );
            assert_eq!(value("NATS_USER"), (kind == "password").then_some(user));
        }
    }
}

#[test]
fn every_rendered_configuration_is_one_that_the_binary_accepts() {
    let Some(helm) = Helm::find() else { return };
    let mut seen = 0;
    let mut slack = 0;
    for (case, release) in helm.releases() {
        for map in release.of_kind("ConfigMap") {
            if let Some(file) = map["data"]["tarsy.yaml"].as_str() {
                let config =
                    Config::parse("tarsy.yaml", file, &|name| Some(format!("value of {name}")));
                assert!(config.is_ok(), "{case}: {}", config.unwrap_err());
                let path = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(path.path(), file).unwrap();
                assert!(
                    LlmService::load(Some(path.path()), &|_| None).is_ok(),
                    "{case}"
                );
                seen += 1;
            }
            if let Some(file) = map["data"]["queue.yaml"].as_str() {
                // The receiver and the migration have no variables of MCP servers.
                let config = Config::parse("queue.yaml", file, &|_| None);
                assert!(config.is_ok(), "{case}: {}", config.unwrap_err());
                seen += 1;
            }
            if let Some(file) = map["data"]["slack.yaml"].as_str() {
                let config = Config::parse("slack.yaml", file, &|_| None).unwrap();
                assert!(config.receive.slack.is_some(), "{case}");
                assert!(config.approvals.keys.slack.is_some(), "{case}");
                let routes: Vec<&String> = config.notifications.keys().collect();
                assert_eq!(routes, ["on-call"], "{case}");
                slack += 1;
            }
        }
    }
    assert!(seen > 6, "{seen}");
    assert_eq!(slack, 1);
}

#[test]
fn the_migration_and_the_workers_agree_on_the_streams() {
    let Some(helm) = Helm::find() else { return };
    let release = helm.release(Case::with("production", &json!({})));
    let (all, hook) = (
        release.object("ConfigMap", "release-tarsy"),
        release.object("ConfigMap", "-migrate"),
    );
    let read =
        |file: &Value| Config::parse("file", text(file), &|name| Some(name.to_owned())).unwrap();
    let (worker, migrate) = (
        read(&all["data"]["tarsy.yaml"]),
        read(&hook["data"]["queue.yaml"]),
    );
    assert_eq!(
        (&worker.streams, &worker.worker, &worker.receive),
        (&migrate.streams, &migrate.worker, &migrate.receive)
    );
    assert_eq!(worker.streams.replicas, Some(3));
    assert_eq!(all["data"]["queue.yaml"], hook["data"]["queue.yaml"]);
}

#[test]
fn the_chart_assumes_the_defaults_of_the_binary() {
    let Some(helm) = Helm::find() else { return };
    let built_in = Config::load(None, &|_| None).unwrap();
    let endpoint = json!({"mode": "keda", "keda": {"monitoringEndpoint": "nats-headless:8222"}});
    let keda = helm.release(Case::with("default", &json!({"autoscaling": endpoint})));
    let target =
        &keda.object("ScaledObject", "-worker")["spec"]["advanced"]["scalingModifiers"]["target"];
    assert_eq!(text(target), built_in.worker.slots.to_string());
    let secs = |duration: std::time::Duration| format!("{}s", duration.as_secs());
    assert!(
        keda.notes.contains(&format!(
            "  {} (worker.drain_timeout)",
            secs(built_in.worker.drain_timeout)
        )),
        "{}",
        keda.notes
    );
    assert!(
        keda.notes
            .contains(&format!("its lease ({})", secs(built_in.worker.lease))),
        "{}",
        keda.notes
    );
    let grace = |set: Value| helm.render(&[Case::with("default", &set)]).remove(0);
    let needed = built_in.llm_service.drain_timeout.as_secs() + 10;
    assert!(grace(json!({"llmService": {"terminationGracePeriodSeconds": needed}})).is_ok());
    assert!(grace(json!({"llmService": {"terminationGracePeriodSeconds": needed - 1}})).is_err());
    let connections = 3 * (built_in.database.pool_size + 1) + 5;
    assert!(grace(json!({"database": {"maxConnections": connections}})).is_ok());
    assert!(grace(json!({"database": {"maxConnections": connections - 1}})).is_err());
}
