//! Limits of a request, of calls at the same time, and of the time after a stop.

use std::collections::BTreeMap;
use std::time::Duration;

use tarsy_config::{Concurrency, LlmService};
use tarsy_core::execution::entry::Role;
use tarsy_engine::ports::ModelError;
use tarsy_llm::service;
use tarsy_llm::service::scripted::Options;
use tokio_util::sync::CancellationToken;

use super::super::gates::Gatekeeper;
use super::super::harness::{Server, ask, failed, message, request, script, within_timeout};
use super::start;

fn with_settings(settings: LlmService) -> service::Options {
    service::Options {
        settings,
        ..service::Options::default()
    }
}

fn start_gated(answers: &str, gatekeeper: &Gatekeeper, options: service::Options) -> Server {
    let scripted = Options {
        gates: gatekeeper.gates(),
        ..script(answers)
    };
    Server::start_with("127.0.0.1:0".parse().unwrap(), scripted, options)
}

#[tokio::test]
async fn a_call_over_the_limit_of_its_provider_is_unavailable_until_another_one_ends() {
    let mut gatekeeper = Gatekeeper::new();
    let concurrency = Concurrency {
        default: 9,
        by_provider: BTreeMap::from([("scripted".to_owned(), 1)]),
    };
    let options = with_settings(LlmService {
        concurrency,
        ..LlmService::default()
    });
    let server = start_gated(
        "  - {chunks: [{text: first}, {gate: hold}]}\n",
        &gatekeeper,
        options,
    );
    let (client, first) = (server.client(), server.client());
    let running = tokio::spawn(async move { ask(&first, &request("test", "x")).await });
    let held = gatekeeper.next().await;
    let Err(ModelError::Unavailable(reason)) = ask(&client, &request("test", "x")).await else {
        panic!("not refused")
    };
    assert_eq!(
        reason,
        "resource_exhausted: provider scripted: 1 calls run in this service, as many as llm_service.concurrency.scripted \
         allows"
    );
    held.open().await;
    assert_eq!(
        within_timeout(running).await.unwrap().unwrap().text,
        "first"
    );
    let next = tokio::spawn(async move { ask(&client, &request("test", "x")).await });
    gatekeeper.next().await.open().await;
    assert_eq!(within_timeout(next).await.unwrap().unwrap().text, "first");
}

#[tokio::test]
async fn a_worker_has_a_call_for_every_slot_on_its_one_connection() {
    const CALLS: usize = 250; // more than the 200 streams that many HTTP/2 servers allow
    let mut gatekeeper = Gatekeeper::new();
    let server = start_gated(
        "  - {chunks: [{gate: hold}, {text: fine}]}\n",
        &gatekeeper,
        service::Options::default(),
    );
    let client = server.client();
    let calls = (0..CALLS).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { ask(&client, &request("test", "x")).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut held = Vec::with_capacity(CALLS);
    while held.len() < CALLS {
        held.push(gatekeeper.next().await);
    }
    for call in held {
        call.open().await;
    }
    for call in calls {
        assert_eq!(within_timeout(call).await.unwrap().unwrap().text, "fine");
    }
}

#[tokio::test]
async fn a_request_with_too_many_messages_or_tools_or_bytes_fails_with_the_limit() {
    let server = start(with_settings(LlmService {
        max_request_bytes: 1 << 20,
        max_messages: 3,
        max_tools: 2,
        ..LlmService::default()
    }));
    let client = server.client();
    let mut asked = request("test", "x");
    assert_eq!(ask(&client, &asked).await.unwrap().text, "fine");
    asked
        .messages
        .extend([message(Role::User, "y"), message(Role::User, "z")]);
    let invalid = |text: &str| ("invalid_request".to_owned(), text.to_owned(), false);
    let expected =
        invalid("The request has 4 messages; llm_service.max_messages of this service allows 3");
    assert_eq!(failed(ask(&client, &asked).await), expected);
    let mut asked = request("test", "x");
    asked.tools = vec![asked.tools[0].clone(); 3];
    let expected =
        invalid("The request has 3 tools; llm_service.max_tools of this service allows 2");
    assert_eq!(failed(ask(&client, &asked).await), expected);
    let (code, text, _) = failed(ask(&client, &request("test", &"x".repeat(1 << 20))).await);
    assert_eq!(code, "request_too_large");
    assert!(text.contains("the limit is: 1048576 bytes"), "{text}");
}

#[tokio::test]
async fn a_second_signal_breaks_the_answers_off_that_a_drain_would_wait_for() {
    let mut gatekeeper = Gatekeeper::new();
    let stop_now = CancellationToken::new();
    let options = service::Options {
        settings: LlmService {
            drain_timeout: Duration::from_secs(600),
            ..LlmService::default()
        },
        stop_now: stop_now.clone(),
        ..service::Options::default()
    };
    let mut server = start_gated(
        "  - {chunks: [{text: half}, {gate: hold}, {hang: true}]}\n",
        &gatekeeper,
        options,
    );
    let client = server.client();
    let asking = tokio::spawn(async move { ask(&client, &request("test", "x")).await });
    gatekeeper.next().await.open().await;
    server.token.cancel();
    stop_now.cancel();
    assert_eq!(
        failed(within_timeout(asking).await.unwrap()).0,
        "partial_stream_error"
    );
    within_timeout(server.served.take().unwrap()).await.unwrap();
}
