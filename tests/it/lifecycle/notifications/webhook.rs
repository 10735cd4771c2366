//! The generic webhook and the workflow of Microsoft Teams: bodies, signatures, filters, hostile texts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use ring::hmac::{HMAC_SHA256, Key, verify};
use serde_json::json;
use tarsy_bus::Priority;

use super::{FAILING, closed, publish, system};
use crate::support::http::endpoint::{Endpoint, Reply, Request};
use crate::support::process::metric_is;

const SECRET: &str = "a secret of 32 bytes, to sign with";

/// Two chains: the second one takes alerts of one type.
const CHAINS: &str = "agents: {sre: {}}\nagent_chains:\n  pods: {default: true, stages: [{agents: [{name: sre}]}]}\n  \
                      elsewhere: {alert_types: [Elsewhere], stages: [{agents: [{name: sre}]}]}\n";

/// Asserts that the signature is that of the secret.
fn assert_signed(request: &Request) {
    let header = |name: &str| {
        request
            .header(name)
            .unwrap_or_else(|| panic!("no {name}: {request:?}"))
    };
    let content = format!(
        "{}.{}.{}",
        header("webhook-id"),
        header("webhook-timestamp"),
        request.body
    );
    let tag = BASE64
        .decode(
            header("webhook-signature")
                .strip_prefix("v1,")
                .unwrap()
                .as_bytes(),
        )
        .unwrap();
    verify(
        &Key::new(HMAC_SHA256, SECRET.as_bytes()),
        content.as_bytes(),
        &tag,
    )
    .expect("a valid signature");
    assert_eq!(header("idempotency-key"), header("webhook-id"));
    assert_eq!(request.json()["id"], header("webhook-id"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_route_gets_what_it_wants_once_and_signed() {
    let (all, failures) = (Endpoint::accepting().await, Endpoint::accepting().await);
    let (chain, severe, team) = (
        Endpoint::accepting().await,
        Endpoint::accepting().await,
        Endpoint::accepting().await,
    );
    let (secret, url) = (
        tempfile::NamedTempFile::new().unwrap(),
        tempfile::NamedTempFile::new().unwrap(),
    );
    std::fs::write(secret.path(), format!("{SECRET}\n")).unwrap();
    std::fs::write(url.path(), format!("{}/services/T0/B0/x\n", team.url())).unwrap();
    let routes = format!(
        "  all: {{kind: webhook, url: '{}', secret_file: {}, when: [started, ended]}}\n  \
         failures: {{kind: webhook, url: '{}', outcomes: [failed]}}\n  \
         chain: {{kind: webhook, url: '{}', chains: [pods]}}\n  \
         other: {{kind: webhook, url: '{}', chains: [elsewhere]}}\n  \
         severe: {{kind: webhook, url: '{}', severities: [critical, high]}}\n  \
         team: {{kind: slack, url_file: {}, template: '<!here> {{chain}} {{outcome}}: {{title}}, {{link}}'}}\n",
        all.url(),
        secret.path().display(),
        failures.url(),
        chain.url(),
        chain.url(),
        severe.url(),
        url.path().display()
    );
    let system = system(&format!("{routes}{CHAINS}")).await;
    let (_worker, metrics) = system.worker("w1").await;
    let session = system.publish().await;
    // A session of another chain has no row for the route `elsewhere`.
    assert_eq!(closed(&system, 6).await, "filtered 1, sent 5");

    let requests = all.requests();
    requests.iter().for_each(assert_signed);
    let [started, ended] = &requests.iter().map(Request::json).collect::<Vec<_>>()[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(
        (&started["type"], &started["outcome"]),
        (&json!("session.started"), &json!(null))
    );
    let expected = [
        ("type", json!("session.ended")),
        ("session_id", json!(session)),
        ("outcome", json!("completed")),
        ("severity", json!("critical")),
        (
            "url",
            json!(format!("https://tarsy.example.com/sessions/{session}")),
        ),
        ("may_be_repeated", json!(false)),
    ];
    for (key, value) in expected {
        assert_eq!(ended[key], value, "{key}: {ended}");
    }
    assert!(
        ended["cited_events"].as_u64().unwrap() > 1 && !ended["cause"].as_str().unwrap().is_empty(),
        "{ended}"
    );
    assert!(failures.requests().is_empty());
    let names = |endpoint: &Endpoint| -> Vec<String> {
        endpoint
            .requests()
            .iter()
            .map(|request| request.json()["route"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        (names(&chain), names(&severe)),
        (vec!["chain".to_owned()], vec!["severe".to_owned()])
    );
    // The incoming webhook of Slack: the address of the file, no header with a secret, and the words of the template.
    let [sent] = &team.requests()[..] else {
        panic!("{:?}", team.requests())
    };
    assert_eq!(
        (sent.path.as_str(), sent.header("authorization")),
        ("/services/T0/B0/x", None)
    );
    let title = ended["title"].as_str().unwrap();
    let text =
        format!("<!here> pods completed: {title}, https://tarsy.example.com/sessions/{session}");
    let section =
        json!([{"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": true}}]);
    assert_eq!(
        (&sent.json()["text"], &sent.json()["blocks"]),
        (&json!(text), &section)
    );
    metric_is(
        &metrics,
        "tarsy_notifications_total",
        "{kind=\"webhook\",outcome=\"sent\"}",
        4.0,
    )
    .await;
    metric_is(
        &metrics,
        "tarsy_notifications_total",
        "{kind=\"webhook\",outcome=\"filtered\"}",
        1.0,
    )
    .await;
    metric_is(
        &metrics,
        "tarsy_notifications_total",
        "{kind=\"slack\",outcome=\"sent\"}",
        1.0,
    )
    .await;

    let failing =
        json!({"alertname": "Elsewhere", "severity": "low", "summary": FAILING}).to_string();
    publish(&system, Priority::Low, &failing).await;
    // All but `chain`: two of `all`, and those of `failures`, `other`, `severe`, which does not want it, and `team`.
    assert_eq!(closed(&system, 12).await, "filtered 2, sent 10");
    assert_eq!(failures.requests()[0].json()["outcome"], "failed");
    assert_eq!(
        (names(&chain), names(&severe).len()),
        (vec!["chain".to_owned(), "other".to_owned()], 1)
    );
    assert!(
        team.requests()[1].json()["text"]
            .as_str()
            .unwrap()
            .starts_with("<!here> elsewhere failed: ")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incoming_webhook_of_slack_waits_as_long_as_a_limit_says() {
    let count = AtomicUsize::new(0);
    let endpoint = Endpoint::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::of(429).with("retry-after: 2\r\n"),
        _ => Reply::of(200),
    })
    .await;
    let url = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(url.path(), endpoint.url()).unwrap();
    let system = system(&format!(
        "  team: {{kind: slack, url_file: {}}}\n",
        url.path().display()
    ))
    .await;
    let (worker, _) = system.worker("w1").await;
    system.publish().await;
    worker.logged("HTTP 429").await;
    let since = Instant::now();
    assert_eq!(closed(&system, 1).await, "sent 1");
    assert!(
        since.elapsed() > Duration::from_millis(1_500),
        "{:?}",
        since.elapsed()
    );
    let [_, accepted] = &endpoint.requests()[..] else {
        panic!("{:?}", endpoint.requests())
    };
    let text = accepted.json()["text"].as_str().unwrap().to_owned();
    assert!(
        !text.contains("may be a repetition"),
        "a message that is refused has not arrived: {text}"
    );
    assert!(
        !worker.log().contains(endpoint.url().as_str()),
        "the address is a secret"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_and_secret_title_is_masked_and_has_no_markup_in_a_card() {
    let endpoint = Endpoint::accepting().await;
    let url = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(url.path(), endpoint.url()).unwrap();
    let system = system(&format!(
        "  team: {{kind: teams, url_file: {}}}\n",
        url.path().display()
    ))
    .await;
    let (_worker, _) = system.worker("w1").await;
    let title = "<at>all</at> [x](https://evil.example) **b** password=hunter2-hunter2 \u{202e}";
    let alert = json!({"alertname": title, "severity": "high"}).to_string();
    publish(&system, Priority::High, &alert).await;
    assert_eq!(closed(&system, 1).await, "sent 1");
    let requests = endpoint.requests();
    let card = requests[0].json()["attachments"][0]["content"].clone();
    let text = card["body"][0]["inlines"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("<at>all</at> [x](https://evil.example)"),
        "a run of text has no markup: {text}"
    );
    assert!(
        !requests[0].body.contains("hunter2") && !text.contains('\u{202e}'),
        "{text}"
    );
    assert!(
        card.get("msteams").is_none()
            && card["body"]
                .as_array()
                .unwrap()
                .iter()
                .all(|b| b["type"] == "RichTextBlock")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_is_tried_and_checked_without_an_investigation() {
    let endpoint = Endpoint::accepting().await;
    let routes = format!(
        "  tickets: {{kind: webhook, url: '{}'}}\n  team: {{kind: teams, url_env: NOT_SET}}\n",
        endpoint.url()
    );
    let system = system(&routes).await;
    let mut test = system.tarsy("notify", &["notify", "test", "tickets"]);
    let (code, output) = test.finished().await;
    assert_eq!(code, 0, "{output} {}", test.log());
    let sent = endpoint.requests();
    assert_eq!(
        (sent.len(), &sent[0].json()["route"]),
        (1, &json!("tickets"))
    );
    let mut failing = system.tarsy("notify", &["notify", "test", "team"]);
    assert_eq!(failing.finished().await.0, 1);
    assert!(
        failing.log().contains("the variable NOT_SET is not set"),
        "{}",
        failing.log()
    );
    let (_, checks) = system
        .tarsy("doctor", &["doctor", "--no-probe"])
        .finished()
        .await;
    assert!(
        checks.contains("notify tickets") && checks.contains("reachable"),
        "{checks}"
    );
    assert!(
        checks.contains("the variable NOT_SET is not set"),
        "{checks}"
    );
    assert_eq!(
        endpoint.requests().last().unwrap().method,
        "HEAD",
        "a check sends no message"
    );
}
