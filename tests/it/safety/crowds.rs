//! Clients without credentials that hold every place which they can get, at each of the listeners.
//!
//! Every connection of the crowd has begun a request that looks as if it were on its way: a call of HTTP/2, a form, a
//! signed body. A client with credentials is answered beside it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use ring::hmac;
use tarsy_http::outgoing::token::TokenSource;
use tarsy_llm::client::{Client, Credentials};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::interfaces::receive::Receiver;
use crate::support::http::{self, head};
use crate::support::process::Tarsy;
use crate::support::system::TestSystem;
use crate::web::Web;

const TOKEN: &str = "s3cret-of-the-listener";
const BEARER: (&str, &str) = ("authorization", "Bearer s3cret-of-the-listener");
/// An answer within this time, on a machine that answers at once.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// The beginning of a connection of HTTP/2: its preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Four addresses, each with as many connections as it may have.
struct Crowd {
    members: Vec<AbortOnDropHandle<()>>,
}

impl Crowd {
    /// Returns when each address has tried to open `each` connections and has sent `bytes` on them. From then on each
    /// opens another one whenever the listener has closed one, one after another.
    async fn around(listener: SocketAddr, each: usize, bytes: &'static [u8]) -> Self {
        let mut members = Vec::new();
        for last in 2..6 {
            let mut held = JoinSet::new();
            for _ in 0..each {
                hold(&mut held, last, listener, bytes).await;
            }
            let member = tokio::spawn(async move {
                loop {
                    if held.len() >= each {
                        held.join_next().await;
                    }
                    while held.try_join_next().is_some() {}
                    hold(&mut held, last, listener, bytes).await;
                }
            });
            members.push(AbortOnDropHandle::new(member));
        }
        Self { members }
    }

    fn assert_is_there(&self) {
        assert!(self.members.iter().all(|member| !member.is_finished()));
    }
}

/// Opens a connection and holds it until the listener closes it.
async fn hold(held: &mut JoinSet<()>, last: u8, listener: SocketAddr, bytes: &[u8]) {
    if let Some(mut stream) = begin(last, listener, bytes).await {
        held.spawn(async move { drop(tokio::io::copy(&mut stream, &mut tokio::io::sink()).await) });
    }
}

/// A connection from `127.0.0.<last>` that has sent these bytes; `None` if it was refused.
async fn begin(last: u8, listener: SocketAddr, bytes: &[u8]) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind(SocketAddr::from(([127, 0, 0, last], 0)))
        .unwrap();
    let mut stream = socket.connect(listener).await.ok()?;
    stream.write_all(bytes).await.ok()?;
    Some(stream)
}

/// Asks ten times, each time on a new connection. Returns the longest time to an answer.
async fn slowest(ask: impl AsyncFn()) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let began = Instant::now();
        ask().await;
        slowest = slowest.max(began.elapsed());
    }
    slowest
}

/// Compares with the same requests without the crowd: on a busy machine, every answer takes longer.
async fn is_served_beside_a_crowd(
    listener: &str,
    each: usize,
    bytes: &'static [u8],
    ask: impl AsyncFn(),
) {
    let alone = slowest(&ask).await;
    let crowd = Crowd::around(listener.parse().unwrap(), each, bytes).await;
    let beside = slowest(&ask).await;
    crowd.assert_is_there();
    println!(
        "{listener}: the slowest of ten answers took {alone:.1?} alone, {beside:.1?} beside a crowd"
    );
    assert!(beside < MAX_WAIT + 10 * alone, "{beside:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_with_a_token_are_answered_beside_a_crowd_at_the_llm_service() {
    let env = [("TARSY_LLM_TOKEN", TOKEN)];
    let mut service = Tarsy::spawn(
        "llm-service",
        &["llm-service", "--listen", "127.0.0.1:0"],
        &env,
    );
    let address = service.ready().await;
    let client = || {
        let token = Some(TokenSource::Value(TOKEN.to_owned()));
        Client::with_credentials(
            &address,
            Credentials {
                token,
                ..Credentials::default()
            },
        )
        .unwrap()
    };
    let worker = client();
    worker.check().await.unwrap();
    is_served_beside_a_crowd(&address, 256, PREFACE, async || {
        client().check().await.expect("a new worker is answered");
    })
    .await;
    worker.check().await.expect("a worker keeps its connection");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_with_a_token_are_answered_beside_a_crowd_of_unfinished_logins() {
    let system = TestSystem::start(&[]).await;
    let web = Web::start(&system, &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    let login = head(
        "POST",
        "/login",
        &[("origin", "http://tarsy")],
        Some(60_000),
    )
    .leak();
    is_served_beside_a_crowd(&web.address, 512, login, async || {
        assert_eq!(
            web.ask("GET", "/api/v1/sessions", &[BEARER]).await.status,
            200
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proven_alerts_are_accepted_beside_a_crowd_of_unfinished_signed_bodies() {
    let config = "sources:\n  shop: {type: /name, title: '{/name}', key: [/name], auth: {hmac_sha256: \
                  {header: X-Sign, secret_env: SHOP}}}\n";
    let env = [
        ("TARSY_RECEIVE_TOKEN", TOKEN),
        ("SHOP", "s3cret-of-the-shop"),
    ];
    let (receiver, _directory) = Receiver::configured(config, &env).await;
    let signed = head("POST", "/hooks/shop", &[("x-sign", "00")], Some(60_000)).leak();
    let body = br#"{"name":"db-3 is down"}"#;
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret-of-the-shop");
    let signature = HEXLOWER.encode(hmac::sign(&key, body).as_ref());
    is_served_beside_a_crowd(&receiver.address, 16, signed, async || {
        let with_token = http::post(&receiver.address, "/alert", &[BEARER], b"a").await;
        let with_signature = http::post(
            &receiver.address,
            "/hooks/shop",
            &[("x-sign", &signature)],
            body,
        )
        .await;
        assert_eq!(
            [with_token.status, with_signature.status],
            [202, 202],
            "{with_signature:?}"
        );
    })
    .await;
}
