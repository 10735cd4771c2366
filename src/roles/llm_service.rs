//! `tarsy llm-service`: serves the LLM protocol with its backends on one port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::shutdown::print_ready_and_metrics;
use crate::drill::gate::Gates;
use crate::drill::transcript::Transcript;
use crate::llm::service::backend::{Backend, Backends};
use crate::llm::service::genai::Genai;
use crate::llm::service::google::Google;
use crate::llm::service::provider::Access;
use crate::llm::service::provider::key::Environment;
use crate::llm::service::provider::timeouts::Timeouts;
use crate::llm::service::provider::url_pattern::UrlPattern;
use crate::llm::service::scripted::{self, Scripted};
use crate::llm::service::{self, Service};
use crate::telemetry::http::Readiness;
use crate::telemetry::names::Role;
use crate::telemetry::serving::Serving;

/// The arguments of the role.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address for model calls; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address for metrics and probes; port 0 takes a free one.
    pub metrics_listen: SocketAddr,
    /// Patterns of variables that requests may use as keys, beside those of known providers.
    pub allow_key_env: Vec<String>,
    /// Patterns of addresses that requests may name, beside those of known providers.
    pub allow_base_url: Vec<UrlPattern>,
    /// A directory of transcripts in addition to the built-in ones.
    pub transcripts: Option<PathBuf>,
    /// A file that counts the calls of each execution.
    pub calls_file: Option<PathBuf>,
    /// The socket of a drill's gates.
    pub gates: Option<PathBuf>,
    /// The pause between two pieces of scripted text; `None` takes the pace of the transcript.
    pub pace: Option<Duration>,
}

/// Serves until `shutdown` is cancelled.
///
/// # Errors
/// When a transcript cannot be parsed, an address is taken, or the server fails.
pub async fn run(options: Options, shutdown: CancellationToken) -> anyhow::Result<()> {
    let transcripts = options.transcripts.as_deref().map(transcripts).transpose()?.unwrap_or_default();
    let scripted = Scripted::new(scripted::Options {
        transcripts,
        gate_every_answer: options.gates.is_some(),
        gates: Gates::new(options.gates),
        calls_file: options.calls_file,
        pace: options.pace,
    })?;
    let access = Access::new(options.allow_key_env, options.allow_base_url, Environment::of_process());
    let listener = TcpListener::bind(options.listen).await.with_context(|| format!("listen on {}", options.listen))?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "llm-service has no authentication and can be reached from other machines: allow only workers to connect to its port"
        );
    }
    let (telemetry, ready) = Serving::start(options.metrics_listen, Role::LlmService, &[]).await?;
    tracing::info!(%address, metrics = %telemetry.address, "llm-service started");
    print_ready_and_metrics(address, telemetry.address)?;
    ready.send_replace(Readiness::Ready);
    let draining = async {
        shutdown.cancelled().await;
        ready.send_replace(Readiness::NotReady("draining".to_owned()));
        std::future::pending().await
    };
    let service = Service::new(
        Backends::new([
            Backend::Google(Google::new(access.clone(), Timeouts::default())),
            Backend::Genai(Genai::new(access, Timeouts::default())),
            Backend::Scripted(scripted),
        ]),
        service::Options::default(),
    );
    let served = tokio::select! {
        served = service.serve(listener, shutdown.clone()) => served,
        never = draining => never,
    };
    telemetry.end().await;
    Ok(served?)
}

/// The `.yaml` files of a directory, sorted by name.
fn transcripts(directory: &Path) -> anyhow::Result<Vec<Transcript>> {
    let list = std::fs::read_dir(directory).with_context(|| format!("transcripts in {}", directory.display()))?;
    let mut files = list.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file)?;
        Transcript::parse(&text).with_context(|| format!("transcript {}", file.display()))
    };
    files.into_iter().map(read).collect()
}
