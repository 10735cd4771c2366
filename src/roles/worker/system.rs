//! `SystemReporter`, which publishes what this worker knows of itself for people without a shell.
//!
//! It asks no server and no provider: it reports the outcomes of what the worker did anyway.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dependencies::Dependencies;
use super::providers::ProviderCheck;
use tarsy_bus::{Nats, system_subject};
use tarsy_core::ids::WorkerId;
use tarsy_engine::delivery::dispatcher::Settings;
use tarsy_mask::Mask;
use tarsy_mcp::Servers;
use tarsy_reports::system::{ShownConfig, SystemReport};

/// The time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Publishes a report every ten seconds.
pub(super) struct SystemReporter {
    nats: Nats,
    worker: WorkerId,
    name: String,
    config: ShownConfig,
    tools: Arc<Servers>,
    providers: Arc<ProviderCheck>,
    mask: Mask,
    started: Instant,
}

/// Whether the broker permits the reports on a connection.
#[derive(Clone, Copy)]
struct Permitted {
    on: u64,
    may_publish: bool,
}

impl SystemReporter {
    pub(super) fn new(
        settings: &Settings,
        dependencies: &Dependencies,
        config: ShownConfig,
        providers: Arc<ProviderCheck>,
    ) -> Self {
        Self {
            nats: dependencies.nats.clone(),
            worker: settings.worker,
            name: settings.worker_name.clone(),
            config,
            tools: Arc::clone(&dependencies.tools),
            providers,
            mask: dependencies.mask.clone(),
            started: Instant::now(),
        }
    }

    /// Publishes until `end` is cancelled.
    pub(super) async fn run(self, end: CancellationToken) {
        let mut ticks = tokio::time::interval(REPORT_INTERVAL);
        let mut permitted = None;
        while end.run_until_cancelled(ticks.tick()).await.is_some() {
            let connection = self.nats.connection_state().connections;
            let may_publish = match permitted {
                Some(Permitted { on, may_publish }) if on == connection => may_publish,
                _ => self.may_publish().await,
            };
            permitted = Some(Permitted {
                on: connection,
                may_publish,
            });
            if may_publish {
                self.nats.publish_system(&self.report());
            }
        }
    }

    /// Whether the broker permits the reports: its permissions may be of an earlier version. A broker that does not
    /// tell has none.
    async fn may_publish(&self) -> bool {
        let subject = system_subject(self.worker);
        let may_publish = match self.nats.granted().await {
            Ok(granted) => granted.may_publish(&subject),
            Err(_) => true,
        };
        if !may_publish {
            tracing::warn!(
                subject,
                "no system report is published: the broker does not permit it"
            );
        }
        may_publish
    }

    fn report(&self) -> SystemReport {
        let mut providers = self.providers.reports();
        for provider in &mut providers {
            let masked = provider
                .error
                .as_deref()
                .map(|error| self.mask.apply(error));
            provider.error = masked.map(std::borrow::Cow::into_owned);
        }
        SystemReport {
            worker_id: self.worker,
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            config: self.config.clone(),
            servers: self.tools.reports(),
            providers,
        }
    }
}
