//! Serves the metrics and probes of a role, from its start until after its last task.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::http::{Readiness, serve};
use super::metrics::{self, Configured, Metrics};
use super::names::Role;

/// Metrics and probes cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Metrics(#[from] metrics::Error),
    /// The address is taken, or belongs to another machine.
    #[error("metrics and probes: listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
}

/// The listener of a role, and the upkeep of its metrics.
#[derive(Debug)]
pub struct Serving {
    /// The bound address.
    pub address: SocketAddr,
    end: CancellationToken,
    tasks: TaskTracker,
}

impl Serving {
    /// Serves the metrics of `role` on `listen`. The sender sets the response of `/readyz`, which is "starting" at
    /// first.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound, or the process has a metrics recorder already.
    pub async fn start(
        listen: SocketAddr,
        role: Role,
        configured: &Configured,
    ) -> Result<(Self, watch::Sender<Readiness>), Error> {
        let failed = |source| Error::Listen {
            address: listen,
            source,
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let metrics = Metrics::install(role, configured)?;
        let (ready, readiness) = watch::channel(Readiness::NotReady("starting".to_owned()));
        let end = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(serve(listener, metrics.clone(), readiness, end.clone()));
        let stop = end.clone();
        tasks.spawn(async move { metrics.keep_up(stop).await });
        let serving = Self {
            address,
            end,
            tasks,
        };
        Ok((serving, ready))
    }

    /// Stops serving. A role does this last, so that its final state can still be scraped.
    pub async fn end(self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
