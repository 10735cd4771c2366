//! `tarsy config`: faults of configuration files, as the program prints them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs `tarsy config …` in a temporary directory, without variables of this process.
struct ConfigDirectory(TempDir);

impl ConfigDirectory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.0.path().join("tarsy.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn config(&self, command: &str, file: Option<&Path>) -> Output {
        self.run(&["config", command], file)
    }

    fn run(&self, arguments: &[&str], file: Option<&Path>) -> Output {
        let mut tarsy = Command::new(env!("CARGO_BIN_EXE_tarsy"));
        tarsy
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear()
            .env("K8S_TOKEN", "s3cret");
        if let Some(file) = file {
            tarsy.arg("--config").arg(file);
        }
        tarsy.output().unwrap()
    }
}

/// Standard output, then standard error.
fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

const FIVE_FAULTS: &str = "\
llm_providers:
  gemini: {provider: google, model: gemini-2.5-flash}
agents:
  sre:
    iteration_strategy: native-thinkin
    max_iteration: 3
agent_chains:
  k8s:
    stages:
    - agents:
      - name: sre
        llm_provider: gemnii
mcp_servers:
  k8s:
    command: kubectl-mcp
    env: {TOKEN: \"${PROM_TOKEN}\"}
worker:
  lease: soon
";

#[test]
fn five_faults_of_a_file_are_printed_together_with_exit_code_78() {
    let directory = ConfigDirectory::new();
    let output = directory.config("check", Some(&directory.file(FIVE_FAULTS)));
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(78), "{printed}");
    let faults = [
        (
            "agents.sre.iteration_strategy",
            "line 5",
            "(did you mean native-thinking?)",
        ),
        (
            "agents.sre.max_iteration",
            "line 6",
            "(did you mean max_iterations?)",
        ),
        (
            "agent_chains.k8s.stages[0].agents[0].llm_provider",
            "line 12",
            "(did you mean gemini?)",
        ),
        (
            "mcp_servers.k8s.env.TOKEN",
            "line 16",
            "variable PROM_TOKEN is not set",
        ),
        ("worker.lease", "line 18", "\"soon\"; accepted: a duration"),
    ];
    let mut lines = printed.lines();
    assert!(
        lines
            .next()
            .is_some_and(|line| line.ends_with("tarsy.yaml: 5 faults")),
        "{printed}"
    );
    for (key, line, problem) in faults {
        let fault = lines.next().unwrap_or_default();
        let whole =
            fault.trim_start().starts_with(key) && fault.contains(line) && fault.contains(problem);
        assert!(whole, "{key}: {fault}");
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn the_example_is_free_of_faults_and_shows_no_secret() {
    let directory = ConfigDirectory::new();
    let example = directory.config("example", None);
    assert!(example.status.success());
    let file = directory.file(&String::from_utf8(example.stdout).unwrap());
    let checked = directory.config("check", Some(&file));
    assert_eq!(checked.status.code(), Some(0), "{}", printed(&checked));
    let shown = directory.config("show", Some(&file));
    assert_eq!(shown.status.code(), Some(0), "{}", printed(&shown));
    assert!(printed(&shown).contains("${K8S_TOKEN:-}"));
    assert!(!printed(&shown).contains("s3cret"));
}

#[test]
fn the_value_of_a_secret_variable_is_in_no_output() {
    let directory = ConfigDirectory::new();
    let valid = "mcp_servers: {a: {url: 'https://mcp.example/${K8S_TOKEN}/mcp'}}\n\
                 streams: {placement: {cluster: 'c-${K8S_TOKEN}'}}\n";
    for arguments in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "check"],
    ] {
        let printed = printed(&directory.run(arguments, Some(&directory.file(valid))));
        assert!(!printed.contains("s3cret"), "{arguments:?}: {printed}");
        assert_eq!(
            printed.contains("/${K8S_TOKEN}/mcp"),
            arguments.contains(&"show"),
            "{arguments:?}: {printed}"
        );
    }
    for faulty in [
        "mcp_servers: {a: {url: 'ftp://${K8S_TOKEN}'}}",
        "sources: {a: {type: '${K8S_TOKEN}', title: '{/x', key: [a]}}",
        "streams: {placement: {cluster: 'a b ${K8S_TOKEN}'}, storage: '${K8S_TOKEN}'}",
        "agents: {a: {iteration_strategy: '${K8S_TOKEN}'}}",
    ] {
        for arguments in [
            &["config", "show"][..],
            &["config", "check"],
            &["config", "check", "--json"],
            &["worker"],
        ] {
            let output = directory.run(arguments, Some(&directory.file(faulty)));
            let printed = printed(&output);
            assert_eq!(output.status.code(), Some(78), "{faulty}: {printed}");
            assert!(!printed.contains("s3cret"), "{faulty}: {printed}");
        }
    }
}

#[test]
fn the_settings_in_force_are_printed_for_programs() {
    let directory = ConfigDirectory::new();
    let shown = directory.run(&["config", "show", "--json"], None);
    assert_eq!(shown.status.code(), Some(0), "{}", printed(&shown));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(text.lines().count(), 1);
    let settings: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        settings["llm_providers"]["scripted"]["provider"],
        "scripted"
    );
    // JSON is YAML.
    assert_eq!(
        directory
            .config("check", Some(&directory.file(&text)))
            .status
            .code(),
        Some(0)
    );
}

#[test]
fn without_a_file_the_built_in_configuration_is_shown() {
    let directory = ConfigDirectory::new();
    let shown = directory.config("show", None);
    assert_eq!(shown.status.code(), Some(0), "{}", printed(&shown));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("provider: scripted"));
    let file = directory.file(&String::from_utf8(shown.stdout).unwrap());
    assert_eq!(
        directory.config("check", Some(&file)).status.code(),
        Some(0)
    );
}

#[test]
fn a_missing_file_is_a_fault() {
    let directory = ConfigDirectory::new();
    let output = directory.config("check", Some(Path::new("none.yaml")));
    assert_eq!(output.status.code(), Some(78));
    assert!(
        printed(&output).starts_with("none.yaml: 1 fault\n  cannot be read: "),
        "{}",
        printed(&output)
    );
}
