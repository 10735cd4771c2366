//! The first try: NATS and Postgres of the chart itself, with their real programs.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use serde_json::json;

use super::super::helm::Case;
use super::{Cluster, text};
use crate::support::http;

const PASSWORD: &str = "w0rd-of-trial";
const TOKEN: &str = "t0ken-of-the-receiver";

#[tokio::test(flavor = "multi_thread")]
async fn a_first_try_starts_its_own_servers_and_investigates_alerts() {
    let Some(cluster) = Cluster::start("trial").await else {
        return;
    };
    let words = json!({"trial": {"password": PASSWORD}, "receiver": {"token": {"value": TOKEN}}});
    cluster
        .apply("install", &Case::with("trial", &words))
        .await
        .unwrap();
    for component in [
        "trial-nats",
        "trial-postgres",
        "worker",
        "llm-service",
        "receiver",
    ] {
        assert_eq!(cluster.ready(component).await.len(), 1, "{component}");
    }
    cluster.helm("test", json!({})).await.unwrap();

    let services = cluster.node.services().await;
    let address = |service: &str| {
        let found = services
            .iter()
            .find(|(name, _)| name.starts_with(&format!("release-tarsy-{service}:")));
        found
            .unwrap_or_else(|| panic!("{service}: {services:?}"))
            .1
            .clone()
    };
    let bearer = format!("Bearer {TOKEN}");
    // Without a model the recording answers, and it knows the alert of `helm test`.
    let alert = b"Posted to the receiver. This alert was sent by helm test.";
    let posted = http::post(
        &address("receiver"),
        "/alert",
        &[("authorization", &bearer)],
        alert,
    )
    .await;
    assert_eq!(posted.status, 202, "{posted:?}");
    let url = format!(
        "postgres://tarsy:{PASSWORD}@{}/tarsy",
        address("trial-postgres")
    );
    let mut database = PgConnection::establish(&url).unwrap();
    let mut completed = || -> i64 {
        let completed = "(SELECT count(*) FROM alert_sessions WHERE status = 'completed')";
        diesel::select(diesel::dsl::sql::<BigInt>(completed))
            .get_result(&mut database)
            .unwrap()
    };
    cluster
        .eventually("both alerts are investigated", async || completed() == 2)
        .await;
    let pods = cluster.pods("worker").await;
    let ended = &pods[0]["status"]["initContainerStatuses"][0];
    assert_eq!(ended["state"]["terminated"]["exitCode"], 0, "{ended}");
    println!(
        "the migration started {} times until Postgres was ready",
        ended["restartCount"].as_u64().unwrap() + 1
    );
    assert!(
        !cluster
            .log(text(&pods[0]["metadata"]["name"]))
            .contains(PASSWORD)
    );
}
