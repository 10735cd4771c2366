//! Shares followers: all readers of a session use one follower of the broker.
//!
//! A reader that falls behind is cut off and connects again with the number of its last event: nothing waits for a slow
//! reader, and nothing is kept for it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::frames::Item;
use crate::ports::{Backend, Timelines, Unavailable, Updates};
use tarsy_core::ids::SessionId;

/// The number of items that wait for a reader; one that is slower is cut off.
const MAX_BEHIND: usize = 256;

type Channels = HashMap<Followed, broadcast::Sender<Arc<Item>>>;
pub(super) type Items = broadcast::Receiver<Arc<Item>>;

/// The followers that have readers.
pub(super) struct Hub<B> {
    backend: Arc<B>,
    channels: Arc<Mutex<Channels>>,
    streams: Arc<Mutex<HashMap<String, usize>>>,
    streams_per_user: usize,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A timeline that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Followed {
    Session(SessionId),
    All,
}

impl<B: Backend> Hub<B> {
    /// All followers and streams end when `stop` is cancelled.
    pub(super) fn new(backend: Arc<B>, streams_per_user: usize, stop: CancellationToken) -> Self {
        // A dashboard shows 0 before the first reader.
        metrics::gauge!("tarsy_web_streams").set(0.0);
        metrics::gauge!("tarsy_web_followers").set(0.0);
        Self {
            backend,
            channels: Arc::default(),
            streams: Arc::default(),
            streams_per_user,
            tasks: TaskTracker::new(),
            stop,
        }
    }

    /// A token that ends every stream.
    pub(super) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Permission for one more stream; `None` when the user has as many as permitted.
    pub(super) fn open_stream(&self, user: &str) -> Option<OpenStream> {
        let mut streams = self.streams.lock();
        let open = streams.entry(user.to_owned()).or_default();
        if *open >= self.streams_per_user {
            metrics::counter!("tarsy_web_streams_cut_total", "reason" => "limit").increment(1);
            return None;
        }
        *open += 1;
        metrics::gauge!("tarsy_web_streams").increment(1);
        Some(OpenStream {
            user: user.to_owned(),
            streams: Arc::clone(&self.streams),
        })
    }

    /// Every later item of a session. The first reader's follower begins after event `after`; a reader that joins it
    /// has to read the earlier events from the store.
    pub(super) fn session(&self, id: SessionId, after: u32) -> Result<Items, Unavailable> {
        // The lock is held while the follower is made, so that two readers never make two.
        let mut channels = self.channels.lock();
        if let Some(channel) = channels.get(&Followed::Session(id)) {
            return Ok(channel.subscribe());
        }
        let follower = self.backend.follow(id, after)?;
        Ok(self.share(&mut channels, Followed::Session(id), follower))
    }

    /// Every later event of every session.
    pub(super) async fn all(&self) -> Result<Items, Unavailable> {
        if let Some(channel) = self.channels.lock().get(&Followed::All) {
            return Ok(channel.subscribe());
        }
        let follower = self.backend.follow_all().await?;
        let mut channels = self.channels.lock();
        // No lock is held across the await, so another reader may have been faster.
        if let Some(channel) = channels.get(&Followed::All) {
            return Ok(channel.subscribe());
        }
        Ok(self.share(&mut channels, Followed::All, follower))
    }

    /// Opens the channel of a follower, and sends there what it emits until it ends, the server stops or the last
    /// reader has left.
    fn share(&self, open: &mut Channels, followed: Followed, mut follower: impl Updates) -> Items {
        let (sender, items) = broadcast::channel(MAX_BEHIND);
        open.insert(followed, sender.clone());
        let channels = Arc::clone(&self.channels);
        let stop = self.stop.clone();
        metrics::gauge!("tarsy_web_followers").increment(1);
        self.tasks.spawn(async move {
            loop {
                let update = tokio::select! {
                    update = follower.next() => update,
                    () = stop.cancelled() => None,
                    () = sender.closed() => {
                        let mut channels = channels.lock();
                        // A reader may have joined since.
                        if sender.receiver_count() > 0 {
                            continue;
                        }
                        channels.remove(&followed);
                        break;
                    }
                };
                let Some(update) = update else {
                    channels.lock().remove(&followed);
                    break;
                };
                // Sending fails only when the last reader has just left.
                sender.send(Arc::new(Item::new(update))).ok();
            }
            metrics::gauge!("tarsy_web_followers").decrement(1);
        });
        items
    }

    /// A follower for one reader alone, which reads the events after `after` from the broker where the store cannot.
    pub(super) fn alone(
        &self,
        id: SessionId,
        after: u32,
    ) -> Result<<B as Timelines>::Session, Unavailable> {
        self.backend.follow(id, after)
    }
}

/// Counts one stream of a user until it is dropped.
#[derive(Debug)]
pub(super) struct OpenStream {
    user: String,
    streams: Arc<Mutex<HashMap<String, usize>>>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        metrics::gauge!("tarsy_web_streams").decrement(1);
        let mut streams = self.streams.lock();
        if let Some(open) = streams.get_mut(&self.user) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&self.user);
            }
        }
    }
}
