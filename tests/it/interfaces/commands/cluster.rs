//! Streams with several copies, on three real servers.

use async_nats::jetstream;
use serde_json::{Value, json};

use super::{Ran, run_with};
use crate::support::nats::NatsCluster;
use crate::support::postgres::TestDatabase;
use crate::support::process::Tarsy;

const STREAMS: [&str; 4] = [
    "TARSY_ALERTS",
    "TARSY_TIMELINE",
    "TARSY_DEAD_LETTERS",
    "TARSY_CONTROL",
];

struct Site {
    nats: String,
    database: TestDatabase,
    jetstream: jetstream::Context,
    path: String,
    _directory: tempfile::TempDir,
}

impl Site {
    fn env(&self) -> [(&str, &str); 4] {
        [
            ("NATS_URL", self.nats.as_str()),
            ("DATABASE_URL", self.database.url()),
            ("TARSY_LLM_ADDR", "127.0.0.1:1"),
            ("TARSY_CONFIG", self.path.as_str()),
        ]
    }

    async fn run(&self, args: &[&str]) -> Ran {
        run_with(&self.env(), args, b"").await
    }

    /// The check of the streams by `doctor`.
    async fn checked(&self) -> Value {
        let checks = self.run(&["doctor", "--json"]).await.json();
        checks
            .into_iter()
            .find(|check| check["check"] == "streams")
            .expect("the streams are checked")
    }

    async fn copies(&self) -> Vec<usize> {
        let mut copies = Vec::new();
        for name in STREAMS {
            copies.push(
                self.jetstream
                    .get_stream(name)
                    .await
                    .unwrap()
                    .cached_info()
                    .config
                    .num_replicas,
            );
        }
        copies
    }

    /// Sets the number of copies, as an operator does with `nats stream edit`.
    async fn edit(&self, copies: usize) {
        for name in STREAMS {
            let mut config = self
                .jetstream
                .get_stream(name)
                .await
                .unwrap()
                .cached_info()
                .config
                .clone();
            config.num_replicas = copies;
            self.jetstream.update_stream(&config).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrate_removes_no_replica_that_an_operator_has_added() {
    let cluster = NatsCluster::start().await;
    let jetstream = jetstream::new(async_nats::connect(cluster.url()).await.unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory
        .path()
        .join("tarsy.yaml")
        .to_str()
        .unwrap()
        .to_owned();
    let database = TestDatabase::create().await;
    let site = Site {
        nats: cluster.url(),
        database,
        jetstream,
        path,
        _directory: directory,
    };
    let write = |text: &str| std::fs::write(&site.path, text).unwrap();
    write("streams: {}\n");

    site.run(&["migrate"]).await.exits(0);
    assert_eq!(site.copies().await, [1; 4]);
    let weak = site.checked().await;
    assert_eq!(
        (&weak["verdict"], &weak["fix"]),
        (
            &json!("warn"),
            &json!("streams: {replicas: 3} in tarsy.yaml, then tarsy migrate")
        )
    );
    assert!(
        weak["detail"]
            .as_str()
            .unwrap()
            .ends_with(&format!(": {}", STREAMS.join(", "))),
        "{weak}"
    );

    site.edit(3).await;
    let mut worker = Tarsy::spawn("w1", &["worker", "--listen", "127.0.0.1:0"], &site.env());
    worker.ready().await;
    for text in ["streams: {}\n", "streams: {replicas: 1}\n"] {
        write(text);
        let ran = site.run(&["migrate", "--json"]).await.exits(0);
        assert_eq!(
            (&ran.json()[0]["updated"], site.copies().await),
            (&json!(0), vec![3; 4]),
            "{text}"
        );
    }
    assert_eq!(site.checked().await["verdict"], "ok");

    site.edit(1).await;
    write("streams: {replicas: 3}\n");
    let mut late = Tarsy::spawn("w2", &["worker", "--listen", "127.0.0.1:0"], &site.env());
    assert_eq!(late.finished().await.0, 1);
    let why = "TARSY_ALERTS: num_replicas is 1, must be at least 3";
    assert!(late.log().contains(why), "{}", late.log());
    site.run(&["migrate"]).await.exits(0);
    assert_eq!(site.copies().await, [3; 4]);
}
