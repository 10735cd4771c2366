//! The title of an alert: its name and the object that its labels name.
//!
//! An exporter reports what it observes, and Prometheus adds labels about the exporter itself: `pod`, `namespace`,
//! `instance`, `job`. These name nothing that is broken, so they give way to the labels of the object.

use std::collections::BTreeMap;

use crate::sources::WordList;

/// Kubernetes objects, from the smallest to the largest.
const OBJECTS: WordList = WordList::new(
    "pod deployment statefulset daemonset replicaset job_name cronjob persistentvolumeclaim horizontalpodautoscaler \
     resourcequota container service workload job",
);
/// Those that say more than where a process runs, when there is no namespace.
const ALONE: usize = 10;

/// Other labels that name an object, from the most to the least specific.
const THINGS: WordList = WordList::new(
    "target instance node nodename host hostname persistentvolume device service job queue topic database datname \
     server url endpoint_url cluster region availability_zone zone",
);
/// The things that an exporter observes, the most specific first. Its own `instance` may be the only name of a machine.
const OBSERVED: WordList = WordList::new(
    "target node nodename host hostname persistentvolume server database datname queue topic url volume instance \
     device",
);
/// Exporters by a part of their names.
const EXPORTERS: WordList = WordList::new(
    "kube-state-metrics node-exporter blackbox cadvisor kubelet pushgateway snmp-exporter",
);
/// The exporter whose `instance` is its own address.
const KUBE_STATE_METRICS: &str = "kube-state-metrics";
/// Prefixes with which collectors distinguish the labels of Kubernetes.
const PREFIXES: WordList =
    WordList::new("k8s_ kubernetes_io_ kubernetes_ kube_ app_kubernetes_io_");

/// `KubePodOOMKilled  checkout/checkout-7d9f`: two spaces between what and where.
pub(super) fn title(name: &str, labels: &BTreeMap<String, String>) -> String {
    match (Labels::new(labels).place(), name.is_empty()) {
        (Some(place), false) => format!("{name}  {place}"),
        (Some(place), true) => place,
        (None, _) => name.to_owned(),
    }
}

/// Labels by the names that Prometheus uses.
struct Labels<'l> {
    labels: BTreeMap<String, &'l str>,
    /// A part of the names of the exporter.
    exporter: Option<String>,
}

impl<'l> Labels<'l> {
    fn new(labels: &'l BTreeMap<String, String>) -> Self {
        let mut known: BTreeMap<String, &'l str> = BTreeMap::new();
        let mut exported = Vec::new();
        for (key, value) in labels.iter().filter(|(_, value)| !value.trim().is_empty()) {
            match key.strip_prefix("exported_") {
                Some(key) => exported.push((common_name(key), value.as_str())),
                // The plain name counts before that of a collector.
                None if common_name(key) == *key => {
                    known.insert(key.clone(), value);
                }
                None => {
                    known.entry(common_name(key)).or_insert(value);
                }
            }
        }
        let exporter = exporter(&known);
        // Prometheus renames a label of the exporter when the target has one of that name.
        known.extend(exported);
        Self {
            labels: known,
            exporter,
        }
    }

    fn get(&self, key: &str) -> Option<&'l str> {
        self.labels.get(key).copied()
    }

    fn place(&self) -> Option<String> {
        let object = OBJECTS.iter().find_map(|key| self.foreign(key));
        let namespace = self.get("namespace");

        let of_target = || match (namespace, OBJECTS.iter().find_map(|key| self.get(key))) {
            (Some(namespace), Some(object)) => Some(format!("{namespace}/{object}")),
            (Some(namespace), None) => Some(namespace.to_owned()),
            (None, _) => THINGS
                .iter()
                .find_map(|key| self.get(key))
                .map(str::to_owned),
        };
        match (namespace, object) {
            (Some(namespace), Some(object)) => Some(format!("{namespace}/{object}")),
            _ if self.exporter.is_some() => {
                let observed = OBSERVED.iter().find_map(|key| self.foreign(key));
                observed.map(str::to_owned).or_else(of_target)
            }
            (Some(namespace), None) => {
                let node = ["node", "nodename", "target"]
                    .iter()
                    .find_map(|key| self.get(key));
                Some(node.map_or_else(
                    || namespace.to_owned(),
                    |node| format!("{namespace}/{node}"),
                ))
            }
            (None, _) => {
                let alone = OBJECTS.iter().take(ALONE).find_map(|key| self.get(key));
                alone.map(str::to_owned).or_else(of_target)
            }
        }
    }

    /// The value of a label that is not the exporter's own.
    fn foreign(&self, key: &str) -> Option<&'l str> {
        let value = self.get(key)?;
        let Some(exporter) = &self.exporter else {
            return Some(value);
        };
        let is_address = key == "instance" && exporter == KUBE_STATE_METRICS;
        (!is_address && !plain(value).contains(exporter.as_str())).then_some(value)
    }
}

/// The exporter that an alert comes from, by the labels of its target.
fn exporter(labels: &BTreeMap<String, &str>) -> Option<String> {
    let of_target = ["job", "service", "container"]
        .iter()
        .filter_map(|key| labels.get(*key));
    let known = of_target
        .clone()
        .map(|value| plain(value))
        .find_map(|value| known_exporter(&value));
    known
        .or_else(|| {
            let names =
                of_target.filter_map(|value| plain(value).rsplit('/').next().map(str::to_owned));
            names
                .into_iter()
                .find(|name: &String| name.split('-').any(|word| word == "exporter"))
        })
        .or_else(|| {
            labels
                .get("pod")
                .and_then(|pod| known_exporter(&plain(pod)))
        })
}

fn known_exporter(name: &str) -> Option<String> {
    EXPORTERS
        .iter()
        .find(|known| name.contains(known))
        .map(str::to_owned)
}

fn plain(value: &str) -> String {
    value.to_lowercase().replace('_', "-")
}

/// The name that Prometheus uses for a label: `pod` for `k8s.pod.name`, `kubernetes_pod_name` and `kube_pod_name`.
fn common_name(key: &str) -> String {
    let plain: String = key
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '_' })
        .collect();
    if plain == "job_name" || plain == "app_kubernetes_io_name" {
        return if plain == "job_name" {
            plain
        } else {
            "service".to_owned()
        };
    }
    let short = PREFIXES
        .iter()
        .find_map(|prefix| plain.strip_prefix(prefix));
    let bare = short.unwrap_or(&plain);
    if bare == "job_name" {
        return bare.to_owned();
    }
    let bare = bare.strip_suffix("_name").unwrap_or(bare);
    match bare {
        "namespace" | "pod" | "deployment" | "statefulset" | "daemonset" | "replicaset"
        | "cronjob" | "container" | "node" | "service" | "host" | "cluster" => bare.to_owned(),
        _ => plain,
    }
}
