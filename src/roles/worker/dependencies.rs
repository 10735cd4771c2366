//! `Dependencies`, the connections of a worker.
//!
//! A worker waits for a service that is unavailable, in any order and for as long as it takes. A fault that waiting
//! cannot repair ends the worker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::bail;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bus::{Error, FeedSettings, JetStreamCancelRequests, JetStreamFeed, Nats};
use crate::config::Config;
use crate::engine::mutex::lock;
use crate::engine::run::masked::Masked;
use crate::investigation::mask::Mask;
use crate::llm::client::Client;
use crate::mcp::Servers;
use crate::roles::connect::{Addresses, topology, wait_for_schema};
use crate::roles::tools;
use crate::store::{ConnectOptions, Store};
use crate::telemetry::http::Readiness;

/// Between two checks of a broker that is connected, but whose streams cannot be read yet.
const STREAMS_RETRY_DELAY: Duration = Duration::from_secs(3);
/// Longer than the election of a leader: the server may be cut off from its cluster.
const CHANGE_SERVER_AFTER: Duration = Duration::from_secs(10);

/// A worker's connections.
pub(super) struct Dependencies {
    pub(super) nats: Nats,
    pub(super) cancel_requests: Arc<JetStreamCancelRequests>,
    pub(super) store: Arc<Store>,
    pub(super) feed: Arc<JetStreamFeed<Store>>,
    pub(super) model: Arc<Masked<Client>>,
    pub(super) tools: Arc<Servers>,
    pub(super) mask: Mask,
}

/// The readiness of a worker that still waits for these services.
fn waiting(missing: &[&str]) -> Readiness {
    let starting = missing.is_empty();
    Readiness::NotReady(if starting { "starting".to_owned() } else { format!("waiting for {}", missing.join(", ")) })
}

/// Waits for broker and database at the same time. A malformed address fails at once.
pub(super) async fn connect_dependencies(
    name: &str,
    addresses: &Addresses,
    config: &Config,
    mask: &Mask,
    ready: &watch::Sender<Readiness>,
) -> anyhow::Result<Dependencies> {
    let pool_size = usize::try_from(config.database.pool_size)?;
    let database = ConnectOptions { pool_size, ..addresses.database(&format!("tarsy worker {name}"))? };
    let model = addresses.llm()?.masking(mask.clone());
    let missing = Mutex::new(vec!["nats", "database"]);
    ready.send_replace(waiting(&lock(&missing)));
    let connected = |name: &str| {
        let mut missing = lock(&missing);
        missing.retain(|other| *other != name);
        ready.send_replace(waiting(&missing));
    };
    let broker = async {
        let nats = addresses.nats_for_role("worker").await?;
        let cancel_requests = Arc::new(wait_for_streams(&nats, config).await?);
        connected("nats");
        anyhow::Ok((nats, cancel_requests))
    };
    let schema = async {
        wait_for_schema(&database).await?;
        connected("database");
        anyhow::Ok(())
    };
    let ((nats, cancel_requests), ()) = tokio::try_join!(broker, schema)?;
    let store = Arc::new(Store::new(&database)?.masking(mask.clone()));
    let feed = Arc::new(JetStreamFeed::new(&nats, Arc::clone(&store), FeedSettings::default()));
    let model = Arc::new(Masked::new(model, mask.clone()));
    let tools = Arc::new(tools::start(config, mask.clone(), &CancellationToken::new())?);
    Ok(Dependencies { nats, cancel_requests, store, feed, model, tools, mask: mask.clone() })
}

/// Waits until the streams can be read, and compares them with what this version needs.
async fn wait_for_streams(nats: &Nats, config: &Config) -> anyhow::Result<JetStreamCancelRequests> {
    let begun = Instant::now();
    loop {
        let checked = async {
            nats.verify_topology(&topology(config)).await?;
            JetStreamCancelRequests::listen(nats).await
        };
        match checked.await {
            Ok(requests) => return Ok(requests),
            Err(error @ Error::Topology(_)) => bail!(error),
            Err(error) => tracing::warn!(%error, "waiting for nats"),
        }
        if begun.elapsed() > CHANGE_SERVER_AFTER {
            nats.change_server().await;
        }
        tokio::time::sleep(STREAMS_RETRY_DELAY).await; // pacing of retries
    }
}
