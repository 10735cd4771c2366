//! `ParkedMessages`, the messages of sessions that wait for people without a worker.
//!
//! Such a message is acknowledged when every event of its session so far is on the stream, because one that stayed
//! pending would count against those that the queue delivers at once. Whatever wakes the session queues its alert
//! again. The message occupies no slot meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::acknowledgement::{Acknowledgement, jittered};
use super::heartbeat::with_heartbeat;
use super::settle::SettleError;
use super::timeline::Timeline;
use super::turns::Turns;
use crate::ports::{Delivery as _, Feed as _, Sessions as _};
use crate::world::{Ports, World};
use tarsy_core::ids::SessionId;

/// Messages that wait here.
const MAX_WAITING: usize = 1_000;
/// A message beyond [`MAX_WAITING`] is redelivered after this time.
const NO_ROOM_DELAY: Duration = Duration::from_secs(60);

/// The messages of parked sessions in a worker.
#[derive(Debug)]
pub struct ParkedMessages<W: World> {
    ports: Arc<Ports<W>>,
    lease: Duration,
    turns: Turns,
    tasks: TaskTracker,
}

impl<W: World> ParkedMessages<W> {
    /// Tries again at once when `timeline` changes to accepting, and returns its messages to the queue when `drain` is
    /// cancelled.
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
            tasks: TaskTracker::new(),
        }
    }

    /// Takes the message of a parked session, which it acknowledges when the events of the session are published.
    pub(crate) fn take(
        self: &Arc<Self>,
        id: SessionId,
        delivery: &Arc<W::Delivery>,
    ) -> Acknowledgement {
        if self.tasks.len() >= MAX_WAITING {
            return Acknowledgement::Nak(jittered(NO_ROOM_DELAY));
        }
        let delivery = Arc::clone(delivery);
        let acknowledging = Arc::clone(self).acknowledge(id, delivery);
        self.tasks.spawn(acknowledging.in_current_span());
        Acknowledgement::Skip
    }

    /// Returns when no message waits here any more.
    pub async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn acknowledge(self: Arc<Self>, id: SessionId, delivery: Arc<W::Delivery>) {
        let published = Box::pin(self.until_published(id));
        let acknowledgement =
            with_heartbeat(self.lease / 3, || delivery.progress(), published).await;
        acknowledgement.send(id, &*delivery).await;
    }

    async fn until_published(&self, id: SessionId) -> Acknowledgement {
        let unfinished = "events of a waiting session not published yet";
        self.turns
            .until_done(id, unfinished, || self.publish(id))
            .await
    }

    async fn publish(&self, id: SessionId) -> Result<Acknowledgement, SettleError> {
        let status = self.ports.sessions.standing(id).await?;
        self.ports.feed.drain(id, status.last_seq).await?;
        Ok(Acknowledgement::Ack)
    }
}
