//! A worker whose configuration uses a provider that cannot work claims nothing, and says why.

use tempfile::TempDir;

use crate::interfaces::commands::models::{PROVIDERS, System};
use crate::lifecycle::start::is_ready;
use crate::support::process::Tarsy;
use crate::support::system::TestSystem;

const NO_KEY: &str = "\
llm_providers:
  mine: {provider: openai, model: m, api_key_env: OPENAI_API_KEY}
  spare: {provider: scripted}
";
const WHY: &str = "provider mine (default) cannot be used: Environment variable 'OPENAI_API_KEY' is not set. Fix: set \
                   OPENAI_API_KEY (or OPENAI_API_KEY_FILE) where the LLM service runs, and start it again";

const ASKS: &str = "worker: {probe_models: true}\n";

/// A worker with this configuration and LLM service, and the address of its probes.
struct Worker {
    process: Tarsy,
    probes: String,
    _folder: TempDir,
}

impl Worker {
    async fn start(system: &TestSystem, llm: &str, config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tarsy.yaml");
        // The lease of the system's streams.
        std::fs::write(&file, config.replace("worker: {", "worker: {lease: 2s, ")).unwrap();
        let nats = system.nats.url();
        let env = [
            ("NATS_URL", nats.as_str()),
            ("DATABASE_URL", system.database.url()),
            ("TARSY_LLM_ADDR", llm),
            ("TARSY_CONFIG", file.to_str().unwrap()),
        ];
        let mut process = Tarsy::spawn("w1", &["worker", "--listen", "127.0.0.1:0"], &env);
        let probes = process.ready().await;
        Self {
            process,
            probes,
            _folder: folder,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_claims_nothing_while_a_provider_without_a_fallback_has_no_key() {
    let system = TestSystem::start(&[]).await;
    let without = format!("{NO_KEY}defaults: {{llm_provider: mine}}\nworker: {{attempts: 5}}\n");
    let worker = Worker::start(&system, system.llm_addr(), &without).await;
    worker
        .process
        .logged(&format!("no alert is claimed: {WHY}"))
        .await;
    is_ready(&worker.probes, (503, WHY)).await;
    system.publish().await;
    let waiting = Worker::start(&system, "127.0.0.1:1", &without).await;
    is_ready(&waiting.probes, (503, "llm-service unavailable")).await;
    assert_eq!(system.database.number("SELECT count(*) FROM alerts"), 0);
    let with = format!(
        "{NO_KEY}defaults: {{llm_provider: mine, fallback_providers: [spare]}}\nworker: {{attempts: 5}}\n"
    );
    let other = Worker::start(&system, system.llm_addr(), &with).await;
    is_ready(&other.probes, (200, "ok")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_asks_its_models_once_and_claims_nothing_while_a_key_is_refused() {
    let (system, models) = (TestSystem::start(&[]).await, System::start().await);
    let with = |provider: &str, more: &str| {
        let defaults = format!("defaults: {{llm_provider: {provider}}}\n{more}");
        PROVIDERS.replace("defaults: {llm_provider: a-good}\n", &defaults)
    };
    let refused = Worker::start(&system, &models.address, &with("b-wrong-key", ASKS)).await;
    let line = refused
        .process
        .logged("no alert is claimed: provider b-wrong-key (default) cannot be used: ")
        .await;
    assert!(
        line.contains("API key not valid")
            && line.contains("Fix: put a key that the provider accepts"),
        "{line}"
    );
    for (provider, more) in [
        ("a-good", ASKS),
        ("c-busy", ASKS),
        ("b-wrong-key", "worker: {probe_models: false}\n"),
    ] {
        let worker = Worker::start(&system, &models.address, &with(provider, more)).await;
        is_ready(&worker.probes, (200, "ok")).await;
    }
}
