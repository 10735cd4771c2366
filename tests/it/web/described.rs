//! The description of the API: it has every route with its methods, and answers of each kind are as it says.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use uuid::Uuid;

use super::Web;
use super::routes::in_source;
use crate::support::http::Answer;
use crate::support::system::TestSystem;

const TOKEN: &str = "s3cret-of-the-web";
const BEARER: (&str, &str) = ("authorization", "Bearer s3cret-of-the-web");

/// The methods of the routes that the document describes.
fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let named = paths.flat_map(|(path, methods)| {
        methods
            .as_object()
            .unwrap()
            .keys()
            .map(|method| (method.to_uppercase(), path.clone()))
    });
    named.collect()
}

/// The schema of one answer; `operation` is its method and path. The document is the root.
fn schema_of(document: &Value, operation: &str, status: u16) -> jsonschema::Validator {
    let (method, path) = operation.split_once(' ').unwrap();
    let answer = &document["paths"][path][method.to_lowercase()]["responses"][status.to_string()];
    let answer = match answer["$ref"].as_str() {
        Some(name) => &document["components"]["responses"][name.rsplit('/').next().unwrap()],
        None => answer,
    };
    let mut schema = answer["content"]["application/json"]["schema"].clone();
    assert!(!schema.is_null(), "{operation} {status} is not described");
    schema["components"] = document["components"].clone();
    jsonschema::validator_for(&schema).unwrap()
}

/// Asserts that the document describes the answer of an operation, for example `GET /sessions`.
pub(super) fn assert_fits(document: &Value, operation: &str, status: u16, answer: &Value) {
    let validator = schema_of(document, operation, status);
    let errors: Vec<String> = validator
        .iter_errors(answer)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert_eq!(
        errors,
        Vec::<String>::new(),
        "{operation} {status}: {answer}"
    );
}

/// Sends a request of an operation about this session.
async fn send(
    web: &Web,
    operation: &str,
    session: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let (method, path) = operation.split_once(' ').unwrap();
    let path = format!(
        "/api/v1{}",
        path.replace("{part}", session).replace("{number}", "1")
    );
    if method == "POST" {
        web.post(&path, headers, body).await
    } else {
        web.ask(method, &path, headers).await
    }
}

fn assert_refused(document: &Value, operation: &str, status: u16, answer: &Answer) {
    assert_eq!(answer.status, status, "{operation}: {answer:?}");
    assert_eq!(
        answer.header("content-type"),
        Some("application/json"),
        "{operation}: {answer:?}"
    );
    assert_fits(document, operation, status, &answer.json());
}

async fn web(system: &TestSystem, env: &[(&str, &str)]) -> Web {
    let section = "web: {allow: {ask: ['*'], cancel: ['*'], rerun: ['*'], submit: ['*'], system: ['*']}, \
                   streams_per_user: 1}\n";
    std::fs::write(system.file("web.yaml"), section).unwrap();
    let config = system.file("web.yaml").display().to_string();
    Web::start(
        system,
        &[
            &[
                ("TARSY_CONFIG", config.as_str()),
                ("TARSY_WEB_TOKEN", TOKEN),
            ],
            env,
        ]
        .concat(),
    )
    .await
}

#[test]
fn the_description_has_every_method_of_every_route_and_no_other() {
    let document: Value = serde_json::from_str(tarsy_web::OPENAPI).unwrap();
    let described = operations(&document)
        .into_iter()
        .map(|(method, path)| (method, format!("/api/v1{path}")));
    assert_eq!(
        described.collect::<BTreeSet<_>>(),
        in_source("crates/web/src/api")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_request_is_answered_as_described() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let web = web(&system, &[]).await;
    let document: Value = serde_json::from_str(tarsy_web::OPENAPI).unwrap();
    let done = system.publish().await;
    system.gates.next().await.open().await;
    system.follow(done).await.finish().await;
    // Another session whose id has the same beginning, and which is running.
    let done = done.to_string();
    let last = if done.ends_with('0') { "1" } else { "0" };
    let running = format!("{}{last}", &done[..done.len() - 1]);
    let headers = json!({SESSION_ID: running});
    let alert = NewAlert {
        priority: Priority::High,
        suffix: None,
        body: b"KubePodOOMKilled".to_vec(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    let _held = system.gates.next().await;

    let (submit, rerun) = ("POST /alerts", "POST /sessions/{part}/rerun");
    let record = |text: &str| json!({"Sns": {"TopicArn": "arn:aws:sns:eu-1:1:alarms", "Subject": text, "Message": text}});
    let two_alerts =
        json!({"Records": [record("one is full"), record("another is full")]}).to_string();
    let too_long = "x".repeat(600_000);
    let (ask, cancel) = (
        "POST /sessions/{part}/questions",
        "POST /sessions/{part}/cancel",
    );
    let long = format!("{{\"question\": \"{}\"}}", "x".repeat(70_000));
    let (unknown, question) = (Uuid::now_v7().to_string(), r#"{"question": "Why?"}"#);
    for (operation, session, body, status) in [
        (ask, done.as_str(), question, 202),
        (ask, &done, "{}", 400),
        (ask, &done, &long, 400),
        (ask, "abc", question, 400),
        (ask, &unknown, question, 404),
        (ask, &running, question, 409),
        (ask, &done[..8], question, 409),
        (rerun, &running, "", 409),
        (cancel, "abc", "", 400),
        (cancel, &unknown, "", 404),
        (cancel, &done, "", 409),
        (cancel, &done[..8], "", 409),
        (cancel, &running, "", 202),
        (rerun, done.as_str(), "", 202),
        (rerun, &done, r#"{"request_id": "c0ffee"}"#, 400),
        (rerun, &done, r#"{"chains": "x"}"#, 400),
        (rerun, "abc", "", 400),
        (rerun, &unknown, "", 404),
        (rerun, &done[..8], "", 409),
        (submit, "", "disk 94 % full", 202),
        (submit, "", &two_alerts, 202),
        (submit, "", " ", 400),
        (submit, "", &too_long, 202),
        ("GET /sessions/{part}", &done[..8], "", 409),
        ("GET /sessions/{part}/events", &done[..8], "", 409),
        ("GET /sessions/{part}/events/{number}", &done[..8], "", 409),
        ("GET /sessions/{part}/calls", &done[..8], "", 409),
        ("GET /sessions/{part}/calls", "abc", "", 400),
        ("GET /sessions/{part}/calls", &unknown, "", 404),
        ("GET /sessions/{part}/calls", &done, "", 200),
        ("GET /sessions/{part}/calls/{number}", &done[..8], "", 409),
        ("GET /sessions/{part}/calls/{number}", "abc", "", 400),
        ("GET /sessions/{part}/calls/{number}", &unknown, "", 404),
        ("GET /sessions/{part}/calls/{number}", &done, "", 200),
    ] {
        let answer = send(&web, operation, session, &[BEARER], body).await;
        assert_eq!(
            answer.status, status,
            "{operation} {session} {body}: {answer:?}"
        );
        assert_fits(&document, operation, status, &answer.json());
    }
    system.gates.open_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_refuses_as_described() {
    let system = TestSystem::start(&[]).await;
    let web = web(&system, &[]).await;
    let document: Value = serde_json::from_str(tarsy_web::OPENAPI).unwrap();
    let session = Uuid::now_v7().to_string();
    let operations: Vec<String> = operations(&document)
        .into_iter()
        .map(|(method, path)| format!("{method} {path}"))
        .collect();
    let body_of = |operation: &str| {
        if operation.ends_with("/rerun") {
            ""
        } else {
            r#"{"question": "Why?"}"#
        }
    };
    for operation in &operations {
        let body = body_of(operation);
        for (headers, status) in [(&[][..], 401), (&[BEARER, ("host", "evil.example")], 421)] {
            let answer = send(&web, operation, &session, headers, body).await;
            assert_refused(&document, operation, status, &answer);
        }
        if operation.starts_with("POST") {
            let answer = send(
                &web,
                operation,
                &session,
                &[BEARER, ("sec-fetch-site", "cross-site")],
                body,
            )
            .await;
            assert_refused(&document, operation, 403, &answer);
        }
    }

    let _stream = web.stream("/api/v1/events", &[BEARER]).await;
    for operation in ["GET /events", "GET /sessions/{part}/events"] {
        let headers = [BEARER, ("accept", "text/event-stream")];
        assert_refused(
            &document,
            operation,
            429,
            &send(&web, operation, &session, &headers, "").await,
        );
    }

    let nowhere = [
        ("DATABASE_URL", "postgres://postgres@127.0.0.1:1/none"),
        ("NATS_URL", "nats://127.0.0.1:1"),
    ];
    let alone = self::web(&system, &nowhere).await;
    let answers = operations.iter().map(async |operation| {
        let answer = send(&alone, operation, &session, &[BEARER], body_of(operation)).await;
        if operation == "GET /openapi.json" {
            assert_eq!((answer.status, answer.json()), (200, document.clone()));
        } else {
            assert_refused(&document, operation, 503, &answer);
            assert_eq!(answer.header("retry-after"), Some("3"), "{operation}");
        }
    });
    join_all(answers).await;
}
