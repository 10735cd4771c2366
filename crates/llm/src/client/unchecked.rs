//! Handles a service without a health check (`grpc.health.v1`): the calls themselves show whether it works.
//!
//! The service counts as serving until it refuses the calls of an LLM service as unknown, too. The first successful
//! call proves that it serves. Until then such a refusal does not fail the session, because the address may be that of
//! another server.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::check::HEALTH_CHECK;

/// The interval at which a service is called again after an answer that disproves it: it may have been replaced.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The knowledge about a service without a health check.
#[derive(Debug, Default)]
pub(super) struct UncheckedService {
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// The service has a health check, as far as is known.
    #[default]
    Checked,
    /// No call has succeeded or been refused as unknown yet.
    Open,
    Proven,
    Disproved(Instant),
}

impl UncheckedService {
    /// Notes that the service has no health check. Returns whether it may be used.
    pub(super) fn may_serve(&self, address: &str) -> bool {
        let mut known = self.known.lock();
        match *known {
            Known::Checked => {
                *known = Known::Open;
                tracing::warn!(
                    address,
                    "llm-service has no health check ({HEALTH_CHECK}): it is used, and its first successful call proves it"
                );
                true
            }
            Known::Open | Known::Proven => true,
            Known::Disproved(at) => at.elapsed() >= RETRY_INTERVAL,
        }
    }

    /// Notes a call that the service has answered.
    pub(super) fn succeeded(&self, address: &str) {
        let mut known = self.known.lock();
        match *known {
            Known::Open | Known::Disproved(_) => {
                *known = Known::Proven;
                tracing::info!(
                    address,
                    "llm-service without a health check ({HEALTH_CHECK}) works: a call has succeeded"
                );
            }
            Known::Checked | Known::Proven => {}
        }
    }

    /// Notes that the service does not know the call of a model. Returns whether it counts as unavailable for this.
    pub(super) fn refuted(&self) -> bool {
        let mut known = self.known.lock();
        match *known {
            Known::Open | Known::Disproved(_) => {
                *known = Known::Disproved(Instant::now());
                true
            }
            Known::Checked | Known::Proven => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_service_without_a_health_check_serves_until_it_is_disproved() {
        let service = UncheckedService::default();
        assert!(
            !service.refuted(),
            "a service with a health check that lacks the call has failed"
        );
        assert!(service.may_serve("a") && service.may_serve("a"));
        assert!(service.refuted() && !service.may_serve("a"));
        tokio::time::advance(RETRY_INTERVAL).await;
        assert!(service.may_serve("a"));
        service.succeeded("a");
        assert!(
            !service.refuted() && service.may_serve("a"),
            "one successful call proves it for good"
        );
    }
}
