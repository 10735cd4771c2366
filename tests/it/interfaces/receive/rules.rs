//! The requests that the receiver accepts, the messages that it publishes, and its answers.

use std::collections::BTreeSet;

use serde_json::json;
use tarsy_core::ids::SessionId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Receiver, fixture};
use crate::support::http::{self, head};
use crate::support::process::{Tarsy, metric_is};
use crate::support::wait::eventually;

type Headers<'a> = &'a [(&'a str, &'a str)];
/// Method, path, headers and body of a request; status and a word of the answer.
type Rejected<'a> = (&'a str, &'a str, Headers<'a>, &'a [u8], u16, &'a str);

const PARENT: &str = "0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa";
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_is_published_byte_for_byte_and_the_answer_has_its_subject() {
    let receiver = Receiver::start(&[]).await;
    let own = Uuid::now_v7().to_string();
    let (firing, grafana) = (
        fixture("01_alertmanager_v4_firing_truncated.json"),
        fixture("04_grafana_unified_firing.json"),
    );
    let cases: [(&str, Headers<'_>, &[u8], &str); 6] = [
        (
            "/alertmanager",
            &[],
            &firing,
            "tarsy.alerts.critical.alertmanager",
        ),
        (
            "/alertmanager?priority=low",
            &[],
            &firing,
            "tarsy.alerts.low.alertmanager",
        ),
        ("/grafana", &[], &grafana, "tarsy.alerts.normal.grafana"),
        (
            "/alert",
            &[("X-Other", &own)],
            b"disk 94 % full\r\n",
            "tarsy.alerts.normal.http",
        ),
        (
            "/alert?x=y&priority=high",
            &[],
            b"{\"a\": 1}",
            "tarsy.alerts.high.http",
        ),
        (
            "/alert",
            &[],
            br#"{"alert":"x","severity":"page"}"#,
            "tarsy.alerts.critical.http",
        ),
    ];
    for (path, headers, body, subject) in cases {
        let answer = receiver.post(path, headers, body).await;
        let message = receiver.published(&answer).await;
        let id = SessionId::parse(answer.json()["session_id"].as_str().unwrap())
            .expect("a UUIDv7")
            .to_string();
        let sequence = message.sequence;
        assert_eq!(
            answer.json(),
            json!({"session_id": id, "subject": subject, "stream_sequence": sequence})
        );
        assert_eq!(
            (message.subject.as_str(), message.payload.as_ref()),
            (subject, body)
        );
        assert_eq!(
            message.headers.get("Tarsy-Session-Id").unwrap().as_str(),
            id
        );
        assert_ne!(id, own);
    }
    let headers = [
        ("TARSY-TITLE", "größer"),
        ("Tarsy-Fingerprint", "f1"),
        ("traceparent", "00-1-2-01"),
        ("Nats-Msg-Id", "m"),
        ("Nats-Expected-Stream", "OTHER"),
        ("X-Other", "o"),
        ("tarsy-chain", "restarts"),
        ("Tarsy-Force", "true"),
        ("Tarsy-Session-Id", &own),
        ("Tarsy-Retry-Of", &own),
    ];
    let answer = receiver.post("/alert", &headers, b"with headers").await;
    let ignored = json!([
        "Tarsy-Session-Id",
        "Tarsy-Force",
        "Tarsy-Chain",
        "Tarsy-Retry-Of"
    ]);
    assert_eq!(
        answer.json()["ignored_headers"],
        ignored,
        "the answer names the ignored headers"
    );
    assert_ne!(answer.json()["session_id"], own);
    let message = receiver.published(&answer).await;
    let kept: BTreeSet<String> = message
        .headers
        .iter()
        .map(|(name, _)| name.to_string())
        .collect();
    let expected = [
        "Tarsy-Fingerprint",
        "Tarsy-Session-Id",
        "Tarsy-Title",
        "traceparent",
    ];
    assert_eq!(
        kept,
        expected.map(str::to_owned).into(),
        "only listed headers are published"
    );
    assert_eq!(
        message.headers.get("Tarsy-Title").unwrap().as_str(),
        "größer"
    );
    metric_is(
        &receiver.metrics,
        "tarsy_receive_requests_total",
        "path=\"alert\",code=\"2xx\"",
        4.0,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_chooses_chain_or_session_is_published_only_if_it_is_listed() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("tarsy.yaml");
    let chains = "agent_chains: {restarts: {default: true, stages: [{agents: [{name: sre}]}]}}\n";
    std::fs::write(
        &config,
        format!("receive: {{headers: [Tarsy-Session-Id, Tarsy-Chain]}}\n{chains}"),
    )
    .unwrap();
    let receiver = Receiver::start(&[("TARSY_CONFIG", config.to_str().unwrap())]).await;
    let own = Uuid::now_v7().to_string();
    let headers = [
        ("tarsy-session-id", own.as_str()),
        ("Tarsy-Chain", "restarts"),
        ("Tarsy-Title", "t"),
    ];
    let answer = receiver.post("/alert", &headers, b"a").await;
    assert_eq!(
        (
            &answer.json()["session_id"],
            &answer.json()["ignored_headers"]
        ),
        (&json!(own), &json!(["Tarsy-Title"]))
    );
    let message = receiver.published(&answer).await;
    let kept: BTreeSet<String> = message
        .headers
        .iter()
        .map(|(name, _)| name.to_string())
        .collect();
    assert_eq!(
        kept,
        ["Tarsy-Chain", "Tarsy-Session-Id"]
            .map(str::to_owned)
            .into()
    );
    for (header, why) in [
        (("Tarsy-Session-Id", "42"), "is not a UUID of version 7"),
        (
            ("Tarsy-Chain", "nope"),
            "names no chain of tarsy.yaml; there are: restarts",
        ),
    ] {
        let answer = receiver.post("/alert", &[header], b"b").await;
        let error = answer.json()["error"].clone();
        assert!(
            answer.status == 400 && error.as_str().unwrap().contains(why),
            "{answer:?}"
        );
    }
    let published = receiver
        .stream()
        .await
        .info()
        .await
        .unwrap()
        .state
        .last_sequence;
    assert_eq!(published, message.sequence, "a refused alert was published");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_request_is_answered_with_the_reason_and_not_published() {
    let receiver = Receiver::start(&[("TARSY_RECEIVE_TOKEN", "s3cret-of-the-receiver")]).await;
    let authorized = ("authorization", "Bearer s3cret-of-the-receiver");
    let cases: [Rejected<'_>; 17] = [
        ("POST", "/alert", &[], b"a", 401, "bearer token"),
        (
            "POST",
            "/alert",
            &[("authorization", "Bearer s3cret")],
            b"a",
            401,
            "bearer token",
        ),
        (
            "POST",
            "/alert",
            &[("authorization", "Basic s3cret-of-the-receiver")],
            b"a",
            401,
            "bearer token",
        ),
        (
            "POST",
            "/alert",
            &[authorized, ("tarsy-parent-id", PARENT)],
            b"why?",
            400,
            "an alert, not a question",
        ),
        ("GET", "/alert", &[authorized], b"", 405, "sent with POST"),
        (
            "PUT",
            "/alertmanager",
            &[authorized],
            b"{}",
            405,
            "sent with POST",
        ),
        ("POST", "/", &[authorized], b"a", 404, "/alertmanager"),
        ("POST", "/alert/", &[authorized], b"a", 404, "/alertmanager"),
        ("GET", "/metrics", &[authorized], b"", 404, "/alertmanager"),
        ("GET", "/healthz", &[authorized], b"", 404, "/alertmanager"),
        ("POST", "/alert", &[authorized], b"", 400, "no content"),
        ("POST", "/alert", &[authorized], b" \n{}", 400, "no content"),
        ("POST", "/alert", &[authorized], &[0, 0xff], 400, "no text"),
        (
            "POST",
            "/alertmanager",
            &[authorized],
            b"{\"status\": \"firing\"}",
            400,
            "Grafana webhook",
        ),
        (
            "POST",
            "/grafana",
            &[authorized],
            b"some text",
            400,
            "looks like text",
        ),
        (
            "POST",
            "/alertmanager",
            &[authorized],
            b"{\"alerts\": []}",
            400,
            "no content",
        ),
        (
            "POST",
            "/alert?priority=urgent",
            &[authorized],
            b"a",
            400,
            "critical, high, normal, low",
        ),
    ];
    for (method, path, headers, body, status, word) in cases {
        let request = [head(method, path, headers, Some(body.len())), body.to_vec()].concat();
        let answer = http::send(&receiver.address, &request).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(
            answer.json()["error"].as_str().unwrap().contains(word),
            "{method} {path}: {answer:?}"
        );
        assert_eq!(answer.header("allow"), (status == 405).then_some("POST"));
        assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
    }
    assert_eq!(
        receiver
            .stream()
            .await
            .info()
            .await
            .unwrap()
            .state
            .last_sequence,
        0,
        "nothing was published"
    );
    assert_eq!(
        receiver.post("/alert", &[authorized], b"a").await.status,
        202
    );
    let all = receiver.process.log();
    assert!(!all.contains("s3cret"), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_is_refused_without_being_read() {
    let receiver = Receiver::start(&[]).await;
    // No byte of the body is sent: the declared length is enough for the answer.
    let answer = http::send(
        &receiver.address,
        &head("POST", "/alert", &[], Some(MAX_BODY_BYTES + 1)),
    )
    .await;
    assert_eq!(
        (answer.status, answer.header("connection")),
        (413, Some("close"))
    );
    let mut chunked = head("POST", "/alert", &[("transfer-encoding", "chunked")], None);
    chunked.extend(
        format!("{:x}\r\n", MAX_BODY_BYTES + 1)
            .bytes()
            .chain(vec![b'x'; MAX_BODY_BYTES + 1]),
    );
    assert_eq!(http::send(&receiver.address, &chunked).await.status, 413);
    assert_eq!(
        receiver
            .post("/alert", &[], &vec![b'x'; MAX_BODY_BYTES])
            .await
            .status,
        202,
        "a body of the largest size is accepted"
    );
    metric_is(
        &receiver.metrics,
        "tarsy_receive_requests_total",
        "code=\"4xx\"",
        2.0,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_alerts_at_once_are_all_published_under_different_ids() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("tarsy.yaml");
    std::fs::write(&config, "receive: {connections_per_address: 200}\n").unwrap();
    let receiver = Receiver::start(&[("TARSY_CONFIG", config.to_str().unwrap())]).await;
    let mut posts = JoinSet::new();
    for number in 0..200 {
        let address = receiver.address.clone();
        posts.spawn(async move {
            http::post(
                &address,
                "/alert",
                &[],
                format!("alert {number}").as_bytes(),
            )
            .await
        });
    }
    let answers = posts.join_all().await;
    let of = |key: &str| -> BTreeSet<String> {
        answers
            .iter()
            .inspect(|answer| assert_eq!(answer.status, 202))
            .map(|a| a.json()[key].to_string())
            .collect()
    };
    assert_eq!(
        (of("session_id").len(), of("stream_sequence").len()),
        (200, 200)
    );
    let stream = receiver.stream().await;
    let mut bodies = BTreeSet::new();
    for sequence in 1..=200 {
        bodies.insert(
            String::from_utf8(
                stream
                    .get_raw_message(sequence)
                    .await
                    .unwrap()
                    .payload
                    .to_vec(),
            )
            .unwrap(),
        );
    }
    assert_eq!(
        bodies,
        (0..200).map(|number| format!("alert {number}")).collect()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_is_stopped_finishes_its_open_requests() {
    let mut receiver = Receiver::start(&[]).await;
    let mut open = TcpStream::connect(&receiver.address).await.unwrap();
    open.write_all(&head(
        "POST",
        "/alert",
        &[("expect", "100-continue")],
        Some(9),
    ))
    .await
    .unwrap();
    let mut line = [0; 25];
    open.read_exact(&mut line).await.unwrap();
    assert_eq!(
        &line, b"HTTP/1.1 100 Continue\r\n\r\n",
        "the receiver does not read the body"
    );
    receiver.process.terminate();
    receiver.readiness_is(503).await;
    let closed = async || TcpStream::connect(&receiver.address).await.is_err();
    eventually("the receiver accepts no connection any more", closed).await;
    open.write_all(b"last word").await.unwrap();
    let answer = http::read(&mut open).await.unwrap();
    assert_eq!(
        receiver.published(&answer).await.payload.as_ref(),
        b"last word"
    );
    assert_eq!(
        receiver.process.finished().await.0,
        0,
        "{}",
        receiver.process.log()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_the_receiver_listens_on_loopback_only() {
    let directory = tempfile::tempdir().unwrap();
    let (file, blank) = (
        directory.path().join("token"),
        directory.path().join("blank"),
    );
    std::fs::write(&file, "from-a-file\n").unwrap();
    std::fs::write(&blank, " \n").unwrap();
    let (file, blank) = (file.to_str().unwrap(), blank.to_str().unwrap());
    let everywhere = ["receive", "--listen", "0.0.0.0:0"];
    let cases: [(Headers<'_>, &str); 5] = [
        (&[], "can be reached from other machines"),
        (&[("TARSY_RECEIVE_TOKEN", "")], "TARSY_RECEIVE_TOKEN"),
        (&[("TARSY_RECEIVE_TOKEN", "with a space")], "visible ASCII"),
        (
            &[("TARSY_RECEIVE_TOKEN_FILE", blank)],
            "TARSY_RECEIVE_TOKEN_FILE",
        ),
        (
            &[
                ("TARSY_RECEIVE_TOKEN", "a"),
                ("TARSY_RECEIVE_TOKEN_FILE", file),
            ],
            "one of them",
        ),
    ];
    for (env, word) in cases {
        let mut receive = Tarsy::spawn("receive", &everywhere, env);
        assert_eq!(receive.finished().await.0, 78, "{env:?}");
        assert!(
            receive.log().contains(word) && !receive.log().contains("with a space"),
            "{env:?}: {}",
            receive.log()
        );
    }
    let receiver = Receiver::start(&[("TARSY_RECEIVE_TOKEN_FILE", file)]).await;
    assert_eq!(receiver.post("/alert", &[], b"a").await.status, 401);
    assert_eq!(
        receiver
            .post("/alert", &[("authorization", "bearer from-a-file")], b"a")
            .await
            .status,
        202
    );
    std::fs::write(file, "renewed\n").unwrap();
    eventually("the renewed token is accepted", async || {
        receiver
            .post("/alert", &[("authorization", "bearer renewed")], b"a")
            .await
            .status
            == 202
    })
    .await;
    assert_eq!(
        receiver
            .post("/alert", &[("authorization", "bearer from-a-file")], b"a")
            .await
            .status,
        401
    );
}
