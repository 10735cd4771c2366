//! The last report of each worker about itself, as the workers publish them.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio::time::Instant;

use tarsy_bus::Nats;
use tarsy_core::ids::WorkerId;
use tarsy_reports::system::SystemReport;
use tarsy_web::ports::WorkerSystem;

/// A report of a worker that is gone is shown for so long.
const MAX_AGE: Duration = Duration::from_secs(3_600);
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The number of reports that are kept: 50 MiB at most.
const MAX_REPORTS: usize = 200;

/// The reports that arrived lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Systems(Arc<Mutex<BTreeMap<WorkerId, (Instant, SystemReport)>>>);

impl Systems {
    /// The reports, sorted by name.
    pub(super) fn current(&self) -> Vec<WorkerSystem> {
        let mut reports = self.0.lock();
        reports.retain(|_, (at, _)| at.elapsed() < MAX_AGE);
        let mut systems: Vec<WorkerSystem> = reports
            .values()
            .map(|(at, report)| WorkerSystem {
                report: report.clone(),
                age_ms: u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX),
            })
            .collect();
        systems.sort_by(|a, b| {
            (&a.report.name, a.report.worker_id).cmp(&(&b.report.name, b.report.worker_id))
        });
        systems
    }

    /// Collects reports as long as the process lasts.
    pub(super) async fn collect(&self, mut nats: watch::Receiver<Option<Nats>>) -> Infallible {
        loop {
            let connected = nats.wait_for(Option::is_some).await.ok();
            if let Some(nats) = connected.and_then(|nats| nats.clone())
                && let Ok(mut reports) = nats.system_reports().await
            {
                while let Some(report) = reports.next().await {
                    self.add(report);
                }
            }
            tokio::time::sleep(RETRY_DELAY).await; // pacing of retries
        }
    }

    /// Keeps the newest reports: the oldest one makes room.
    fn add(&self, report: SystemReport) {
        let mut reports = self.0.lock();
        reports.insert(report.worker_id, (Instant::now(), report));
        if reports.len() > MAX_REPORTS {
            let oldest = reports
                .iter()
                .min_by_key(|(_, (at, _))| *at)
                .map(|(worker, _)| *worker);
            oldest.and_then(|worker| reports.remove(&worker));
        }
    }
}
