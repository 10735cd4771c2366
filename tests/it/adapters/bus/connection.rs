//! Connecting: which servers are accepted, how long a connection is retried, and reconnects.

use std::time::Duration;

use tarsy_bus::{ConnectRetry, Error, Nats, Options, ServerInfo};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::{connect, recorder, within};
use crate::support::nats::NatsServer;
use crate::support::process::ports::free_address;

fn options(url: String) -> Options {
    Options {
        url,
        role: "test".into(),
        credentials: Default::default(),
        retry: ConnectRetry::UpTo(Duration::from_secs(1)),
    }
}

#[tokio::test]
async fn a_server_older_than_2_11_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        stream
            .write_all(
                b"INFO {\"server_id\":\"x\",\"version\":\"2.10.29\",\"headers\":true,\"max_payload\":1048576}\r\n",
            )
            .await
            .unwrap();
        let mut line = String::new();
        while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {
            if line.starts_with("PING") {
                stream.write_all(b"PONG\r\n").await.unwrap();
            }
            line.clear();
        }
    });
    let error = within(
        "the refusal",
        Nats::connect(&options(format!("nats://u:s3cret@{address}"))),
    )
    .await
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("nats-server at nats://{address} is version 2.10.29; tarsy needs 2.11 or newer")
    );
    within("the end of the fake server", server).await.unwrap();
}

#[tokio::test]
async fn a_command_fails_if_no_server_answers() {
    let address = free_address();
    let error = within(
        "giving up",
        Nats::connect(&options(format!("nats://{address}"))),
    )
    .await
    .unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with(&format!(
            "nats at nats://{address} did not accept a connection within 1s: "
        )),
        "{message}"
    );
}

#[tokio::test]
async fn a_worker_waits_for_the_server_to_start() {
    let mut server = NatsServer::start().await;
    server.kill();
    let retrying = Options {
        retry: ConnectRetry::Forever,
        ..options(server.url())
    };
    let mut connecting = tokio::spawn(async move { Nats::connect(&retrying).await });
    let early = tokio::time::timeout(Duration::from_millis(600), &mut connecting).await;
    assert!(early.is_err(), "connected without a server: {early:?}");
    server.restart().await;
    let nats = within("the connection", connecting).await.unwrap().unwrap();
    assert!(nats.connection_state().connected);
}

#[tokio::test]
async fn a_wrong_password_is_refused_at_once() {
    let server = NatsServer::start_with("authorization { user: tarsy, password: right }").await;
    let url = server.url().replace("nats://", "nats://tarsy:wrong@");
    let retrying = Options {
        retry: ConnectRetry::UpTo(Duration::from_secs(3600)),
        ..options(url)
    };
    let message = within("the refusal", Nats::connect(&retrying))
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
}

#[tokio::test]
async fn an_invalid_url_is_an_error_at_once_even_if_connecting_is_retried_forever() {
    let retrying = Options {
        retry: ConnectRetry::Forever,
        ..options("http://u:s3cret@a:4222".into())
    };
    let error = within("the refusal", Nats::connect(&retrying))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Url { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "nats url \"http://a:4222\" cannot be used: invalid scheme for NATS server URL: http"
    );
}

#[tokio::test]
async fn the_server_info_has_no_credentials_and_the_round_trip_is_measured() {
    let mut server =
        NatsServer::start_with("authorization { user: u, password: s3cret }\nmax_payload: 2MB")
            .await;
    let nats = Nats::connect(&options(
        server.url().replace("nats://", "nats://u:s3cret@"),
    ))
    .await
    .unwrap();
    let info = nats.server();
    assert!(info.version.starts_with("2."), "{info:?}");
    assert_eq!(
        info,
        ServerInfo {
            version: info.version.clone(),
            max_payload: 2 * 1024 * 1024,
            url: server.url()
        }
    );
    let rtt = nats.rtt().await.unwrap();
    assert!(!rtt.is_zero() && rtt < Duration::from_secs(10), "{rtt:?}");
    server.kill();
    nats.rtt().await.unwrap_err();
}

#[tokio::test]
async fn the_login_in_a_url_is_used() {
    let server =
        NatsServer::start_with("authorization { user: \"a/b\", password: \"s3 cret%\" }").await;
    let url = server
        .url()
        .replace("nats://", "nats://a%2Fb:s3%20cret%25@");
    Nats::connect(&options(format!("nats://127.0.0.1:1,{url}")))
        .await
        .unwrap();
    let server = NatsServer::start_with("authorization { token: \"s3cret\" }").await;
    Nats::connect(&options(server.url().replace("nats://", "nats://s3cret@")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_reconnect_is_reported_and_counted() {
    let recorder = recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let mut server = NatsServer::start().await;
    let nats = connect(&server).await;
    let mut connection = nats.watch_connection();
    server.kill();
    within("the loss", connection.wait_for(|state| !state.connected))
        .await
        .unwrap();
    let before = nats.connection_state().connections;
    server.restart().await;
    within(
        "the reconnect",
        connection.wait_for(|state| state.connected),
    )
    .await
    .unwrap();
    assert_eq!((before, nats.connection_state().connections), (1, 2));
    assert!(
        recorder
            .handle()
            .render()
            .contains("\ntarsy_nats_reconnects_total 1\n")
    );
}
