//! Providers that refuse, fail, hang, or want another token.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{closed, system, with_routes};
use crate::proofs::load::publish_many;
use crate::support::http::endpoint::{Endpoint, Reply, Request};
use crate::support::system::Setup;
use crate::support::wait::eventually;

const SESSIONS: usize = 12;

fn ids(requests: &[Request]) -> Vec<String> {
    let mut ids: Vec<String> = requests
        .iter()
        .map(|request| request.header("webhook-id").unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_limits_and_fails_for_a_while_gets_each_message_once() {
    let count = AtomicUsize::new(0);
    let endpoint = Endpoint::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0..8 => Reply::of(429).with("retry-after: 1\r\n"),
        8..20 => Reply::of(500),
        _ => Reply::of(200),
    })
    .await;
    let transcript = Some(crate::proofs::load::paced(1, Duration::ZERO));
    let routes = format!("  all: {{kind: webhook, url: '{}'}}\n", endpoint.url());
    let system = with_routes(
        &routes,
        Setup {
            transcript,
            ..Setup::default()
        },
    )
    .await;
    let (_worker, _) = system.worker("w1").await;
    publish_many(&system, SESSIONS).await;
    assert_eq!(closed(&system, SESSIONS).await, format!("sent {SESSIONS}"));
    let accepted = endpoint.accepted();
    let mut unique = ids(&accepted);
    unique.dedup();
    assert_eq!(
        (accepted.len(), unique.len()),
        (SESSIONS, SESSIONS),
        "accepted once each"
    );
    // Only a message after an answer 500 may have arrived before.
    let doubtful = accepted
        .iter()
        .filter(|request| request.json()["may_be_repeated"] == true)
        .count();
    assert!(doubtful > 0 && doubtful <= 12, "{doubtful}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_provider_delays_no_other_route() {
    let hanging = Endpoint::start(|_| Reply::of(200).after(Duration::from_secs(600))).await;
    let quick = Endpoint::accepting().await;
    let routes = format!(
        "  hanging: {{kind: webhook, url: '{}', timeout: 1s}}\n  quick: {{kind: webhook, url: '{}'}}\n",
        hanging.url(),
        quick.url()
    );
    let system = system(&routes).await;
    let (worker, _) = system.worker("w1").await;
    system.publish().await;
    eventually("the other route has its message", async || {
        quick.requests().len() == 1
    })
    .await;
    worker.logged("no answer within 1 s").await;
    hanging.decide(|_| Reply::of(200));
    assert_eq!(closed(&system, 2).await, "sent 2");
    let last = hanging.requests().last().unwrap().json();
    assert_eq!(
        last["may_be_repeated"], true,
        "the first attempt has arrived, for all that is known"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_the_provider_rejects_is_given_up_with_the_reason() {
    let endpoint = Endpoint::start(|_| Reply::of(400)).await;
    let system = system(&format!(
        "  all: {{kind: webhook, url: '{}'}}\n",
        endpoint.url()
    ))
    .await;
    let (_worker, _) = system.worker("w1").await;
    system.publish().await;
    assert_eq!(closed(&system, 1).await, "given_up 1");
    assert_eq!(
        system.database.text("SELECT reason FROM notifications"),
        "HTTP 400"
    );
    assert_eq!(endpoint.requests().len(), 1);
}
