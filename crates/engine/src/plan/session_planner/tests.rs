use chrono::Utc;
use uuid::Uuid;

use super::*;
use crate::ports::StoreError;
use crate::testing::FakeTools;
use tarsy_core::past::{PastSession, Relation};
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

#[tokio::test]
async fn earlier_investigations_stand_in_the_prompt_and_the_first_event_counts_them() {
    let planner = planner();
    let received = received(json!({}));
    let facts = Facts::from([("team", "shop")]);
    let prepared = planner.prepare(&received, alert("t"), &facts).unwrap();
    let query = planner.given_past(&received, &prepared).unwrap().unwrap();
    assert_eq!((query.days, query.limit), (30, 3));
    let record = PastSession {
        session: SessionId(Uuid::from_u128(2)),
        finished_at: received.queued_at - TimeDelta::hours(5),
        relation: Relation::SameAlert,
        chain: "web".to_owned(),
        title: "Disk full".to_owned(),
        severity: None,
        summary: Some("Cause: logs".to_owned()),
        mark: None,
        verdict: None,
    };
    let planned = async |past| {
        let background = async {
            Ok(Background {
                runbook: None,
                past,
            })
        };
        let planned = planner
            .plan_alert(&received, &prepared, background, &[])
            .await;
        planned.unwrap()
    };
    let seen = planned(Past {
        total: 4,
        days: 30,
        sessions: vec![record],
    })
    .await;
    let metadata = &seen.started.metadata;
    assert_eq!(
        (&metadata["past"], &metadata["past_days"]),
        (&json!(4), &json!(30))
    );
    let prompt = &seen.plan.stages[0].agents[0].user_prompt;
    assert!(
        prompt.contains("4 times in 30 days. The newest:\n"),
        "{prompt}"
    );
    assert!(
        prompt.contains(", 5 h ago, session 00000002\n    Cause: logs\n"),
        "{prompt}"
    );
    let unseen = planned(Past::default()).await;
    assert_eq!(unseen.started.metadata.get("past"), None);
    let down = PrepareError::Unavailable(StoreError::Unavailable("down".to_owned()));
    let failed = planner.plan_alert(
        &received,
        &prepared,
        std::future::ready(Err(down.clone())),
        &[],
    );
    assert_eq!(failed.await, Err(down));
}
