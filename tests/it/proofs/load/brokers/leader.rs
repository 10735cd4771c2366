//! The leader of a stream is killed every five seconds. `TARSY_LOAD_BROKERS=200` sets the number of investigations.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{Measured, STREAMS, THREE_COPIES, assert_whole, ended, publish_paced, system_on};
use crate::support::figures::from_env;
use crate::support::nats::NatsCluster;
use crate::support::system::TestSystem;

/// Enough for several kills while alerts arrive.
const INVESTIGATIONS: usize = 40;
const KILL_INTERVAL: Duration = Duration::from_secs(5);
const CALL: Duration = Duration::from_millis(300);
const PACE: Duration = Duration::from_millis(200);
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_investigation_is_lost_while_a_leader_of_three_brokers_is_killed_every_5_s() {
    let count = from_env("TARSY_LOAD_BROKERS", INVESTIGATIONS);
    let compared = count / 2;
    let alone = system_on(None, "", CALL).await;
    measure(&alone, compared).await.print("one broker");

    let cluster = NatsCluster::start().await;
    let system = system_on(Some(&cluster), THREE_COPIES, CALL).await;
    cluster.is_whole(&STREAMS).await;
    measure(&system, compared).await.print("three brokers");
    drop((system, cluster));

    let mut cluster = NatsCluster::start().await;
    let system = system_on(Some(&cluster), THREE_COPIES, CALL).await;
    cluster.is_whole(&STREAMS).await;
    let mut workers = Vec::new();
    for name in WORKERS {
        workers.push(system.worker(name).await);
    }
    let (begun, stop) = (Instant::now(), CancellationToken::new());
    let investigated = async {
        let sent = publish_paced(&system, count, PACE).await;
        ended(&system, count).await;
        let took = begun.elapsed();
        stop.cancel();
        (sent, took)
    };
    let ((sent, took), kills) = tokio::join!(investigated, kill_leaders(&mut cluster, &system, &stop));
    cluster.is_whole(&STREAMS).await;
    let timelines = assert_whole(&system, count).await;
    Measured::new(&sent, &timelines, took).print(&format!("three brokers, {kills} leaders killed"));
    assert!(kills > 0, "no leader was killed");
}

async fn measure(system: &TestSystem, count: usize) -> Measured {
    let mut workers = Vec::new();
    for name in WORKERS {
        workers.push(system.worker(name).await);
    }
    let begun = Instant::now();
    let sent = publish_paced(system, count, PACE).await;
    ended(system, count).await;
    let took = begun.elapsed();
    Measured::new(&sent, &assert_whole(system, count).await, took)
}

/// Kills the leader of the queue and that of the timelines in turn, if there is one, and starts it again. Returns how
/// many it has killed.
async fn kill_leaders(cluster: &mut NatsCluster, system: &TestSystem, stop: &CancellationToken) -> usize {
    let mut kills = 0;
    let settled = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NOT NULL";
    let mut ticks = tokio::time::interval(KILL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let Some(leader) = cluster.leader_now(STREAMS[kills % 2]).await else { continue };
        cluster.server(leader).kill();
        kills += 1;
        println!("  killed n{leader}, {} investigations are settled", system.database.number(settled));
        cluster.server(leader).restart().await;
    }
    kills
}
