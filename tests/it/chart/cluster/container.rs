//! A container of a pod as a process of this machine: its arguments, variables and files.
//!
//! The volumes of a pod are directories below one directory of this machine, and a path of the container becomes the
//! path there, wherever it appears: in arguments, in variables and in files.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::helm::text;

/// The `ConfigMap`s and Secrets of a namespace: their keys, by kind and name.
pub(in super::super) type Objects = BTreeMap<(&'static str, String), BTreeMap<String, String>>;

/// The place in which a pod runs.
#[derive(Clone, Debug)]
pub(in super::super) struct Place {
    /// The directory of the pod's files.
    pub(in super::super) folder: PathBuf,
    /// The address of the pod; `None` for a free port of 127.0.0.1 in place of each port that a container listens on.
    pub(in super::super) ip: Option<String>,
    /// The group of the pod's files, if this process may set it.
    pub(in super::super) group: Option<u32>,
    /// `host:port` of services, and the address of each here.
    pub(in super::super) services: Vec<(String, String)>,
}

/// The arguments and environment of a container's process.
#[derive(Debug)]
pub(in super::super) struct Start {
    pub(in super::super) args: Vec<String>,
    pub(in super::super) env: Vec<(String, String)>,
}

/// Writes the volumes of a pod and resolves a container of it.
///
/// # Errors
/// The sentence of the kubelet, when a `ConfigMap`, a Secret or a key of them does not exist.
pub(in super::super) fn prepare(
    pod: &Value,
    container: &Value,
    objects: &Objects,
    place: &Place,
) -> Result<Start, String> {
    let mut paths = Vec::new();
    for mount in each(&container["volumeMounts"]) {
        let (name, path) = (text(&mount["name"]), text(&mount["mountPath"]));
        if path != "/tmp" {
            paths.push((
                path.to_owned(),
                place.folder.join(name).display().to_string(),
            ));
        }
    }
    let here = Here { paths, place };
    for mount in each(&container["volumeMounts"]) {
        let name = text(&mount["name"]);
        let volume = each(&pod["spec"]["volumes"])
            .find(|volume| volume["name"] == name)
            .expect("a volume");
        fill(volume, &place.folder.join(name), objects, &here)?;
    }
    let mut env = vec![(
        "TMPDIR".to_owned(),
        place.folder.join("tmp").display().to_string(),
    )];
    for variable in each(&container["env"]) {
        let from = &variable["valueFrom"];
        let value = match text(&from["fieldRef"]["fieldPath"]) {
            "metadata.name" => text(&pod["metadata"]["name"]).to_owned(),
            "metadata.uid" => text(&pod["metadata"]["uid"]).to_owned(),
            "" if from.is_null() => here.of(text(&variable["value"])),
            "" if from["secretKeyRef"].is_object() => {
                key(objects, "Secret", &from["secretKeyRef"])?.to_owned()
            }
            other => panic!("a variable from {other}"),
        };
        env.push((text(&variable["name"]).to_owned(), value));
    }
    Ok(Start {
        args: each(&container["args"])
            .map(|arg| here.of(text(arg)))
            .collect(),
        env,
    })
}

pub(super) fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Maps paths and addresses of the container to those of this machine.
struct Here<'a> {
    paths: Vec<(String, String)>,
    place: &'a Place,
}

impl Here<'_> {
    fn of(&self, value: &str) -> String {
        let mut value = value.to_owned();
        for (path, here) in &self.paths {
            if value == *path {
                value.clone_from(here);
            }
            value = value.replace(&format!("{path}/"), &format!("{here}/"));
        }
        for (service, here) in &self.place.services {
            value = value.replace(service, here);
        }
        match (value.strip_prefix("0.0.0.0:"), &self.place.ip) {
            (Some(port), Some(ip)) => format!("{ip}:{port}"),
            (Some(_), None) => "127.0.0.1:0".to_owned(),
            (None, _) => value,
        }
    }
}

fn key<'a>(objects: &'a Objects, kind: &'static str, wanted: &Value) -> Result<&'a str, String> {
    let (name, key) = (text(&wanted["name"]), text(&wanted["key"]));
    let object = objects
        .get(&(kind, name.to_owned()))
        .ok_or_else(|| format!("{kind} \"{name}\" not found"))?;
    let value = object
        .get(key)
        .ok_or_else(|| format!("references non-existent {kind} key: {name}/{key}"))?;
    Ok(value)
}

/// Writes the files of a volume, as a kubelet does.
fn fill(volume: &Value, folder: &Path, objects: &Objects, here: &Here<'_>) -> Result<(), String> {
    own(folder, 0o2775, here);
    let projected = &volume["projected"];
    let named = |kind: &'static str, source: &Value, name: &str| {
        let source = json!({"name": source[name], "items": source["items"]});
        (kind, source)
    };
    let mut sources: Vec<(&'static str, Value)> = Vec::new();
    for source in each(&projected["sources"]) {
        sources.push(named("Secret", &source["secret"], "name"));
    }
    sources.push(named("ConfigMap", &volume["configMap"], "name"));
    sources.push(named("Secret", &volume["secret"], "secretName"));
    let modes =
        ["projected", "configMap", "secret"].map(|kind| volume[kind]["defaultMode"].as_u64());
    let mode = modes.into_iter().flatten().next().unwrap_or(0o644);
    for (kind, source) in sources
        .into_iter()
        .filter(|(_, source)| source["name"].is_string())
    {
        let name = text(&source["name"]);
        let object = objects
            .get(&(kind, name.to_owned()))
            .ok_or_else(|| format!("{kind} \"{name}\" not found"))?;
        let all: Vec<Value> = object
            .keys()
            .map(|key| json!({"key": key, "path": key}))
            .collect();
        for item in source["items"].as_array().unwrap_or(&all) {
            let content = key(objects, kind, &json!({"name": name, "key": item["key"]}))?;
            let path = folder.join(text(&item["path"]));
            own(path.parent().expect("a folder"), 0o2775, here);
            std::fs::write(&path, here.of(content)).expect("a file of a volume");
            own(&path, u32::try_from(mode).expect("a mode"), here);
        }
    }
    Ok(())
}

/// Gives a file or folder its mode and the group of the pod; makes the folder if there is none.
fn own(path: &Path, mode: u32, here: &Here<'_>) {
    if !path.exists() {
        std::fs::create_dir_all(path).expect("a folder");
    }
    if here.place.group.is_some() {
        chown(path, None, here.place.group).expect("the group of a file");
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("the mode of a file");
}
