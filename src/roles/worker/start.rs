//! Reaches what a worker needs, in any order and for as long as it takes. A neighbour that is unavailable is waited for; what
//! no waiting mends ends the worker.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::bus::{Error, FeedSettings, JetStreamCancelRequests, JetStreamFeed, Nats};
use crate::config::Config;
use crate::engine::run::masked::Masked;
use crate::investigation::mask::Mask;
use crate::llm::client::Client;
use crate::mcp::Servers;
use crate::roles::connect::{BadAddress, topology, wait_for_schema};
use crate::roles::{secrets, tools};
use crate::store::{ConnectOptions, Store};
use crate::telemetry::http::Readiness;

/// Between two tries at a broker that answers, but not yet as it should.
const BROKER_RETRY: Duration = Duration::from_secs(3);

/// Everything that a worker needs, reached.
pub(super) struct Reached {
    pub(super) nats: Nats,
    pub(super) requests: JetStreamCancelRequests,
    pub(super) store: Arc<Store>,
    pub(super) feed: Arc<JetStreamFeed<Store>>,
    pub(super) model: Arc<Masked<Client>>,
    pub(super) tools: Arc<Servers>,
    pub(super) mask: Mask,
}

/// What is still waited for, as the readiness probe tells it.
struct Waiting<'a> {
    ready: &'a watch::Sender<Readiness>,
    missing: Mutex<Vec<&'static str>>,
}

impl<'a> Waiting<'a> {
    fn new(ready: &'a watch::Sender<Readiness>, missing: Vec<&'static str>) -> Self {
        let waiting = Self { ready, missing: Mutex::new(missing) };
        waiting.tell();
        waiting
    }

    fn found(&self, name: &str) {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).retain(|missing| *missing != name);
        self.tell();
    }

    fn tell(&self) {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
        let why = if missing.is_empty() { "starting".to_owned() } else { format!("waiting for {missing}") };
        self.ready.send_replace(Readiness::NotReady(why));
    }
}

/// Waits for broker and database at the same time: each is told about, and an address that cannot be right is found at
/// once.
pub(super) async fn reach(
    options: &Options,
    config: &Config,
    ready: &watch::Sender<Readiness>,
) -> anyhow::Result<Reached> {
    let addresses = &options.addresses;
    let pool_size = usize::try_from(config.database.pool_size)?;
    let database = ConnectOptions { pool_size, ..addresses.database(&format!("tarsy worker {}", options.name))? };
    let mask = secrets::mask(config, Some(addresses))?;
    let model = Client::connect(&addresses.llm_addr).map_err(|error| BadAddress(error.to_string()))?;
    let waiting = Waiting::new(ready, vec!["nats", "database"]);
    let broker = async {
        let nats = addresses.nats_for_role("worker").await?;
        let requests = wait_for_streams(&nats, config).await?;
        waiting.found("nats");
        anyhow::Ok((nats, requests))
    };
    let schema = async {
        wait_for_schema(&database).await?;
        waiting.found("database");
        anyhow::Ok(())
    };
    let ((nats, requests), ()) = tokio::try_join!(broker, schema)?;
    let store = Arc::new(Store::new(&database)?.masking(mask.clone()));
    let feed = Arc::new(JetStreamFeed::new(&nats, Arc::clone(&store), FeedSettings::default()));
    let model = Arc::new(Masked::new(model, mask.clone()));
    let tools = Arc::new(tools::start(config, mask.clone(), &CancellationToken::new())?);
    Ok(Reached { nats, requests, store, feed, model, tools, mask })
}

/// The streams have to be as this version needs them; a broker that goes away meanwhile is waited for.
async fn wait_for_streams(nats: &Nats, config: &Config) -> anyhow::Result<JetStreamCancelRequests> {
    loop {
        let looked = async {
            nats.verify_topology(&topology(config)).await?;
            JetStreamCancelRequests::listen(nats).await
        };
        match looked.await {
            Ok(requests) => return Ok(requests),
            Err(error @ Error::Topology(_)) => bail!(error),
            Err(error) => tracing::warn!(%error, "waiting for nats"),
        }
        tokio::time::sleep(BROKER_RETRY).await; // pacing of retries
    }
}
