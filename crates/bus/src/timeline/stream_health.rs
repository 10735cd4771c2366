//! The health of the timeline stream: the last refusal that a publisher got, and the state that the server reports.
//!
//! The server's report alone is not enough: a stream that is full, or whose server has no room left, exists, has a
//! leader, and refuses every event.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::connection::Nats;
use crate::names::TIMELINE;
use crate::stream::get::stream_info;
use tarsy_engine::ports::BrokerUnavailable;

/// A refusal that no publisher repeated for this long is ignored: another worker may have published its session.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(60);
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The last refusal, until an event is accepted.
#[derive(Debug, Default)]
pub(super) struct StreamHealth {
    last_refusal: Mutex<Option<(Instant, String)>>,
}

impl StreamHealth {
    pub(super) fn refused(&self, reason: &str) {
        *self.last_refusal.lock() = Some((Instant::now(), reason.to_owned()));
    }

    pub(super) fn accepted(&self) {
        *self.last_refusal.lock() = None;
    }

    /// Asks the server for the state of the stream, then looks at the last refusal.
    pub(super) async fn check(&self, nats: &Nats) -> Result<(), BrokerUnavailable> {
        if !nats.connection_state().connected {
            return Err(BrokerUnavailable("no connection".to_owned()));
        }
        let stream = stream_info(nats, TIMELINE, REPLY_TIMEOUT).await?;
        if stream
            .cluster
            .is_some_and(|cluster| cluster.leader.is_none())
        {
            return Err(BrokerUnavailable(format!("{TIMELINE} has no leader")));
        }
        let last_refusal = self.last_refusal.lock().clone();
        match last_refusal {
            Some((at, reason)) if at.elapsed() < REFUSAL_LIFETIME => Err(BrokerUnavailable(reason)),
            Some(_) | None => Ok(()),
        }
    }
}
