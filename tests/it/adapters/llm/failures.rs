//! Faults of the service, which the client reports as unavailable, failed or timed out.

use std::time::Duration;

use serde_json::{Value, json};
use tarsy_engine::ports::{Model, ModelError, ProviderFailure};
use tarsy_llm::client::Client;
use tarsy_llm::service::scripted::Options;

use super::gates::Gatekeeper;
use super::harness::{
    Server, ask, assert_unavailable, continued, failed, request, script, watch, within_timeout,
};
use crate::support::process::ports::free_address;

const SHORT_TIMEOUT: Duration = Duration::from_millis(400);

#[tokio::test]
async fn a_recorded_failure_is_counted_per_execution_across_replicas() {
    let directory = tempfile::tempdir().unwrap();
    let calls_file = directory.path().join("calls");
    let answers =
        "  - {chunks: [{text: fine}], fail: {code: max_retries, message: busy, times: 2}}\n";
    let options = Options {
        calls_file: Some(calls_file.clone()),
        ..script(answers)
    };
    let servers = [Server::start(options.clone()), Server::start(options)];
    let (one, other) = (request("test", "x"), request("test", "x"));
    let expected = ("max_retries".to_owned(), "busy".to_owned(), false);
    assert_eq!(failed(ask(&servers[0].client(), &one).await), expected);
    assert_eq!(failed(ask(&servers[1].client(), &one).await), expected);
    let answer = ask(&servers[0].client(), &one).await.unwrap();
    assert_eq!(answer.text, "fine");
    assert_eq!(failed(ask(&servers[0].client(), &other).await), expected);
    ask(&servers[0].client(), &continued(one.clone(), &answer))
        .await
        .unwrap_err();

    let line = |request: &tarsy_engine::ports::ModelRequest, index: usize| json!({"execution_id": request.execution_id.to_string(), "index": index, "request_id": request.request_id});
    let written = std::fs::read_to_string(&calls_file).unwrap();
    let lines: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines,
        [
            line(&one, 0),
            line(&one, 0),
            line(&one, 0),
            line(&other, 0),
            line(&one, 1)
        ]
    );
}

#[tokio::test]
async fn failures_are_counted_in_memory_without_a_file() {
    let server = Server::start(script(
        "  - {chunks: [{text: fine}], fail: {code: x, message: y, times: 1}}\n",
    ));
    let (client, request) = (server.client(), request("test", "x"));
    assert_eq!(
        failed(ask(&client, &request).await),
        ("x".into(), "y".into(), false)
    );
    assert_eq!(ask(&client, &request).await.unwrap().text, "fine");
}

#[tokio::test]
async fn the_client_keeps_what_the_provider_says_about_a_failure() {
    let fail = "{code: rate_limited, message: busy, retryable: true, retry_after: 22s, status: 429 RESOURCE_EXHAUSTED}";
    let server = Server::start(script(&format!(
        "  - {{chunks: [{{text: fine}}], fail: {fail}}}\n"
    )));
    let error = ask(&server.client(), &request("test", "x"))
        .await
        .unwrap_err();
    let provider = ProviderFailure {
        status: "429 RESOURCE_EXHAUSTED".to_owned(),
        retryable: true,
        retry_after: Some(Duration::from_secs(22)),
    };
    let (code, message) = ("rate_limited".to_owned(), "busy".to_owned());
    assert_eq!(
        error,
        ModelError::Failed {
            code,
            message,
            timeout: false,
            provider
        }
    );
}

#[tokio::test]
async fn a_stream_cut_before_its_first_chunk_is_unavailable_and_after_it_a_failure() {
    let server = Server::start(script(
        "  - {chunks: [{text: half}, {cut: true}]}\n  - {chunks: [{cut: true}, {text: never}]}\n",
    ));
    let client = server.client();
    let cut = request("test", "x");
    let (result, shown) = watch(&client, &cut).await;
    let (code, message, timeout) = failed(result);
    assert_eq!((code.as_str(), timeout), ("partial_stream_error", false));
    assert!(
        message.contains("the recording breaks the stream here"),
        "{message}"
    );
    assert_eq!(
        shown
            .into_iter()
            .map(|(_, piece)| piece)
            .collect::<String>(),
        "half"
    );
    assert_unavailable(ask(&client, &continued(cut, &Default::default())).await);
}

#[tokio::test]
async fn a_call_that_hangs_fails_by_its_timeout_with_or_without_a_first_chunk() {
    let server = Server::start(script(
        "  - {chunks: [{text: half}, {hang: true}]}\n  - {chunks: [{hang: true}]}\n",
    ));
    let client = server.client();
    let mut hangs = request("test", "x");
    hangs.timeout = SHORT_TIMEOUT;
    for request in [hangs.clone(), continued(hangs, &Default::default())] {
        let (code, _, timeout) = failed(ask(&client, &request).await);
        assert_eq!((code.as_str(), timeout), ("deadline_exceeded", true));
    }
}

#[tokio::test]
async fn a_service_killed_during_an_answer_is_a_failure_and_its_successor_is_found() {
    let mut gatekeeper = Gatekeeper::new();
    let answers = "  - {chunks: [{text: half}, {gate: stop}, {text: never}]}\n";
    let server = Server::start(Options {
        gates: gatekeeper.gates(),
        ..script(answers)
    });
    let (client, asked) = (server.client(), request("test", "x"));
    let (sender, mut shown) = tokio::sync::mpsc::unbounded_channel();
    let asking = tokio::spawn({
        let (client, asked) = (client.clone(), asked.clone());
        async move {
            client
                .generate(asked, move |_, piece| {
                    sender.send(piece.to_owned()).unwrap()
                })
                .await
        }
    });
    let held = gatekeeper.next().await;
    assert_eq!(within_timeout(shown.recv()).await.unwrap(), "half");
    let address = server.kill();
    let (code, _, timeout) = failed(within_timeout(asking).await.unwrap());
    assert_eq!((code.as_str(), timeout), ("partial_stream_error", false));
    drop(held);

    // The client may notice the dead connection before or after it sends the request.
    let refused = ask(&client, &asked).await;
    assert!(
        matches!(
            refused,
            Err(ModelError::Unavailable(_) | ModelError::Broke(_))
        ),
        "not unavailable: {refused:?}"
    );
    let successor = Server::start_at(
        address,
        script("  - {chunks: [{text: whole}]}\n"),
        Duration::ZERO,
    );
    assert_eq!(ask(&client, &asked).await.unwrap().text, "whole");
    drop(successor);
}

#[tokio::test]
async fn a_service_killed_before_the_first_chunk_is_reported_as_broken_off() {
    let mut gatekeeper = Gatekeeper::new();
    let server = Server::start(Options {
        gates: gatekeeper.gates(),
        gate_every_answer: true,
        ..script("  - {chunks: [{text: never}]}\n")
    });
    let client = server.client();
    let asking = tokio::spawn(async move { ask(&client, &request("test", "x")).await });
    let held = gatekeeper.next().await;
    server.kill();
    let answer = within_timeout(asking).await.unwrap();
    assert!(matches!(answer, Err(ModelError::Broke(_))), "{answer:?}");
    drop(held);
}

#[tokio::test]
async fn without_a_server_the_service_is_unavailable_and_not_serving() {
    let client = Client::connect(&free_address()).unwrap();
    assert!(!within_timeout(client.serving()).await);
    assert_unavailable(ask(&client, &request("test", "x")).await);
}

#[tokio::test]
async fn a_port_that_accepts_and_never_answers_is_unavailable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&listener.local_addr().unwrap().to_string()).unwrap();
    let mut silent = request("test", "x");
    silent.timeout = SHORT_TIMEOUT;
    assert_unavailable(ask(&client, &silent).await);
}

#[tokio::test]
async fn a_draining_service_finishes_its_answers_refuses_new_calls_and_ends() {
    let mut gatekeeper = Gatekeeper::new();
    let answers = "  - {chunks: [{text: first}, {gate: drain}, {text: ' second'}]}\n";
    let mut server = Server::start(Options {
        gates: gatekeeper.gates(),
        ..script(answers)
    });
    let client = server.client();
    assert!(within_timeout(client.serving()).await);
    let asking = tokio::spawn(async move { ask(&client, &request("test", "x")).await });
    let held = gatekeeper.next().await;
    server.token.cancel();
    let late = server.client();
    assert!(!within_timeout(late.serving()).await);
    assert_unavailable(ask(&late, &request("test", "x")).await);
    held.open().await;
    assert_eq!(
        within_timeout(asking).await.unwrap().unwrap().text,
        "first second"
    );
    within_timeout(server.served.take().unwrap()).await.unwrap();
}

#[tokio::test]
async fn an_answer_that_outlasts_the_drain_is_broken_off() {
    let mut gatekeeper = Gatekeeper::new();
    let answers = "  - {chunks: [{text: first}, {gate: drain}, {hang: true}]}\n";
    let options = Options {
        gates: gatekeeper.gates(),
        ..script(answers)
    };
    let mut server = Server::start_at("127.0.0.1:0".parse().unwrap(), options, Duration::ZERO);
    let client = server.client();
    let asking = tokio::spawn(async move { ask(&client, &request("test", "x")).await });
    gatekeeper.next().await.open().await;
    server.token.cancel();
    assert_eq!(
        failed(within_timeout(asking).await.unwrap()).0,
        "partial_stream_error"
    );
    within_timeout(server.served.take().unwrap()).await.unwrap();
}
