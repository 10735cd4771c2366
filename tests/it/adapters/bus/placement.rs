//! Servers and storage of streams that NATS refuses: each error names the setting.

use tarsy_bus::{TopologySettings, TopologyStatus, Weakness};
use tarsy_config::{StreamLimits, StreamPlacement, StreamStorage, Streams};

use super::{connect, connect_to};
use crate::support::nats::topology::with_streams;
use crate::support::nats::{NatsCluster, NatsServer};

fn placed(placement: StreamPlacement) -> TopologySettings {
    let alerts = StreamLimits {
        placement: Some(placement),
        ..StreamLimits::default()
    };
    with_streams(Streams {
        alerts,
        ..Streams::default()
    })
}

fn on_tags(tags: &[&str]) -> StreamPlacement {
    StreamPlacement {
        cluster: None,
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
    }
}

fn copies(replicas: u32, mut settings: TopologySettings) -> TopologySettings {
    settings.streams.replicas = Some(replicas);
    settings
}

#[tokio::test]
async fn copies_and_servers_that_do_not_exist_are_errors_that_name_the_setting() {
    let single = NatsServer::start().await;
    let nats = connect(&single).await;
    for (settings, expected) in [
        (
            copies(3, TopologySettings::default()),
            "`streams.replicas` above 1 needs servers that form a cluster",
        ),
        (
            placed(on_tags(&["disk:ssd"])),
            "`placement` in `streams` in the configuration needs servers that form a cluster",
        ),
    ] {
        let error = nats
            .ensure_topology(&settings)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("TARSY_ALERTS: ") && error.contains(expected),
            "{error}"
        );
    }

    let cluster = NatsCluster::start().await;
    let nats = connect_to(cluster.urls()).await;
    let elsewhere = StreamPlacement {
        cluster: Some("mars".to_owned()),
        tags: Vec::new(),
    };
    let wrong = [
        copies(5, TopologySettings::default()),
        placed(on_tags(&["disk:tape"])),
        copies(3, placed(on_tags(&["az:1"]))),
        placed(elsewhere),
    ];
    let refusal =
        "fewer servers than `streams.replicas` run, or fit `placement` of the stream in `streams`";
    for action in ["create", "update"] {
        for settings in &wrong {
            let error = nats
                .ensure_topology(settings)
                .await
                .unwrap_err()
                .to_string();
            let expected = format!("TARSY_ALERTS: cannot {action}: ");
            assert!(
                error.starts_with(&expected) && error.contains(refusal),
                "{settings:?}: {error}"
            );
        }
        nats.ensure_topology(&TopologySettings::default())
            .await
            .unwrap();
    }

    let misplaced = nats
        .inspect_topology(&placed(on_tags(&["disk:ssd"])))
        .await
        .unwrap();
    assert_eq!(
        misplaced[0].status,
        TopologyStatus::Weak(Weakness::Misplaced)
    );
    nats.verify_topology(&placed(on_tags(&["disk:ssd"])))
        .await
        .expect("a worker needs no certain servers");
}

#[tokio::test]
async fn another_storage_is_refused_with_the_two_ways_to_go_on() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    let memory = StreamLimits {
        storage: Some(StreamStorage::Memory),
        ..StreamLimits::default()
    };
    let in_memory = with_streams(Streams {
        timeline: memory.clone(),
        ..Streams::default()
    });
    nats.ensure_topology(&in_memory).await.unwrap();
    nats.verify_topology(&in_memory).await.unwrap();
    let error = nats
        .ensure_topology(&TopologySettings::default())
        .await
        .unwrap_err()
        .to_string();
    for part in [
        "TARSY_TIMELINE: its storage is memory",
        "asks for file, but NATS cannot change",
        "configure `storage: memory` for it, or since the database has every event, delete it",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let inspected = nats
        .inspect_topology(&TopologySettings::default())
        .await
        .unwrap();
    assert!(
        matches!(&inspected[1].status, TopologyStatus::Differs(found) if found.len() == 1),
        "{:?}",
        inspected[1]
    );

    let letters = with_streams(Streams {
        dead_letters: memory,
        ..Streams::default()
    });
    let error = nats
        .ensure_topology(&letters)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("TARSY_TIMELINE: its storage is memory"),
        "streams are compared one by one: {error}"
    );
    super::outsider(&server)
        .await
        .1
        .delete_stream("TARSY_TIMELINE")
        .await
        .unwrap();
    super::outsider(&server)
        .await
        .1
        .delete_stream("TARSY_DEAD_LETTERS")
        .await
        .unwrap();
    nats.ensure_topology(&letters).await.unwrap();
    let inspected = nats.inspect_topology(&letters).await.unwrap();
    assert_eq!(
        inspected[2].status,
        TopologyStatus::Weak(Weakness::InMemory),
        "the only copy of a dead letter"
    );
}
