//! The servers are stopped one after the other in lame-duck mode and started again, with a newer version if `./dev
//! test` has an older one as well; and one server is replaced by three. In the suite few investigations are spread over
//! the time of the upgrade.

use std::path::PathBuf;
use std::time::Duration;

use super::{
    STREAMS, THREE_COPIES, TIMEOUT, assert_all_completed, assert_whole, ended, investigations,
    place_copies, publish_paced, system_on,
};
use crate::support::monitoring::program;
use crate::support::nats::NatsCluster;
use crate::support::nats::cluster::SERVERS;
use crate::support::process::Tarsy;
use crate::support::wait::eventually_within;

const INVESTIGATIONS: usize = 12;
const INVESTIGATIONS_IN_PROOF: usize = 60;
/// The time in which alerts arrive.
const ARRIVAL: Duration = Duration::from_secs(15);
const CALL: Duration = Duration::from_millis(300);

fn pace(count: usize) -> Duration {
    ARRIVAL / u32::try_from(count).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brokers_are_upgraded_one_by_one_while_investigations_run() {
    let older = program("TARSY_TEST_NATS_SERVER_OLDER");
    let mut cluster = NatsCluster::start_with(older.as_deref()).await;
    let before = cluster.versions().await;
    let newer = PathBuf::from(std::env::var_os("TARSY_TEST_NATS_SERVER").unwrap());
    let system = system_on(Some(&cluster), THREE_COPIES, CALL).await;
    cluster.is_whole(&STREAMS).await;
    let workers = [system.worker("w1").await.0, system.worker("w2").await.0];
    let upgraded = async {
        for server in 0..SERVERS {
            cluster.roll(server, Some(&newer)).await;
            // The next server is stopped when this one has all messages.
            cluster.is_whole(&STREAMS).await;
        }
    };
    let count = investigations(INVESTIGATIONS, INVESTIGATIONS_IN_PROOF);
    let (sent, ()) = tokio::join!(publish_paced(&system, count, pace(count)), upgraded);
    let after = cluster.versions().await;
    let timelines = assert_whole(&system, count).await;
    println!(
        "{} investigations while the brokers went from {before:?} to {after:?}",
        sent.len()
    );
    assert_eq!(before != after, older.is_some(), "{before:?} to {after:?}");
    assert_eq!(timelines.len(), count);
    let announced = workers
        .iter()
        .filter(|worker| {
            worker
                .log()
                .contains("nats server is shutting down: it will close this connection")
        })
        .count();
    assert!(announced > 0, "no server announced its stop");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn investigations_change_over_from_one_broker_to_three() {
    let mut system = system_on(None, THREE_COPIES.replace('3', "1").as_str(), CALL).await;
    let file = system.file("servers");
    std::fs::write(&file, system.nats_url()).unwrap();
    let (env, file) = (
        system.env(system.database.url()),
        file.display().to_string(),
    );
    let env = [&env.each()[1..], &[("NATS_URL_FILE", file.as_str())][..]].concat();
    let mut worker = Tarsy::spawn("w1", &["worker", "--listen", "127.0.0.1:0"], &env);
    worker.ready().await;
    let count = investigations(INVESTIGATIONS, INVESTIGATIONS_IN_PROOF);
    publish_paced(&system, count / 2, Duration::from_millis(20)).await;

    let cluster = NatsCluster::start().await;
    place_copies(&cluster).await;
    system.use_broker(cluster.urls());
    let config = system.file("tarsy.yaml");
    let text = std::fs::read_to_string(&config)
        .unwrap()
        .replace("replicas: 1", "replicas: 3");
    std::fs::write(config, text).unwrap();
    system.migrate().await;
    // Until a worker's first statement the old server has the only copy of an alert.
    let received = "SELECT count(*) FROM alerts";
    let half = i64::try_from(count / 2).unwrap();
    eventually_within(TIMEOUT, "every alert is received", async || {
        system.database.number(received) == half
    })
    .await;
    std::fs::write(&file, cluster.urls()).unwrap();
    worker.logged("nats servers reloaded").await;
    system.nats.kill();
    publish_paced(&system, count - count / 2, Duration::from_millis(250)).await;
    ended(&system, count).await;
    system.queue_is_empty().await;
    // Sessions that were settled before have no event on the new servers.
    let unsettled = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
    assert_eq!(system.database.number(unsettled), 0);
    assert_all_completed(&system, count);
    for (session, events) in system.timelines().await {
        let numbers: Vec<u32> = events.iter().map(|event| event.session_seq).collect();
        assert_eq!(
            numbers,
            (1..=u32::try_from(numbers.len()).unwrap()).collect::<Vec<_>>(),
            "{session}"
        );
    }
}
