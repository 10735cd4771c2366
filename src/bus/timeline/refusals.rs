//! Whether the timeline stream takes events: what publishers saw last, and what the server says of the stream.
//!
//! The server's word alone is not enough: a stream that is full, or whose server has no room left, is there, has a leader,
//! and takes nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::bus::connection::Nats;
use crate::bus::names::TIMELINE;
use crate::engine::ports::BrokerUnavailable;

/// A refusal that no publisher repeated for so long says nothing any more: its session may have gone elsewhere.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How long the server is given to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last refusal, until an event is taken.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    last: Mutex<Option<(Instant, String)>>,
}

impl Refusals {
    /// An event was not taken.
    pub(super) fn note(&self, reason: &str) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), reason.to_owned()));
    }

    /// Events were taken.
    pub(super) fn none(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Asks the server how the stream is, and adds what publishers saw.
    pub(super) async fn accepting(&self, nats: &Nats) -> Result<(), BrokerUnavailable> {
        if !nats.connection_state().connected {
            return Err(BrokerUnavailable("no connection".to_owned()));
        }
        let asked = tokio::time::timeout(PATIENCE, nats.jetstream().get_stream(TIMELINE)).await;
        let stream = match asked {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(BrokerUnavailable(format!("{TIMELINE}: {error}"))),
            Err(_) => return Err(BrokerUnavailable(format!("{TIMELINE} gave no answer"))),
        };
        if stream.cached_info().cluster.as_ref().is_some_and(|cluster| cluster.leader.is_none()) {
            return Err(BrokerUnavailable(format!("{TIMELINE} has no leader")));
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match last {
            Some((at, reason)) if at.elapsed() < REMEMBERED => Err(BrokerUnavailable(reason)),
            Some(_) | None => Ok(()),
        }
    }
}
