//! Follows a session to its end, and whatever it joined.

use std::io::Write;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};

use super::waiting::QueueWatch;
use crate::bus::{self, Follower, Nats};
use crate::cli::exit::Exit;
use crate::cli::watch::{Followed, Options, Watch, Watched};
use crate::investigation::ids::SessionId;
use crate::store::Store;

/// Where timelines come from: the stream, and the database when it is at hand.
pub(crate) struct Sources {
    pub(crate) nats: Nats,
    pub(crate) store: Option<Arc<Store>>,
}

impl Sources {
    /// The timeline of a session from its first event; before that, what the queue says.
    fn follow(
        &self,
        session: SessionId,
        queue: Option<QueueWatch>,
    ) -> impl Stream<Item = anyhow::Result<Followed>> + use<> {
        let follower = Follower::start(&self.nats, session, 0, self.store.clone());
        stream::unfold((follower, queue), |(mut follower, mut queue)| async move {
            let waiting = async {
                match &mut queue {
                    Some(queue) => queue.next().await,
                    None => std::future::pending().await,
                }
            };
            let item = tokio::select! {
                biased;
                item = follower.next() => match item? {
                    bus::TimelineUpdate::Event(event) => {
                        queue = None;
                        Followed::Event(event)
                    }
                    bus::TimelineUpdate::Delta(delta) => Followed::Delta(delta),
                },
                waiting = waiting => Followed::Waiting(waiting),
            };
            Some((Ok(item), (follower, queue)))
        })
    }

    /// Shows a session until its end; until its beginning, what is before it.
    ///
    /// # Errors
    /// When the timeline breaks off or cannot be printed.
    pub(crate) async fn show_from_queue(
        &self,
        (session, queue): (SessionId, QueueWatch),
        options: Options,
    ) -> anyhow::Result<Exit> {
        self.show_all((session, Some(queue)), options, |_| Ok(())).await
    }

    /// Shows a session until its end; `seen` sees every piece first.
    ///
    /// # Errors
    /// When the timeline breaks off or cannot be printed.
    pub(crate) async fn show(
        &self,
        session: SessionId,
        options: Options,
        seen: impl FnMut(&Followed) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        self.show_all((session, None), options, seen).await
    }

    async fn show_all(
        &self,
        first: (SessionId, Option<QueueWatch>),
        options: Options,
        seen: impl FnMut(&Followed) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        self.show_one(&mut Watch::new(std::io::stdout(), std::io::stderr(), options), first, seen).await
    }

    /// Shows a session until its end, and whatever it joined, to a watcher that may have shown others before.
    ///
    /// # Errors
    /// When the timeline breaks off or cannot be printed.
    pub(super) async fn show_one<W: Write, N: Write>(
        &self,
        watch: &mut Watch<W, N>,
        (mut session, mut queue): (SessionId, Option<QueueWatch>),
        mut seen: impl FnMut(&Followed) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        loop {
            let feed = self.follow(session, queue.take()).map(|item| item.and_then(|item| seen(&item).map(|()| item)));
            match watch.follow(session, feed, interrupted()).await? {
                Watched::Over(exit) => return Ok(exit),
                Watched::Follow(next) => session = next,
            }
        }
    }
}

/// Returns at Ctrl-C.
pub(crate) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
