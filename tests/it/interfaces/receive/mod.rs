//! The HTTP receiver, as a process with a real broker.

mod alertmanager;
mod connection_limits;
mod hooks;
mod large;
mod outages;
mod proofs;
mod routes;
mod rules;
mod several;
mod sns;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::Stream;
use tarsy_bus::{ConnectRetry, Nats, Options, TopologySettings};

use crate::support::http::{self, Answer};
use crate::support::nats::NatsServer;
use crate::support::process::Tarsy;
use crate::support::wait::eventually;

/// A receiver, its broker and the streams.
pub(crate) struct Receiver {
    nats: NatsServer,
    process: Tarsy,
    pub(crate) address: String,
    metrics: String,
}

impl Receiver {
    async fn start(env: &[(&str, &str)]) -> Self {
        Self::start_with(&TopologySettings::default(), env).await
    }

    async fn start_with(settings: &TopologySettings, env: &[(&str, &str)]) -> Self {
        let nats = NatsServer::start().await;
        make_streams(&nats.url(), settings).await;
        let receiver = Self::connecting_to(nats, env).await;
        receiver.readiness_is(200).await;
        receiver
    }

    /// Starts the receiver; the broker may be unavailable.
    async fn connecting_to(nats: NatsServer, env: &[(&str, &str)]) -> Self {
        let url = nats.url();
        let env = [&[("NATS_URL", url.as_str())], env].concat();
        let mut process = Tarsy::spawn("receive", &["receive", "--listen", "127.0.0.1:0"], &env);
        let address = process.ready().await;
        let metrics = metrics_of(&mut process).await;
        Self {
            nats,
            process,
            address,
            metrics,
        }
    }

    /// Starts the receiver with this configuration; the variables follow.
    pub(crate) async fn configured(
        config: &str,
        env: &[(&str, &str)],
    ) -> (Self, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tarsy.yaml");
        std::fs::write(&file, config).unwrap();
        let env = [&[("TARSY_CONFIG", file.to_str().unwrap())], env].concat();
        (Self::start(&env).await, directory)
    }

    /// The number of published messages.
    async fn published_count(&self) -> u64 {
        self.stream()
            .await
            .info()
            .await
            .unwrap()
            .state
            .last_sequence
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        http::post(&self.address, path, headers, body).await
    }

    /// Returns when `/readyz` answers with this status.
    async fn readiness_is(&self, status: u16) {
        let what = format!("the readiness is {status}");
        eventually(&what, async || {
            http::get(&self.metrics, "/readyz").await.status == status
        })
        .await;
    }

    async fn stream(&self) -> Stream {
        let client = async_nats::connect(self.nats.url()).await.unwrap();
        async_nats::jetstream::new(client)
            .get_stream("TARSY_ALERTS")
            .await
            .unwrap()
    }

    /// The published message that this answer names.
    async fn published(&self, answer: &Answer) -> StreamMessage {
        assert_eq!(answer.status, 202, "{answer:?}");
        self.stream()
            .await
            .get_raw_message(answer.json()["stream_sequence"].as_u64().unwrap())
            .await
            .unwrap()
    }
}

const TEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

async fn make_streams(url: &str, settings: &TopologySettings) {
    let options = Options {
        url: url.to_owned(),
        role: "test".to_owned(),
        credentials: Default::default(),
        retry: ConnectRetry::UpTo(TEST_TIMEOUT),
    };
    Nats::connect(&options)
        .await
        .unwrap()
        .ensure_topology(settings)
        .await
        .unwrap();
}

/// The address in the second ready line of a role that serves something beside its metrics.
pub(crate) async fn metrics_of(role: &mut Tarsy) -> String {
    role.line_with("metrics ")
        .await
        .trim()
        .trim_start_matches("metrics ")
        .to_owned()
}

fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/alerts")
        .join(name);
    std::fs::read(path).unwrap()
}
