//! Routes on a real worker: each of their actions, and the header that narrows the tools of one alert.

mod limits;

use std::time::Duration;

use serde_json::{Value, json};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};

use crate::support::process::metric_is;
use crate::support::system::{PROVEN, Setup, TestSystem};

const ROUTES: &str = "
agents: {sre: {}, other: {}}
agent_chains:
  usual: {default: true, alert_types: [Typed], stages: [{agents: [{name: sre}]}]}
  payments: {stages: [{agents: [{name: other}]}]}
routes:
- {name: always-firing, match: ['alertname=~\"Watchdog|InfoInhibitor\"'], ignore: true, reason: it always fires}
- {name: payments, match: ['namespace=~\"pay.*\"', '@severity=\"high\"'], chain: payments, tools: ['drill.describe_*', 'other.*']}
- {name: often, match: ['namespace=often'], cooldown: 0s}
- {name: storage, match: ['team=storage'], max_per_hour: 2}
";

/// An Alertmanager webhook with one alert of these labels.
pub(crate) fn webhook(name: &str, labels: &Value) -> String {
    let mut labels = labels.clone();
    labels["alertname"] = json!(name);
    json!({
        "version": "4", "groupKey": format!("{{}}:{{alertname=\"{name}\"}}"), "status": "firing", "receiver": "tarsy",
        "groupLabels": {"alertname": name}, "commonLabels": labels, "commonAnnotations": {},
        "alerts": [{"status": "firing", "labels": labels, "annotations": {"summary": "it fires"},
                    "startsAt": "2026-03-01T10:00:00Z", "endsAt": "0001-01-01T00:00:00Z"}],
    })
    .to_string()
}

pub(crate) async fn start() -> TestSystem {
    let cooldown = Duration::from_secs(3_600);
    let servers = "  other: {command: no-such-program}\n";
    let setup = Setup {
        cooldown,
        sections: ROUTES,
        servers,
        transcripts: &[PROVEN],
        ..Setup::default()
    };
    TestSystem::start_with(Setup {
        tool_wait: Duration::ZERO,
        ..setup
    })
    .await
}

/// Publishes an alert with these headers; returns its id.
pub(crate) async fn publish(
    system: &TestSystem,
    body: String,
    headers: &[(&str, &str)],
) -> SessionId {
    let session = SessionId(uuid::Uuid::now_v7());
    let client = async_nats::connect(system.nats_url()).await.unwrap();
    let mut all = async_nats::HeaderMap::new();
    all.insert("Tarsy-Session-Id", session.to_string());
    for (name, value) in headers {
        all.insert(*name, *value);
    }
    let jetstream = async_nats::jetstream::new(client);
    jetstream
        .publish_with_headers("tarsy.alerts.normal", all, body.into())
        .await
        .unwrap()
        .await
        .unwrap();
    session
}

pub(crate) async fn events_of(system: &TestSystem, session: SessionId) -> Vec<TimelineEvent> {
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    timeline.seen
}

/// Chain, route and tools of the plan of a session.
fn planned(system: &TestSystem, session: SessionId) -> (String, Option<String>, Vec<String>) {
    let plan = system.database.text(&format!(
        "SELECT plan::text FROM session_plans WHERE session_id = '{}'",
        session.0
    ));
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let tools = plan["stages"][0]["agents"][0]["tools"].as_array().unwrap();
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned());
    let names = names.filter(|name| !name.starts_with("tarsy.")).collect();
    (
        plan["chain"].as_str().unwrap().to_owned(),
        plan["route"].as_str().map(str::to_owned),
        names,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ignored_alert_costs_no_model_call_and_its_timeline_names_the_route() {
    let system = start().await;
    let (_worker, metrics) = system.worker("w1").await;
    let ignored = publish(
        &system,
        webhook("Watchdog", &json!({"severity": "none"})),
        &[],
    )
    .await;
    let seen = events_of(&system, ignored).await;
    let [only] = seen.as_slice() else {
        panic!("{seen:#?}")
    };
    assert_eq!(
        (only.event_type.clone(), only.content.as_str()),
        (
            EventType::SessionCompleted,
            "ignored: route always-firing: it always fires",
        )
    );
    assert_eq!(
        (&only.metadata["stop_reason"], &only.metadata["status"]),
        (&json!("not_investigated"), &json!("ignored"))
    );
    assert!(system.model_calls().is_empty());
    metric_is(
        &metrics,
        "tarsy_routes_total",
        "route=\"always-firing\"",
        1.0,
    )
    .await;

    let forced = [("Tarsy-Force", "true")];
    let forced = publish(
        &system,
        webhook("Watchdog", &json!({"severity": "none"})),
        &forced,
    )
    .await;
    let seen = events_of(&system, forced).await;
    assert_eq!(
        seen.first().unwrap().metadata["route"],
        "always-firing",
        "a person asks for it"
    );
    assert!(!system.model_calls().is_empty());
    metric_is(&metrics, "tarsy_routes_total", "route=\"none\"", 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_chooses_the_chain_the_tools_and_the_cooldown_of_an_alert() {
    let system = start().await;
    let (_worker, metrics) = system.worker("w1").await;
    let payments = json!({"namespace": "payments", "severity": "high"});
    let routed = publish(&system, webhook("Slow", &payments), &[]).await;
    let seen = events_of(&system, routed).await;
    let first = seen.first().unwrap();
    assert_eq!(
        (&first.metadata["route"], &first.metadata["chain"]),
        (&json!("payments"), &json!("payments"))
    );
    assert!(
        first.content.contains("; route payments"),
        "{}",
        first.content
    );
    let (chain, route, tools) = planned(&system, routed);
    assert_eq!(
        (chain.as_str(), route.as_deref()),
        ("payments", Some("payments"))
    );
    assert!(
        !tools.is_empty() && tools.iter().all(|tool| tool.starts_with("drill.describe_")),
        "{tools:?}"
    );

    let other = publish(
        &system,
        webhook("Typed", &json!({"namespace": "shop"})),
        &[],
    )
    .await;
    let seen = events_of(&system, other).await;
    assert_eq!(seen.first().unwrap().metadata.get("route"), None);
    let (chain, route, all) = planned(&system, other);
    assert_eq!((chain.as_str(), route), ("usual", None));
    assert!(all.len() > tools.len(), "{all:?}");

    // The header goes before the route, and both narrow the tools.
    let headers = [
        ("Tarsy-Chain", "usual"),
        ("Tarsy-Tools", "drill.*_pod, other.x"),
        ("Tarsy-Force", "1"),
    ];
    let named = publish(&system, webhook("Slow", &payments), &headers).await;
    events_of(&system, named).await;
    let (chain, route, narrowed) = planned(&system, named);
    assert_eq!(
        (chain.as_str(), route.as_deref()),
        ("usual", Some("payments"))
    );
    assert_eq!(narrowed, ["drill.describe_pod"]);

    for _ in 0..2 {
        let often = publish(
            &system,
            webhook("Often", &json!({"namespace": "often"})),
            &[],
        )
        .await;
        let last = events_of(&system, often).await.pop().unwrap();
        assert_eq!(
            last.metadata.get("joined_session_id"),
            None,
            "its route has no cooldown: {last:?}"
        );
    }
    metric_is(&metrics, "tarsy_routes_total", "route=\"often\"", 2.0).await;
    metric_is(&metrics, "tarsy_routes_total", "route=\"payments\"", 2.0).await;
    metric_is(&metrics, "tarsy_routes_total", "route=\"none\"", 1.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_with_tools_that_the_chain_does_not_offer_makes_a_dead_letter() {
    let system = start().await;
    let (_worker, metrics) = system.worker("w1").await;
    for (index, (tools, shown)) in (1_u32..).zip([
        (
            "drill.describe_pod, drill.get_pod_lgos",
            "drill.get_pod_lgos",
        ),
        ("k8s.*", "k8s.*"),
        ("describe_pod", "describe_pod"),
    ]) {
        let id = publish(
            &system,
            webhook(tools, &json!({})),
            &[("Tarsy-Tools", tools)],
        )
        .await;
        metric_is(
            &metrics,
            "tarsy_dead_letters_total",
            "reason=\"unknown_tools\"",
            f64::from(index),
        )
        .await;
        let why = system.database.text(&format!(
            "SELECT dead_detail FROM alerts WHERE alert_id = '{}'",
            id.0
        ));
        assert!(why.contains(&format!("{shown:?} names no tool")), "{why}");
    }
    assert!(system.model_calls().is_empty());
}
