//! The largest incident arrives: bodies up to 32 MiB, what is stored of them, and the memory that they need.

use std::io::Write as _;

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::hmac;
use serde_json::{Value, json};
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::{Hints, Intake, LeftOut, MAX_BODY_BYTES};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use uuid::Uuid;

use super::Receiver;
use crate::support::http::{self, head};
use crate::support::process::Tarsy;
use crate::support::system::TestSystem;
use crate::support::wait::eventually;

const MIB: usize = 1024 * 1024;
/// The receiver may need so much for the largest group.
const MAX_PEAK_MIB: usize = 150;
/// The size of the annotations of a large rule's alert.
const DESCRIPTION_BYTES: usize = 1_800;

/// A group of Alertmanager with alerts of about 2.7 KB, of which one is critical.
fn group(count: usize, critical: usize) -> Vec<u8> {
    let alert = |number: usize| {
        let severity = if number == critical {
            "critical"
        } else {
            "warning"
        };
        json!({
            "status": "firing",
            "labels": {
                "alertname": "KubePodNotReady", "cluster": "prod-eu-1", "container": "kube-rbac-proxy-main",
                "instance": "192.0.2.7:8443", "job": "kube-state-metrics", "namespace": format!("tenant-{number:05}"),
                "pod": format!("checkout-{number:05}-7d9f8b6c5-x2x9p"), "severity": severity,
            },
            "annotations": {"description": "d".repeat(DESCRIPTION_BYTES), "summary": "Pod is not ready."},
            "startsAt": "2026-11-27T02:00:31.482Z", "endsAt": "0001-01-01T00:00:00Z",
            "fingerprint": format!("{number:016x}"),
            "generatorURL": format!("https://prometheus.example.com/graph?{}", "sum+by+%28namespace%29+".repeat(16)),
        })
    };
    let alerts: Vec<Value> = (0..count).map(alert).collect();
    let body = json!({
        "receiver": "tarsy", "status": "firing", "version": "4", "groupKey": "{}:{alertname=\"KubePodNotReady\"}",
        "groupLabels": {"alertname": "KubePodNotReady"}, "alerts": alerts, "truncatedAlerts": 0,
    });
    body.to_string().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The highest memory of a process until now.
fn peak_mib(process: &Tarsy) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_of_thousands_is_stored_with_its_worst_alert_in_bounded_memory() {
    for (count, critical) in [(1_000, 617), (10_000, 7_777)] {
        let body = group(count, critical);
        let zipped = gzip(&body);
        for (headers, sent) in [(&[][..], &body), (&[("content-encoding", "gzip")], &zipped)] {
            let receiver = Receiver::start(&[]).await;
            let before = peak_mib(&receiver.process);
            let answer = receiver.post("/alertmanager", headers, sent).await;
            let message = receiver.published(&answer).await;
            let peak = peak_mib(&receiver.process);
            let (bytes, sent, stored) = (body.len(), sent.len(), message.payload.len());
            println!(
                "{count} alerts, {bytes} bytes ({sent} sent): {stored} stored, peak {peak} MiB, {before} at rest"
            );
            assert!(peak <= MAX_PEAK_MIB, "{peak} MiB");
            assert_eq!(
                message.subject.as_str(),
                "tarsy.alerts.critical.alertmanager"
            );
            let left_out = LeftOut::parse(message.headers.get("Tarsy-Left-Out").unwrap().as_str());
            let hints = Hints {
                left_out,
                suffix: "alertmanager".to_owned(),
                ..Hints::default()
            };
            let alert = Intake::default()
                .normalise(&message.payload, &hints)
                .unwrap();
            let named = format!("checkout-{critical:05}-7d9f8b6c5-x2x9p");
            assert!(
                alert.severity == Severity::Critical && alert.text.contains(&named),
                "{}",
                alert.text
            );
            assert!(
                alert.text.contains("severity=warning ("),
                "the others are counted: {}",
                alert.text
            );
            assert_eq!(
                alert.fingerprint,
                "alertmanager@alertmanager:{}:{alertname=\"KubePodNotReady\"}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_group_is_investigated_from_the_receiver_and_directly_from_the_broker() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let mut receive = Tarsy::spawn(
        "receive",
        &["receive", "--listen", "127.0.0.1:0"],
        &[("NATS_URL", &*system.nats.url())],
    );
    let address = receive.ready().await;
    let prompt = async |session: SessionId| {
        let mut timeline = system.follow(session).await;
        timeline.finish().await;
        let of_user = format!("session_id = '{session}' AND kind = 'prompt' AND role = 'user'");
        system
            .database
            .text(&format!("SELECT content FROM entries WHERE {of_user}"))
    };
    let posted = async || {
        let answer = http::post(&address, "/alertmanager", &[], &group(1_000, 617)).await;
        (answer.status == 202)
            .then(|| SessionId::parse(answer.json()["session_id"].as_str().unwrap()).unwrap())
    };
    let session = posted().await.expect("an answer 202");
    let text = prompt(session).await;
    assert!(
        text.contains("checkout-00617-") && text.contains("severity=warning ("),
        "{text}"
    );

    let direct = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: direct.to_string()});
    let (priority, suffix) = (Priority::High, "foreign".parse().ok());
    let body = group(280, 217);
    assert!(body.len() > 600 * 1024, "more than worker.max_alert_bytes");
    system
        .connect()
        .await
        .publish_alert(NewAlert {
            priority,
            suffix,
            body,
            headers,
        })
        .await
        .unwrap();
    let text = prompt(direct).await;
    assert!(
        text.contains("checkout-00217-") && text.contains("severity=warning ("),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_any_form_below_the_limit_is_accepted_and_one_above_it_is_not() {
    let receiver = Receiver::start(&[]).await;
    let list = json!({"shop": {"orders": vec![json!({"name": "Late", "severity": "low"}); 40_000]}, "title": "Orders"});
    let long = json!({"title": "Disk full", "severity": "critical", "output": "a line of a log\n".repeat(200_000)});
    let lines = format!(
        "{}\n",
        json!({"host": "db-3", "check": "disk", "severity": "high", "info": "i".repeat(500)})
    );
    for (body, priority) in [
        (vec![b'x'; MAX_BODY_BYTES], "normal"),
        (list.to_string().into_bytes(), "normal"),
        (long.to_string().into_bytes(), "critical"),
        (lines.repeat(5_000).into_bytes(), "high"),
        (
            format!("payload={}", long.to_string().replace('\\', "%5C")).into_bytes(),
            "critical",
        ),
        (
            long.to_string().replacen("\\n", "\n", 3).into_bytes(),
            "critical",
        ),
    ] {
        let answer = receiver.post("/alert", &[], &body).await;
        let message = receiver.published(&answer).await;
        assert_eq!(
            message.subject.as_str(),
            format!("tarsy.alerts.{priority}.http")
        );
        assert!(
            message.payload.len() <= 512 * 1024,
            "{}",
            message.payload.len()
        );
    }
    let chunk = [
        format!("{:x}\r\n", 3 * MIB).into_bytes(),
        vec![b'y'; 3 * MIB],
        b"\r\n0\r\n\r\n".to_vec(),
    ]
    .concat();
    let chunked = [
        head("POST", "/alert", &[("transfer-encoding", "chunked")], None),
        chunk,
    ]
    .concat();
    assert_eq!(http::send(&receiver.address, &chunked).await.status, 202);
    let bomb = gzip(&vec![b'z'; MAX_BODY_BYTES + 1]);
    assert_eq!(
        receiver
            .post("/alert", &[("content-encoding", "gzip")], &bomb)
            .await
            .status,
        413
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_that_signs_may_send_a_large_body_if_its_source_says_so() {
    let auth = "auth: {hmac_sha256: {header: X-Signature, secret_env: SHOP_SECRET}}";
    let keys = |name: &str, rest: &str| format!("  {name}: {{like: alertmanager, {auth}{rest}}}\n");
    let sources = format!(
        "sources:\n{}{}",
        keys("shop", ""),
        keys("large", ", max_body: 4MiB")
    );
    let (receiver, _directory) =
        Receiver::configured(&sources, &[("SHOP_SECRET", "s3cret-of-the-shop")]).await;
    let body = group(1_000, 617);
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret-of-the-shop");
    let signature = HEXLOWER.encode(hmac::sign(&key, &body).as_ref());
    let headers = [("x-signature", signature.as_str())];
    let refused = receiver.post("/hooks/shop", &headers, &body).await;
    assert_eq!(refused.status, 413);
    assert!(
        refused.json()["error"]
            .as_str()
            .unwrap()
            .contains("max_body"),
        "{refused:?}"
    );
    let message = receiver
        .published(&receiver.post("/hooks/large", &headers, &body).await)
        .await;
    assert!(
        message.subject.as_str() == "tarsy.alerts.critical.large"
            && message.payload.len() < body.len()
    );
    let forged = [("x-signature", "00")];
    assert_eq!(
        receiver.post("/hooks/large", &forged, &body).await.status,
        401
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_share_a_budget_that_is_whole_again_when_their_clients_leave() {
    let receiver = Receiver::start(&[]).await;
    let (almost, piece) = (MAX_BODY_BYTES - 1, vec![b'x'; 4 * MIB]);
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut client = TcpStream::connect(&receiver.address).await.unwrap();
        client
            .write_all(&head("POST", "/alert", &[], Some(MAX_BODY_BYTES)))
            .await
            .unwrap();
        client.write_all(&vec![b'x'; almost]).await.unwrap();
        slow.push(client);
    }
    let refused = async || {
        let answer = receiver.post("/alert", &[], &piece).await;
        answer.status == 503 && answer.header("retry-after") == Some("2")
    };
    eventually("a large body beyond the budget is refused", refused).await;
    assert_eq!(
        receiver.post("/alert", &[], b"disk full").await.status,
        202,
        "a small body beside large ones"
    );
    drop(slow);
    let accepted = async || receiver.post("/alert", &[], &piece).await.status == 202;
    eventually("the budget is free again", accepted).await;
}
