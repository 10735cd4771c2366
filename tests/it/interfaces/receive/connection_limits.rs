//! Slow, silent and too many clients, and web pages that send alerts.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::Receiver;
use crate::support::http::{self, Answer, head};
use crate::support::process::metric_is;
use crate::support::wait::eventually;

const TOKEN: &str = "s3cret-of-the-receiver";
const AUTHORIZED: (&str, &str) = ("authorization", "Bearer s3cret-of-the-receiver");
/// An honest client is answered within this time, whatever other clients do, on a machine that answers at once.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The same on this machine: on a busy one, every answer takes longer.
fn max_wait(without_others: Duration) -> Duration {
    MAX_WAIT + 10 * without_others
}

async fn connect(address: &str) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_disconnected() {
    let receiver = Receiver::start(&[]).await;
    let (mut slow_head, mut slow_body) = (
        connect(&receiver.address).await,
        connect(&receiver.address).await,
    );
    slow_head
        .write_all(b"POST /alert HTTP/1.1\r\nhost: ta")
        .await
        .unwrap();
    slow_body
        .write_all(&head("POST", "/alert", &[], Some(10)))
        .await
        .unwrap();
    slow_body.write_all(b"half").await.unwrap();
    let began = Instant::now();
    assert_eq!(
        http::read(&mut slow_head).await,
        None,
        "an incomplete request got an answer"
    );
    assert!(
        (2..9).contains(&began.elapsed().as_secs()),
        "the header timeout is 3 s: {:?}",
        began.elapsed()
    );
    let answer = http::read(&mut slow_body).await.unwrap();
    // Alertmanager would not try again after a 4xx.
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1")),
        "{answer:?}"
    );
    metric_is(&receiver.metrics, "tarsy_receive_connections", "", 0.0).await;
}

/// Opens connections that send half of a head, one after another, until the task is aborted.
fn flood(address: &str) -> JoinHandle<()> {
    let address = address.to_owned();
    tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            let mut stream = connect(&address).await;
            stream
                .write_all(b"POST /alert HTTP/1.1\r\nhost: ta")
                .await
                .ok();
            held.push(stream);
            if held.len() > 300 {
                held.drain(..100);
            }
        }
    })
}

/// Sends these bytes once, from a loopback address.
async fn send_from(from: [u8; 4], to: &str, bytes: &[u8]) -> Option<Answer> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let mut stream = socket.connect(to.parse().unwrap()).await.unwrap();
    stream.write_all(bytes).await.ok();
    http::read(&mut stream).await
}

/// Sends these bytes repeatedly until the answer has this status. Returns how long that took.
async fn accepted_from(from: [u8; 4], to: &str, bytes: &[u8], status: u16) -> Duration {
    let began = Instant::now();
    let accepted = async || {
        send_from(from, to, bytes)
            .await
            .is_some_and(|answer| answer.status == status)
    };
    eventually("the request is accepted", accepted).await;
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_incomplete_requests_does_not_delay_an_honest_client() {
    let receiver = Receiver::start(&[("TARSY_RECEIVE_TOKEN", TOKEN)]).await;
    let request = [
        head("POST", "/alert", &[AUTHORIZED], Some(1)),
        b"a".to_vec(),
    ]
    .concat();
    let limit = max_wait(accepted_from([127, 0, 0, 4], &receiver.address, &request, 202).await);
    let mut held = Vec::new();
    for _ in 0..300 {
        let mut stream = connect(&receiver.address).await;
        stream
            .write_all(b"POST /alert HTTP/1.1\r\nhost: ta")
            .await
            .ok();
        held.push(stream);
    }
    metric_is(&receiver.metrics, "tarsy_receive_connections", "", 256.0).await;
    let same = accepted_from([127, 0, 0, 1], &receiver.address, &request, 202).await;
    let other = accepted_from([127, 0, 0, 2], &receiver.address, &request, 202).await;
    println!(
        "beside 300 incomplete heads: {same:.1?} from the same address, {other:.1?} from another one"
    );
    assert!(
        same < limit && other < limit,
        "{same:?} {other:?} of {limit:?}"
    );

    let flood = flood(&receiver.address);
    let began = Instant::now();
    for _ in 0..20 {
        let answer = send_from([127, 0, 0, 3], &receiver.address, &request).await;
        assert_eq!(answer.expect("an answer at once").status, 202);
    }
    println!(
        "beside a flood: 20 requests from another address took {:.1?}",
        began.elapsed()
    );
    flood.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_connections_to_the_metrics_does_not_block_the_probes() {
    let receiver = Receiver::start(&[]).await;
    let probe = head("GET", "/healthz", &[], None);
    let limit = max_wait(accepted_from([127, 0, 0, 4], &receiver.metrics, &probe, 200).await);
    let mut held = Vec::new();
    for _ in 0..300 {
        let mut stream = connect(&receiver.metrics).await;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: ta")
            .await
            .ok();
        held.push(stream);
    }
    let same = accepted_from([127, 0, 0, 1], &receiver.metrics, &probe, 200).await;
    let other = accepted_from([127, 0, 0, 2], &receiver.metrics, &probe, 200).await;
    println!(
        "beside 300 incomplete heads at the metrics address: {same:.1?} from the same address, {other:.1?} from another one"
    );
    assert!(
        same < limit && other < limit,
        "{same:?} {other:?} of {limit:?}"
    );
    let metrics = head("GET", "/metrics", &[], None);
    let text = send_from([127, 0, 0, 2], &receiver.metrics, &metrics)
        .await
        .unwrap()
        .body;
    let refused = text.lines().find_map(|line| {
        line.strip_prefix("tarsy_connections_refused_total{listener=\"metrics\",how=\"refused\"} ")
    });
    assert!(
        refused.unwrap().parse::<u32>().unwrap() >= 200,
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_a_web_page_cannot_send_an_alert() {
    let page: [(&str, &str); 2] = [
        ("origin", "https://evil.example"),
        ("content-type", "text/plain"),
    ];
    let receiver = Receiver::start(&[]).await;
    for headers in [
        &page[..],
        &[("origin", "null")],
        &[("sec-fetch-site", "same-origin")],
    ] {
        let answer = receiver.post("/alert", headers, b"a").await;
        assert_eq!(answer.status, 403);
        assert!(
            answer.json()["error"]
                .as_str()
                .unwrap()
                .contains("web page"),
            "{answer:?}"
        );
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
        receiver
            .post("/alert", &[("content-type", "text/plain")], b"a")
            .await
            .status,
        202
    );
    let receiver = Receiver::start(&[("TARSY_RECEIVE_TOKEN", TOKEN)]).await;
    assert_eq!(
        receiver
            .post("/alert", &[AUTHORIZED, page[0]], b"a")
            .await
            .status,
        202,
        "a request with the token is accepted"
    );
}
