//! The checks of a web server, which may only read the database and follow the broker.
//!
//! Left out are the checks of the configuration, of models, of tools and of notifications, which need secrets of
//! workers, and the rights of a worker in the database.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::{Check, Checked, Verdict, bounded_by, broker, database, tidy};
use crate::process::connect::Addresses;
use tarsy_bus::{Nats, TopologySettings};
use tarsy_engine::ports::WorkerStatus;

/// A reader waits for the page.
const CHECK_TIMEOUT: Duration = Duration::from_secs(4);

/// The parts of a running web server that its checks use.
#[derive(Debug)]
pub struct Part {
    /// The connection to the broker. An error has the reason why the role could not connect.
    pub nats: Result<Nats, String>,
    pub addresses: Addresses,
    pub topology: TopologySettings,
    pub workers: Vec<WorkerStatus>,
}

/// The results in a fixed order, within some seconds.
pub async fn checks_of_web(part: Part) -> Vec<Check> {
    let nats = part
        .nats
        .map_err(|reason| Check::new("nats", Verdict::Fail, reason));
    let nats = ready(nats).boxed().shared();
    let addresses = Arc::new(part.addresses);
    let topology = Some(part.topology);
    let workers: Checked = broker::of_workers(&part.workers).map(|check| vec![check]);
    let server = broker::server(nats.clone(), Arc::clone(&addresses));
    let streams = broker::streams(nats.clone(), topology.clone());
    let replicas = broker::replicas(nats, topology);
    let database = database::check_of_reader(Arc::clone(&addresses));
    let groups = join_all([
        bounded_by(CHECK_TIMEOUT, "nats", server),
        bounded_by(CHECK_TIMEOUT, "streams", streams),
        bounded_by(CHECK_TIMEOUT, "replicas", replicas),
        bounded_by(CHECK_TIMEOUT, "postgres", database),
        bounded_by(CHECK_TIMEOUT, "workers", ready(workers)),
    ]);
    let checks = groups.await.into_iter().flatten();
    checks.map(|check| tidy(check, &addresses)).collect()
}
