//! The paths of sources: `POST /hooks/<source>`.

use serde_json::{Value, json};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use super::{Receiver, metrics_of};
use crate::support::http::{self, head};
use crate::support::process::{Tarsy, metric_is};
use crate::support::system::{PROVEN, Setup, TestSystem};

/// An event of PagerDuty.
pub(super) fn incident(event_type: &str) -> Vec<u8> {
    json!({"event": {
        "id": "e1", "event_type": event_type, "resource_type": "incident", "occurred_at": "2026-11-25T10:00:00Z",
        "data": {
            "id": "Q1", "incident_key": "k1", "title": "Checkout is slow", "urgency": "high",
            "service": {"id": "S1", "summary": "Checkout"},
        },
    }})
    .to_string()
    .into_bytes()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_has_the_source_of_its_path_and_never_that_of_a_header() {
    let receiver = Receiver::start(&[]).await;
    let forged = [
        ("Tarsy-Source", "datadog"),
        ("tarsy-part", "7"),
        ("Tarsy-Title", "t"),
    ];
    let answer = receiver
        .post("/hooks/pagerduty", &forged, &incident("incident.triggered"))
        .await;
    assert_eq!(
        answer.json()["ignored_headers"],
        json!(["Tarsy-Source", "Tarsy-Part"]),
        "{answer:?}"
    );
    let message = receiver.published(&answer).await;
    assert_eq!(message.subject.as_str(), "tarsy.alerts.high.pagerduty");
    let header = |name: &str| {
        message
            .headers
            .get(name)
            .map(|value| value.as_str().to_owned())
    };
    assert_eq!(header("Tarsy-Source").as_deref(), Some("pagerduty"));
    assert_eq!(
        (header("Tarsy-Part"), header("Tarsy-Title").as_deref()),
        (None, Some("t"))
    );
    assert_eq!(message.payload.as_ref(), incident("incident.triggered"));

    // People press the button for a test, and want to see what comes of it.
    let test = receiver
        .post(
            "/hooks/pagerduty?priority=low",
            &[],
            &incident("pagey.ping"),
        )
        .await;
    assert_eq!(
        receiver.published(&test).await.subject.as_str(),
        "tarsy.alerts.low.pagerduty"
    );
    let named = receiver
        .post(
            "/hooks/grafana",
            &[],
            &super::fixture("04_grafana_unified_firing.json"),
        )
        .await;
    assert_eq!(
        receiver.published(&named).await.subject.as_str(),
        "tarsy.alerts.normal.grafana"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ignored_message_is_answered_and_counted_and_not_queued() {
    let receiver = Receiver::start(&[]).await;
    for path in ["/hooks/pagerduty", "/alert"] {
        let answer = receiver
            .post(path, &[], &incident("incident.annotated"))
            .await;
        let reason = answer.json()["ignored"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            answer.status == 202 && reason.contains("incident.annotated"),
            "{path}: {answer:?}"
        );
    }
    assert_eq!(receiver.published_count().await, 0);
    let name = "tarsy_receive_alerts_total";
    metric_is(
        &receiver.metrics,
        name,
        "source=\"pagerduty\",outcome=\"ignored\"",
        2.0,
    )
    .await;
    metric_is(
        &receiver.metrics,
        name,
        "source=\"pagerduty\",outcome=\"published\"",
        0.0,
    )
    .await;
    metric_is(
        &receiver.metrics,
        "tarsy_receive_requests_total",
        "path=\"hooks\",code=\"2xx\"",
        1.0,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_source_has_no_path_and_a_handshake_of_cloudevents_is_answered() {
    let receiver = Receiver::start(&[]).await;
    for path in [
        "/hooks",
        "/hooks/",
        "/hooks/nope",
        "/hooks/pagerduty/",
        "/hooks/pagerduty/token",
        "/hooks/PagerDuty",
    ] {
        let answer = receiver.post(path, &[], b"{}").await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
    let options = |path: &str, headers: &[(&str, &str)]| {
        let (address, request) = (
            receiver.address.clone(),
            head("OPTIONS", path, headers, None),
        );
        async move { http::send(&address, &request).await }
    };
    let origin = [("WebHook-Request-Origin", "events.example.com")];
    let answer = options("/hooks/cloudevents", &origin).await;
    assert_eq!(
        (answer.status, answer.header("webhook-allowed-origin")),
        (200, Some("events.example.com"))
    );
    assert_eq!(
        answer.header("access-control-allow-origin"),
        None,
        "no web page is permitted"
    );
    for (path, headers, status) in [
        ("/hooks/cloudevents", &[][..], 405),
        ("/hooks/nope", &origin, 404),
        ("/alert", &origin, 405),
    ] {
        assert_eq!(options(path, headers).await.status, status, "{path}");
    }
    assert_eq!(receiver.published_count().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_in_headers_is_read_and_a_validation_of_event_grid_is_answered() {
    let receiver = Receiver::start(&[]).await;
    let attributes = [
        ("ce-id", "1"),
        ("ce-source", "disks"),
        ("ce-specversion", "1.0"),
        ("ce-type", "com.example.disk.firing"),
    ];
    let answer = receiver
        .post(
            "/hooks/cloudevents",
            &attributes,
            br#"{"severity": "critical"}"#,
        )
        .await;
    assert_eq!(
        receiver.published(&answer).await.subject.as_str(),
        "tarsy.alerts.critical.cloudevents"
    );
    let event = json!({"eventType": "Microsoft.EventGrid.SubscriptionValidationEvent", "data": {"validationCode": "512d38b6"}});
    let answer = receiver
        .post("/hooks/azure", &[], json!([event]).to_string().as_bytes())
        .await;
    assert_eq!(
        (answer.status, answer.json()),
        (200, json!({"validationResponse": "512d38b6"}))
    );
    assert_eq!(receiver.published_count().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_another_form_is_published_and_counted() {
    let receiver = Receiver::start(&[]).await;
    let events_api = json!({"event_action": "trigger", "dedup_key": "k", "payload": {"summary": "Disk full", "severity": "critical"}});
    let answer = receiver
        .post("/hooks/pagerduty", &[], events_api.to_string().as_bytes())
        .await;
    assert_eq!(
        receiver.published(&answer).await.subject.as_str(),
        "tarsy.alerts.critical.pagerduty"
    );
    metric_is(
        &receiver.metrics,
        "tarsy_receive_other_form_total",
        "source=\"pagerduty\"",
        1.0,
    )
    .await;
}

const TEN_LINES: &str = "
sources:
  shop-watch:
    type: /check/name
    title: '{/check/name}  {/host}'
    severity: {from: /prio, map: {1: critical}, default: normal}
    status: {from: /check/state, map: {up: resolved, note: ignored}}
    key: [/check/id, /host]
    labels: [{list: /tags, split: ':'}]
    at: /changed_at
    auth: {bearer: {secret_env: SHOP_TOKEN}}
";

fn check(state: &str, time: &str) -> Vec<u8> {
    let check = json!({"id": 17, "name": "CheckoutSlow", "state": state});
    json!({"check": check, "host": "web-1", "prio": 1, "tags": ["team:shop"], "changed_at": time})
        .to_string()
        .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_source_of_ten_lines_works_without_a_rebuild() {
    let cooldown = std::time::Duration::from_secs(3600);
    let system = TestSystem::start_with(Setup {
        sections: TEN_LINES,
        cooldown,
        transcripts: &[PROVEN],
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let config = system.file("tarsy.yaml");
    let env = [
        ("NATS_URL", &*system.nats.url()),
        ("TARSY_CONFIG", config.to_str().unwrap()),
        ("SHOP_TOKEN", "t0ken-of-the-shop"),
    ];
    let mut receive = Tarsy::spawn("receive", &["receive", "--listen", "127.0.0.1:0"], &env);
    let (address, _metrics) = (receive.ready().await, metrics_of(&mut receive).await);
    let authorized = [("authorization", "Bearer t0ken-of-the-shop")];
    let posted = async |body: Vec<u8>| {
        // The receiver may not be connected yet.
        let mut answer = http::post(&address, "/hooks/shop-watch", &authorized, &body).await;
        while answer.status == 503 {
            answer = http::post(&address, "/hooks/shop-watch", &authorized, &body).await;
        }
        answer
    };
    let firing = posted(check("down", "2026-11-25T10:00:00Z")).await;
    assert_eq!(
        firing.json()["subject"],
        "tarsy.alerts.critical.shop-watch",
        "{firing:?}"
    );
    let id = SessionId::parse(firing.json()["session_id"].as_str().unwrap()).unwrap();
    let mut timeline = system.follow(id).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    let shown = |key: &str| -> Value { timeline.seen[0].metadata[key].clone() };
    assert_eq!(
        [shown("title"), shown("severity"), shown("alert_type")],
        [
            json!("CheckoutSlow  web-1"),
            json!("critical"),
            json!("CheckoutSlow")
        ]
    );
    let row = format!("FROM alerts WHERE alert_id = '{id}'");
    let fingerprint = system.database.text(&format!("SELECT fingerprint {row}"));
    assert!(
        fingerprint.starts_with("shop-watch@shop-watch:"),
        "{fingerprint}"
    );

    let again = posted(check("down", "2026-11-25T11:00:00Z")).await;
    let joined = SessionId::parse(again.json()["session_id"].as_str().unwrap()).unwrap();
    system.follow(joined).await.finish().await;
    let (one, print) = (
        system
            .database
            .number("SELECT count(*) FROM alert_sessions"),
        "SELECT fingerprint FROM alerts",
    );
    assert_eq!(
        (
            one,
            system
                .database
                .text(&format!("{print} WHERE alert_id = '{joined}'"))
        ),
        (1, fingerprint)
    );
    assert_eq!(
        posted(check("note", "2026-11-25T11:01:00Z")).await.json(),
        json!({"ignored": "state is note"})
    );
    assert_eq!(
        http::post(&address, "/hooks/shop-watch", &[], b"{}")
            .await
            .status,
        401
    );
}
