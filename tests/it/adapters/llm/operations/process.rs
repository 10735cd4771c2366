//! The process `tarsy llm-service` with a configuration file: its start, its refusals, its metrics and its end.

use std::path::Path;

use tarsy_http::outgoing::token::TokenSource;
use tarsy_llm::client::{Client, ClientCertificate, Credentials};

use super::super::gates::Gatekeeper;
use super::super::harness::{ask, continued, failed, request, within_timeout};

use crate::support::certificates::{Authority, Pair};
use crate::support::http;
use crate::support::process::Tarsy;
use crate::support::system::TestSystem;

const TOKEN: &str = "seeded-token-4711";
const TRANSCRIPT: &str = "name: test\nanswers:\n\
    - {chunks: [{text: fine}], usage: {input: 120, output: 7, thinking: 3, cached: 20}}\n\
    - {chunks: [{text: never}], fail: {code: rate_limited, message: busy, times: 9}}\n";

fn transcripts(directory: &Path) -> String {
    let folder = directory.join("transcripts");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("test.yaml"), TRANSCRIPT).unwrap();
    folder.display().to_string()
}

/// The value of the series of this name with these labels; 0 if it is not exported.
fn value(metrics: &str, name: &str, labels: &str) -> f64 {
    let is_series =
        |line: &&str| line.starts_with(name) && line[name.len()..].starts_with(['{', ' ']);
    let series = metrics
        .lines()
        .filter(is_series)
        .filter(|line| line.contains(labels));
    series
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}

/// The rest of the file is for other machines: its variable is not set here.
fn configuration(token_file: &Path, pair: &Pair, authority: &Authority) -> String {
    format!(
        "llm_service:\n  token_file: {}\n  concurrency: {{scripted: 1}}\n  max_tools: 8\n  tls:\n    certificate: {}\n    \
         key: {}\n    client_ca: {}\nmcp_servers:\n  k8s: {{command: x, args: ['${{NOT_SET_ANYWHERE}}']}}\n",
        token_file.display(),
        pair.certificate.display(),
        pair.key.display(),
        authority.file.display(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configured_service_has_tls_and_tokens_and_counts_every_call() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let pair = authority.pair(directory.path(), "service", &["127.0.0.1"]);
    let token_file = directory.path().join("token");
    std::fs::write(&token_file, format!("{TOKEN}\n")).unwrap();
    let config = directory.path().join("tarsy.yaml");
    std::fs::write(&config, configuration(&token_file, &pair, &authority)).unwrap();
    let mut gatekeeper = Gatekeeper::new();
    let transcripts = transcripts(directory.path());
    let args = [
        "llm-service",
        "--listen",
        "127.0.0.1:0",
        "--transcripts",
        &transcripts,
        "--log-level",
        "debug",
    ];
    let gates = gatekeeper.socket();
    let env = [
        ("TARSY_CONFIG", config.to_str().unwrap()),
        ("TARSY_GATES", gates.to_str().unwrap()),
    ];
    let mut service = Tarsy::spawn("llm-service", &args, &env);
    let address = service.ready().await;
    let metrics_address = service
        .line_with("metrics ")
        .await
        .trim()
        .replace("metrics ", "");

    let certificate = Some(ClientCertificate {
        certificate: pair.certificate.clone(),
        key: pair.key.clone(),
    });
    let client = |token: &str| {
        let token = Some(TokenSource::Value(token.to_owned()));
        let credentials = Credentials {
            token,
            ca: Some(authority.file.clone()),
            certificate: certificate.clone(),
        };
        Client::with_credentials(&format!("https://{address}"), credentials).unwrap()
    };
    let (good, bad) = (client(TOKEN), client("wrong-token-4712"));
    let asked = request("test", "x");
    let first = tokio::spawn({
        let (good, asked) = (good.clone(), asked.clone());
        async move { ask(&good, &asked).await }
    });
    let held = gatekeeper.next().await;
    let scraped = http::get(&metrics_address, "/metrics").await.body;
    assert!(
        (value(
            &scraped,
            "tarsy_llm_requests_in_flight",
            "provider=\"scripted\""
        ) - 1.0)
            .abs()
            < 1e-9
    );
    assert!(
        ask(&good, &request("test", "y")).await.is_err(),
        "the limit is one call"
    );
    held.open().await;
    for _ in ["middle", "end"] {
        gatekeeper.next().await.open().await;
    }
    let answer = within_timeout(first).await.unwrap().unwrap();
    let second = tokio::spawn({
        let (good, asked) = (good.clone(), continued(asked, &answer));
        async move { ask(&good, &asked).await }
    });
    gatekeeper.next().await.open().await;
    assert_eq!(
        failed(within_timeout(second).await.unwrap()).0,
        "rate_limited"
    );
    assert!(ask(&bad, &request("test", "x")).await.is_err());

    let scraped = http::get(&metrics_address, "/metrics").await.body;
    let scripted = "gen_ai_provider_name=\"scripted\"";
    for (name, labels, expected) in [
        ("tarsy_llm_requests_total", "outcome=\"answered\"", 1.0),
        ("tarsy_llm_requests_total", "outcome=\"failed\"", 1.0),
        ("tarsy_llm_requests_total", "outcome=\"refused\"", 1.0),
        ("tarsy_llm_requests_in_flight", "", 0.0),
        ("tarsy_llm_errors_total", "code=\"rate_limited\"", 1.0),
        ("tarsy_llm_errors_total", "", 1.0),
        ("tarsy_llm_unauthenticated_total", "lacks=\"token\"", 1.0),
        (
            "gen_ai_client_operation_duration_seconds_count",
            "error_type=\"\"",
            1.0,
        ),
        (
            "gen_ai_client_operation_duration_seconds_count",
            "error_type=\"rate_limited\"",
            1.0,
        ),
        (
            "gen_ai_client_operation_time_to_first_chunk_seconds_count",
            scripted,
            1.0,
        ),
        (
            "gen_ai_client_token_usage_sum",
            "gen_ai_token_type=\"input\"",
            120.0,
        ),
        (
            "gen_ai_client_token_usage_sum",
            "gen_ai_token_type=\"output\"",
            7.0,
        ),
        (
            "gen_ai_client_token_usage_sum",
            "gen_ai_token_type=\"thinking\"",
            3.0,
        ),
        (
            "gen_ai_client_token_usage_sum",
            "gen_ai_token_type=\"cached\"",
            20.0,
        ),
    ] {
        let found = value(&scraped, name, labels);
        assert!(
            (found - expected).abs() < 1e-9,
            "{name} {labels}: {found}\n{scraped}"
        );
    }
    assert!(!scraped.contains(" summary"), "{scraped}");
    service.terminate();
    let (code, _) = service.finished().await;
    let log = service.log();
    assert_eq!(code, 0, "{log}");
    assert!(
        log.contains("model call refused: provider scripted: 1 calls run"),
        "{log}"
    );
    for secret in [TOKEN, "wrong-token-4712", "PRIVATE KEY"] {
        assert!(
            !log.contains(secret) && !scraped.contains(secret),
            "{secret}: {log}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_beyond_loopback_needs_authentication_or_the_word_of_the_operator() {
    let start = |args: &[&str], env: &[(&str, &str)]| {
        Tarsy::spawn(
            "llm-service",
            &[&["llm-service", "--listen", "0.0.0.0:0"], args].concat(),
            env,
        )
    };
    let mut refused = start(&[], &[]);
    assert_eq!(refused.finished().await.0, 78);
    let log = refused.log();
    for part in [
        "TARSY_LLM_TOKEN",
        "llm_service.tls.client_ca",
        "listen on 127.0.0.1",
        "--allow-unauthenticated",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let mut with_token = start(&[], &[("TARSY_LLM_TOKEN", TOKEN)]);
    with_token.ready().await;
    assert!(
        with_token
            .logged("has no TLS")
            .await
            .contains("token can be read on their way")
    );
    let mut permitted = start(&["--allow-unauthenticated"], &[]);
    permitted.ready().await;
    permitted.logged("has no authentication").await;
    assert!(!with_token.log().contains(TOKEN), "{}", with_token.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_process_while_an_answer_runs() {
    let directory = tempfile::tempdir().unwrap();
    let mut gatekeeper = Gatekeeper::new();
    let (transcripts, gates) = (transcripts(directory.path()), gatekeeper.socket());
    let args = [
        "llm-service",
        "--listen",
        "127.0.0.1:0",
        "--transcripts",
        &transcripts,
    ];
    let mut service = Tarsy::spawn(
        "llm-service",
        &args,
        &[("TARSY_GATES", gates.to_str().unwrap())],
    );
    let client = Client::connect(&service.ready().await).unwrap();
    let asking = tokio::spawn(async move { ask(&client, &request("test", "x")).await });
    let _held = gatekeeper.next().await;
    service.terminate();
    service.logged("SIGTERM: shutting down").await;
    service.terminate();
    assert_eq!(service.finished().await.0, 0, "{}", service.log());
    assert!(within_timeout(asking).await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_a_wrong_token_says_so_and_claims_nothing() {
    let system = TestSystem::start(&[]).await;
    let arguments = ["llm-service", "--listen", "127.0.0.1:0"];
    let mut service = Tarsy::spawn("llm-service", &arguments, &[("TARSY_LLM_TOKEN", TOKEN)]);
    let address = service.ready().await;
    let env = system.env(system.database.url());
    let wrong = [
        ("TARSY_LLM_ADDR", address.as_str()),
        ("TARSY_LLM_TOKEN", "wrong-token-4712"),
    ];
    let worker = Tarsy::spawn("w1", &["worker"], &[env.each().as_slice(), &wrong].concat());
    let line = worker.logged("llm-service cannot be used").await;
    assert!(
        line.contains("does not accept the token") && line.contains("TARSY_LLM_TOKEN_FILE"),
        "{line}"
    );
    let paused = worker
        .logged("claiming paused: llm-service unavailable")
        .await;
    let fix = format!("fix=\"start tarsy llm-service at {address}, or set TARSY_LLM_ADDR\"");
    assert!(paused.contains(&fix), "{paused}");
    assert!(
        !worker.log().contains("wrong-token-4712"),
        "{}",
        worker.log()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_tells_a_token_a_file_and_tls_apart_from_a_missing_service() {
    let arguments = ["llm-service", "--listen", "127.0.0.1:0"];
    let mut service = Tarsy::spawn("llm-service", &arguments, &[("TARSY_LLM_TOKEN", TOKEN)]);
    let address = service.ready().await;
    let secure = format!("https://{address}");
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let ca = authority.file.to_str().unwrap();
    let nowhere = [
        ("NATS_URL", "127.0.0.1:1"),
        ("DATABASE_URL", "postgres://127.0.0.1:1/tarsy"),
    ];
    let cases = [
        (
            [
                ("TARSY_LLM_ADDR", address.as_str()),
                ("TARSY_LLM_TOKEN", ""),
            ],
            "asks for a token, and none is set here",
        ),
        (
            [
                ("TARSY_LLM_ADDR", address.as_str()),
                ("TARSY_LLM_TOKEN", "wrong"),
            ],
            "does not accept the token",
        ),
        (
            [
                ("TARSY_LLM_ADDR", address.as_str()),
                ("TARSY_LLM_TOKEN_FILE", "/no/such/token"),
            ],
            "/no/such/token",
        ),
        (
            [
                ("TARSY_LLM_ADDR", secure.as_str()),
                ("TARSY_LLM_CA_FILE", ca),
            ],
            "the service does not use TLS",
        ),
        (
            [
                ("TARSY_LLM_ADDR", "127.0.0.1:1"),
                ("TARSY_LLM_TOKEN", TOKEN),
            ],
            "no answer from 127.0.0.1:1",
        ),
    ];
    // Each waits some seconds for servers that do not exist.
    let doctors =
        cases.map(|(set, _)| Tarsy::spawn("doctor", &["doctor"], &[nowhere, set].concat()));
    for ((_, expected), mut doctor) in cases.into_iter().zip(doctors) {
        let (code, shown) = doctor.finished().await;
        assert_eq!(code, 1, "{shown}");
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            shown.contains(expected) && !shown.contains(TOKEN),
            "{expected}: {shown}"
        );
    }
}
