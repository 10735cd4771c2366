//! Alerts of a real Alertmanager are investigated; a full or unavailable broker only delays them.

use std::path::Path;

use serde_json::json;
use tarsy_core::timeline::EventType;

use super::{Receiver, metrics_of};
use crate::support::http;
use crate::support::monitoring::{Server, flag, program};
use crate::support::process::{Tarsy, metric};
use crate::support::system::TestSystem;
use crate::support::wait::eventually;

const TOKEN: &str = "token-of-alertmanager";

/// An Alertmanager that sends every alert to the receiver at once, one group per alert name.
async fn alertmanager(program: &Path, receiver: &str, directory: &Path) -> Server {
    let config = directory.join("alertmanager.yml");
    std::fs::write(
        &config,
        format!(
            "route: {{receiver: tarsy, group_by: [alertname], group_wait: 0s, group_interval: 10s, repeat_interval: 1h}}\n\
             receivers:\n- name: tarsy\n  webhook_configs:\n  - url: http://{receiver}/alertmanager\n    send_resolved: true\n    \
             http_config: {{authorization: {{type: Bearer, credentials: {TOKEN}}}}}\n"
        ),
    )
    .unwrap();
    let flags = [
        flag("config.file", &config),
        flag("storage.path", directory.join("alertmanager")),
        flag("web.listen-address", "127.0.0.1:0"),
        flag("cluster.listen-address", ""),
    ];
    Server::start(program, &flags).await
}

async fn fire(alertmanager: &Server, name: &str) {
    let alert = json!([{
        "labels": {"alertname": name, "severity": "critical", "service": "checkout"},
        "annotations": {"summary": format!("{name} on checkout")},
    }]);
    let json = [("content-type", "application/json")];
    let answer = http::post(
        alertmanager.address(),
        "/api/v2/alerts",
        &json,
        alert.to_string().as_bytes(),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Returns when the receiver has sent `count` answers of this status class.
async fn answered(metrics: &str, code: &str, count: f64) {
    let labels = format!("path=\"alertmanager\",code=\"{code}\"");
    let reached = async || metric(metrics, "tarsy_receive_requests_total", &labels).await >= count;
    eventually(&format!("{count} answers {code}"), reached).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_alertmanagers_alert_is_investigated_after_an_outage_of_the_broker() {
    let Some(program) = program("TARSY_TEST_ALERTMANAGER") else {
        return;
    };
    let mut system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let env = [
        ("NATS_URL", &*system.nats.url()),
        ("TARSY_RECEIVE_TOKEN", TOKEN),
    ];
    let mut receive = Tarsy::spawn("receive", &["receive", "--listen", "127.0.0.1:0"], &env);
    let (address, metrics) = (receive.ready().await, metrics_of(&mut receive).await);
    let alertmanager = alertmanager(&program, &address, &system.file("")).await;

    fire(&alertmanager, "TargetDown").await;
    answered(&metrics, "2xx", 1.0).await;
    let session = investigated(&system, "TargetDown").await;
    assert_eq!(session, "alertmanager critical");

    system.nats.kill();
    receive.logged("503 until nats is back").await;
    fire(&alertmanager, "DiskFull").await;
    // Alertmanager sends the alert again by itself.
    answered(&metrics, "5xx", 2.0).await;
    system.nats.restart().await;
    answered(&metrics, "2xx", 2.0).await;
    investigated(&system, "DiskFull").await;
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions"),
        2,
        "one session for each alert"
    );
}

/// Follows the session of this alert to its completion. Returns the end of the subject and the severity.
async fn investigated(system: &TestSystem, name: &str) -> String {
    let sessions =
        format!("SELECT count(*) FROM alerts WHERE place = 'opened' AND alert_type = '{name}'");
    eventually(&format!("a session for {name}"), async || {
        system.database.number(&sessions) > 0
    })
    .await;
    let id = system.database.text(&format!(
        "SELECT alert_id::text FROM alerts WHERE place = 'opened' AND alert_type = '{name}'"
    ));
    let mut timeline = system
        .follow(tarsy_core::ids::SessionId::parse(&id).unwrap())
        .await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    let severity = timeline.seen[0].metadata["severity"]
        .as_str()
        .unwrap()
        .to_owned();
    let subject = system.database.text(&format!(
        "SELECT subject FROM alerts WHERE alert_id = '{id}'"
    ));
    format!("{} {severity}", subject.rsplit('.').next().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_alertmanager_tries_again_while_the_queue_is_full() {
    let Some(program) = program("TARSY_TEST_ALERTMANAGER") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[("TARSY_RECEIVE_TOKEN", TOKEN)]).await;
    let stream = receiver.stream().await;
    let config = stream.cached_info().config.clone();
    let jetstream =
        async_nats::jetstream::new(async_nats::connect(receiver.nats.url()).await.unwrap());
    let full = async_nats::jetstream::stream::Config {
        max_bytes: 1,
        ..config.clone()
    };
    jetstream.update_stream(full).await.unwrap();
    let alertmanager = alertmanager(&program, &receiver.address, directory.path()).await;
    fire(&alertmanager, "TargetDown").await;
    answered(&receiver.metrics, "5xx", 2.0).await;
    jetstream.update_stream(config).await.unwrap();
    answered(&receiver.metrics, "2xx", 1.0).await;
    let message = stream.get_raw_message(1).await.unwrap();
    assert_eq!(
        message.subject.as_str(),
        "tarsy.alerts.critical.alertmanager"
    );
    assert!(String::from_utf8_lossy(&message.payload).contains("TargetDown"));
}
