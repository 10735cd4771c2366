//! The checks of a web server, which may only read the database and follow the broker.
//!
//! Left out are the checks of the configuration, of models, of tools and of notifications, which need secrets of
//! workers, and the rights of a worker in the database.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::{Check, Checked, Verdict, bounded_by, broker, database, tidy};
use crate::process::connect::Addresses;
use tarsy_bus::{Nats, TopologySettings};
use tarsy_engine::ports::WorkerStatus;

/// A reader waits for the page.
const CHECK_TIMEOUT: Duration = Duration::from_secs(4);

/// The parts of a running web server that its checks use.
#[derive(Debug)]
pub struct Part {
    /// Without a connection, the reason.
    pub nats: Result<Nats, String>,
    pub addresses: Addresses,
    pub topology: TopologySettings,
    pub workers: Vec<WorkerStatus>,
}

/// The results in a fixed order, within some seconds.
pub async fn checks_of_web(part: Part) -> Vec<Check> {
    let Part {
        nats,
        addresses,
        topology,
        workers,
    } = part;
    let nats = ready(nats.map_err(|reason| Check::new("nats", Verdict::Fail, reason)))
        .boxed()
        .shared();
    let addresses = Arc::new(addresses);
    let workers: Checked = broker::of_workers(&workers).map(|check| vec![check]);
    let groups = futures_util::future::join_all([
        bounded_by(
            CHECK_TIMEOUT,
            "nats",
            broker::server(nats.clone(), Arc::clone(&addresses)),
        ),
        bounded_by(
            CHECK_TIMEOUT,
            "streams",
            broker::streams(nats.clone(), Some(topology.clone())),
        ),
        bounded_by(
            CHECK_TIMEOUT,
            "replicas",
            broker::replicas(nats, Some(topology)),
        ),
        bounded_by(
            CHECK_TIMEOUT,
            "postgres",
            database::check_of_reader(Arc::clone(&addresses)),
        ),
        bounded_by(CHECK_TIMEOUT, "workers", ready(workers)),
    ]);
    groups
        .await
        .into_iter()
        .flatten()
        .map(|check| tidy(check, &addresses))
        .collect()
}
