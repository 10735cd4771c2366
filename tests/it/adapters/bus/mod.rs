//! The bus on a real nats-server: topology, queue, feed, followers, dead letters, cancel requests and presence.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

mod cancel_requests;
mod claims;
mod connection;
mod dead_letters;
mod feed;
mod follow;
mod follow_all;
mod logins;
mod placement;
mod position;
mod presence;
mod queue;
mod table;
mod topology;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tarsy_bus::{ConnectRetry, FeedSettings, JetStreamFeed, Nats, Options, TopologySettings};

use self::table::Table;
use crate::support::nats::NatsServer;

/// Every step of these tests takes less.
const LIMIT: Duration = Duration::from_secs(60);

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future)
        .await
        .unwrap_or_else(|_| panic!("{what} took longer than {LIMIT:?}"))
}

async fn connect(server: &NatsServer) -> Nats {
    connect_to(server.url()).await
}

async fn connect_to(url: String) -> Nats {
    let options = Options {
        url,
        role: "test".into(),
        credentials: Default::default(),
        retry: ConnectRetry::UpTo(LIMIT),
    };
    Nats::connect(&options).await.expect("a connection")
}

/// A feed whose publishers do not end while a test is idle, and whose drain waits as long as a step may take. A worker
/// would leave the rest to a later drain.
fn feed(nats: &Nats, table: &Arc<Table>) -> JetStreamFeed<Table> {
    let settings = FeedSettings {
        drain_timeout: LIMIT,
        idle_timeout: 10 * LIMIT,
        ..FeedSettings::default()
    };
    JetStreamFeed::new(nats, Arc::clone(table), settings)
}

/// A server with the streams and consumers.
async fn prepared() -> (NatsServer, Nats) {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    nats.ensure_topology(&TopologySettings::default())
        .await
        .expect("streams");
    (server, nats)
}

/// Records the metrics of this thread while its guard lives.
fn recorder() -> metrics_exporter_prometheus::PrometheusRecorder {
    metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder()
}

/// A client without tarsy's code, like a producer or an administrator.
async fn outsider(server: &NatsServer) -> (async_nats::Client, async_nats::jetstream::Context) {
    let client = async_nats::connect(server.url())
        .await
        .expect("a connection");
    let jetstream = async_nats::jetstream::new(client.clone());
    (client, jetstream)
}

/// Sends a request to the JetStream API.
async fn request_api(
    client: &async_nats::Client,
    subject: String,
    request: &Value,
) -> Result<Value, String> {
    let answer = client
        .request(format!("$JS.API.{subject}"), request.to_string().into())
        .await
        .unwrap();
    let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
    match answer.get("error") {
        Some(error) => Err(error.to_string()),
        None => Ok(answer),
    }
}
