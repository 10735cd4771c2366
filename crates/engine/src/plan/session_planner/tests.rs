use chrono::Utc;
use uuid::Uuid;

use super::*;
use crate::testing::FakeTools;
use tarsy_core::testing::alert;

const CONFIG: &str = "
mcp_servers: {k8s: {command: k}}
agents: {sre: {mcp_servers: [k8s]}}
agent_chains: {web: {stages: [{agents: [{name: sre}]}]}}
routes:
- {name: noise, match: ['team=noise'], ignore: true, reason: it fires all the time}
- {name: rest, match: [], max_per_hour: 20}
";

fn planner() -> SessionPlanner<FakeTools> {
    let config = Config::parse("f", CONFIG, &|_| None).unwrap();
    SessionPlanner::new(config.into(), FakeTools::default().into(), "w".to_owned())
}

fn received(headers: Value) -> Received {
    Received {
        alert_id: SessionId(Uuid::from_u128(1)),
        body_sha256: [0; 32],
        body: None,
        headers,
        subject: "tarsy.alerts.normal".to_owned(),
        stream_sequence: 1,
        queued_at: Utc::now(),
    }
}

/// Whether the alert is ignored, and how many of its route are investigated in an hour.
fn prepared(team: &str, headers: Value) -> (bool, Option<u32>) {
    let facts = Facts::from([("team", team)]);
    let prepared = planner().prepare(&received(headers), alert("t"), &facts);
    let prepared = prepared.unwrap();
    let limit = prepared.limit.map(|limit| limit.max_per_hour);
    (prepared.alert.ignored_because.is_some(), limit)
}

#[test]
fn a_route_ignores_or_limits_an_alert_that_no_person_asks_for() {
    assert_eq!(prepared("noise", json!({})), (true, None));
    assert_eq!(prepared("shop", json!({})), (false, Some(20)));
    let forced = json!({"Tarsy-Force": "true"});
    assert_eq!(prepared("noise", forced.clone()), (false, None));
    assert_eq!(prepared("shop", forced), (false, None));
}

#[test]
fn an_unknown_chain_or_tool_is_refused_before_a_service_is_asked() {
    let reason = |headers| {
        let facts = Facts::from([("team", "shop")]);
        match planner().prepare(&received(headers), alert("t"), &facts) {
            Err(PrepareError::Refused(refusal)) => refusal.reason,
            other => panic!("not refused: {other:?}"),
        }
    };
    assert_eq!(
        reason(json!({"Tarsy-Chain": "gone"})),
        DeadReason::UnknownChain
    );
    assert_eq!(
        reason(json!({"Tarsy-Tools": "gone.*"})),
        DeadReason::UnknownTools
    );
}
