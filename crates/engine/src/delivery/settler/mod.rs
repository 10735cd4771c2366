//! `Settler`, which settles ended sessions without occupying slots, so that an unavailable timeline stream delays no
//! investigation.
//!
//! The message of an ended session stays here, in progress, until every event is on the stream. A message that went
//! back to the queue would be redelivered before every new alert and take a slot each time. When more wait than fit,
//! the rest goes back for a minute: the stream of alerts bounds their number (`max_ack_pending`).

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::acknowledgement::{Acknowledgement, jittered};
use super::heartbeat::with_heartbeat;
use super::settle::{SettleError, Settled, settle};
use super::timeline::Timeline;
use super::turns::Turns;
use crate::ports::{BrokerUnavailable, Delivery};
use crate::world::{Ports, World};
use tarsy_core::ids::SessionId;

/// Messages that wait here.
const MAX_WAITING: usize = 1_000;
/// A message beyond [`MAX_WAITING`] is redelivered after this time.
const NO_ROOM_DELAY: Duration = Duration::from_secs(60);
/// Events may still follow: the message is redelivered after this time.
const NOT_OVER_DELAY: Duration = Duration::from_secs(2);

/// The settler of a worker.
#[derive(Debug)]
pub struct Settler<W: World> {
    ports: Arc<Ports<W>>,
    lease: Duration,
    turns: Turns,
    /// The sessions that wait, each with its latest message, if it has one.
    waiting: Mutex<HashMap<SessionId, Option<Arc<W::Delivery>>>>,
    tasks: TaskTracker,
}

impl<W: World> Settler<W> {
    /// A settler that tries again at once when `timeline` changes to accepting, and that returns its messages to the
    /// queue when `drain` is cancelled.
    pub fn new(
        ports: Arc<Ports<W>>,
        lease: Duration,
        timeline: watch::Receiver<Timeline>,
        drain: CancellationToken,
    ) -> Self {
        Self {
            ports,
            lease,
            turns: Turns::new(timeline, drain),
            waiting: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Takes an ended session with its message, which it acknowledges when nothing is owed any more. A later message of
    /// a session that waits here replaces the earlier one. A session that ended before its message was redelivered has
    /// none: the redelivery finds it settled.
    pub(crate) fn take(
        self: &Arc<Self>,
        id: SessionId,
        delivery: Option<&Arc<W::Delivery>>,
    ) -> Acknowledgement {
        let mut waiting = self.waiting.lock();
        if let Some(present) = waiting.get_mut(&id) {
            *present = delivery.cloned();
            return Acknowledgement::Skip;
        }
        if waiting.len() >= MAX_WAITING {
            return Acknowledgement::Nak(jittered(NO_ROOM_DELAY));
        }
        waiting.insert(id, delivery.cloned());
        set_gauge(waiting.len());
        self.tasks.spawn(
            Arc::clone(self)
                .settle_and_acknowledge(id)
                .in_current_span(),
        );
        Acknowledgement::Skip
    }

    /// Whether the session waits here.
    pub fn holds(&self, id: SessionId) -> bool {
        self.waiting.lock().contains_key(&id)
    }

    /// Returns when no session waits here any more.
    pub async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn settle_and_acknowledge(self: Arc<Self>, id: SessionId) {
        let settled = Box::pin(self.until_settled(id));
        let acknowledgement = with_heartbeat(self.lease / 3, || self.progress(id), settled).await;
        let delivery = {
            let mut waiting = self.waiting.lock();
            let delivery = waiting.remove(&id);
            set_gauge(waiting.len());
            delivery
        };
        if let Some(Some(delivery)) = delivery {
            acknowledgement.send(id, &*delivery).await;
        }
    }

    async fn until_settled(&self, id: SessionId) -> Acknowledgement {
        self.turns
            .until_done(id, "session not settled yet", || self.settle(id))
            .await
    }

    async fn settle(&self, id: SessionId) -> Result<Acknowledgement, SettleError> {
        match settle(&self.ports, id).await? {
            Settled::Done(dead) => Ok(dead.map_or(Acknowledgement::Ack, Acknowledgement::Term)),
            Settled::NotOver => Ok(Acknowledgement::Nak(jittered(NOT_OVER_DELAY))),
        }
    }

    async fn progress(&self, id: SessionId) -> Result<(), BrokerUnavailable> {
        let present = self.waiting.lock().get(&id).cloned();
        match present {
            Some(Some(delivery)) => delivery.progress().await,
            Some(None) | None => Ok(()),
        }
    }
}

fn set_gauge(count: usize) {
    metrics::gauge!("tarsy_settling").set(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
}

#[cfg(test)]
mod tests;
