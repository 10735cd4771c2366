//! The ways to log in to a broker, and secrets that change while a client is connected.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nkeys::KeyPair;
use serde_json::json;
use tarsy_bus::{ConnectRetry, LoginSource, Nats, NatsCertificate, NatsCredentials, Options};
use tarsy_config::Secret;

use super::{LIMIT, within};
use crate::support::certificates::{Authority, Pair};
use crate::support::nats::NatsServer;
use crate::support::nats::jwt::Operator;

/// A way to log in whose secret is in a file.
struct Kind {
    name: &'static str,
    source: fn(Secret) -> LoginSource,
    /// Writes a new secret into the file; returns the lines of the server that accepts only this one.
    renew: fn(&Path) -> String,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "credentials",
        source: LoginSource::Credentials,
        renew: renew_credentials,
    },
    Kind {
        name: "nkey",
        source: LoginSource::Nkey,
        renew: renew_nkey,
    },
    Kind {
        name: "password",
        source: of_password,
        renew: renew_password,
    },
    Kind {
        name: "token",
        source: LoginSource::Token,
        renew: renew_token,
    },
    Kind {
        name: "url",
        source: LoginSource::UrlFile,
        renew: renew_url,
    },
];

fn of_password(password: Secret) -> LoginSource {
    LoginSource::Password {
        user: "tarsy".to_owned(),
        password,
    }
}

fn renew_credentials(file: &Path) -> String {
    let operator = Operator::new();
    operator.write_user(file, "worker", &json!({}));
    operator.settings()
}

fn renew_nkey(file: &Path) -> String {
    let pair = KeyPair::new_user();
    std::fs::write(file, format!("{}\n", pair.seed().unwrap())).unwrap();
    format!(
        "authorization {{ users: [ {{ nkey: {} }} ] }}",
        pair.public_key()
    )
}

fn secret() -> String {
    format!("s3cret{}", fastrand::u64(..))
}

fn renew_password(file: &Path) -> String {
    let password = secret();
    std::fs::write(file, format!("{password}\n")).unwrap();
    format!("authorization {{ user: tarsy, password: \"{password}\" }}")
}

fn renew_token(file: &Path) -> String {
    let token = secret();
    std::fs::write(file, &token).unwrap();
    format!("authorization {{ token: \"{token}\" }}")
}

fn renew_url(file: &Path) -> String {
    let password = secret();
    std::fs::write(file, format!("nats://tarsy:{password}@elsewhere:4222\n")).unwrap();
    format!("authorization {{ user: tarsy, password: \"{password}\" }}")
}

fn file_secret(file: &Path) -> Secret {
    Secret::file_of("SECRET_FILE", &|_| Some(file.display().to_string())).unwrap()
}

fn options(server: &NatsServer, credentials: NatsCredentials) -> Options {
    Options {
        url: server.url(),
        role: "test".into(),
        credentials,
        retry: ConnectRetry::UpTo(Duration::from_secs(2)),
    }
}

#[tokio::test]
async fn every_login_is_read_again_when_the_connection_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    for Kind {
        name,
        source,
        renew,
    } in KINDS
    {
        let file = directory.path().join(name);
        let mut server = NatsServer::start_with(&renew(&file)).await;
        let credentials = NatsCredentials {
            login: source(file_secret(&file)),
            ..NatsCredentials::default()
        };
        let anonymous = Nats::connect(&options(&server, NatsCredentials::default()))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            anonymous.contains("refused the connection"),
            "{name}: {anonymous}"
        );
        let nats = within(name, Nats::connect(&options(&server, credentials.clone())))
            .await
            .expect(name);
        let mut connection = nats.watch_connection();
        server.restart_with(&renew(&file)).await;
        let connected = connection.wait_for(|state| state.connections == 2 && state.connected);
        within(name, connected).await.expect(name);
        within(name, nats.rtt()).await.expect(name);
        std::fs::remove_file(&file).unwrap();
        let missing = Nats::connect(&options(&server, credentials))
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(
            missing,
            format!(
                "nats credentials: SECRET_FILE: {}: there is no such file",
                file.display()
            )
        );
    }
}

#[tokio::test]
async fn a_wrong_secret_is_refused_without_being_shown() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    for Kind {
        name,
        source,
        renew,
    } in KINDS
    {
        let server = NatsServer::start_with(&renew(&file)).await;
        renew(&file);
        let wrong = std::fs::read_to_string(&file).unwrap();
        let credentials = NatsCredentials {
            login: source(file_secret(&file)),
            ..NatsCredentials::default()
        };
        let retrying = Options {
            retry: ConnectRetry::UpTo(LIMIT * 2),
            ..options(&server, credentials)
        };
        let message = within(name, Nats::connect(&retrying))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with(&format!(
                "nats at {} refused the connection: ",
                server.url()
            )),
            "{message}"
        );
        assert!(
            !wrong
                .lines()
                .any(|line| line.len() > 10 && message.contains(line)),
            "{name}: {message}"
        );
    }
}

fn server_tls(authority: &Authority, pair: &Pair) -> String {
    let show = |path: &PathBuf| path.display().to_string();
    format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}",
        show(&pair.certificate),
        show(&pair.key),
        show(&authority.file)
    )
}

#[tokio::test]
async fn certificates_of_both_sides_are_checked_and_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let of_server = authority.pair(directory.path(), "server", &["127.0.0.1"]);
    let of_client = authority.pair(directory.path(), "client", &["worker"]);
    let mut server = NatsServer::start_with(&server_tls(&authority, &of_server)).await;
    let certificate = Some(NatsCertificate {
        certificate: of_client.certificate.clone(),
        key: of_client.key.clone(),
    });
    let credentials = NatsCredentials {
        ca: Some(authority.file.clone()),
        certificate,
        ..NatsCredentials::default()
    };
    let nats = Nats::connect(&options(&server, credentials.clone()))
        .await
        .unwrap();
    let without = NatsCredentials {
        certificate: None,
        ..credentials.clone()
    };
    Nats::connect(&options(&server, without)).await.unwrap_err();
    let stranger = Authority::new(directory.path(), "stranger");
    let of_stranger = stranger.pair(directory.path(), "stranger-client", &["worker"]);
    let ca = Some(stranger.file.clone());
    let message = Nats::connect(&options(
        &server,
        NatsCredentials {
            ca,
            ..credentials.clone()
        },
    ))
    .await
    .unwrap_err();
    assert!(message.to_string().contains("UnknownIssuer"), "{message}");
    let foreign = NatsCertificate {
        certificate: of_stranger.certificate,
        key: of_stranger.key,
    };
    let foreign = NatsCredentials {
        certificate: Some(foreign),
        ..credentials.clone()
    };
    Nats::connect(&options(&server, foreign)).await.unwrap_err();
    // Everything is renewed: the authority, the server's certificate and the client's.
    let mut connection = nats.watch_connection();
    server.kill();
    let renewed = Authority::new(directory.path(), "ca");
    renewed.sign(&of_server, &["127.0.0.1"]);
    renewed.sign(&of_client, &["worker"]);
    server.restart_with(&server_tls(&renewed, &of_server)).await;
    within(
        "the reconnect",
        connection.wait_for(|state| state.connections == 2 && state.connected),
    )
    .await
    .unwrap();
    within("a round trip", nats.rtt()).await.unwrap();
}

#[tokio::test]
async fn a_named_authority_permits_no_connection_without_tls() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let server = NatsServer::start().await;
    let credentials = NatsCredentials {
        ca: Some(authority.file),
        ..NatsCredentials::default()
    };
    Nats::connect(&options(&server, credentials))
        .await
        .unwrap_err();
}
