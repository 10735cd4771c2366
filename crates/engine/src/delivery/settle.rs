//! Settlement: publishes all events of an ended session or alert, then marks it settled in the store.
//!
//! Any worker may settle, any number of times: the rows of an ended session do not change.

use crate::ports::{BrokerUnavailable, DeadReason, Feed, Sessions, StoreError};
use crate::run::recovery::reconcile;
use crate::world::{Ports, World};
use tarsy_core::ids::SessionId;

/// The store or the broker is unavailable: the settlement is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Broker(#[from] BrokerUnavailable),
}

/// The result of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Events may still follow.
    NotOver,
    /// Nothing is owed any more. The reason is that of the session's dead letter.
    Done(Option<DeadReason>),
}

/// Publishes the dead letter, waits until every event is on the stream, then marks the session as settled.
pub(crate) async fn settle<W: World>(
    ports: &Ports<W>,
    id: SessionId,
) -> Result<Settled, SettleError> {
    let sessions = &*ports.sessions;
    let feed = &*ports.feed;
    let status = sessions.standing(id).await?;
    if !status.over {
        return Ok(Settled::NotOver);
    }
    let dead = status.owes.as_ref().map(|letter| letter.reason);
    if !status.settled {
        // The store deletes the body when the session is settled, so the letter has to be stored before.
        if let Some(letter) = status.owes {
            feed.publish_dead_letter(letter).await?;
        }
        // The last event of the session is in the store. If it is the last one that this process has published, both
        // have the same events: a database that loses commits loses the last ones.
        let is_published = match &status.last_event {
            Some(last) => feed.has_published(id, last).await,
            None => false,
        };
        if !is_published {
            let last_seq = match reconcile(sessions, feed, id, None).await? {
                Some(_) => sessions.standing(id).await?.last_seq,
                None => status.last_seq,
            };
            feed.drain(id, last_seq).await?;
        }
        sessions.settled(id, status.message).await?;
    }
    Ok(Settled::Done(dead))
}
