//! `tarsy init` and the examples of `tarsy config example`, as the program prints and writes them.

use std::process::{Command, Output};

use tempfile::TempDir;

/// A directory in which tarsy runs with these variables only.
struct Directory {
    folder: TempDir,
    env: Vec<(&'static str, &'static str)>,
}

impl Directory {
    fn new(env: &[(&'static str, &'static str)]) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            env: env.to_vec(),
        }
    }

    fn tarsy(&self, args: &[&str]) -> Output {
        let mut tarsy = Command::new(env!("CARGO_BIN_EXE_tarsy"));
        tarsy
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .envs(self.env.iter().copied());
        tarsy.output().unwrap()
    }

    /// Standard output of a command that succeeds.
    fn prints(&self, args: &[&str]) -> String {
        let output = self.tarsy(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn file(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("tarsy.yaml")).unwrap()
    }
}

#[test]
fn a_first_file_is_written_once_and_passes_the_check() {
    let directory = Directory::new(&[("OPENAI_API_KEY", "seeded-key-1234")]);
    let printed = directory.prints(&["init"]);
    assert!(printed.starts_with("Found:\n  OPENAI_API_KEY"), "{printed}");
    assert!(
        printed.contains("\nWrote tarsy.yaml\n") && printed.contains("needs OPENAI_API_KEY"),
        "{printed}"
    );
    let file = directory.file();
    assert!(
        !printed.contains("seeded-key") && !file.contains("seeded-key"),
        "{printed}{file}"
    );
    assert!(
        directory
            .prints(&["config", "check"])
            .contains("no faults; 1 chain, 1 agent, 1 provider")
    );

    std::fs::write(directory.folder.path().join("tarsy.yaml"), "# mine\n").unwrap();
    let refused = directory.tarsy(&["init"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        message.contains("tarsy.yaml exists and is kept: --force replaces it"),
        "{message}"
    );
    assert_eq!(directory.file(), "# mine\n");
    assert_eq!(directory.prints(&["init", "--stdout"]), file);
    assert_eq!(directory.file(), "# mine\n");
    directory.prints(&["init", "--force"]);
    assert_eq!(directory.file(), file);

    let elsewhere = directory.prints(&["init", "--path", "other.yaml"]);
    assert!(
        elsewhere.contains("tarsy --config other.yaml config check"),
        "{elsewhere}"
    );
    assert!(
        directory
            .prints(&["--config", "other.yaml", "config", "check"])
            .contains("no faults")
    );
}

#[test]
fn with_a_cluster_the_file_that_denies_secrets_is_written_beside_and_kept() {
    let directory = Directory::new(&[("KUBERNETES_SERVICE_HOST", "10.0.0.1")]);
    let settings = directory.folder.path().join("kubernetes-mcp-server.toml");
    let stdout = directory.tarsy(&["init", "--stdout"]);
    let note = String::from_utf8(stdout.stderr).unwrap();
    assert!(
        note.contains("kubernetes-mcp-server.toml:\n") && note.contains("kind = \"Secret\""),
        "{note}"
    );
    assert!(!settings.exists(), "--stdout writes no file");

    let printed = directory.prints(&["init"]);
    assert!(
        printed.contains("Wrote tarsy.yaml\nWrote /")
            && printed.contains("kubernetes-mcp-server.toml\n"),
        "{printed}"
    );
    let denied = "denied_resources = [{ group = \"\", version = \"v1\", kind = \"Secret\" }]";
    assert!(std::fs::read_to_string(&settings).unwrap().contains(denied));
    let folder = std::fs::canonicalize(directory.folder.path()).unwrap();
    let option = format!(
        "--config=${{KUBERNETES_MCP_CONFIG:-{}/kubernetes-mcp-server.toml}}",
        folder.display()
    );
    assert!(directory.file().contains(&option), "{}", directory.file());

    std::fs::write(&settings, "# mine\n").unwrap();
    let printed = directory.prints(&["init", "--force"]);
    assert!(printed.contains("Wrote tarsy.yaml\nKept /"), "{printed}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), "# mine\n");
}

#[test]
fn every_example_is_listed_and_passes_the_check() {
    let directory = Directory::new(&[]);
    let list = directory.prints(&["config", "example", "--list"]);
    let cases: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(cases.len() >= 8 && cases.contains(&"gemini"), "{list}");
    for case in cases {
        let text = directory.prints(&["config", "example", case]);
        std::fs::write(directory.folder.path().join("tarsy.yaml"), &text).unwrap();
        assert!(
            directory.prints(&["config", "check"]).contains("no faults"),
            "{case}"
        );
    }
    let unknown = directory.tarsy(&["config", "example", "gpt"]);
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        message.contains("there is no example \"gpt\"; there are: first-try, gemini"),
        "{message}"
    );
}

#[test]
fn examples_are_added_to_a_first_file_which_stays_valid() {
    let directory = Directory::new(&[]);
    directory.prints(&["init"]);
    let first = directory.file();
    assert!(
        directory
            .prints(&["config", "check"])
            .contains("no model is called")
    );
    let added = directory.prints(&["config", "example", "prometheus", "--into", "tarsy.yaml"]);
    assert_eq!(
        added,
        "tarsy.yaml: added mcp_servers.prometheus\n  kept agents.sre, which the file has\n"
    );
    let added = directory.prints(&["config", "example", "openai", "--into", "tarsy.yaml"]);
    assert!(
        added.starts_with("tarsy.yaml: added llm_providers.openai, defaults.llm_provider\n"),
        "{added}"
    );
    let checked = directory.prints(&["config", "check"]);
    assert!(
        checked.contains("no faults") && !checked.contains("no model is called"),
        "{checked}"
    );
    let (file, again) = (
        directory.file(),
        directory.prints(&["config", "example", "openai", "--into", "tarsy.yaml"]),
    );
    assert!(
        again.contains("has everything of the example openai already") && directory.file() == file,
        "{again}"
    );
    let mut rest = file.lines();
    assert!(
        first.lines().all(|line| rest.any(|new| new == line)),
        "{file}"
    );

    directory.prints(&["config", "example", "gemini", "--into", "new.yaml"]);
    assert!(
        directory
            .prints(&["--config", "new.yaml", "config", "check"])
            .contains("no faults")
    );
}

#[test]
fn an_example_that_would_give_a_file_a_fault_is_not_added() {
    let directory = Directory::new(&[]);
    let path = directory.folder.path().join("tarsy.yaml");
    for (file, code, words) in [
        (
            "mcp_servers: {own: {url: 'http://127.0.0.1:1/'}}\n",
            1,
            "line 1: the entries of mcp_servers are not below it",
        ),
        (
            "agents:\n  sre: {}\nagents:\n  b: {}\n",
            1,
            "line 3: the key agents occurs twice",
        ),
        ("agents:\n  sre: {max_iteration: 3}\n", 78, "max_iterations"),
    ] {
        std::fs::write(&path, file).unwrap();
        let refused = directory.tarsy(&["config", "example", "prometheus", "--into", "tarsy.yaml"]);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(code), "{message}");
        assert!(message.contains(words), "{message}");
        assert_eq!(directory.file(), file);
    }
}
