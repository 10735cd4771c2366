//! Routes in the receiver: the priority of the subject, and what is answered without being published.

use serde_json::json;

use super::Receiver;

const ROUTES: &str = "
routes:
- {name: quiet, match: ['@type=Watchdog'], ignore: true, reason: it always fires}
- {name: storage, match: ['team=\"storage\"'], priority: low}
- {name: loud, match: ['@type=Backup', '@severity=high'], ignore: true, reason: it is asked for}
receive: {headers: [Tarsy-Alert-Type, Tarsy-Tools]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_sets_the_priority_and_answers_ignored_alerts_by_its_name() {
    let (receiver, _folder) = Receiver::configured(ROUTES, &[]).await;
    let alert = |name: &str, team: &str| json!({"labels": {"alertname": name, "team": team, "severity": "critical"}, "status": "firing"});
    let group = |alerts: &[serde_json::Value]| {
        json!({"version": "4", "status": "firing", "alerts": alerts}).to_string()
    };
    let post = async |path: &str, body: &str| {
        receiver
            .post(path, &[("Tarsy-Tools", "k8s.*")], body.as_bytes())
            .await
    };
    for (path, body, subject) in [
        (
            "/alertmanager",
            group(&[alert("Disk", "storage")]),
            "tarsy.alerts.low.alertmanager",
        ),
        (
            "/alertmanager?priority=high",
            group(&[alert("Disk", "storage")]),
            "tarsy.alerts.high.alertmanager",
        ),
        (
            "/alertmanager",
            group(&[alert("Disk", "db")]),
            "tarsy.alerts.critical.alertmanager",
        ),
        // Its alerts do not share the label.
        (
            "/alertmanager",
            group(&[alert("Disk", "storage"), alert("Disk", "db")]),
            "tarsy.alerts.critical.alertmanager",
        ),
    ] {
        let answer = post(path, &body).await;
        let message = receiver.published(&answer).await;
        assert_eq!(message.subject.as_str(), subject, "{path} {body}");
        assert_eq!(
            message.headers.get("Tarsy-Tools").unwrap().as_str(),
            "k8s.*"
        );
    }
    let before = receiver.published_count().await;
    let answer = post("/alertmanager", &group(&[alert("Watchdog", "x")])).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert!(
        format!("{answer:?}").contains("route quiet: it always fires"),
        "{answer:?}"
    );
    assert_eq!(receiver.published_count().await, before);
    let typed = [("Tarsy-Alert-Type", "Watchdog")];
    let answer = receiver.post("/alert", &typed, b"disk full").await;
    assert_eq!(
        answer.json()["ignored"],
        "route quiet: it always fires",
        "the type of its header counts"
    );
    let backup = [("Tarsy-Alert-Type", "Backup")];
    let answer = receiver
        .post("/alert?priority=high", &backup, b"backup is late")
        .await;
    assert_eq!(
        answer.json()["ignored"],
        "route loud: it is asked for",
        "a body without a severity has that priority"
    );
    // Of a list of bodies only the ignored one is left out.
    let list = format!(
        "[{}, {}]",
        group(&[alert("Watchdog", "x")]),
        group(&[alert("Net", "storage")])
    );
    let answer = post("/alert", &list).await;
    assert_eq!(
        (answer.status, receiver.published_count().await),
        (202, before + 1),
        "{answer:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_narrows_tools_only_where_the_header_is_listed() {
    let receiver = Receiver::start(&[]).await;
    let answer = receiver
        .post("/alert", &[("Tarsy-Tools", "k8s.*")], b"disk full")
        .await;
    let message = receiver.published(&answer).await;
    assert!(message.headers.get("Tarsy-Tools").is_none());
    assert_eq!(answer.json()["ignored_headers"], json!(["Tarsy-Tools"]));
}
