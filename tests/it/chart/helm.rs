//! Renders the chart, and finds pods in what it renders.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::library::ask;
use crate::support::monitoring::program;

/// The image of tarsy in the values files.
pub(super) const IMAGE: &str = "registry.example.com/tarsy";
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/tarsy");

/// The library of Helm.
pub(super) struct Helm(PathBuf);

/// The objects of a case with the text of NOTES.txt, or the reason why Helm refused it.
pub(super) type Rendered = Result<Release, String>;

#[derive(Debug)]
pub(super) struct Release {
    /// The template of each object, and the object.
    pub(super) objects: Vec<(String, Value)>,
    pub(super) notes: String,
}

/// Values: files below the chart, and values that replace theirs.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) values: Value,
}

impl Case {
    /// A file in `ci/`, with these values in place of its own.
    pub(super) fn with(file: &str, set: &Value) -> Self {
        Self {
            name: file.to_owned(),
            values: json!({"files": [format!("ci/{file}-values.yaml")], "set": set}),
        }
    }

    /// One case for each file in `ci/`.
    pub(super) fn all() -> Vec<Self> {
        let files = std::fs::read_dir(chart().join("ci"))
            .unwrap()
            .map(|file| file.unwrap().file_name());
        let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        assert!(names.len() > 5, "{names:?}");
        names
            .iter()
            .map(|name| Self::with(name.strip_suffix("-values.yaml").unwrap(), &json!({})))
            .collect()
    }
}

pub(super) fn chart() -> &'static Path {
    Path::new(CHART)
}

/// A file in `tests/chart`.
pub(super) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/chart")
        .join(name)
}

impl Helm {
    /// `None`, with a message about the skipped test, where it is not installed.
    pub(super) fn find() -> Option<Self> {
        program("TARSY_TEST_CHART_PYTHON").map(Self)
    }

    /// The interpreter that has it.
    pub(super) fn python(&self) -> &Path {
        &self.0
    }

    fn ask(&self, key: &str, what: Value, versions: &[&str]) -> Vec<Value> {
        let mut request = json!({"chart": CHART, "versions": versions});
        request[key] = what;
        serde_json::from_str(&ask(&self.0, &request.to_string())).unwrap()
    }

    /// Renders each case.
    pub(super) fn render(&self, cases: &[Case]) -> Vec<Rendered> {
        let values = cases.iter().map(|case| case.values.clone()).collect();
        let rendered = self.ask("render", values, &[]).into_iter().map(|answer| {
            match answer["fault"].as_str() {
                Some(fault) => Err(fault.to_owned()),
                None => Ok(release(&answer)),
            }
        });
        rendered.collect()
    }

    /// Renders one case, which has to be accepted.
    pub(super) fn release(&self, case: Case) -> Release {
        self.render(&[case]).remove(0).unwrap()
    }

    /// Every case of `ci/` with its release. They are rendered once for all tests.
    pub(super) fn releases(&self) -> &'static [(String, Release)] {
        static RELEASES: OnceLock<Vec<(String, Release)>> = OnceLock::new();
        RELEASES.get_or_init(|| {
            let cases = Case::all();
            let rendered = self.render(&cases);
            let named = cases.into_iter().zip(rendered).map(|(case, rendered)| {
                let release = rendered.unwrap_or_else(|fault| panic!("{}: {fault}", case.name));
                (case.name, release)
            });
            named.collect()
        })
    }

    /// The messages of `helm lint --strict` for each case.
    pub(super) fn lint(&self, cases: &[Case]) -> Vec<Value> {
        self.ask(
            "lint",
            cases.iter().map(|case| case.values.clone()).collect(),
            &[],
        )
    }

    /// The content of YAML files below the chart.
    pub(super) fn read(&self, files: &[&str]) -> Vec<Value> {
        self.ask("read", json!(files), &[])
    }

    /// The first fault of each object by the strict schemas of these versions of Kubernetes.
    pub(super) fn validate(&self, objects: &[Value], versions: &[&str]) -> Vec<Option<String>> {
        let answer = self.ask("validate", objects.into(), versions);
        answer
            .into_iter()
            .map(|fault| fault.as_str().map(str::to_owned))
            .collect()
    }
}

fn release(answer: &Value) -> Release {
    let templates = answer["objects"].as_object().unwrap();
    let objects = templates.iter().flat_map(|(template, objects)| {
        objects
            .as_array()
            .unwrap()
            .iter()
            .map(|object| (template.clone(), object.clone()))
    });
    Release {
        objects: objects.collect(),
        notes: answer["notes"].as_str().unwrap().to_owned(),
    }
}

impl Release {
    /// The objects of this kind.
    pub(super) fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.objects
            .iter()
            .map(|(_, object)| object)
            .filter(|object| object["kind"] == kind)
            .collect()
    }

    /// The object of this kind whose name ends like this.
    pub(super) fn object(&self, kind: &str, name: &str) -> &Value {
        let found = self
            .of_kind(kind)
            .into_iter()
            .find(|object| text(&object["metadata"]["name"]).ends_with(name));
        found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// The name and the specification of every pod.
    pub(super) fn pods(&self) -> Vec<(String, &Value)> {
        let pods = self.objects.iter().filter_map(|(_, object)| {
            let spec = if object["kind"] == "Pod" {
                &object["spec"]
            } else {
                &object["spec"]["template"]["spec"]
            };
            let name = format!(
                "{} {}",
                text(&object["kind"]),
                text(&object["metadata"]["name"])
            );
            spec["containers"].is_array().then_some((name, spec))
        });
        pods.collect()
    }
}

/// The containers of a pod, those that start before the others included.
pub(super) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let groups = ["initContainers", "containers"].into_iter();
    groups.filter_map(|group| pod[group].as_array()).flatten()
}

/// The containers of all pods that run tarsy, with the name of the pod.
pub(super) fn own_containers(release: &Release) -> Vec<(String, &Value)> {
    let pods = release.pods().into_iter();
    let named = pods
        .flat_map(|(name, pod)| containers(pod).map(move |container| (name.clone(), container)));
    let is_own = |container: &Value| {
        let image = text(&container["image"]);
        image.starts_with(&format!("{IMAGE}:"))
            || image.starts_with(&format!("{IMAGE}@"))
            || image.contains("-with-tools:")
    };
    named.filter(|(_, container)| is_own(container)).collect()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The standard output of a program that reads `input`; its standard error is that of the test.
pub(super) fn run(command: &mut Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
