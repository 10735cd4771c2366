//! TLS, certificates of clients and tokens, over sockets.

use std::path::Path;

use tarsy_engine::ports::ModelError;
use tarsy_http::outgoing::token::TokenSource;
use tarsy_llm::client::{Client, ClientCertificate, Credentials, ServiceFault};
use tarsy_llm::proto::GenerateRequest;
use tarsy_llm::proto::llm_service_client::LlmServiceClient;
use tarsy_llm::service;
use tarsy_llm::service::security::{Security, TlsFiles};
use tarsy_mask::Mask;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::super::harness::{Server, ask, assert_unavailable, request, within_timeout};

use super::start;
use crate::support::certificates::{Authority, Pair};
use crate::support::process::ports::free_address;
use crate::support::wait::eventually;

fn secured(tls: Option<TlsFiles>, token: Option<TokenSource>) -> Server {
    let security = Security::load(tls, token, &Mask::default()).unwrap();
    start(service::Options {
        security,
        ..service::Options::default()
    })
}

fn files(pair: &Pair, client_ca: Option<&Path>) -> TlsFiles {
    let Pair { certificate, key } = pair.clone();
    TlsFiles {
        certificate,
        key,
        client_ca: client_ca.map(Path::to_owned),
    }
}

fn shown(pair: &Pair) -> Option<ClientCertificate> {
    let Pair { certificate, key } = pair.clone();
    Some(ClientCertificate { certificate, key })
}

fn value(token: &str) -> Option<TokenSource> {
    Some(TokenSource::Value(token.to_owned()))
}

fn trusting(authority: &Authority) -> Credentials {
    Credentials {
        ca: Some(authority.file.clone()),
        ..Credentials::default()
    }
}

fn secure_client(server: &Server, credentials: Credentials) -> Client {
    Client::with_credentials(&format!("https://{}", server.address), credentials).unwrap()
}

/// The result of the check, after a call that is unavailable in any case.
async fn refused(client: &Client) -> ServiceFault {
    assert_unavailable(ask(client, &request("test", "x")).await);
    within_timeout(client.check()).await.unwrap_err()
}

async fn is_answered(client: &Client) -> bool {
    within_timeout(client.check()).await.is_ok()
        && ask(client, &request("test", "x"))
            .await
            .is_ok_and(|answer| answer.text == "fine")
}

/// Returns when the service has read its files again.
async fn is_answered_soon(client: &Client) {
    eventually("the client is answered", async || {
        Box::pin(is_answered(client)).await
    })
    .await;
}

#[tokio::test]
async fn a_client_with_tls_checks_the_authority_and_the_name_of_the_service() {
    let directory = tempfile::tempdir().unwrap();
    let ours = Authority::new(directory.path(), "ours");
    let other = Authority::new(directory.path(), "other");
    let pair = ours.pair(directory.path(), "service", &["localhost", "127.0.0.1"]);
    let server = secured(Some(files(&pair, None)), None);
    assert!(is_answered(&secure_client(&server, trusting(&ours))).await);
    let by_name = format!("https://localhost:{}", server.address.port());
    assert!(is_answered(&Client::with_credentials(&by_name, trusting(&ours)).unwrap()).await);

    let fault = refused(&secure_client(&server, trusting(&other))).await;
    assert_eq!(
        fault,
        ServiceFault::Tls("invalid peer certificate: UnknownIssuer".to_owned())
    );
    assert!(fault.fix().contains("TARSY_LLM_CA_FILE"));
    let elsewhere = ours.pair(directory.path(), "elsewhere", &["llm.example.com"]);
    let server = secured(Some(files(&elsewhere, None)), None);
    let fault = refused(&secure_client(&server, trusting(&ours))).await;
    assert!(
        matches!(&fault, ServiceFault::Tls(text) if text.contains("not valid for name")),
        "{fault:?}"
    );
}

#[tokio::test]
async fn tls_on_one_side_only_is_told_apart_from_an_outage() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ours");
    let pair = authority.pair(directory.path(), "service", &["127.0.0.1"]);
    let with_tls = secured(Some(files(&pair, None)), None);
    let plain = with_tls.client();
    let result = ask(&plain, &request("test", "x")).await;
    assert!(
        matches!(
            result,
            Err(ModelError::Unavailable(_) | ModelError::Broke(_))
        ),
        "{result:?}"
    );
    let fault = within_timeout(plain.check()).await.unwrap_err();
    assert!(
        matches!(fault, ServiceFault::Broke(_)) && fault.fix().contains("https://"),
        "{fault:?}"
    );

    let without = secured(None, None);
    let fault = refused(&secure_client(&without, trusting(&authority))).await;
    assert!(
        matches!(fault, ServiceFault::Tls(_)) && fault.fix().contains("llm_service.tls"),
        "{fault:?}"
    );
    let nowhere =
        Client::with_credentials(&format!("https://{}", free_address()), trusting(&authority));
    let fault = refused(&nowhere.unwrap()).await;
    assert!(matches!(fault, ServiceFault::Unavailable(_)), "{fault:?}");
}

#[tokio::test]
async fn a_service_with_a_client_authority_serves_only_its_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let [ours, other] = ["ours", "other"].map(|name| Authority::new(directory.path(), name));
    let pair = ours.pair(directory.path(), "service", &["127.0.0.1"]);
    let server = secured(Some(files(&pair, Some(&ours.file))), None);
    let [good, bad] = [("worker", &ours), ("stranger", &other)]
        .map(|(name, authority)| authority.pair(directory.path(), name, &["worker"]));
    let client = secure_client(
        &server,
        Credentials {
            certificate: shown(&good),
            ..trusting(&ours)
        },
    );
    assert!(is_answered(&client).await);

    let fault = refused(&secure_client(&server, trusting(&ours))).await;
    assert!(
        matches!(&fault, ServiceFault::Tls(text) if text.contains("CertificateRequired")),
        "{fault:?}"
    );
    assert!(fault.fix().contains("TARSY_LLM_CERT_FILE"));
    let stranger = secure_client(
        &server,
        Credentials {
            certificate: shown(&bad),
            ..trusting(&ours)
        },
    );
    let fault = refused(&stranger).await;
    assert!(
        matches!(&fault, ServiceFault::Tls(_)) && fault.fix().contains("client_ca"),
        "{fault:?}"
    );
}

#[tokio::test]
async fn a_token_is_asked_for_by_every_call_but_the_health_check() {
    let server = secured(None, value("right-token"));
    let address = server.address.to_string();
    let with = |token| {
        Client::with_credentials(
            &address,
            Credentials {
                token,
                ..Credentials::default()
            },
        )
        .unwrap()
    };
    assert!(is_answered(&with(value("right-token"))).await);
    assert_eq!(refused(&with(None)).await, ServiceFault::TokenMissing);
    assert_eq!(
        refused(&with(value("wrong-token"))).await,
        ServiceFault::TokenRefused
    );

    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}"))
        .unwrap()
        .connect_lazy();
    let status = LlmServiceClient::new(channel.clone())
        .generate(GenerateRequest::default())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    assert!(
        status.message().contains("TARSY_LLM_TOKEN_FILE"),
        "{status:?}"
    );
    for service in ["", "llm.v1.LLMService"] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let health = HealthClient::new(channel.clone())
            .check(request)
            .await
            .unwrap()
            .into_inner();
        assert_eq!(health.status(), ServingStatus::Serving, "{service:?}");
    }
}

#[tokio::test]
async fn a_rotated_token_is_used_by_both_sides_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let [of_service, of_worker] = ["service", "worker"].map(|name| directory.path().join(name));
    std::fs::write(&of_service, "first-token\n").unwrap();
    std::fs::write(&of_worker, "first-token\n").unwrap();
    let server = secured(None, Some(TokenSource::File(of_service.clone())));
    let credentials = Credentials {
        token: Some(TokenSource::File(of_worker.clone())),
        ..Credentials::default()
    };
    let client = Client::with_credentials(&server.address.to_string(), credentials).unwrap();
    assert!(is_answered(&client).await);
    std::fs::write(&of_worker, "second-token\n").unwrap();
    assert_eq!(refused(&client).await, ServiceFault::TokenRefused);
    std::fs::write(&of_service, "second-token\n").unwrap();
    is_answered_soon(&client).await;
    std::fs::remove_file(&of_worker).unwrap();
    assert!(matches!(refused(&client).await, ServiceFault::File(_)));
}

#[tokio::test]
async fn renewed_certificates_are_used_by_new_connections_of_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| Authority::new(directory.path(), name));
    let pair = old.pair(directory.path(), "service", &["127.0.0.1"]);
    let server = secured(Some(files(&pair, None)), None);
    assert!(is_answered(&secure_client(&server, trusting(&old))).await);
    new.sign(&pair, &["127.0.0.1"]);
    let client = secure_client(&server, trusting(&new));
    is_answered_soon(&client).await;
    // The authority of a client is read again as well.
    let renewed = directory.path().join("renewed.pem");
    std::fs::copy(&old.file, &renewed).unwrap();
    let late = secure_client(
        &server,
        Credentials {
            ca: Some(renewed.clone()),
            ..Credentials::default()
        },
    );
    assert!(matches!(refused(&late).await, ServiceFault::Tls(_)));
    std::fs::copy(&new.file, &renewed).unwrap();
    assert!(is_answered(&late).await);
}
