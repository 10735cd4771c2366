//! The API server accepts every object of every values file, and its admission every pod.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::helm::text;
use super::Cluster;
use super::api::Api;
use super::container::each;
use crate::support::monitoring::program;

/// The paths of resources, by the version of their API and their kind; `NAMESPACE` represents one.
struct Paths(BTreeMap<(String, String), String>);

impl Paths {
    async fn of(api: &Api, objects: &[Value]) -> Self {
        let mut paths = BTreeMap::new();
        for object in objects {
            let version = text(&object["apiVersion"]);
            if paths
                .keys()
                .any(|(known, _): &(String, String)| known == version)
            {
                continue;
            }
            let root = if version.contains('/') {
                format!("/apis/{version}")
            } else {
                format!("/api/{version}")
            };
            let known = api
                .get(&root)
                .await
                .unwrap_or_else(|refusal| panic!("{version}: {refusal:?}"));
            for resource in
                each(&known["resources"]).filter(|resource| !text(&resource["name"]).contains('/'))
            {
                let name = text(&resource["name"]);
                let path = match resource["namespaced"].as_bool() {
                    Some(true) => format!("{root}/namespaces/NAMESPACE/{name}"),
                    _ => format!("{root}/{name}"),
                };
                paths.insert(
                    (version.to_owned(), text(&resource["kind"]).to_owned()),
                    path,
                );
            }
        }
        Self(paths)
    }

    /// Creates an object without storing it; the server refuses every field that it does not know.
    async fn try_create(&self, api: &Api, object: &Value) -> Result<(), String> {
        let kind = (
            text(&object["apiVersion"]).to_owned(),
            text(&object["kind"]).to_owned(),
        );
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("space");
        let path = self
            .0
            .get(&kind)
            .ok_or_else(|| format!("no resource {kind:?}"))?
            .replace("NAMESPACE", namespace);
        let created = api
            .create(&format!("{path}?dryRun=All&fieldValidation=Strict"), object)
            .await;
        created.map(drop).map_err(|refusal| refusal.message)
    }
}

/// A pod as a controller makes it of an object of a release.
fn pod_of(object: &Value) -> Option<Value> {
    let (metadata, spec) = match text(&object["kind"]) {
        "Pod" => (&object["metadata"], &object["spec"]),
        _ => (
            &object["spec"]["template"]["metadata"],
            &object["spec"]["template"]["spec"],
        ),
    };
    let mut spec = spec.clone();
    spec["containers"].is_array().then(|| {
        // The account of the release does not exist; admission asks for it first.
        spec["serviceAccountName"] = json!("default");
        if spec["restartPolicy"].is_null() {
            spec["restartPolicy"] = json!("Always");
        }
        let name = text(&object["metadata"]["name"]);
        let metadata = json!({"name": name, "labels": metadata["labels"], "annotations": metadata["annotations"]});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_every_object_and_admits_every_pod_of_every_values_file() {
    let Some(crds) = program("TARSY_TEST_KUBE_CRDS") else {
        return;
    };
    let Some(cluster) = Cluster::start("space").await else {
        return;
    };
    let api = cluster.api();
    let files: Vec<String> = std::fs::read_dir(crds)
        .unwrap()
        .map(|file| file.unwrap().path().display().to_string())
        .collect();
    let definitions = cluster
        .helm
        .read(&files.iter().map(String::as_str).collect::<Vec<_>>());
    for definition in &definitions {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        api.create(path, definition).await.unwrap();
        let established = async || {
            let found = api
                .get(&format!("{path}/{}", text(&definition["metadata"]["name"])))
                .await
                .unwrap();
            each(&found["status"]["conditions"]).any(|condition| {
                condition["type"] == "Established" && condition["status"] == "True"
            })
        };
        cluster
            .eventually("a resource is established", established)
            .await;
    }
    let class = json!({"name": "business-critical"});
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": class, "value": 1000});
    api.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class)
        .await
        .unwrap();
    let account = cluster.path("serviceaccounts/default");
    cluster
        .eventually("the namespace has an account", async || {
            api.get(&account).await.is_ok()
        })
        .await;

    let releases = cluster.helm.releases();
    let all: Vec<Value> = releases
        .iter()
        .flat_map(|(_, release)| release.objects.iter().map(|(_, object)| object.clone()))
        .collect();
    let paths = Paths::of(api, &all).await;
    let (mut kinds, mut pods) = (BTreeMap::<String, u32>::new(), 0);
    for (case, release) in releases {
        for (_, object) in &release.objects {
            let accepted = paths.try_create(api, object).await;
            assert_eq!(
                accepted,
                Ok(()),
                "{case}: {} {}",
                object["kind"],
                object["metadata"]["name"]
            );
            *kinds.entry(text(&object["kind"]).to_owned()).or_default() += 1;
            if let Some(pod) = pod_of(object) {
                assert_eq!(
                    paths.try_create(api, &pod).await,
                    Ok(()),
                    "{case}: pod of {}",
                    object["metadata"]["name"]
                );
                pods += 1;
            }
        }
    }
    println!(
        "{} objects of {} values files accepted: {kinds:?}; {pods} pods admitted",
        all.len(),
        releases.len()
    );
    for kind in [
        "ScaledObject",
        "PodMonitor",
        "PrometheusRule",
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
    ] {
        assert!(kinds.contains_key(kind), "{kinds:?}");
    }

    let mut unknown = all
        .iter()
        .find(|object| object["kind"] == "ScaledObject")
        .unwrap()
        .clone();
    unknown["spec"]["minReplicas"] = json!(1);
    let refused = paths.try_create(api, &unknown).await.unwrap_err();
    assert!(
        refused.contains(r#"unknown field "spec.minReplicas""#),
        "{refused}"
    );
    let mut privileged = all.iter().find_map(pod_of).unwrap();
    privileged["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] =
        json!(true);
    let refused = paths.try_create(api, &privileged).await.unwrap_err();
    assert!(
        refused.contains(r#"violates PodSecurity "restricted:latest""#),
        "{refused}"
    );
}
