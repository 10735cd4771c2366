//! A fake of the port `Feed`: it accepts every event, or none.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ports::{BrokerUnavailable, DeadLetter, Divergence, EventIdentity, Feed};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::Delta;

#[derive(Debug, Default)]
pub(crate) struct FakeFeed {
    pub deltas: Mutex<Vec<Delta>>,
    /// The timeline stream takes no events.
    pub refuses: AtomicBool,
    /// The stream does not answer whether a session is new.
    pub(crate) is_silent: AtomicBool,
    /// The time when everything of a session was to be published.
    pub(crate) drained_at: Mutex<Vec<tokio::time::Instant>>,
    /// The events that the stream has and the store lacks.
    pub divergence: Mutex<Option<Divergence>>,
}

impl Feed for FakeFeed {
    fn notify(&self, _session: SessionId) {}

    fn notify_up_to(&self, _session: SessionId, _last_seq: u32) {}

    fn committed(&self, _session: SessionId) {}

    async fn has_published(&self, _session: SessionId, _last: &EventIdentity) -> bool {
        false
    }

    fn delta(&self, delta: Delta) {
        self.deltas.lock().push(delta);
    }

    async fn is_new(&self, _session: SessionId) -> bool {
        if self.is_silent.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.divergence.lock().is_none()
    }

    async fn divergence(
        &self,
        _session: SessionId,
    ) -> Result<Option<Divergence>, BrokerUnavailable> {
        Ok(self.divergence.lock().take())
    }

    async fn drain(&self, _session: SessionId, _last_seq: u32) -> Result<(), BrokerUnavailable> {
        self.drained_at.lock().push(tokio::time::Instant::now());
        self.accepting().await
    }

    async fn accepting(&self) -> Result<(), BrokerUnavailable> {
        if self.refuses.load(Ordering::Relaxed) {
            Err(BrokerUnavailable("no stream".to_owned()))
        } else {
            Ok(())
        }
    }

    async fn publish_dead_letter(&self, _letter: DeadLetter) -> Result<(), BrokerUnavailable> {
        Ok(())
    }
}
