//! Tests of a first configuration for machines of every kind.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::findings::VertexAi;
use super::*;
use tarsy_config::{Backend, Config, example_of};
use tarsy_core::plan::Strategy;

/// A port that refuses connections.
const NO_OLLAMA: &str = "http://127.0.0.1:1";

/// A machine with these variables and a home folder with these files.
struct Machine {
    home: TempDir,
    variables: BTreeMap<String, String>,
    ollama: String,
}

impl Machine {
    fn new(variables: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut all: BTreeMap<String, String> = variables
            .iter()
            .map(|name| ((*name).to_owned(), "seeded-value".to_owned()))
            .collect();
        all.insert("HOME".to_owned(), home.path().display().to_string());
        all.insert(
            "PATH".to_owned(),
            home.path().join("bin").display().to_string(),
        );
        Self {
            home,
            variables: all,
            ollama: NO_OLLAMA.to_owned(),
        }
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn file(self, name: &str, mode: u32) -> Self {
        self.file_with(name, mode, "x")
    }

    fn file_with(self, name: &str, mode: u32, text: &str) -> Self {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn with_credentials(self, kind: &str) -> Self {
        let file = self.home.path().join("account.json").display().to_string();
        let text = format!("{{\"type\": \"{kind}\", \"private_key\": \"seeded-value\"}}");
        self.file_with("account.json", 0o600, &text)
            .variable("GOOGLE_APPLICATION_CREDENTIALS", &file)
    }

    async fn findings(&self) -> Findings {
        find(&|name| self.variables.get(name).cloned(), &self.ollama).await
    }

    /// The file as it is written, with the home folder replaced, and the configuration that it loads to.
    async fn configuration(&self) -> (String, Config) {
        let findings = self.findings().await;
        let text = configuration(&findings, Path::new("/etc/tarsy"));
        // The file is loaded where other variables are set, too.
        for env in [
            &(|name: &str| self.variables.get(name).cloned()) as tarsy_config::Env<'_>,
            &|_| None,
        ] {
            if let Err(faults) = Config::parse("tarsy.yaml", &text, env) {
                panic!("{faults}\n{text}");
            }
        }
        assert!(!text.contains("seeded-value"), "{text}");
        let config = Config::parse("tarsy.yaml", &text, &|_| None).unwrap();
        (
            text.replace(&self.home.path().display().to_string(), "~"),
            config,
        )
    }
}

/// A server that answers as Ollama with these models and capabilities.
async fn ollama(models: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4_096];
            let read = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let body = if request.starts_with("GET /api/tags ") {
                let names: Vec<_> = models
                    .iter()
                    .map(|(name, _)| format!("{{\"name\":\"{name}\"}}"))
                    .collect();
                format!("{{\"models\":[{}]}}", names.join(","))
            } else {
                let (_, capabilities) = models
                    .iter()
                    .find(|(name, _)| request.contains(name))
                    .unwrap();
                format!("{{\"capabilities\":[{capabilities}]}}")
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .await
                .unwrap();
        }
    });
    address
}

fn snapshot(findings: &Findings, text: &str) -> String {
    let lines = |pairs: Vec<(String, String)>| {
        pairs
            .into_iter()
            .map(|(left, right)| format!("{left:<32}{right}\n"))
    };
    let found: String = lines(found(findings)).collect();
    let next: String = lines(next_commands(findings, "")).collect();

    format!("{found}---\n{text}---\n{next}")
}

#[tokio::test]
async fn an_empty_machine_gets_a_recording_that_says_so() {
    let machine = Machine::new(&[]);
    let (text, config) = machine.configuration().await;
    assert_eq!(
        config.llm_providers["recording"].backend(),
        Backend::Scripted
    );
    assert_eq!(config.mcp_servers.len(), 0);
    insta::assert_snapshot!("init_empty", snapshot(&machine.findings().await, &text));
}

#[tokio::test]
async fn one_key_gives_one_provider_and_names_the_variable_that_is_set() {
    for (variable, name, provider) in [
        ("GEMINI_API_KEY", "gemini", "google"),
        ("GOOGLE_API_KEY", "gemini", "google"),
        ("ANTHROPIC_API_KEY", "claude", "anthropic"),
        ("OPENAI_API_KEY_FILE", "openai", "openai"),
        ("XAI_API_KEY", "grok", "xai"),
    ] {
        let (_, config) = Machine::new(&[variable]).configuration().await;
        let found = &config.llm_providers[name];
        let key = variable.trim_end_matches("_FILE");
        assert_eq!(
            (found.provider.as_str(), found.api_key_env.as_str()),
            (provider, key)
        );
        assert!(
            config.llm_providers.len() == 1 && found.context_window > 100_000,
            "{variable}"
        );
        assert_eq!(config.defaults.settings.llm_provider.as_deref(), Some(name));
    }
}

#[tokio::test]
async fn of_several_keys_the_first_is_the_default_and_the_others_follow() {
    let machine = Machine::new(&[
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GROQ_API_KEY",
    ])
    .file(".kube/config", 0o600)
    .file("bin/kubernetes-mcp-server", 0o755);
    let (text, config) = machine.configuration().await;
    assert_eq!(
        config.defaults.settings.llm_provider.as_deref(),
        Some("gemini")
    );
    let others = ["claude", "openai"].map(str::to_owned).to_vec();
    assert_eq!(config.defaults.settings.fallback_providers, Some(others));
    let server = &config.mcp_servers["kubernetes"];
    let example =
        Config::parse("example", example_of("kubernetes").unwrap().text, &|_| None).unwrap();
    let of_example = &example.mcp_servers["kubernetes"];
    assert_eq!(
        (&server.tools, &server.deny),
        (&of_example.tools, &of_example.deny)
    );
    let findings = machine.findings().await;
    let shown = snapshot(&findings, &text).replace(&machine.home.path().display().to_string(), "~");
    insta::assert_snapshot!("init_keys_and_cluster", shown);
}

#[tokio::test]
async fn vertex_ai_needs_a_project_and_credentials() {
    let project = |machine: Machine| machine.variable("GOOGLE_CLOUD_PROJECT", "team-1");
    let (_, config) = project(Machine::new(&[]))
        .with_credentials("service_account")
        .configuration()
        .await;
    let gemini = &config.llm_providers["gemini"];
    assert_eq!(
        (
            gemini.vertex_ai.project.as_str(),
            gemini.api_key_env.as_str()
        ),
        ("team-1", "")
    );
    let machine = project(Machine::new(&[]));
    assert_eq!(
        machine.findings().await.vertex_ai,
        VertexAi::WithoutCredentials
    );
    let of_a_person = project(Machine::new(&[])).with_credentials("authorized_user");
    assert_eq!(
        of_a_person.findings().await.vertex_ai,
        VertexAi::WithoutCredentials
    );
    assert_eq!(
        machine.configuration().await.1.llm_providers["recording"].backend(),
        Backend::Scripted
    );
    let (_, config) = project(Machine::new(&["GEMINI_API_KEY"]))
        .with_credentials("service_account")
        .configuration()
        .await;
    assert_eq!(config.llm_providers["gemini"].vertex_ai.project, "");
    let odd = Machine::new(&[])
        .variable("GOOGLE_CLOUD_PROJECT", "a: b")
        .with_credentials("service_account");
    assert_eq!(odd.findings().await.vertex_ai, VertexAi::Absent);
}

#[tokio::test]
async fn a_local_model_is_used_without_keys_and_with_the_strategy_that_it_can() {
    let mut machine = Machine::new(&[]);
    machine.ollama = ollama(&[
        ("nomic", "\"embedding\""),
        ("qwen3:14b", "\"completion\",\"tools\""),
    ])
    .await;
    let (text, config) = machine.configuration().await;
    let local = &config.llm_providers["local"];
    assert_eq!(
        (local.provider.as_str(), local.model.as_str()),
        ("ollama", "qwen3:14b")
    );
    assert_eq!(
        config.defaults.settings.iteration_strategy,
        Some(Strategy::NativeThinking)
    );
    insta::assert_snapshot!("init_ollama", snapshot(&machine.findings().await, &text));
    machine.ollama = ollama(&[("hf.co/a/b${X}:Q4", "\"completion\"")]).await;
    let (_, config) = machine.configuration().await;
    assert_eq!(config.llm_providers["local"].model, "hf.co/a/b${X}:Q4");
    assert_eq!(
        config.defaults.settings.iteration_strategy,
        Some(Strategy::React)
    );
    machine.ollama = ollama(&[]).await;
    assert!(
        machine
            .configuration()
            .await
            .1
            .llm_providers
            .contains_key("recording")
    );
    let mut machine = Machine::new(&["GEMINI_API_KEY"]);
    machine.ollama = ollama(&[("qwen3:14b", "\"tools\"")]).await;
    assert!(
        !machine
            .configuration()
            .await
            .1
            .llm_providers
            .contains_key("local")
    );
}

#[tokio::test]
async fn an_ollama_elsewhere_is_found_by_its_variable_and_stays_there() {
    let usual = ollama(&[("usual", "\"tools\"")]).await;
    let elsewhere = ollama(&[("elsewhere:8b", "\"tools\"")]).await;
    let host = elsewhere.strip_prefix("http://").unwrap();
    for value in [host, &elsewhere, &format!("{elsewhere}/")] {
        let mut machine = Machine::new(&[]).variable("OLLAMA_HOST", value);
        machine.ollama.clone_from(&usual);
        let (text, config) = machine.configuration().await;
        let local = &config.llm_providers["local"];
        assert_eq!(
            (local.model.as_str(), local.base_url.as_str()),
            ("elsewhere:8b", ""),
            "{value}"
        );
        assert!(
            text.contains("# Its address is OLLAMA_HOST of the LLM service.")
                && !text.contains(host),
            "{text}"
        );
        let shown = snapshot(&machine.findings().await, "");
        assert!(
            shown.contains("OLLAMA_HOST                     provider local, model elsewhere:8b"),
            "{shown}"
        );
        assert!(
            shown.contains("calls the models; needs OLLAMA_HOST\n"),
            "{shown}"
        );
    }
    let mut silent = Machine::new(&[]).variable("OLLAMA_HOST", "127.0.0.1:1");
    silent.ollama = usual;
    assert!(
        silent
            .configuration()
            .await
            .1
            .llm_providers
            .contains_key("recording")
    );
    let shown = snapshot(&silent.findings().await, "");
    assert!(
        shown.contains(
            "OLLAMA_HOST                     not used: no Ollama answers at this address"
        ),
        "{shown}"
    );
}

#[tokio::test]
async fn a_cluster_without_the_server_gives_a_comment_that_becomes_a_section() {
    for machine in [
        Machine::new(&[]).file(".kube/config", 0o600),
        Machine::new(&[])
            .file(".kube/config", 0o600)
            .file("bin/kubernetes-mcp-server", 0o644),
        Machine::new(&["KUBERNETES_SERVICE_HOST"]),
    ] {
        let (text, config) = machine.configuration().await;
        assert!(
            config.mcp_servers.is_empty() && text.contains("npm install -g kubernetes-mcp-server"),
            "{text}"
        );
        let (before, section) = text.split_once("# mcp_servers:").unwrap();
        let section = section.replace("\n#   ", "\n  ").replace("\n# ", "\n");
        let section = section.replace("\nWho investigates", "\n# Who investigates");
        let section = section.replace("\nNotes of your own", "\n# Notes of your own");
        let config =
            Config::parse("f", &format!("{before}mcp_servers:{section}"), &|_| None).unwrap();
        assert_eq!(
            config.mcp_servers["kubernetes"]
                .transport
                .program()
                .unwrap()
                .command
                .as_str(),
            "kubernetes-mcp-server"
        );
    }
}

#[tokio::test]
async fn a_listed_kubeconfig_is_found_before_the_usual_one_and_an_odd_path_is_left_out() {
    let machine = Machine::new(&[])
        .file(".kube/config", 0o600)
        .file("bin/kubernetes-mcp-server", 0o755);
    let home = machine.home.path().display().to_string();
    let machine = machine
        .file("odd } path", 0o600)
        .variable("KUBECONFIG", &format!("{home}/none:{home}/odd }} path"));
    let (text, config) = machine.configuration().await;
    assert_eq!(
        config.mcp_servers["kubernetes"]
            .transport
            .program()
            .unwrap()
            .env["KUBECONFIG"]
            .as_str(),
        "${KUBECONFIG:-}",
        "{text}"
    );
    let machine = machine.variable("KUBECONFIG", "/no/such/file");
    assert_eq!(machine.findings().await.cluster, None);
}

#[test]
fn a_file_is_replaced_only_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tarsy.yaml");
    write(&path, "first", Existing::Keep).unwrap();
    assert_eq!(
        write(&path, "second", Existing::Keep).unwrap_err().kind(),
        io::ErrorKind::AlreadyExists
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "first");
    write(&path, "second", Existing::Replace).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "second");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_replaced_file_keeps_its_permissions_and_the_links_to_it() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("real.yaml");
    let link = folder.path().join("tarsy.yaml");

    fs::write(&file, "first").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&file, &link).unwrap();
    write(&link, "second", Existing::Replace).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "second");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}
