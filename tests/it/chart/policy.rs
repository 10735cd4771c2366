//! kube-score, a policy checker that others wrote, has no finding but the ones that are justified here.

use std::process::Command;

use serde_json::{Value, json};

use super::helm::{Case, Helm, Release, run, text};
use crate::support::monitoring::program;

/// Findings that stay, and why.
const JUSTIFIED: [(&str, &str); 3] = [
    // Tags and digests are immutable here. `Always` would keep pods from starting while the registry is unavailable.
    ("container-image-pull-policy", ""),
    // Topology spread constraints do the same for nodes and zones.
    ("deployment-has-host-podantiaffinity", ""),
    // A first try: one pod, the user of Postgres's own image, and no policies for its servers.
    ("", "trial"),
];

fn findings(checker: &std::path::Path, release: &Release) -> Vec<(String, String)> {
    let objects: Vec<String> = release
        .objects
        .iter()
        .map(|(_, object)| object.to_string())
        .collect();
    let mut command = Command::new(checker);
    command.args([
        "score",
        "--output-format",
        "json",
        "--exit-one-on-warning=false",
        "--ignore-container-cpu-limit",
        "-",
    ]);
    let reports: Vec<Value> =
        serde_json::from_str(&run_anyway(&mut command, &objects.join("\n---\n"))).unwrap();
    let found = reports.iter().flat_map(|report| {
        let name = text(&report["object_name"]).to_owned();
        // 10 is the grade of a check that has passed.
        let failed = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|check| check["skipped"] != true);
        failed
            .filter(|check| check["grade"].as_u64() < Some(10))
            .map(move |check| (text(&check["check"]["id"]).to_owned(), name.clone()))
    });
    found.collect()
}

/// The output of a program whose exit code says how many findings there are.
fn run_anyway(command: &mut Command, input: &str) -> String {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "\"$@\" || [ $? = 1 ]", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    run(&mut shell, input)
}

#[test]
fn a_policy_checker_has_only_findings_that_are_justified() {
    let Some(helm) = Helm::find() else { return };
    let Some(checker) = program("TARSY_TEST_KUBE_SCORE") else {
        return;
    };
    let is_justified = |case: &str, check: &str| {
        JUSTIFIED
            .iter()
            .any(|(id, of)| (*id == check) || *of == case)
    };
    let mut used: Vec<String> = Vec::new();
    let mut cases = Case::all();
    for case in &mut cases {
        // The policies are off by default, because each cluster has other ports.
        case.values["set"] =
            json!({"networkPolicy": {"enabled": true, "apiServer": {"cidrs": ["10.0.0.1/32"]}}});
    }
    for (case, rendered) in cases.iter().zip(helm.render(&cases)) {
        let (name, found) = (case.name.clone(), findings(&checker, &rendered.unwrap()));
        let left: Vec<_> = found
            .iter()
            .filter(|(check, _)| !is_justified(&name, check))
            .collect();
        assert_eq!(left, Vec::<&(String, String)>::new(), "{name}");
        used.extend(
            found
                .into_iter()
                .map(|(check, _)| if name == "trial" { name.clone() } else { check }),
        );
    }
    for (check, case) in JUSTIFIED {
        assert!(
            used.iter().any(|used| used == check || used == case),
            "{check}{case} has no finding any more"
        );
    }
    let bad = json!({"securityContext": {"readOnlyRootFilesystem": false}});
    let found = findings(&checker, &helm.release(Case::with("default", &bad)));
    assert!(
        found
            .iter()
            .any(|(check, _)| check == "container-security-context-readonlyrootfilesystem"),
        "{found:?}"
    );
}
