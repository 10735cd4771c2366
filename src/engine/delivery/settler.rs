//! Settles what is over, beside the slots: a timeline stream that takes no events holds up no investigation.
//!
//! The message of a finished session stays here, in progress, until everything is on the stream. A message that is put
//! back instead would come again before every new alert and take a slot each time. When more wait than fit, the rest is
//! put back for a minute: the stream of alerts bounds how many those are (`max_ack_pending`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::dispatch::{Answer, answer_with, jittered};
use super::heartbeat::telling;
use super::settle::{Settled, settle};
use crate::engine::ports::{BrokerUnavailable, Delivery, Feed, Sessions};
use crate::engine::worker::timeline_probe::{Timeline, accepts_again};
use crate::investigation::ids::SessionId;

/// Tries at the same time.
const AT_ONCE: usize = 16;
/// Messages that wait here.
const MOST: usize = 1_000;
/// Those that find no room come again after this time.
const NO_ROOM: Duration = Duration::from_secs(60);
/// Before the second try; doubled with each one after it.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Events may still follow: the message comes again.
const NOT_OVER: Duration = Duration::from_secs(2);

/// The settler of a worker.
#[derive(Debug)]
pub struct Settler<S, F, D> {
    sessions: Arc<S>,
    feed: Arc<F>,
    lease: Duration,
    timeline: watch::Receiver<Timeline>,
    drain: CancellationToken,
    turns: Semaphore,
    waiting: Mutex<HashMap<SessionId, Arc<D>>>,
    tasks: TaskTracker,
}

impl<S: Sessions, F: Feed, D: Delivery> Settler<S, F, D> {
    /// A settler that tries again at once when `timeline` says that events are taken again, and that gives what waits
    /// back to the queue when `drain` is cancelled.
    pub fn new(
        (sessions, feed): (Arc<S>, Arc<F>),
        lease: Duration,
        timeline: watch::Receiver<Timeline>,
        drain: CancellationToken,
    ) -> Self {
        Self {
            sessions,
            feed,
            lease,
            timeline,
            drain,
            turns: Semaphore::new(AT_ONCE),
            waiting: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Takes what is over, with its message, and answers it when nothing is owed any more. A later message of what is
    /// here already becomes the one that is answered.
    pub(crate) fn take(self: &Arc<Self>, id: SessionId, delivery: &Arc<D>) -> Answer {
        let mut waiting = self.waiting();
        if let Some(present) = waiting.get_mut(&id) {
            *present = Arc::clone(delivery);
            return Answer::Nothing;
        }
        if waiting.len() >= MOST {
            return Answer::Nak(jittered(NO_ROOM));
        }
        waiting.insert(id, Arc::clone(delivery));
        gauge(waiting.len());
        self.tasks.spawn(Arc::clone(self).bring_to_its_answer(id));
        Answer::Nothing
    }

    /// Whether it waits here.
    pub fn holds(&self, id: SessionId) -> bool {
        self.waiting().contains_key(&id)
    }

    /// Returns when nothing waits here any more.
    pub async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn bring_to_its_answer(self: Arc<Self>, id: SessionId) {
        let told = telling(self.lease / 3, || self.progress(id), self.until_settled(id)).await;
        let delivery = {
            let mut waiting = self.waiting();
            let delivery = waiting.remove(&id);
            gauge(waiting.len());
            delivery
        };
        if let Some(delivery) = delivery {
            answer_with(id, &*delivery, told).await;
        }
    }

    async fn until_settled(&self, id: SessionId) -> Answer {
        let mut timeline = self.timeline.clone();
        let (mut tries, mut pause) = (0_u32, FIRST);
        loop {
            // What becomes known while it is tried counts for the next try.
            timeline.mark_unchanged();
            let turn = tokio::select! {
                turn = self.turns.acquire() => turn,
                () = self.drain.cancelled(), if tries > 0 => return Answer::Nak(Duration::ZERO),
            };
            match settle(&*self.sessions, &*self.feed, id).await {
                Ok(Settled::Done(dead)) => return dead.map_or(Answer::Ack, Answer::Term),
                Ok(Settled::NotOver) => return Answer::Nak(jittered(NOT_OVER)),
                Err(trouble) if tries == 0 => tracing::warn!(session_id = %id, "session is not settled yet: {trouble}"),
                Err(trouble) => tracing::debug!(session_id = %id, tries, "session is still not settled: {trouble}"),
            }
            drop(turn);
            tokio::select! {
                () = self.drain.cancelled() => return Answer::Nak(Duration::ZERO),
                () = tokio::time::sleep(jittered(pause)) => {} // pacing of tries
                () = accepts_again(&mut timeline) => {}
            }
            (tries, pause) = (tries.saturating_add(1), (2 * pause).min(LONGEST));
        }
    }

    async fn progress(&self, id: SessionId) -> Result<(), BrokerUnavailable> {
        let present = self.waiting().get(&id).cloned();
        match present {
            Some(delivery) => delivery.progress().await,
            None => Ok(()),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<D>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gauge(count: usize) {
    metrics::gauge!("tarsy_settling").set(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
}

#[cfg(test)]
mod tests;
