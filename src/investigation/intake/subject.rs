//! The title of an alert: its name and the object that its labels name.

use std::collections::BTreeMap;

/// Kubernetes objects, from the smallest to the largest.
const OBJECTS: [&str; 11] = [
    "pod",
    "deployment",
    "statefulset",
    "daemonset",
    "job_name",
    "cronjob",
    "persistentvolumeclaim",
    "horizontalpodautoscaler",
    "container",
    "service",
    "job",
];

/// Other labels that name an object, from the most to the least specific.
const THINGS: [&str; 12] = [
    "instance", "node", "host", "hostname", "device", "service", "job", "queue", "topic", "database", "cluster",
    "region",
];

/// `KubePodOOMKilled  checkout/checkout-7d9f`: two spaces between what and where.
pub(super) fn title(name: &str, labels: &BTreeMap<String, String>) -> String {
    let get = |key: &str| labels.get(key).map(String::as_str).filter(|value| !value.is_empty());
    let first = |keys: &[&str]| keys.iter().find_map(|key| get(key));
    let place = match get("namespace") {
        Some(namespace) => Some(match first(&OBJECTS) {
            Some(object) => format!("{namespace}/{object}"),
            None => namespace.to_owned(),
        }),
        None => first(&THINGS).map(str::to_owned),
    };
    match place {
        Some(place) if !name.is_empty() => format!("{name}  {place}"),
        Some(place) => place,
        None => name.to_owned(),
    }
}
