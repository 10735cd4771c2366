//! Workers that are killed while they notify: each notification is closed once, and arrives.
//!
//! The suite has 24 sessions and two kills, `./dev prove` 60 sessions and four kills; `TARSY_NOTIFY_SESSIONS` sets
//! another number of sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{closed, with_routes};
use crate::proofs::load::{paced, publish_many};
use crate::support::figures::by_depth;
use crate::support::http::endpoint::{Endpoint, Reply};
use crate::support::system::Setup;
use crate::support::wait::eventually;

const SESSIONS_PER_KILL: usize = 15;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_route_learns_of_each_session_once_although_workers_are_killed() {
    let sessions: usize = by_depth("TARSY_NOTIFY_SESSIONS", 24, 60);
    let kills = sessions.div_ceil(SESSIONS_PER_KILL);
    let answer = |_: &_| Reply::of(200).after(Duration::from_millis(40));
    let (one, two) = (Endpoint::start(answer).await, Endpoint::start(answer).await);
    let route = |name: &str, endpoint: &Endpoint| {
        format!(
            "  {name}: {{kind: webhook, url: '{}', timeout: 1s}}\n",
            endpoint.url()
        )
    };
    let transcript = Some(paced(2, Duration::from_millis(30)));
    let setup = Setup {
        transcript,
        slots: 8,
        sweep: Duration::from_secs(3),
        ..Setup::default()
    };
    let system = with_routes(
        &format!("{}{}", route("one", &one), route("two", &two)),
        setup,
    )
    .await;
    let mut workers = vec![system.worker("w0").await.0, system.worker("w1").await.0];
    publish_many(&system, sessions).await;
    for kill in 0..kills {
        // Sessions and messages are left for each next worker.
        let sent = sessions * (kill + 1) / (kills + 2);
        eventually("some messages have arrived", async || {
            one.requests().len() >= sent
        })
        .await;
        workers.remove(0).kill().await;
        workers.push(system.worker(&format!("w{}", kill + 2)).await.0);
    }
    assert_eq!(
        closed(&system, 2 * sessions).await,
        format!("sent {}", 2 * sessions)
    );
    for (name, endpoint) in [("one", one), ("two", two)] {
        let mut arrivals: BTreeMap<String, Vec<bool>> = BTreeMap::new();
        for request in endpoint.accepted() {
            let body = request.json();
            let id = request.header("idempotency-key").unwrap().to_owned();
            arrivals
                .entry(id)
                .or_default()
                .push(body["may_be_repeated"] == true);
        }
        let repeated: Vec<&Vec<bool>> = arrivals
            .values()
            .filter(|arrivals| arrivals.len() > 1)
            .collect();
        println!(
            "route {name}: {sessions} sessions, {kills} kills, {} arrived again",
            repeated.len()
        );
        assert_eq!(
            arrivals.len(),
            sessions,
            "each session by its idempotency key"
        );
        let is_marked = |arrivals: &&Vec<bool>| arrivals[1..].iter().all(|marked| *marked);
        assert!(
            repeated.iter().all(is_marked),
            "a repetition says so: {repeated:?}"
        );
    }
}
