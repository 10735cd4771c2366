//! `values.yaml`, its schema and the table in the README agree.

use std::process::Command;

use serde_json::{Value, json};

use super::helm::{Case, Helm, chart};

fn schema() -> Value {
    serde_json::from_str(&std::fs::read_to_string(chart().join("values.schema.json")).unwrap())
        .unwrap()
}

/// Keys that only one of both has, below `path`.
fn differences(path: &str, values: &Value, schema: &Value, found: &mut Vec<String>) {
    let (Some(values), Some(known)) = (values.as_object(), schema["properties"].as_object()) else {
        return;
    };
    for key in values.keys().filter(|key| !known.contains_key(*key)) {
        found.push(format!("{path}{key} is not in values.schema.json"));
    }
    for (key, schema) in known {
        match values.get(key) {
            Some(value) => differences(&format!("{path}{key}."), value, schema, found),
            // Helm sets this one in the charts that a chart contains.
            None if path.is_empty() && key == "global" => {}
            None => found.push(format!("{path}{key} is not in values.yaml")),
        }
    }
}

#[test]
fn the_schema_has_exactly_the_keys_of_the_values() {
    let Some(helm) = Helm::find() else { return };
    let mut values = helm.read(&["values.yaml"]).remove(0);
    // The sections of tarsy.yaml, of which the defaults have none.
    assert_eq!(values["config"].take(), json!({}));
    let mut found = Vec::new();
    differences("", &values, &schema(), &mut found);
    assert_eq!(found, Vec::<String>::new());
    differences(
        "",
        &json!({"imago": 1}),
        &json!({"properties": {}}),
        &mut found,
    );
    assert_eq!(found, ["imago is not in values.schema.json"]);
}

/// The paths of all objects of the schema that do not say whether further keys may stand in them, or that accept any.
fn open_objects(path: &str, schema: &Value, found: &mut Vec<(String, Value)>) {
    if schema["type"] == "object" && schema["additionalProperties"] != false {
        found.push((path.to_owned(), schema["additionalProperties"].clone()));
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        open_objects(&format!("{path}.{key}"), inner, found);
    }
    if schema["items"].is_object() {
        open_objects(&format!("{path}[]"), &schema["items"], found);
    }
}

#[test]
fn only_objects_of_kubernetes_and_of_tarsy_are_open() {
    let mut open = Vec::new();
    open_objects("", &schema(), &mut open);
    assert_eq!(
        open.iter().filter(|(_, further)| further.is_null()).count(),
        0,
        "{open:?}"
    );
    // Sections of tarsy.yaml, which `tarsy config check` examines; parts of pods and policies; the alert of the test.
    let foreign = [
        ".config.",
        "global",
        "SecurityContext",
        "securityContext",
        "affinity",
        "tolerations[]",
        "valueFrom",
        "olumes[]",
        "olumeMounts[]",
        "startupProbe",
        "topologySpreadConstraints[]",
        ".strategy",
        "extraInitContainers[]",
        "envFrom[]",
        "networkPolicy.",
        "httpRoute.parentRefs[]",
        "hostAliases[]",
        "dnsConfig",
        "extraObjects[]",
        ".test.alert",
    ];
    let any: Vec<_> = open
        .iter()
        .filter(|(_, further)| *further == json!(true))
        .map(|(path, _)| path)
        .collect();
    let others: Vec<_> = any
        .iter()
        .filter(|path| !foreign.iter().any(|known| path.contains(known)))
        .collect();
    assert_eq!(others, Vec::<&&String>::new());
}

#[test]
fn an_unknown_key_is_refused_wherever_it_stands() {
    let Some(helm) = Helm::find() else { return };
    let mut paths = Vec::new();
    closed_objects(&mut Vec::new(), &schema(), &mut paths);
    assert!(paths.len() > 40, "{}", paths.len());
    let cases = paths.iter().map(|path| {
        let wrong = path.iter().rev().fold(
            json!({"unknownKey": 1}),
            |inner, key| json!({key.as_str(): inner}),
        );
        Case::with("production", &wrong)
    });
    let cases: Vec<Case> = cases.collect();
    for (path, rendered) in paths.iter().zip(helm.render(&cases)) {
        let fault = rendered.expect_err(&path.join("."));
        assert!(fault.contains("unknownKey"), "{path:?}: {fault}");
    }
}

fn closed_objects(path: &mut Vec<String>, schema: &Value, found: &mut Vec<Vec<String>>) {
    if schema["additionalProperties"] == false {
        found.push(path.clone());
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        path.push(key.clone());
        closed_objects(path, inner, found);
        path.pop();
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_refused() {
    let Some(helm) = Helm::find() else { return };
    let wrong = [
        json!({"worker": {"replicas": "2"}}),
        json!({"worker": {"replicas": 513}}),
        json!({"worker": {"logLevel": "loud"}}),
        json!({"image": {"digest": "sha256:1"}}),
        json!({"migrations": {"mode": "sometimes"}}),
        json!({"migrations": {"lockTimeout": "5 minutes"}}),
        json!({"metrics": {"port": 0}}),
        json!({"worker": {"podDisruptionBudget": {"maxUnavailable": 0}}}),
        json!({"worker": {"sidecars": [{"name": "a", "image": "i"}]}}),
        json!({"llmService": {"keys": [{"variable": "lower", "secret": {"name": "s", "key": "k"}}]}}),
        json!({"config": {"wroker": {}}}),
    ];
    let cases: Vec<Case> = wrong
        .iter()
        .map(|set| Case::with("production", set))
        .collect();
    for (set, rendered) in wrong.iter().zip(helm.render(&cases)) {
        let fault = rendered.expect_err(&set.to_string());
        assert!(fault.contains("schema"), "{set}: {fault}");
    }
}

#[test]
fn the_readme_has_the_values_with_their_comments() {
    let Some(_) = Helm::find() else { return };
    let check = Command::new("python3")
        .arg(chart().join("../readme.py"))
        .arg("--check")
        .output()
        .unwrap();
    assert!(
        check.status.success(),
        "{}",
        String::from_utf8_lossy(&check.stderr)
    );
}
