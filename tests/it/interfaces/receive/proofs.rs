//! Tests of the authentication of senders: tokens in three places, and signatures over the body.

use chrono::Utc;
use data_encoding::{BASE64, HEXLOWER};
use ring::hmac;

use super::Receiver;
use super::hooks::incident;
use crate::support::process::Tarsy;
use crate::support::wait::eventually;

const TOKEN: &str = "t0ken-of-the-receiver";
const OWN: &str = "0wn-t0ken-of-pingdom";

fn basic(password: &str) -> String {
    format!(
        "Basic {}",
        BASE64.encode(format!("sns:{password}").as_bytes())
    )
}

fn sign(secret: &str, message: &[u8]) -> String {
    HEXLOWER.encode(
        hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
            message,
        )
        .as_ref(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_401_the_token_may_come_as_the_password_of_basic() {
    let receiver = Receiver::start(&[("TARSY_RECEIVE_TOKEN", TOKEN)]).await;
    for path in ["/hooks/pagerduty", "/alert"] {
        let answer = receiver
            .post(path, &[], &incident("incident.triggered"))
            .await;
        let offered: Vec<&str> = answer
            .head
            .lines()
            .filter(|line| line.starts_with("www-authenticate: "))
            .collect();
        assert_eq!(answer.status, 401);
        assert!(
            offered.len() == 2 && offered[0].contains("Basic") && offered[1].contains("Bearer"),
            "{offered:?}"
        );
        for (value, status) in [
            (basic(TOKEN), 202),
            (format!("Bearer {TOKEN}"), 202),
            (basic("other"), 401),
            (basic(""), 401),
        ] {
            let answer = receiver
                .post(
                    path,
                    &[("authorization", &value)],
                    &incident("incident.triggered"),
                )
                .await;
            assert_eq!(answer.status, status, "{path} {value}");
        }
    }
    assert_eq!(receiver.published_count().await, 4);
    assert!(!receiver.process.log().contains(TOKEN));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_with_its_own_token_accepts_no_other_and_logs_none() {
    let config = "sources:\n  pagerduty: {auth: {path: {secret_env: PATH_TOKEN}}}\n  \
                  datadog: {auth: {header: {name: X-Token, secret_env: HEADER_TOKEN}}}\n  \
                  opsgenie: {auth: {bearer: {secret_env: BEARER_TOKEN}}}\n";
    let env = [
        ("TARSY_RECEIVE_TOKEN", TOKEN),
        ("PATH_TOKEN", OWN),
        ("HEADER_TOKEN", "0wn-t0ken-of-datadog"),
        ("BEARER_TOKEN", "0wn-t0ken-of-opsgenie"),
    ];
    let (receiver, _directory) = Receiver::configured(config, &env).await;
    let bearer = |token: &str| ("authorization", format!("Bearer {token}"));
    let in_path = format!("/hooks/pagerduty/{OWN}");
    let cases = [
        (in_path.clone(), bearer("x"), 202),
        ("/hooks/pagerduty".to_owned(), bearer(TOKEN), 404),
        (format!("/hooks/pagerduty/{TOKEN}"), bearer(TOKEN), 404),
        (format!("{in_path}/"), bearer(OWN), 404),
        (
            format!("/hooks/opsgenie/{OWN}"),
            bearer("0wn-t0ken-of-opsgenie"),
            404,
        ),
        (
            "/hooks/opsgenie".to_owned(),
            bearer("0wn-t0ken-of-opsgenie"),
            202,
        ),
        (
            "/hooks/opsgenie".to_owned(),
            ("authorization", basic("0wn-t0ken-of-opsgenie")),
            202,
        ),
        ("/hooks/opsgenie".to_owned(), bearer(TOKEN), 401),
        (
            "/hooks/datadog".to_owned(),
            ("x-token", "0wn-t0ken-of-datadog".to_owned()),
            202,
        ),
        (
            "/hooks/datadog".to_owned(),
            bearer("0wn-t0ken-of-datadog"),
            401,
        ),
        ("/alert".to_owned(), bearer("0wn-t0ken-of-opsgenie"), 401),
    ];
    for (path, (name, value), status) in cases {
        let answer = receiver
            .post(&path, &[(name, &value)], &incident("incident.triggered"))
            .await;
        assert_eq!(answer.status, status, "{path} {name}: {answer:?}");
        assert!(!answer.body.contains("t0ken"), "{answer:?}");
    }
    let log = receiver.process.log();
    assert!(!log.contains("t0ken"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_wrong_byte_in_a_signed_body_is_a_401() {
    let config = "sources:\n  pagerduty: {auth: {hmac_sha256: {header: X-PagerDuty-Signature, prefix: 'v1=', \
                  secret_env: FIRST, secret_file_2: FILE}}}\n";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("second");
    std::fs::write(&file, "s3cond-secret\n").unwrap();
    let config = config.replace("FILE", file.to_str().unwrap());
    let (receiver, _config) = Receiver::configured(
        &config,
        &[("FIRST", "f1rst-secret"), ("TARSY_RECEIVE_TOKEN", TOKEN)],
    )
    .await;
    let body = incident("incident.triggered");
    let post = async |signature: &str, body: &[u8]| {
        let headers = [
            ("x-pagerduty-signature", signature),
            ("Tarsy-Title", "not signed"),
        ];
        receiver.post("/hooks/pagerduty", &headers, body).await
    };
    let (first, second) = (sign("f1rst-secret", &body), sign("s3cond-secret", &body));
    for signature in [
        format!("v1={first}"),
        format!("v1={second}"),
        format!("v1={},v1={second}", sign("other", &body)),
    ] {
        let answer = post(&signature, &body).await;
        let message = receiver.published(&answer).await;
        assert_eq!(
            answer.json()["ignored_headers"],
            serde_json::json!(["Tarsy-Title"]),
            "a header is not signed"
        );
        assert!(message.headers.get("Tarsy-Title").is_none());
    }
    let published = receiver.published_count().await;
    for at in [0, body.len() / 2, body.len() - 1] {
        let mut changed = body.clone();
        changed[at] ^= 1;
        let answer = post(&format!("v1={first}"), &changed).await;
        assert_eq!(answer.status, 401, "byte {at}: {answer:?}");
    }
    for (signature, status) in [("", 401), ("v1=", 401), (first.as_str(), 401)] {
        assert_eq!(post(signature, &body).await.status, status, "{signature}");
    }
    let bearer = [("authorization", format!("Bearer {TOKEN}"))];
    let bearer: Vec<(&str, &str)> = bearer
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    assert_eq!(
        receiver
            .post("/hooks/pagerduty", &bearer, &body)
            .await
            .status,
        401,
        "the signature replaces the token"
    );
    assert_eq!(receiver.published_count().await, published);

    // The rotation: a third secret in place of the second.
    std::fs::write(&file, "th1rd-secret").unwrap();
    let third = format!("v1={}", sign("th1rd-secret", &body));
    eventually("the renewed secret is accepted", async || {
        post(&third, &body).await.status == 202
    })
    .await;
    assert_eq!(
        post(&format!("v1={second}"), &body).await.status,
        401,
        "the old one is refused"
    );
    assert!(!receiver.process.log().contains("-secret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_signature_is_refused_and_a_replayed_one_is_the_same_alert() {
    let config = "sources:\n  grafana: {auth: {hmac_sha256: {header: X-Grafana-Alerting-Signature, \
                  time_header: X-Grafana-Alerting-Timestamp, secret_env: SECRET}}}\n";
    let (receiver, _directory) =
        Receiver::configured(config, &[("SECRET", "grafana-s3cret")]).await;
    let body = super::fixture("04_grafana_unified_firing.json");
    let post = async |signed: i64, sent: i64| {
        let signature = sign(
            "grafana-s3cret",
            &[format!("{signed}:").as_bytes(), &body].concat(),
        );
        let sent = sent.to_string();
        let headers = [
            ("X-Grafana-Alerting-Signature", &*signature),
            ("X-Grafana-Alerting-Timestamp", &*sent),
        ];
        receiver.post("/hooks/grafana", &headers, &body).await
    };
    let now = Utc::now().timestamp();
    let (first, replayed) = (post(now, now).await, post(now, now).await);
    assert_eq!(
        (first.status, first.json()),
        (202, replayed.json()),
        "the same id, at the same place of the stream"
    );
    assert_eq!(receiver.published_count().await, 1);
    let next = post(now + 1, now + 1).await;
    assert_ne!(next.json()["session_id"], first.json()["session_id"]);
    for (signed, sent) in [
        (now - 400, now - 400),
        (now + 400, now + 400),
        (now - 400, now),
    ] {
        let answer = post(signed, sent).await;
        assert_eq!(answer.status, 401, "{answer:?}");
    }
    assert_eq!(receiver.published_count().await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_whose_secret_is_missing_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tarsy.yaml");
    for (auth, word) in [
        ("path: {secret_env: NO_SUCH_SECRET}", "NO_SUCH_SECRET"),
        ("path: {secret_env: SHORT_SECRET}", "at least 16"),
        (
            "bearer: {secret_file: /no/such/file}",
            "there is no such file",
        ),
        (
            "hmac_sha256: {header: X-S, secret_env: NO_SUCH_SECRET}",
            "NO_SUCH_SECRET",
        ),
    ] {
        std::fs::write(
            &file,
            format!("sources: {{pingdom: {{auth: {{{auth}}}}}}}\n"),
        )
        .unwrap();
        let env = [
            ("TARSY_CONFIG", file.to_str().unwrap()),
            ("SHORT_SECRET", "sh0rt"),
        ];
        let mut receive = Tarsy::spawn("receive", &["receive", "--listen", "127.0.0.1:0"], &env);
        assert_eq!(receive.finished().await.0, 78, "{auth}: {}", receive.log());
        assert!(
            receive.log().contains(word) && !receive.log().contains("sh0rt"),
            "{auth}: {}",
            receive.log()
        );
    }
}
