//! `tarsy llm-service`: serves the LLM protocol with its backends on one port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;

use crate::process::connect::{LLM_TOKEN, LLM_TOKEN_FILE};
use crate::process::shutdown::{Signals, print_ready_and_metrics};
use tarsy_config::{LlmService, environment_fault};
use tarsy_drill::gate::Gates;
use tarsy_drill::transcript::Transcript;
use tarsy_drill::transcript_files;
use tarsy_http::outgoing::token::TokenSource;
use tarsy_llm::service::backend::{Backend, Backends};
use tarsy_llm::service::genai::Genai;
use tarsy_llm::service::google::Google;
use tarsy_llm::service::provider::Access;
use tarsy_llm::service::provider::key::Environment;
use tarsy_llm::service::provider::timeouts::Timeouts;
use tarsy_llm::service::scripted::{self, Scripted};
use tarsy_llm::service::security::{Security, TlsFiles};
use tarsy_llm::service::{self, Service};
use tarsy_mask::Mask;
use tarsy_telemetry::http::Readiness;
use tarsy_telemetry::metrics::Configured;
use tarsy_telemetry::names::Role;
use tarsy_telemetry::serving::Serving;

/// The arguments of the role.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address for model calls; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address for metrics and probes; port 0 takes a free one.
    pub metrics_listen: SocketAddr,
    /// The section of the configuration, with the permissions of the command line.
    pub settings: LlmService,
    /// The token of the environment that clients have to send.
    pub token: Option<TokenSource>,
    pub unauthenticated: Unauthenticated,
    /// The mask of this process: it learns each token and key that is read.
    pub mask: Mask,
    /// A directory of transcripts in addition to the built-in ones.
    pub transcripts: Option<PathBuf>,
    /// A file that counts the calls of each execution.
    pub calls_file: Option<PathBuf>,
    /// The socket of a drill's gates.
    pub gates: Option<PathBuf>,
    /// The pause between two pieces of scripted text; `None` takes the pace of the transcript.
    pub pace: Option<Duration>,
    /// The answer to an alert or a question without a transcript.
    pub unknown: scripted::Unknown,
}

/// The addresses at which clients are served without a token and a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unauthenticated {
    /// Only clients of this machine.
    Loopback,
    /// The operator permits every client.
    Everywhere,
}

/// Serves until `signals.end` is cancelled, then finishes the running answers until `signals.now` is.
///
/// # Errors
/// When a transcript cannot be parsed, an address is taken, a file of the configuration cannot be used, other machines
/// could call without authentication, or the server fails.
pub async fn run(options: Options, signals: Signals) -> anyhow::Result<()> {
    let security = security(&options)?;
    let transcripts = match &options.transcripts {
        Some(directory) => transcripts(directory)?,
        None => Vec::new(),
    };
    let scripted = Scripted::new(scripted::Options {
        transcripts,
        gate_every_answer: options.gates.is_some(),
        gates: Gates::new(options.gates),
        calls_file: options.calls_file,
        pace: options.pace,
        unknown: options.unknown,
    })?;
    let settings = options.settings;
    let environment = Environment::of_process().masking(options.mask);
    let access = Access::new(
        settings.allow_key_env.clone(),
        settings.allow_base_url.clone(),
        environment,
    );
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("listen on {}", options.listen))?;
    let address = listener.local_addr()?;
    warn_if_exposed(address, &security);
    let (telemetry, ready) = Serving::start(
        options.metrics_listen,
        Role::LlmService,
        &Configured::default(),
    )
    .await?;
    tracing::info!(
        %address, metrics = %telemetry.address, tls = security.has_tls(), authentication = security.authenticates(),
        "llm-service started"
    );
    print_ready_and_metrics(address, telemetry.address)?;
    ready.send_replace(Readiness::Ready);
    let Signals { end, now } = signals;
    let draining = async {
        end.cancelled().await;
        ready.send_replace(Readiness::NotReady("draining".to_owned()));
        std::future::pending().await
    };
    let service = Service::new(
        Backends::new([
            Backend::Google(Google::new(access.clone(), Timeouts::default())),
            Backend::Genai(Genai::new(access, Timeouts::default())),
            Backend::Scripted(scripted),
        ]),
        service::Options {
            settings,
            stop_now: now,
            security,
        },
    );
    let served = tokio::select! {
        served = service.serve(listener, end.clone()) => served,
        never = draining => never,
    };
    telemetry.end().await;
    Ok(served?)
}

/// Reads the files of TLS and token, and refuses an address that every machine could call.
fn security(options: &Options) -> anyhow::Result<Security> {
    let settings = &options.settings;
    let token = match (&options.token, &settings.token_file) {
        (Some(_), Some(_)) => {
            let problem =
                "is set, and llm_service.token_file as well; accepted: only one of them".to_owned();
            return Err(environment_fault(LLM_TOKEN, problem).into());
        }
        (Some(token), None) => Some(token.clone()),
        (None, file) => file.as_ref().map(|file| TokenSource::File(file.into())),
    };
    let tls = settings.tls.as_ref().map(|tls| TlsFiles {
        certificate: tls.certificate.clone().into(),
        key: tls.key.clone().into(),
        client_ca: tls.client_ca.as_ref().map(PathBuf::from),
    });
    let security = Security::load(tls, token, &options.mask)
        .map_err(|error| environment_fault("llm_service", error.to_string()))?;
    let is_open = !options.listen.ip().is_loopback() && !security.authenticates();
    if is_open && options.unauthenticated == Unauthenticated::Loopback {
        let problem = format!(
            "is not set, and {} can be reached from other machines: set it, {LLM_TOKEN_FILE} or \
             llm_service.tls.client_ca, or listen on 127.0.0.1; --allow-unauthenticated serves every client",
            options.listen
        );
        return Err(environment_fault(LLM_TOKEN, problem).into());
    }
    Ok(security)
}

fn warn_if_exposed(address: SocketAddr, security: &Security) {
    if address.ip().is_loopback() {
        return;
    }
    if !security.authenticates() {
        tracing::warn!(%address, "llm-service has no authentication and can be reached from other machines");
    }
    if !security.has_tls() {
        tracing::warn!(%address, "llm-service has no TLS: prompts and token can be read on their way");
    }
}

/// The transcripts in a directory.
fn transcripts(directory: &Path) -> anyhow::Result<Vec<Transcript>> {
    let files = transcript_files(directory)
        .with_context(|| format!("transcripts in {}", directory.display()))?;
    files
        .into_iter()
        .map(|file| {
            let text = std::fs::read_to_string(&file)?;
            Transcript::parse(&text).with_context(|| format!("transcript {}", file.display()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_config::LlmServiceTls;
    use tarsy_llm::proto::MAX_MESSAGE_BYTES;

    fn options(listen: &str, token: Option<&str>) -> Options {
        Options {
            listen: listen.parse().unwrap(),
            metrics_listen: "127.0.0.1:0".parse().unwrap(),
            settings: LlmService::default(),
            token: token.map(|token| TokenSource::Value(token.to_owned())),
            unauthenticated: Unauthenticated::Loopback,
            mask: Mask::default(),
            transcripts: None,
            calls_file: None,
            gates: None,
            pace: None,
            unknown: scripted::Unknown::default(),
        }
    }

    #[test]
    fn an_open_address_needs_a_token_or_the_word_of_the_operator() {
        let refusal = security(&options("0.0.0.0:50051", None))
            .unwrap_err()
            .to_string();
        let expected = "is not set, and 0.0.0.0:50051 can be reached from other machines: set it, TARSY_LLM_TOKEN_FILE or \
                        llm_service.tls.client_ca, or listen on 127.0.0.1; --allow-unauthenticated serves every client";
        assert!(
            refusal.contains("TARSY_LLM_TOKEN ") && refusal.contains(expected),
            "{refusal}"
        );
        assert!(security(&options("[::1]:50051", None)).is_ok());
        assert!(
            security(&options("0.0.0.0:50051", Some("t-1")))
                .unwrap()
                .authenticates()
        );
        let open = Options {
            unauthenticated: Unauthenticated::Everywhere,
            ..options("[::]:50051", None)
        };
        assert!(!security(&open).unwrap().authenticates());
    }

    #[test]
    fn a_setting_that_cannot_be_used_ends_the_service() {
        let mut twice = options("127.0.0.1:0", Some("t-1"));
        twice.settings.token_file = Some("/no/such/token".to_owned());
        assert!(
            security(&twice)
                .unwrap_err()
                .to_string()
                .contains("llm_service.token_file as well")
        );
        let missing = Options {
            token: None,
            ..twice
        };
        assert!(
            security(&missing)
                .unwrap_err()
                .to_string()
                .contains("/no/such/token")
        );
        let mut tls = options("127.0.0.1:0", None);
        let [certificate, key] = ["/no/such/crt", "/no/such/key"].map(str::to_owned);
        tls.settings.tls = Some(LlmServiceTls {
            certificate,
            key,
            client_ca: None,
        });
        assert!(
            security(&tls)
                .unwrap_err()
                .to_string()
                .contains("/no/such/crt")
        );
    }

    #[test]
    fn the_configuration_has_the_limit_of_the_protocol() {
        assert_eq!(
            usize::try_from(LlmService::default().max_request_bytes),
            Ok(MAX_MESSAGE_BYTES)
        );
    }
}
