//! Follows a session to its end, and whatever it joined.

use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};

use crate::bus::{self, Follower, Nats};
use crate::cli::exit::Exit;
use crate::cli::watch::{Followed, Options, Watch, Watched};
use crate::investigation::ids::SessionId;
use crate::store::Store;

/// Where timelines come from: the stream, and the database when it is at hand.
pub(super) struct Sources {
    pub(super) nats: Nats,
    pub(super) store: Option<Arc<Store>>,
}

impl Sources {
    /// The timeline of a session from its first event.
    pub(super) fn follow(&self, session: SessionId) -> impl Stream<Item = anyhow::Result<Followed>> + use<> {
        let follower = Follower::start(&self.nats, session, 0, self.store.clone());
        stream::unfold(follower, |mut follower| async move {
            let item = match follower.next().await? {
                bus::Followed::Event(event) => Followed::Event(event),
                bus::Followed::Delta(delta) => Followed::Delta(delta),
            };
            Some((Ok(item), follower))
        })
    }

    /// Shows a session until its end; `seen` sees every piece first.
    ///
    /// # Errors
    /// When the timeline breaks off or cannot be printed.
    pub(super) async fn show(
        &self,
        session: SessionId,
        options: Options,
        mut seen: impl FnMut(&Followed) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        let mut watch = Watch::new(std::io::stdout(), std::io::stderr(), options);
        let mut session = session;
        loop {
            let feed = self.follow(session).map(|item| item.and_then(|item| seen(&item).map(|()| item)));
            match watch.follow(session, feed, interrupted()).await? {
                Watched::Over(exit) => return Ok(exit),
                Watched::Follow(next) => session = next,
            }
        }
    }
}

/// Returns at Ctrl-C.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
