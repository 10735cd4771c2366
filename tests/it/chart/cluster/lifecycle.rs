//! Installation, upgrade, rollback and removal, in the middle of investigations.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use super::super::helm::IMAGE;
use super::container::each;
use super::{Case, Cluster, text};
use crate::support::gates::{Arrived, Gatekeeper};
use crate::support::postgres::TestDatabase;
use crate::support::stream::Timelines;
use crate::support::system::TestSystem;

/// Alerts that run during a rollout: as many as the two workers have slots.
const RUNNING: usize = 8;
/// Alerts that wait in the queue meanwhile.
const QUEUED: usize = 4;

/// The third of four calls to the model.
const GATE: &str = "answer-2-start";

/// Values of a release that investigates recorded incidents on these servers.
pub(super) fn values(cluster: &Cluster, system: &TestSystem, further: &Value) -> Case {
    let file = |name: &str| system.file(name).display().to_string();
    let environment = json!({"TARSY_TOOL_CALLS_FILE": file("tool_calls")});
    let drill = json!({"command": cluster.tarsy(), "args": ["evidence-server", "oom-killed"], "env": environment});
    let mut values = json!({
        "nats": {"url": system.nats.url()},
        // The program of the tool server is that of tarsy.
        "worker": {"terminationGracePeriodSeconds": 90, "image": {"repository": IMAGE}},
        "config": {
            "mcp_servers": {"drill": drill},
            "worker": {"slots": 4, "lease": "10s", "drain_timeout": "60s"},
            "llm_service": {"drain_timeout": "100s"},
            "dedupe": {"cooldown": "0s"},
        },
        "llmService": {
            "replicas": 1, "preStopSeconds": 2, "terminationGracePeriodSeconds": 120,
            "extraEnv": [
                {"name": "TARSY_MODEL_CALLS_FILE", "value": file("model_calls")},
                {"name": "TARSY_GATES", "value": system.gates.socket()},
            ],
        },
    });
    merge(&mut values, further);
    Case::with("default", &values)
}

fn merge(values: &mut Value, further: &Value) {
    match (values, further) {
        (Value::Object(values), Value::Object(further)) => {
            for (key, value) in further {
                merge(values.entry(key).or_insert(Value::Null), value);
            }
        }
        (values, further) => *values = further.clone(),
    }
}

/// NATS, an empty database and the Secrets that name it.
pub(super) async fn servers(cluster: &Cluster) -> TestSystem {
    let system = TestSystem::servers(&[], TestDatabase::empty()).await;
    // Pods have a user of their own, and write the files that count calls.
    for (path, mode) in [
        (system.file(""), 0o777),
        (system.gates.socket().parent().unwrap().to_owned(), 0o755),
        (system.gates.socket().to_owned(), 0o777),
    ] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    cluster
        .create_secret("tarsy-database", &[("url", system.database.url())])
        .await;
    cluster
        .create_secret("tarsy-llm-token", &[("token", "t0ken-of-the-llm-service")])
        .await;
    system
}

/// Publishes the alert of the recorded incident, each time as another one.
pub(super) async fn publish(system: &TestSystem, count: usize) {
    let bus = system.connect().await;
    for _ in 0..count {
        let session = SessionId(Uuid::now_v7()).to_string();
        let body = tarsy_drill::builtin("oom-killed")
            .unwrap()
            .alert
            .as_bytes()
            .to_vec();
        let headers = json!({SESSION_ID: session, "Tarsy-Fingerprint": session});
        bus.publish_alert(NewAlert {
            priority: Priority::Normal,
            suffix: None,
            body,
            headers,
        })
        .await
        .unwrap();
    }
}

/// Returns the timelines when every alert has ended as a completed investigation, none lost, none doubled.
pub(super) async fn completed(cluster: &Cluster, system: &TestSystem, count: usize) -> Timelines {
    let sql =
        "SELECT count(*) FROM alert_sessions WHERE status = 'completed' AND settled_at IS NOT NULL";
    let expected = i64::try_from(count).unwrap();
    cluster
        .eventually("every alert has ended", async || {
            system.database.number(sql) >= expected
        })
        .await;
    system.queue_is_empty().await;
    let timelines = system.assert_all_invariants().await;
    assert_eq!(timelines.len(), count);
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions"),
        expected
    );
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions WHERE status <> 'completed'"),
        0
    );
    timelines
}

/// The number of sessions that moved from one worker to another one for this reason.
pub(super) fn resumed(timelines: &Timelines, reason: &str) -> usize {
    let events = timelines.values().flatten();
    events
        .filter(|event| {
            event.event_type == EventType::SessionResumed && event.metadata["reason"] == reason
        })
        .count()
}

/// Asserts that each call of the incidents ran once, to a model and to a tool.
fn assert_no_call_is_repeated(system: &TestSystem, incidents: usize) {
    let incidents = u32::try_from(incidents).unwrap();
    let repeated: BTreeMap<_, _> = system
        .tool_calls()
        .into_iter()
        .filter(|(_, count)| *count != incidents)
        .collect();
    assert_eq!(
        repeated,
        BTreeMap::new(),
        "calls of tools that did not run {incidents} times"
    );
    let ids = system
        .database
        .text("SELECT string_agg(execution_id::text, ' ') FROM agent_executions");
    for id in ids.split(' ') {
        let calls = system.model_calls_of(tarsy_core::ids::ExecutionId(id.parse().unwrap()));
        assert!(
            !calls.is_empty() && calls.iter().all(|count| *count == 1),
            "{id}: {calls:?}"
        );
    }
}

/// The text of tarsy.yaml in the cluster.
async fn configuration(cluster: &Cluster) -> String {
    let config = cluster
        .api()
        .get(&cluster.path("configmaps/release-tarsy"))
        .await
        .unwrap();
    text(&config["data"]["tarsy.yaml"]).to_owned()
}

/// Rolls the workers by `roll` while they have as many investigations as slots, and asserts that each of them drained.
///
/// The investigations wait for the third answer of the model until their worker has SIGTERM, so each of them continues
/// elsewhere.
async fn roll(
    cluster: &Cluster,
    system: &TestSystem,
    gates: &mut Gatekeeper,
    roll: impl AsyncFnOnce(),
) {
    let before = cluster.ready("worker").await;
    assert_eq!(before.len(), 2);
    gates.watch(GATE);
    publish(system, RUNNING).await;
    let mut held = Vec::new();
    for _ in 0..RUNNING {
        held.push(gates.next().await);
    }
    publish(system, QUEUED).await;
    let ends = "SELECT count(*) FROM alert_sessions WHERE status = 'running' OR settled_at IS NULL";
    let rolled = async {
        roll().await;
        cluster
            .eventually("every investigation ends", async || {
                system.database.number(ends) == 0
            })
            .await;
    };
    tokio::select! {
        () = rolled => {}
        () = open(cluster, system, gates, (&before, held)) => {}
    }
    let after = cluster.ready("worker").await;
    assert!(
        after.len() == 2 && after.iter().all(|pod| !before.contains(pod)),
        "{before:?} {after:?}"
    );
    for pod in &before {
        cluster
            .eventually("the old worker ends", async || {
                cluster.log(pod).contains("kubelet: exit code")
            })
            .await;
        let log = cluster.log(pod);
        assert!(
            log.contains("kubelet: exit code 0") && !log.contains("kubelet: SIGKILL"),
            "{log}"
        );
    }
}

/// Opens the gate to the investigations of each of the workers when it has SIGTERM; after the last one, to all.
async fn open(
    cluster: &Cluster,
    system: &TestSystem,
    gates: &mut Gatekeeper,
    (workers, mut held): (&[String], Vec<Arrived>),
) {
    for count in 1..=workers.len() {
        let terminated = || {
            workers
                .iter()
                .filter(|pod| cluster.log(pod).contains("SIGTERM"))
        };
        let waiting = cluster.eventually("an old worker is terminated", async || {
            terminated().count() >= count
        });
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                () = &mut waiting => break,
                arrived = gates.arrival() => held.push(arrived),
            }
        }
        let names = terminated()
            .map(|pod| format!("'{pod}'"))
            .collect::<Vec<_>>()
            .join(", ");
        let own = system.database.text(&format!(
            "SELECT coalesce(string_agg(execution_id::text, ' '), '') FROM agent_executions JOIN alert_sessions USING (session_id) \
             WHERE worker_name IN ({names})"
        ));
        let is_own = |arrived: &Arrived| {
            arrived
                .detail
                .split(' ')
                .any(|word| own.contains(word) && word.len() == 36)
        };
        let (open, kept): (Vec<Arrived>, Vec<Arrived>) = held.into_iter().partition(is_own);
        held = kept;
        for arrived in open {
            arrived.open().await;
        }
    }
    gates.open_all();
    for arrived in held {
        arrived.open().await;
    }
    loop {
        gates.arrival().await.open().await;
    }
}

/// Names of the objects in the namespace, of the kinds that a release may have.
async fn objects(cluster: &Cluster) -> Vec<String> {
    let mut found = Vec::new();
    for (group, resources) in [
        ("", "pods services configmaps secrets serviceaccounts"),
        ("apps/v1", "deployments replicasets statefulsets"),
        ("batch/v1", "jobs"),
        ("policy/v1", "poddisruptionbudgets"),
        ("autoscaling/v2", "horizontalpodautoscalers"),
        ("networking.k8s.io/v1", "networkpolicies ingresses"),
    ] {
        for resource in resources.split(' ') {
            let path = if group.is_empty() {
                cluster.path(resource)
            } else {
                cluster.path_in(group, resource)
            };
            let names = cluster.api().list(&path).await.unwrap();
            found.extend(
                names
                    .iter()
                    .map(|object| format!("{resource} {}", text(&object["metadata"]["name"]))),
            );
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrade_and_rollback_hand_over_every_investigation_and_uninstall_cleans_up() {
    let Some(cluster) = Cluster::start("lifecycle").await else {
        return;
    };
    let mut system = servers(&cluster).await;
    let first = values(&cluster, &system, &json!({}));
    let second = values(
        &cluster,
        &system,
        &json!({"config": {"defaults": {"max_iterations": 17}}}),
    );
    let mut gates = std::mem::replace(&mut system.gates, Gatekeeper::new(&[]));
    cluster.apply("install", &first).await.unwrap();
    assert_eq!(cluster.ready("worker").await.len(), 2);
    // The hook made the schema before the first worker started, and its objects are gone.
    assert!(
        system
            .database
            .holds("SELECT EXISTS (SELECT FROM pg_tables WHERE tablename = 'alert_sessions')")
    );
    assert_eq!(cluster.pods("migrate").await, Vec::<Value>::new());
    let version = cluster.api().get("/version").await.unwrap();
    println!("Kubernetes {}", text(&version["gitVersion"]));

    cluster.helm("test", json!({})).await.unwrap();
    completed(&cluster, &system, 1).await;

    let old = configuration(&cluster).await;
    roll(&cluster, &system, &mut gates, async || {
        drop(cluster.apply("upgrade", &second).await.unwrap())
    })
    .await;
    assert_ne!(configuration(&cluster).await, old);
    let incidents = RUNNING + QUEUED;
    let timelines = completed(&cluster, &system, 1 + incidents).await;
    let upgraded = resumed(&timelines, "released");

    let rollback = async || {
        drop(
            cluster
                .helm("rollback", json!({"version": 1}))
                .await
                .unwrap(),
        )
    };
    roll(&cluster, &system, &mut gates, rollback).await;
    assert_eq!(configuration(&cluster).await, old);
    let timelines = completed(&cluster, &system, 1 + 2 * incidents).await;
    let rolled_back = resumed(&timelines, "released") - upgraded;
    println!(
        "handed over: {upgraded} by the upgrade, {rolled_back} by the rollback, of {RUNNING} each"
    );
    assert_eq!((upgraded, rolled_back), (RUNNING, RUNNING));
    assert_eq!(resumed(&timelines, "lease_expired"), 0);
    assert_eq!(
        system
            .database
            .number("SELECT max(attempts)::bigint FROM alert_sessions"),
        1,
        "counted attempts"
    );
    assert_no_call_is_repeated(&system, 2 * incidents);

    let history = cluster.helm("history", json!({})).await.unwrap();
    let states: Vec<&str> = each(&history)
        .map(|revision| text(&revision["status"]))
        .collect();
    assert_eq!(
        states,
        ["superseded", "superseded", "deployed"],
        "{history}"
    );
    cluster.helm("uninstall", json!({})).await.unwrap();
    let own = [
        "configmaps kube-root-ca.crt",
        "secrets tarsy-database",
        "secrets tarsy-llm-token",
        "serviceaccounts default",
    ];
    let is_clean = async || objects(&cluster).await == own;
    cluster
        .eventually("only what the chart did not make is left", is_clean)
        .await;
    // Alerts and investigations are not in the cluster.
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions"),
        i64::try_from(1 + 2 * incidents).unwrap()
    );
}
