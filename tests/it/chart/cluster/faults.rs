//! Tests of faults in a cluster: a pod that is deleted by force, refused values, a migration that fails, and nodes
//! that are emptied.

use serde_json::{Value, json};
use tarsy_core::timeline::EventType;

use super::lifecycle::{completed, publish, resumed, servers, values};
use super::{Cluster, text};
use crate::support::gates::Gatekeeper;

/// The identity of the workers' pods, and of the objects that created them.
async fn state(cluster: &Cluster) -> (Vec<String>, Value, Value) {
    let mut pods = cluster.ready("worker").await;
    pods.sort();
    let deployment = cluster
        .api()
        .get(&cluster.path_in("apps/v1", "deployments/release-tarsy-worker"))
        .await
        .unwrap();
    let config = cluster
        .api()
        .get(&cluster.path("configmaps/release-tarsy"))
        .await
        .unwrap();
    (
        pods,
        deployment["metadata"]["generation"].clone(),
        config["data"].clone(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_deleted_by_force_is_replaced_and_its_sessions_are_resumed() {
    let Some(cluster) = Cluster::start("force").await else {
        return;
    };
    let mut system = servers(&cluster).await;
    let case = values(&cluster, &system, &json!({}));
    let mut gates = std::mem::replace(&mut system.gates, Gatekeeper::new(&[]));
    cluster.apply("install", &case).await.unwrap();
    gates.watch("answer-2-start");
    publish(&system, 4).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(gates.next().await);
    }
    let owner = system
        .database
        .text("SELECT worker_name FROM alert_sessions ORDER BY worker_name LIMIT 1");
    let owned = format!("SELECT count(*) FROM alert_sessions WHERE worker_name = '{owner}'");
    let owned = usize::try_from(system.database.number(&owned)).unwrap();
    cluster
        .api()
        .delete(&cluster.path(&format!("pods/{owner}")), Some(0))
        .await
        .unwrap();
    cluster
        .eventually("its process is killed", async || {
            cluster.log(&owner).contains("exit code 137")
        })
        .await;
    gates.open_all();
    for arrived in held {
        arrived.open().await;
    }
    let timelines = completed(&cluster, &system, 4).await;
    assert_eq!(resumed(&timelines, "lease_expired"), owned);
    let resumed = timelines
        .values()
        .flatten()
        .filter(|event| event.event_type == EventType::SessionResumed);
    assert!(
        resumed
            .clone()
            .all(|event| event.metadata["previous_worker"] == owner.as_str())
    );
    cluster
        .eventually("there are two workers again", async || {
            cluster.ready("worker").await.len() == 2
        })
        .await;
    assert!(!cluster.ready("worker").await.contains(&owner));
    println!("{owned} of 4 investigations were resumed after the end of {owner}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_is_refused_or_cannot_migrate_leaves_the_old_workers_at_work() {
    let Some(cluster) = Cluster::start("refused").await else {
        return;
    };
    let system = servers(&cluster).await;
    cluster
        .apply("install", &values(&cluster, &system, &json!({})))
        .await
        .unwrap();
    let before = state(&cluster).await;

    let refused = values(
        &cluster,
        &system,
        &json!({"worker": {"terminationGracePeriodSeconds": 20}}),
    );
    let fault = cluster.apply("upgrade", &refused).await.unwrap_err();
    assert!(
        fault.contains("worker.terminationGracePeriodSeconds 20 is too short"),
        "{fault}"
    );
    // The API server refuses this one, after the chart has accepted it.
    let refused = values(
        &cluster,
        &system,
        &json!({"worker": {"podLabels": {"app": "no label!"}}}),
    );
    let fault = cluster.apply("upgrade", &refused).await.unwrap_err();
    assert!(fault.contains("no label!"), "{fault}");
    assert_eq!(state(&cluster).await, before);

    cluster
        .create_secret(
            "broken",
            &[("url", "postgres://nowhere@127.0.0.1:1/nothing")],
        )
        .await;
    let migrations =
        json!({"urlSecret": {"name": "broken"}, "backoffLimit": 0, "activeDeadlineSeconds": 15});
    let config = json!({"defaults": {"max_iterations": 17}});
    let broken = values(
        &cluster,
        &system,
        &json!({"migrations": migrations, "config": config}),
    );
    let fault = cluster.apply("upgrade", &broken).await.unwrap_err();
    assert!(fault.contains("release-tarsy-migrate"), "{fault}");
    assert_eq!(state(&cluster).await, before);
    publish(&system, 2).await;
    completed(&cluster, &system, 2).await;

    let config = json!({"defaults": {"max_iterations": 18}});
    cluster
        .apply(
            "upgrade",
            &values(&cluster, &system, &json!({"config": config})),
        )
        .await
        .unwrap();
    let after = state(&cluster).await;
    assert!(after.0.len() == 2 && after != before, "{after:?}");
    let history = cluster.helm("history", json!({})).await.unwrap();
    let last = history.as_array().unwrap().last().unwrap();
    assert_eq!(last["status"], "deployed", "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_emptied_one_worker_at_a_time_and_an_investigation_moves_on() {
    let Some(cluster) = Cluster::start("eviction").await else {
        return;
    };
    let mut system = servers(&cluster).await;
    let case = values(
        &cluster,
        &system,
        &json!({"worker": {"replicas": 3}, "llmService": {"replicas": 2}}),
    );
    let mut gates = std::mem::replace(&mut system.gates, Gatekeeper::new(&[]));
    cluster.apply("install", &case).await.unwrap();
    let allowed = async |name: &str, number: u64| {
        let path = cluster.path_in("policy/v1", &format!("poddisruptionbudgets/{name}"));
        let budget = async || {
            cluster.api().get(&path).await.unwrap()["status"]["disruptionsAllowed"].as_u64()
        };
        cluster
            .eventually(&format!("{number} of {name} may end"), async || {
                budget().await == Some(number)
            })
            .await;
    };
    // A quarter of three workers is rounded up to one, and one of two pods of the LLM service may be unavailable.
    allowed("release-tarsy-worker", 1).await;
    allowed("release-tarsy-llm-service", 1).await;
    gates.watch("answer-2-start");
    publish(&system, 1).await;
    let held = gates.next().await;
    let owner = system
        .database
        .text("SELECT worker_name FROM alert_sessions");
    let evict = async |name: &str| {
        let eviction =
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let path = cluster.path(&format!("pods/{name}/eviction"));
        cluster
            .api()
            .create(&path, &eviction)
            .await
            .map(drop)
            .map_err(|refusal| refusal.code)
    };
    assert_eq!(evict(&owner).await, Ok(()));
    let others: Vec<String> = cluster
        .ready("worker")
        .await
        .into_iter()
        .filter(|pod| *pod != owner)
        .collect();
    assert_eq!(evict(&others[0]).await, Err(429), "{others:?}");
    cluster
        .eventually("the worker drains", async || {
            cluster.log(&owner).contains("SIGTERM")
        })
        .await;
    gates.open_all();
    held.open().await;
    let timelines = completed(&cluster, &system, 1).await;
    assert_eq!(resumed(&timelines, "released"), 1);
    cluster
        .eventually("three workers are ready", async || {
            cluster.ready("worker").await.len() == 3
        })
        .await;
    allowed("release-tarsy-worker", 1).await;
    assert_eq!(evict(&others[0]).await, Ok(()));

    let services: Vec<Value> = cluster.pods("llm-service").await;
    assert_eq!(evict(text(&services[0]["metadata"]["name"])).await, Ok(()));
    assert_eq!(
        evict(text(&services[1]["metadata"]["name"])).await,
        Err(429)
    );
    cluster
        .eventually("the service is whole", async || {
            cluster.ready("llm-service").await.len() == 2
        })
        .await;
}
