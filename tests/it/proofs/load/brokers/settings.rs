//! `tarsy migrate` changes streams that workers use: copies, servers and sizes.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::stream::Placement;

use super::{STREAMS, assert_whole, doctor, investigations, publish_paced, system_on};
use crate::support::nats::NatsCluster;
use crate::support::process::metric;
use crate::support::system::TestSystem;
use crate::support::wait::{eventually, eventually_within};

const CALL: Duration = Duration::from_secs(1);
const INVESTIGATIONS: usize = 6;
const INVESTIGATIONS_IN_PROOF: usize = 12;
const MIB: i64 = 1024 * 1024;
const BEFORE: &str = "streams: {placement: {tags: ['az:0']}, alerts: {max_bytes: 32MiB}}\n";
const AFTER: &str = "streams: {replicas: 3, placement: {tags: ['disk:ssd']}, alerts: {max_bytes: 48MiB}, \
    timeline: {max_age: 2h, max_bytes: 64MiB}, dead_letters: {max_bytes: 16MiB}, control: {max_age: 1h, max_bytes: 8MiB}}\n";

/// Copies, tags of the servers, and bytes of each stream.
async fn layout(jetstream: &Context) -> Vec<(usize, Option<Placement>, i64)> {
    let mut found = Vec::new();
    for name in STREAMS {
        let config = jetstream
            .get_stream(name)
            .await
            .unwrap()
            .cached_info()
            .config
            .clone();
        found.push((config.num_replicas, config.placement, config.max_bytes));
    }
    found
}

fn on(tag: &str) -> Option<Placement> {
    Some(Placement {
        cluster: None,
        tags: vec![tag.to_owned()],
    })
}

async fn migrate(system: &TestSystem) -> String {
    let mut migrate = system.tarsy("migrate", &["migrate", "--json"]);
    let (code, out) = migrate.finished_within(Duration::from_secs(180)).await;
    assert_eq!(code, 0, "{}", migrate.log());
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrate_moves_and_copies_streams_with_content_while_workers_use_them() {
    let mut cluster = NatsCluster::start().await;
    let system = system_on(Some(&cluster), BEFORE, CALL).await;
    let jetstream = cluster.jetstream(None).await;
    let mib = |sizes: [i64; 4]| sizes.map(|size| size * MIB);
    let expected = |copies: usize, tag: &str, sizes: [i64; 4]| {
        mib(sizes).map(|bytes| (copies, on(tag), bytes)).to_vec()
    };
    assert_eq!(
        layout(&jetstream).await,
        expected(1, "az:0", [32, 512, 192, 64])
    );
    assert_eq!(
        cluster.leader_of("TARSY_ALERTS").await,
        0,
        "the only server with the tag"
    );

    let (_worker, address) = system.worker("w1").await;
    let count = investigations(INVESTIGATIONS, INVESTIGATIONS_IN_PROOF);
    let alerts = publish_paced(&system, count, Duration::from_millis(300));
    let changed = async {
        eventually("events are on the stream", async || {
            metric(&address, "tarsy_events_published_total", "").await >= 10.0
        })
        .await;
        let file = system.file("tarsy.yaml");
        let text = std::fs::read_to_string(&file)
            .unwrap()
            .replace(BEFORE, AFTER);
        std::fs::write(&file, text).unwrap();
        migrate(&system).await
    };
    let (_, out) = tokio::join!(alerts, changed);
    assert!(out.contains("\"updated\":4"), "{out}");
    cluster.is_whole(&STREAMS).await;
    assert_eq!(
        layout(&jetstream).await,
        expected(3, "disk:ssd", [48, 64, 16, 8])
    );
    for consumer in ["critical", "high", "normal", "low"] {
        eventually_within(
            super::TIMEOUT,
            "each consumer has three copies",
            async || {
                let stream = jetstream.get_stream("TARSY_ALERTS").await.unwrap();
                let info = stream.consumer_info(consumer).await;
                info.is_ok_and(|info| {
                    info.cluster
                        .is_some_and(|cluster| cluster.replicas.len() == 2)
                })
            },
        )
        .await;
    }
    assert!(
        migrate(&system).await.contains("\"unchanged\":8"),
        "a second run changes nothing"
    );
    assert_whole(&system, count).await;

    eventually_within(
        super::TIMEOUT,
        "doctor finds every copy up to date",
        async || {
            doctor(&system)
                .await
                .contains("3 up to date of each stream and consumer; n")
        },
    )
    .await;
    cluster.server(2).kill();
    eventually_within(
        super::TIMEOUT,
        "doctor names the server that is down",
        async || {
            doctor(&system)
                .await
                .contains("n2 is not up to date: TARSY_ALERTS")
        },
    )
    .await;
}
