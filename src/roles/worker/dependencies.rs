//! `Dependencies`, the connections of a worker.
//!
//! A worker waits for a service that is unavailable, in any order and for as long as it takes. A fault that waiting
//! cannot repair ends the worker.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::process::connect::{Addresses, topology, wait_for_schema};
use crate::process::tools;
use tarsy_bus::{Error, FeedSettings, JetStreamCancelRequests, JetStreamFeed, Nats};
use tarsy_config::Config;
use tarsy_engine::run::masked::Masked;
use tarsy_engine::worker::probes::{PROVIDERS, Remedies};
use tarsy_llm::client::Client;
use tarsy_mask::Mask;
use tarsy_mcp::Servers;
use tarsy_store::{ConnectOptions, Store};
use tarsy_telemetry::http::Readiness;

/// The time between two checks of a broker that is connected, but whose streams cannot be read yet.
const STREAMS_RETRY_DELAY: Duration = Duration::from_secs(3);
/// The time after which another server is tried, because this one may be cut off from its cluster. It is longer than
/// the election of a leader.
const CHANGE_SERVER_AFTER: Duration = Duration::from_secs(10);

/// A worker's connections.
pub(super) struct Dependencies {
    pub(super) nats: Nats,
    pub(super) cancel_requests: Arc<JetStreamCancelRequests>,
    pub(super) store: Arc<Store>,
    pub(super) feed: Arc<JetStreamFeed<Store>>,
    pub(super) model: Arc<Masked<Client>>,
    /// The client that `model` calls.
    pub(super) client: Client,
    pub(super) tools: Arc<Servers>,
    pub(super) mask: Mask,
    pub(super) remedies: Remedies,
}

/// The remedies for each service of a worker.
fn remedies(addresses: &Addresses) -> Remedies {
    let nats = addresses.redacted_nats();
    let database = addresses.redacted_database();
    let llm = &addresses.llm_addr;
    let nats = format!("start NATS at {nats}, or set NATS_URL");
    let database = format!("start Postgres at {database}, or set DATABASE_URL");
    let llm = format!("start tarsy llm-service at {llm}, or set TARSY_LLM_ADDR");
    let providers = "tarsy models --probe says why no model can be called".to_owned();
    Remedies(BTreeMap::from([
        ("nats", nats),
        ("database", database),
        ("llm-service", llm),
        (PROVIDERS, providers),
    ]))
}

/// The services that a worker still waits for, with the reason where a person has to act.
struct Missing<'a> {
    services: Mutex<Vec<(&'static str, Option<String>)>>,
    ready: &'a watch::Sender<Readiness>,
}

impl<'a> Missing<'a> {
    fn new(services: &[&'static str], ready: &'a watch::Sender<Readiness>) -> Self {
        let missing = Self {
            services: Mutex::new(services.iter().map(|name| (*name, None)).collect()),
            ready,
        };
        missing.show();
        missing
    }

    fn connected(&self, name: &str) {
        self.services.lock().retain(|(other, _)| *other != name);
        self.show();
    }

    /// The worker waits for the broker because of this error.
    fn waits_for_nats(&self, error: &Error) {
        let needs_person = matches!(error, Error::Refused { .. } | Error::NoJetStream { .. });
        let why = needs_person.then(|| match error.fix() {
            Some(fix) => format!("{error}. Fix: {fix}"),
            None => error.to_string(),
        });
        for (name, reason) in self.services.lock().iter_mut() {
            if *name == "nats" {
                reason.clone_from(&why);
            }
        }
        self.show();
    }

    fn show(&self) {
        let services = self.services.lock();
        let each: Vec<String> = services
            .iter()
            .map(|(name, why)| match why {
                Some(why) => format!("{name} ({why})"),
                None => (*name).to_owned(),
            })
            .collect();
        let text = if each.is_empty() {
            "starting".to_owned()
        } else {
            format!("waiting for {}", each.join(", "))
        };
        self.ready.send_replace(Readiness::NotReady(text));
    }
}

/// Waits for broker and database at the same time. A malformed address fails at once.
pub(super) async fn connect_dependencies(
    name: &str,
    addresses: &Addresses,
    config: &Config,
    mask: &Mask,
    ready: &watch::Sender<Readiness>,
) -> anyhow::Result<Dependencies> {
    let database = ConnectOptions {
        pool_size: usize::try_from(config.database.pool_size)?,
        ..addresses.database(&format!("tarsy worker {name}"))?
    };
    let client = addresses.llm()?.masking(mask.clone());
    let missing = Missing::new(&["nats", "database"], ready);
    let broker = async {
        let nats = addresses
            .nats_for_role("worker", &|error| missing.waits_for_nats(error))
            .await?;
        let cancel_requests = Arc::new(wait_for_streams(&nats, config, &missing).await?);
        missing.connected("nats");
        anyhow::Ok((nats, cancel_requests))
    };
    let schema = async {
        wait_for_schema(&database).await?;
        missing.connected("database");
        anyhow::Ok(())
    };
    let ((nats, cancel_requests), ()) = tokio::try_join!(broker, schema)?;
    let store = Store::new(&database)?
        .masking(mask.clone())
        .linking(config.web.public_url.clone())
        .notifying(config.notification_filters());
    let store = Arc::new(store);
    let feed = JetStreamFeed::new(&nats, Arc::clone(&store), FeedSettings::default());
    let tools = tools::start(config, mask.clone(), &CancellationToken::new())?;
    Ok(Dependencies {
        nats,
        cancel_requests,
        store,
        feed: Arc::new(feed),
        model: Arc::new(Masked::new(client.clone(), mask.clone())),
        client,
        tools: Arc::new(tools),
        mask: mask.clone(),
        remedies: remedies(addresses),
    })
}

/// Waits until the streams can be read, and compares them with what this version needs.
async fn wait_for_streams(
    nats: &Nats,
    config: &Config,
    missing: &Missing<'_>,
) -> anyhow::Result<JetStreamCancelRequests> {
    let begun = Instant::now();
    loop {
        let checked = async {
            nats.verify_topology(&topology(config)).await?;
            JetStreamCancelRequests::listen(nats).await
        };
        match checked.await {
            Ok(requests) => return Ok(requests),
            Err(error @ Error::Topology(_)) => bail!(error),
            Err(error) => {
                missing.waits_for_nats(&error);
                tracing::warn!(%error, fix = error.fix(), "waiting for nats");
            }
        }
        if begun.elapsed() > CHANGE_SERVER_AFTER {
            nats.change_server().await;
        }
        tokio::time::sleep(STREAMS_RETRY_DELAY).await; // pacing of retries
    }
}
