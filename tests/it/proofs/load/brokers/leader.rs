//! The leader of a stream is killed every five seconds. The suite kills two leaders; the proof kills one as long as
//! there are investigations, and compares with one broker and with three that run. `TARSY_LOAD_BROKERS=200` sets the
//! number of investigations and does the same.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::{
    Measured, STREAMS, THREE_COPIES, assert_whole, ended, investigations, publish_paced, system_on,
};
use crate::support::nats::NatsCluster;
use crate::support::system::TestSystem;

/// Enough for a kill while alerts arrive.
const INVESTIGATIONS: usize = 10;
/// Enough for several kills.
const INVESTIGATIONS_IN_PROOF: usize = 40;
/// The leader of the queue, and that of the timelines.
const MOST_KILLS: usize = 2;
const KILL_INTERVAL: Duration = Duration::from_secs(5);
const CALL: Duration = Duration::from_millis(300);
const PACE: Duration = Duration::from_millis(200);
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_investigation_is_lost_while_a_leader_of_three_brokers_is_killed_every_5_s() {
    let count = investigations(INVESTIGATIONS, INVESTIGATIONS_IN_PROOF);
    let is_long = count >= INVESTIGATIONS_IN_PROOF;
    if is_long {
        compare(count / 2).await;
    }
    let mut cluster = NatsCluster::start().await;
    let system = system_on(Some(&cluster), THREE_COPIES, CALL).await;
    cluster.is_whole(&STREAMS).await;
    let mut workers = Vec::new();
    for name in WORKERS {
        workers.push(system.worker(name).await);
    }
    let most = if is_long { usize::MAX } else { MOST_KILLS };
    let (begun, stop) = (Instant::now(), CancellationToken::new());
    let investigated = async {
        let sent = publish_paced(&system, count, PACE).await;
        ended(&system, count).await;
        let took = begun.elapsed();
        stop.cancel();
        (sent, took)
    };
    let ((sent, took), kills) = tokio::join!(
        investigated,
        kill_leaders(&mut cluster, &system, &stop, most)
    );
    cluster.is_whole(&STREAMS).await;
    let timelines = assert_whole(&system, count).await;
    Measured::new(&sent, &timelines, took).print(&format!("three brokers, {kills} leaders killed"));
    assert!(kills > 0, "no leader was killed");
}

/// Prints the figures of one broker and of three that run.
async fn compare(count: usize) {
    let alone = system_on(None, "", CALL).await;
    measure(&alone, count).await.print("one broker");
    let cluster = NatsCluster::start().await;
    let system = system_on(Some(&cluster), THREE_COPIES, CALL).await;
    cluster.is_whole(&STREAMS).await;
    measure(&system, count).await.print("three brokers");
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

/// Kills the leader of the queue and that of the timelines in turn, if there is one, and starts it again, up to `most`
/// times. Returns how many it has killed.
async fn kill_leaders(
    cluster: &mut NatsCluster,
    system: &TestSystem,
    stop: &CancellationToken,
    most: usize,
) -> usize {
    let mut kills = 0;
    let settled = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NOT NULL";
    let mut ticks = tokio::time::interval(KILL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    while kills < most && stop.run_until_cancelled(ticks.tick()).await.is_some() {
        let Some(leader) = cluster.leader_now(STREAMS[kills % 2]).await else {
            continue;
        };
        cluster.server(leader).kill();
        kills += 1;
        println!(
            "  killed n{leader}, {} investigations are settled",
            system.database.number(settled)
        );
        cluster.server(leader).restart().await;
    }
    kills
}
