//! A server is cut off from the others, and two of three servers are down.

use std::time::Duration;

use rustix::process::Signal;

use super::{
    STREAMS, THREE_COPIES, TIMEOUT, assert_whole, doctor, ended, investigations, publish_paced,
    system_on, worker_on,
};
use crate::support::http;
use crate::support::link::Mode;
use crate::support::nats::NatsCluster;
use crate::support::nats::cluster::SERVERS;
use crate::support::process::Tarsy;
use crate::support::system::TestSystem;
use crate::support::wait::eventually_within;

const INVESTIGATIONS: usize = 8;
const INVESTIGATIONS_IN_PROOF: usize = 40;
const CALL: Duration = Duration::from_millis(500);
const PACE: Duration = Duration::from_millis(300);

/// A cluster with a worker at each server.
async fn start() -> (NatsCluster, TestSystem, Vec<(Tarsy, String)>) {
    let mut cluster = NatsCluster::start().await;
    let system = system_on(Some(&cluster), THREE_COPIES, CALL).await;
    cluster.is_whole(&STREAMS).await;
    let mut workers = Vec::new();
    for server in 0..SERVERS {
        workers.push(worker_on(&system, &mut cluster, server).await);
    }
    (cluster, system, workers)
}

/// The failure of a server for its clients and for the other servers.
#[derive(Clone, Copy)]
enum Failure {
    CutOff(Mode),
    /// The process is stopped, so that its connections stay open without an answer.
    Hangs,
}

/// Lets `server` fail while alerts arrive, until its worker has gone to another one.
async fn assert_survived(
    cluster: &mut NatsCluster,
    system: &TestSystem,
    server: usize,
    failure: Failure,
    worker: &Tarsy,
) {
    match failure {
        Failure::CutOff(mode) => cluster.partition(server, mode),
        Failure::Hangs => cluster.server(server).signal(Signal::STOP),
    }
    let count = investigations(INVESTIGATIONS, INVESTIGATIONS_IN_PROOF);
    let alerts = publish_paced(system, count, PACE);
    tokio::join!(alerts, worker.logged("nats server changed"));
    // The others have a majority.
    ended(system, count).await;
    if let Failure::CutOff(_) = failure {
        // While the others elect leaders, a worker that has left may try this server again, and leaves again.
        eventually_within(
            TIMEOUT,
            "no worker is at the server that is cut off",
            async || {
                !cluster
                    .clients_of(server)
                    .await
                    .contains(&"tarsy worker".to_owned())
            },
        )
        .await;
    }
    cluster.server(server).signal(Signal::CONT);
    cluster.heal();
    // The server that hung may have been the leader of the servers, and leaves this role to another one.
    cluster.has_meta_leader().await;
    cluster.is_whole(&STREAMS).await;
    assert_whole(system, count).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_leaves_a_leader_that_is_cut_off_and_nothing_is_lost() {
    let (mut cluster, system, workers) = start().await;
    let leader = cluster.leader_of("TARSY_ALERTS").await;
    // No packet passes, and no end of a connection is closed.
    let failure = Failure::CutOff(Mode::Stalled);
    assert_survived(&mut cluster, &system, leader, failure, &workers[leader].0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_leaves_a_follower_that_is_cut_off_and_nothing_is_lost() {
    let (mut cluster, system, workers) = start().await;
    let follower = (cluster.leader_of("TARSY_ALERTS").await + 1) % SERVERS;
    let failure = Failure::CutOff(Mode::Cut);
    assert_survived(
        &mut cluster,
        &system,
        follower,
        failure,
        &workers[follower].0,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_leaves_a_server_that_hangs_and_nothing_is_lost() {
    let (mut cluster, system, workers) = start().await;
    let leader = cluster.leader_of("TARSY_TIMELINE").await;
    assert_survived(
        &mut cluster,
        &system,
        leader,
        Failure::Hangs,
        &workers[leader].0,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_workers_say_so_run_on_and_end_everything_afterwards() {
    let (mut cluster, system, workers) = start().await;
    let count = investigations(INVESTIGATIONS, INVESTIGATIONS_IN_PROOF);
    publish_paced(&system, count / 2, Duration::from_millis(20)).await;
    let running = "SELECT count(*) FROM alert_sessions WHERE status = 'running'";
    eventually_within(TIMEOUT, "sessions run", async || {
        system.database.number(running) > 0
    })
    .await;
    for server in [1, 2] {
        cluster.server(server).kill();
    }
    let ends =
        "SELECT count(*) FROM alert_sessions WHERE status = 'completed' AND settled_at IS NULL";
    eventually_within(
        TIMEOUT,
        "a session completes without the brokers",
        async || system.database.number(ends) > 0,
    )
    .await;
    for (worker, address) in &workers {
        worker.logged("queue is unavailable").await;
        worker.logged("claiming paused: nats unavailable").await;
        // A worker that has changed servers was paused before, and claimed again until it knew of the queue.
        eventually_within(TIMEOUT, "the worker is not ready", async || {
            let ready = http::get(address, "/readyz").await;
            (ready.status, ready.body.trim()) == (503, "nats unavailable")
        })
        .await;
    }
    let checks = doctor(&system).await;
    assert!(
        checks.contains("no leader, since most of their servers are unavailable: TARSY_ALERTS"),
        "{checks}"
    );
    for server in [1, 2] {
        cluster.server(server).restart().await;
    }
    cluster.is_whole(&STREAMS).await;
    for (_, address) in &workers {
        eventually_within(TIMEOUT, "the worker is ready", async || {
            http::get(address, "/readyz").await.status == 200
        })
        .await;
    }
    publish_paced(&system, count - count / 2, PACE).await;
    assert_whole(&system, count).await;
}
