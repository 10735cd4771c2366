//! The corpus of secrets in the results of real servers: a file, a diff, a log and an object of a cluster, an echo.
//! None is in what the system stores, sends, logs or shows to the model.
//!
//! The suite uses every fifth secret, `./dev prove` all of them, and `TARSY_SECRETS_STEP` sets another step. The tests
//! of the mask use all of them in every layout.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tarsy_core::timeline::EventType;

use super::cluster::Cluster;
use super::investigation::{MARK, Shown, call, ended, publish, shown};
use super::programs::{Node, Python, is_on_path, line};
use crate::safety::seed_search::SeedSearch;
use crate::safety::traces;
use crate::support::figures::by_depth;
use crate::support::grpc_recorder::GrpcRecorder;
use crate::support::process::Tarsy;
use crate::support::seeds::{Seed, readings, seeds};
use crate::support::system::{Setup, TestSystem};

/// The calls of one answer of the model.
const CALLS_PER_ANSWER: usize = 60;
/// Every seed of this number also comes from the cluster: the server sends about five requests a second.
const IN_CLUSTER: usize = 10;

/// A file for each seed.
fn write_files(folder: &Path, seeds: &[Seed]) {
    for (number, seed) in seeds.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}.txt")), &seed.text).unwrap();
    }
}

/// A repository in which the commit `seed-N` adds a seed to a file, and has it in its message.
fn write_repository(folder: &Path, seeds: &[Seed]) {
    let mut input = String::new();
    for (number, seed) in seeds.iter().enumerate() {
        let message = format!("Change the settings of {}", seed.name);
        let file = format!("before\n{}\nafter\n", seed.text);
        let begin = format!(
            "commit refs/heads/seed-{number}\ncommitter tarsy <tarsy@example.com> 1700000000 +0000\n"
        );
        write!(
            input,
            "{begin}data {}\n{message}\nM 100644 inline settings.txt\n",
            message.len()
        )
        .unwrap();
        write!(input, "data {}\n{file}\n", file.len()).unwrap();
    }
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C")
            .arg(folder)
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::piped());
        git.stdout(Stdio::null()).spawn().unwrap()
    };
    assert!(git(&["init", "--quiet"]).wait().unwrap().success());
    let mut import = git(&["fast-import", "--quiet"]);
    import
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    assert!(import.wait().unwrap().success());
}

/// A cluster in which the pod `seed-N` prints a seed, and a `ConfigMap` of this name holds it.
fn cluster(seeds: &[Seed]) -> Value {
    let (mut pods, mut maps, mut logs) = (Vec::new(), Vec::new(), serde_json::Map::new());
    for (number, seed) in seeds.iter().enumerate() {
        let metadata = json!({"name": format!("seed-{number}"), "namespace": "shop"});
        let containers = [json!({"name": "app", "image": "app:1"})];
        let status = json!({"phase": "Running", "containerStatuses": []});
        pods.push(
            json!({"metadata": metadata, "spec": {"containers": containers}, "status": status}),
        );
        maps.push(json!({"metadata": metadata, "data": {"settings": seed.text}}));
        let lines: Vec<&str> = seed.text.split('\n').collect();
        logs.insert(format!("shop/seed-{number}/app"), json!({"current": lines}));
    }
    let resource = |kind: &str, plural: &str, items: Vec<Value>| json!({"groupVersion": "v1", "kind": kind, "plural": plural, "namespaced": true, "items": items});
    json!({"resources": [resource("Pod", "pods", pods), resource("ConfigMap", "configmaps", maps)], "logs": logs})
}

/// A call in whose result a seed arrives.
struct SeedCall<'a> {
    seed: &'a Seed,
    call: Value,
}

fn calls<'a>(seeds: &'a [Seed], files: &Path, repository: &Path) -> Vec<SeedCall<'a>> {
    let mut calls = Vec::new();
    for (number, seed) in seeds.iter().enumerate() {
        let name = format!("seed-{number}");
        let mut add = |tool: &str, arguments: Value| {
            calls.push(SeedCall {
                seed,
                call: call(tool, &arguments),
            })
        };
        add(
            "files.read_text_file",
            json!({"path": files.join(format!("{name}.txt"))}),
        );
        add(
            "git.git_show",
            json!({"repo_path": repository, "revision": name}),
        );
        // The server writes a word before the text.
        add("all.echo", json!({"message": seed.text}));
        if number % IN_CLUSTER == 0 {
            add(
                "kubernetes.pods_log",
                json!({"namespace": "shop", "name": name, "tail": 10_000}),
            );
            let object =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name});
            add("kubernetes.resources_get", object);
        }
    }
    calls
}

/// A recording that makes the calls, some in each answer.
fn recording(calls: &[SeedCall<'_>]) -> String {
    let answer = |calls: &[SeedCall<'_>]| json!({"chunks": calls.iter().map(|call| &call.call).collect::<Vec<_>>()});
    let mut answers: Vec<Value> = calls.chunks(CALLS_PER_ANSWER).map(answer).collect();
    answers.push(json!({"chunks": [{"text": "Cause: found [[*]]."}]}));
    json!({"name": "calls", "match": MARK, "answers": answers}).to_string()
}

/// The seeds that their results show, with the tools. Each result has to be there, without an error.
fn shown_to_the_model(calls: &[SeedCall<'_>], shown: &[Shown]) -> BTreeSet<String> {
    assert_eq!(shown.len(), calls.len());
    let mut leaks = BTreeSet::new();
    for (
        SeedCall { seed, call },
        Shown {
            tool,
            content,
            is_error,
        },
    ) in calls.iter().zip(shown)
    {
        assert!(
            !is_error && call["call"]["tool"] == **tool,
            "{tool}: {}: {content}",
            seed.name
        );
        if seed.shown_in(content).is_some() {
            leaks.insert(format!("{tool}: {}: {content}", seed.name));
        } else if !content.contains("[masked]") {
            leaks.insert(format!(
                "{tool}: {}: nothing is masked: {content}",
                seed.name
            ));
        }
    }
    leaks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_in_the_results_of_real_servers_are_neither_stored_nor_sent_nor_logged() {
    let (Some(node), Some(python)) = (Node::find("secrets"), Python::find("secrets")) else {
        return;
    };
    if !is_on_path("secrets", "git") {
        return;
    }
    let step = by_depth("TARSY_SECRETS_STEP", 5, 1);
    let seeds: Vec<Seed> = seeds().into_iter().step_by(step).collect();
    let folder = tempfile::tempdir().unwrap();
    let [files, repository] = ["files", "repository"].map(|name| folder.path().join(name));
    for (folder, write) in [
        (&files, write_files as fn(&Path, &[Seed])),
        (&repository, write_repository),
    ] {
        std::fs::create_dir(folder).unwrap();
        write(folder, &seeds);
    }
    let Some(cluster) = Cluster::start("secrets", &cluster(&seeds)).await else {
        return;
    };
    let kubernetes = json!({
        "command": node.program("kubernetes-mcp-server"), "args": ["--read-only", "--kubeconfig", cluster.kubeconfig()],
    });
    let servers = [
        line("files", &node.filesystem(&files)),
        line("git", &python.git(&repository)),
        line("kubernetes", &kubernetes),
        line("all", &node.everything()),
    ];
    let calls = calls(&seeds, &files, &repository);
    let (servers, sections) = (
        servers.concat(),
        "defaults: {max_iterations: 100, iteration_timeout: 5m}\n",
    );
    // A worker that takes over knows no secret of the calls. On a busy machine a short lease could end.
    let lease = Duration::from_secs(60);
    let setup = Setup {
        servers: &servers,
        sections,
        lease,
        transcript: Some(recording(&calls)),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let recorder = GrpcRecorder::before(system.llm_addr()).await;
    let environment = system.env(system.database.url());
    let mut environment = environment.each().to_vec();
    environment.push(("TARSY_LLM_ADDR", recorder.address()));
    let mut worker = Tarsy::spawn("worker", &["worker", "--log-level", "trace"], &environment);
    worker.ready().await;
    let session = publish(&system, MARK).await;
    assert_eq!(
        ended(&system, session).await.last().unwrap().event_type,
        EventType::SessionCompleted
    );

    assert_eq!(
        shown_to_the_model(&calls, &shown(&system, session)),
        BTreeSet::new()
    );
    let mut traces = traces::streams(&system).await;
    traces.extend(traces::tables(&system));
    let logs = [
        ("log of the worker", worker.log()),
        ("log of the llm-service", system.llm.log()),
    ];
    traces.extend(logs.map(|(place, log)| (place.to_owned(), log)));
    let prompts = recorder.sent();
    assert!(prompts.contains("[masked]") && prompts.contains("seed-0"));
    traces.push(("prompts".to_owned(), prompts));
    let search = SeedSearch::new(&seeds);
    let samples: String = seeds.iter().map(|seed| seed.text.as_str()).collect();
    let names = seeds
        .iter()
        .map(|seed| seed.name.as_str())
        .collect::<BTreeSet<_>>();
    assert_eq!(
        search.names(&readings(&samples)),
        names,
        "the search finds what is there"
    );
    let found = traces
        .iter()
        .map(|(place, text)| (place, search.names(&readings(text))));
    let shown: Vec<_> = found.filter(|(_, seeds)| !seeds.is_empty()).collect();
    assert_eq!(shown, Vec::new());
}
