//! Validates the chart against the schemas of Helm, Kubernetes, KEDA, the Prometheus operator and the Gateway API.

use std::process::Command;

use serde_json::{Value, json};

use super::helm::{Case, Helm, run, script, text};
use crate::support::monitoring::program;

/// The oldest version that the chart accepts, one between, and the newest one that has a schema here.
const VERSIONS: [&str; 3] = ["1.30", "1.34", "1.37"];

fn is_foreign(object: &Value) -> bool {
    [
        "keda.sh/",
        "monitoring.coreos.com/",
        "gateway.networking.k8s.io/",
    ]
    .iter()
    .any(|group| text(&object["apiVersion"]).starts_with(group))
}

#[test]
fn helm_lint_has_nothing_to_say_about_any_values_file() {
    let Some(helm) = Helm::find() else { return };
    let cases = Case::all();
    for (case, messages) in cases.iter().zip(helm.lint(&cases)) {
        assert_eq!(messages, json!([]), "{}", case.name);
    }
}

#[test]
fn every_object_fits_the_strict_schemas_of_three_versions_of_kubernetes() {
    let Some(helm) = Helm::find() else { return };
    let releases = helm.releases();
    let objects = releases.iter().flat_map(|(case, release)| {
        release
            .objects
            .iter()
            .map(move |(_, object)| (case, object))
    });
    let (cases, objects): (Vec<_>, Vec<_>) = objects
        .filter(|(_, object)| !is_foreign(object))
        .map(|(case, object)| (case, object.clone()))
        .unzip();
    let faults = helm.validate(&objects, &VERSIONS);
    for ((case, object), fault) in cases.iter().zip(&objects).zip(faults) {
        assert_eq!(
            fault, None,
            "{case}: {} {}",
            object["kind"], object["metadata"]["name"]
        );
    }
    let wrong = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"portz": []}});
    assert!(
        helm.validate(&[wrong], &VERSIONS)[0].is_some(),
        "the schemas are not strict"
    );
}

#[test]
fn the_objects_of_other_projects_fit_the_types_that_they_publish() {
    let Some(helm) = Helm::find() else { return };
    let Some(modules) = program("TARSY_TEST_CHART_NODE") else {
        return;
    };
    let validate = |objects: &[Value]| {
        let mut node = Command::new("node");
        let answer = run(
            node.arg(script("resources.mjs")).arg(&modules),
            &json!(objects).to_string(),
        );
        serde_json::from_str::<Vec<Option<String>>>(&answer).unwrap()
    };
    let releases = helm.releases();
    let objects = releases
        .iter()
        .flat_map(|(_, release)| &release.objects)
        .map(|(_, object)| object);
    let objects: Vec<Value> = objects
        .filter(|object| is_foreign(object))
        .cloned()
        .collect();
    let kinds: Vec<&str> = objects.iter().map(|object| text(&object["kind"])).collect();
    for kind in [
        "ScaledObject",
        "PodMonitor",
        "ServiceMonitor",
        "PrometheusRule",
        "HTTPRoute",
    ] {
        assert!(kinds.contains(&kind), "{kind} {kinds:?}");
    }
    for (object, fault) in objects.iter().zip(validate(&objects)) {
        assert_eq!(
            fault, None,
            "{} {}",
            object["kind"], object["metadata"]["name"]
        );
    }
    let mut wrong = objects[kinds
        .iter()
        .position(|kind| *kind == "ScaledObject")
        .unwrap()]
    .clone();
    wrong["spec"]["minReplicaCount"] = json!("0");
    assert!(validate(&[wrong])[0].is_some(), "the types do not check");
}
