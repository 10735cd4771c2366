//! Follows a session to its end, then the session that it joined.

use std::io::Write;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};

use super::waiting::{QueuePlace, WaitWatch};
use crate::cli::args::GlobalArgs;
use crate::cli::commands::public_url;
use crate::cli::exit::Exit;
use crate::cli::messages;
use crate::cli::watch::{Options, TimelineItem, Watch, Watched};
use tarsy_bus::{Follower, Nats};
use tarsy_core::ids::SessionId;
use tarsy_core::public_url::PublicUrl;
use tarsy_store::Store;

/// The sources of timelines: the stream, and the database if its address is known.
pub(crate) struct Sources {
    pub(crate) nats: Nats,
    pub(crate) store: Option<Arc<Store>>,
    /// The link to each session that is shown begins with it.
    pub(crate) public_url: Option<PublicUrl>,
}

/// A session to show.
pub(crate) struct Target {
    pub(crate) session: SessionId,
    /// Its place in the queue is reported until the first event.
    pub(crate) queue: Option<QueuePlace>,
}

impl Sources {
    /// The sources of a command: its servers, and the links of its configuration.
    pub(crate) fn new(global: &GlobalArgs, nats: Nats, store: Option<Arc<Store>>) -> Self {
        Self {
            nats,
            store,
            public_url: public_url(global),
        }
    }

    /// The timeline of a session from its first event, and what it waits for.
    fn follow(&self, target: Target) -> impl Stream<Item = anyhow::Result<TimelineItem>> + use<> {
        let follower = Follower::start(&self.nats, target.session, 0, self.store.clone());
        let waits = WaitWatch::start(&self.nats, self.store.clone(), target.session, target.queue);
        stream::unfold((follower, waits), |(mut follower, mut waits)| async move {
            let item = tokio::select! {
                biased;
                item = follower.next() => {
                    waits.is_active();
                    match item? {
                        tarsy_bus::TimelineUpdate::Event(event) => TimelineItem::Event(event),
                        tarsy_bus::TimelineUpdate::Delta(delta) => TimelineItem::Delta(delta),
                    }
                },
                Some(waiting) = waits.next() => TimelineItem::Waiting(waiting),
            };
            Some((Ok(item), (follower, waits)))
        })
    }

    /// Shows a session to its end, and the session that it joined; `inspect` gets every item first.
    ///
    /// # Errors
    /// When the timeline breaks off or cannot be printed.
    pub(crate) async fn show(
        &self,
        target: Target,
        options: Options,
        inspect: impl FnMut(&TimelineItem) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        self.show_with(
            &mut Watch::new(std::io::stdout(), std::io::stderr(), options),
            target,
            inspect,
        )
        .await
    }

    /// Like [`Self::show`], with a watcher that may have shown other sessions before.
    ///
    /// # Errors
    /// When the timeline breaks off or cannot be printed.
    pub(super) async fn show_with<W: Write, N: Write>(
        &self,
        watch: &mut Watch<W, N>,
        mut target: Target,
        mut inspect: impl FnMut(&TimelineItem) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        loop {
            let session = target.session;
            if let Some(url) = &self.public_url {
                watch.note(&messages::link(&url.session(session)))?;
            }
            let feed = self
                .follow(target)
                .map(|item| item.and_then(|item| inspect(&item).map(|()| item)));
            match watch.follow(session, feed, interrupted()).await? {
                Watched::Over(exit) => return Ok(exit),
                Watched::Follow(next) => {
                    target = Target {
                        session: next,
                        queue: None,
                    }
                }
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
