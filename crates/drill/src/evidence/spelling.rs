//! Compares the arguments of a call with recorded ones: another spelling is the same question, another object is not.

use serde_json::Value;

use tarsy_config::read::units::parse_duration;

/// The kinds of Kubernetes objects, each with its other names.
const KINDS: [&[&str]; 16] = [
    &["pod", "pods", "po"],
    &[
        "deployment",
        "deployments",
        "deploy",
        "deployment.apps",
        "deployments.apps",
    ],
    &[
        "replicaset",
        "replicasets",
        "rs",
        "replicaset.apps",
        "replicasets.apps",
    ],
    &[
        "statefulset",
        "statefulsets",
        "sts",
        "statefulset.apps",
        "statefulsets.apps",
    ],
    &[
        "daemonset",
        "daemonsets",
        "ds",
        "daemonset.apps",
        "daemonsets.apps",
    ],
    &["job", "jobs", "job.batch", "jobs.batch"],
    &[
        "cronjob",
        "cronjobs",
        "cj",
        "cronjob.batch",
        "cronjobs.batch",
    ],
    &["service", "services", "svc"],
    &["node", "nodes", "no"],
    &["namespace", "namespaces", "ns"],
    &["event", "events", "ev"],
    &["configmap", "configmaps", "cm"],
    &["serviceaccount", "serviceaccounts", "sa"],
    &["horizontalpodautoscaler", "horizontalpodautoscalers", "hpa"],
    &["persistentvolumeclaim", "persistentvolumeclaims", "pvc"],
    &["ingress", "ingresses", "ing"],
];

/// Whether an argument asks for what was recorded. A recorded list has the values of which one is enough; null in it
/// represents an argument that is left out.
pub(super) fn is_same(name: &str, recorded: &Value, given: Option<&Value>) -> bool {
    let given = given.filter(|given| {
        !given.is_null() && given.as_str().is_none_or(|text| !text.trim().is_empty())
    });
    match (recorded, given) {
        (Value::Array(accepted), _) => accepted
            .iter()
            .any(|recorded| is_same(name, recorded, given)),
        (Value::Null, None) => true,
        (Value::Null, Some(_)) | (_, None) => false,
        (recorded, Some(given)) => form(name, recorded) == form(name, given),
    }
}

/// Whether an argument is a text with this part.
pub(super) fn contains(part: &str, given: Option<&Value>) -> bool {
    given
        .and_then(Value::as_str)
        .is_some_and(|text| spaced(text).contains(&spaced(part)))
}

/// The normal form of a value: `"true"` is true, `"Pods"` is a pod, `pod/x` is x, `1h` is `60m`.
fn form(name: &str, value: &Value) -> Value {
    let Value::String(text) = value else {
        return value.clone();
    };
    let text = spaced(text);
    if name == "kind" {
        return kind(&text).map_or_else(|| text.clone().into(), Value::from);
    }
    if let Ok(other @ (Value::Bool(_) | Value::Number(_))) = serde_json::from_str(&text) {
        return other;
    }
    if let Some(duration) = parse_duration(&text) {
        return format!("{} ms", duration.as_millis()).into();
    }
    match text.split_once('/') {
        Some((prefix, object)) if kind(prefix).is_some() => object.into(),
        _ => text.into(),
    }
}

fn kind(word: &str) -> Option<&'static str> {
    KINDS
        .iter()
        .find(|names| names.contains(&word))
        .and_then(|names| names.first().copied())
}

fn spaced(text: &str) -> String {
    let text = text
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    // A path with a slash at its end is the same path.
    text.strip_suffix('/')
        .filter(|path| !path.is_empty())
        .map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_spelling_is_the_same_question() {
        for (name, recorded, given) in [
            ("pod", json!("checkout-1"), json!(" Checkout-1 ")),
            ("pod", json!("checkout-1"), json!("pod/checkout-1")),
            (
                "deployment",
                json!("checkout"),
                json!("deployment.apps/checkout"),
            ),
            ("kind", json!("Pod"), json!("po")),
            ("kind", json!("deployments"), json!("Deployment")),
            ("window", json!("1h"), json!("60m")),
            ("page", json!(318), json!("318")),
            ("previous", json!(true), json!("true")),
            ("path", json!("/var/lib"), json!("/var/lib/")),
            (
                "host",
                json!(["db-3", "db-3.example.com"]),
                json!("DB-3.example.com"),
            ),
            ("prefix", json!([null, "a"]), json!("")),
            ("query", json!("select 1"), json!("SELECT\n  1")),
        ] {
            assert!(
                is_same(name, &recorded, Some(&given)),
                "{name} {recorded} {given}"
            );
        }
        assert!(is_same("prefix", &json!([null]), None));
        assert!(contains(
            "pg_replication_slots",
            Some(&json!("SELECT * FROM PG_REPLICATION_SLOTS"))
        ));
    }

    #[test]
    fn another_object_is_another_question() {
        for (name, recorded, given) in [
            ("pod", json!("checkout-1"), json!("checkout-2")),
            ("pod", json!("checkout-1"), json!("checkout")),
            ("namespace", json!("shop"), json!("shop-eu")),
            ("kind", json!("pod"), json!("node")),
            ("path", json!("/var/lib"), json!("/var/lib/x")),
            ("page", json!(318), json!(31)),
            ("prefix", json!([null, "a"]), json!("b")),
            ("window", json!("1h"), json!("1m")),
        ] {
            assert!(
                !is_same(name, &recorded, Some(&given)),
                "{name} {recorded} {given}"
            );
        }
        assert!(!is_same("pod", &json!("a"), None));
        assert!(!contains("a", Some(&json!(1))));
    }
}
