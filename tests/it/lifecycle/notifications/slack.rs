//! The API of Slack: a thread for each session, a token that is refused, and the search for a message in doubt.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use tarsy_bus::Priority;

use super::{closed, publish, system};
use crate::support::http::endpoint::{Endpoint, Reply, Request};
use crate::support::wait::eventually;

/// Accepts each message, and calls it by its number.
fn accept(request: &Request) -> Reply {
    if request.header("authorization") != Some("Bearer xoxb-right-t0ken") {
        return Reply::json(&json!({"ok": false, "error": "invalid_auth"}));
    }
    let is_reply = request.json()["thread_ts"].is_string();
    Reply::json(&json!({"ok": true, "ts": if is_reply { "1700.2" } else { "1700.1" }}))
}

fn posts(endpoint: &Endpoint) -> Vec<Request> {
    endpoint
        .requests()
        .into_iter()
        .filter(|request| request.path == "/chat.postMessage")
        .collect()
}

struct Token(tempfile::NamedTempFile);

impl Token {
    fn new(text: &str) -> Self {
        let token = Self(tempfile::NamedTempFile::new().unwrap());
        token.set(text);
        token
    }

    fn set(&self, text: &str) {
        std::fs::write(self.0.path(), text).unwrap();
    }

    fn route(&self, endpoint: &Endpoint) -> String {
        format!(
            "  ops: {{kind: slack, token_file: {}, channel: C0123, api_url: '{}', when: [started, ended], timeout: 1s}}\n",
            self.0.path().display(),
            endpoint.url()
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_a_thread_and_a_refused_token_is_read_again() {
    let endpoint = Endpoint::start(accept).await;
    let token = Token::new("xoxb-wrong-t0ken");
    let system = system(&token.route(&endpoint)).await;
    let (worker, _) = system.worker("w1").await;
    system.publish().await;
    worker.logged("the API answered invalid_auth").await;
    token.set("xoxb-right-t0ken");
    assert_eq!(closed(&system, 2).await, "sent 2");
    let bodies: Vec<Value> = posts(&endpoint).iter().map(Request::json).collect();
    let ended = bodies.last().unwrap();
    assert_eq!(
        (&ended["channel"], &ended["thread_ts"]),
        (&json!("C0123"), &json!("1700.1"))
    );
    assert!(
        ended["text"].as_str().unwrap().contains("completed after"),
        "{ended}"
    );
    assert!(
        bodies[..bodies.len() - 1]
            .iter()
            .all(|body| body.get("thread_ts").is_none())
    );
    assert!(!worker.log().contains("t0ken"), "no log has a token");
}

/// An alert whose own message is in this thread.
fn in_thread(thread: &str) -> String {
    json!({"title": "disk full on db-1", "slack_thread": thread}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_messages_of_a_session_go_into_the_thread_of_the_alert() {
    let endpoint = Endpoint::start(|request| {
        // The message of the second alert was deleted.
        match request.json()["thread_ts"].as_str() {
            Some("1700000000.000200") => {
                Reply::json(&json!({"ok": false, "error": "thread_not_found"}))
            }
            _ => accept(request),
        }
    })
    .await;
    let token = Token::new("xoxb-right-t0ken");
    let route = token
        .route(&endpoint)
        .replace("when:", "thread_channels: [C0456], when:");
    let system = system(&route).await;
    let (_worker, _) = system.worker("w1").await;
    let places = |from: usize| -> Vec<(Value, Value)> {
        let posts = posts(&endpoint).into_iter().skip(from);
        posts
            .map(|post| post.json())
            .map(|body| (body["channel"].clone(), body["thread_ts"].clone()))
            .collect()
    };
    publish(
        &system,
        Priority::Normal,
        &in_thread("https://acme.slack.com/archives/C0456/p1700000000000100"),
    )
    .await;
    assert_eq!(closed(&system, 2).await, "sent 2");
    let of_alert = (json!("C0456"), json!("1700000000.000100"));
    assert_eq!(places(0), [of_alert.clone(), of_alert]);

    // A thread that is gone, and one in a channel that the operator has not listed: the channel of the route.
    let own = [
        (json!("C0123"), json!(null)),
        (json!("C0123"), json!("1700.1")),
    ];
    publish(
        &system,
        Priority::Normal,
        &in_thread("C0123/1700000000.000200"),
    )
    .await;
    assert_eq!(closed(&system, 4).await, "sent 4");
    let gone = (json!("C0123"), json!("1700000000.000200"));
    assert_eq!(
        places(2),
        [gone.clone(), own[0].clone(), gone, own[1].clone()]
    );
    publish(
        &system,
        Priority::Normal,
        &in_thread("C0789/1700000000.000300"),
    )
    .await;
    assert_eq!(closed(&system, 6).await, "sent 6");
    assert_eq!(places(6), own);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_answer_got_lost_is_found_and_not_sent_again() {
    // The first message is taken, and its answer never comes.
    let endpoint = Endpoint::start(|request| accept(request).after(Duration::from_secs(600))).await;
    let token = Token::new("xoxb-right-t0ken");
    let system = system(&token.route(&endpoint)).await;
    let (mut worker, _) = system.worker("w1").await;
    system.publish().await;
    eventually("the first message has arrived", async || {
        !posts(&endpoint).is_empty()
    })
    .await;
    worker.kill().await;
    let first = posts(&endpoint)[0].json()["metadata"].clone();
    endpoint.decide(move |request| {
        if request.path.starts_with("/conversations.history") {
            return Reply::json(
                &json!({"ok": true, "messages": [{"ts": "1700.1", "metadata": first}]}),
            );
        }
        accept(request)
    });
    let (_next, _) = system.worker("w2").await;
    assert_eq!(closed(&system, 2).await, "sent 2");
    let threads: Vec<Value> = posts(&endpoint)
        .iter()
        .map(|post| post.json()["thread_ts"].clone())
        .collect();
    assert_eq!(
        threads,
        [json!(null), json!("1700.1")],
        "one first message, and a reply to it"
    );
    let search = endpoint
        .requests()
        .into_iter()
        .find(|request| request.path.starts_with("/conversations.history"));
    assert!(search.unwrap().path.contains("include_all_metadata=true"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_the_api_is_waited_for_and_leaves_no_doubt() {
    let count = AtomicUsize::new(0);
    let endpoint = Endpoint::start(move |request| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::of(429).with("retry-after: 2\r\n"),
        1 => Reply::json(&json!({"ok": false, "error": "ratelimited"})).with("retry-after: 1\r\n"),
        _ => accept(request),
    })
    .await;
    let token = Token::new("xoxb-right-t0ken");
    let system = system(&token.route(&endpoint)).await;
    let (worker, _) = system.worker("w1").await;
    system.publish().await;
    worker.logged("HTTP 429").await;
    let since = Instant::now();
    worker.logged("the API answered ratelimited").await;
    assert!(
        since.elapsed() > Duration::from_millis(1_500),
        "not before Retry-After: {:?}",
        since.elapsed()
    );
    assert_eq!(closed(&system, 2).await, "sent 2");
    let threads: Vec<Value> = posts(&endpoint)
        .iter()
        .map(|post| post.json()["thread_ts"].clone())
        .collect();
    assert_eq!(
        threads.last(),
        Some(&json!("1700.1")),
        "the end replies to the beginning: {threads:?}"
    );
    let is_search = |request: &Request| request.path.starts_with("/conversations");
    assert!(
        !endpoint.requests().iter().any(is_search),
        "nothing is in doubt, so nothing is searched"
    );
}
