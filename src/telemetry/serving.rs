//! Metrics and probes of a role, from its first moment to after its last.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::http::{Readiness, serve};
use super::metrics::{self, Metrics};
use super::names::Role;

/// They cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The recorder.
    #[error(transparent)]
    Metrics(#[from] metrics::Error),
    /// The address is taken, or not ours.
    #[error("metrics and probes: listen on {address}: {source}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// The listener of a role and its upkeep.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    end: CancellationToken,
    tasks: TaskTracker,
}

impl Serving {
    /// Begins to serve the metrics of `role` on `listen`. What is sent to the second value is what `/readyz` answers; at
    /// first it is "starting".
    ///
    /// # Errors
    ///
    /// When nobody can listen there, or metrics are set up already.
    pub async fn start(
        listen: SocketAddr,
        role: Role,
        providers: &[String],
    ) -> Result<(Self, watch::Sender<Readiness>), Error> {
        let failed = |source| Error::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let metrics = Metrics::install(role, providers)?;
        let (ready, readiness) = watch::channel(Readiness::NotReady("starting".to_owned()));
        let (end, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(serve(listener, metrics.clone(), readiness, end.clone()));
        let stop = end.clone();
        tasks.spawn(async move { metrics.keep_up(stop).await });
        Ok((Self { address, end, tasks }, ready))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; the last thing that a role does.
    pub async fn end(self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
