//! Settling: everything that a session or alert owes to the world is on the stream, and the store knows it.
//!
//! Anybody may settle, any number of times: the rows of what is over do not change.

use crate::engine::ports::{BrokerUnavailable, DeadReason, Feed, Sessions, StoreError};
use crate::engine::run::recovery::reconcile;
use crate::investigation::ids::SessionId;

/// The store or the broker is unavailable: somebody will try again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Broker(#[from] BrokerUnavailable),
}

/// How far settling came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Events may still follow.
    NotOver,
    /// Nothing is owed any more; the reason of the dead letter that it ended in.
    Done(Option<DeadReason>),
}

/// Stores the dead letter, waits until every event is on the stream, then marks it as settled.
pub(crate) async fn settle<S: Sessions, F: Feed>(
    sessions: &S,
    feed: &F,
    id: SessionId,
) -> Result<Settled, SettleError> {
    let standing = sessions.standing(id).await?;
    if !standing.over {
        return Ok(Settled::NotOver);
    }
    let dead = standing.owes.as_ref().map(|letter| letter.reason);
    if !standing.settled {
        if let Some(letter) = standing.owes {
            feed.publish_dead_letter(letter).await?;
        }
        let last_seq = match reconcile(sessions, feed, id, None).await? {
            Some(_) => sessions.standing(id).await?.last_seq,
            None => standing.last_seq,
        };
        feed.drain(id, last_seq).await?;
        sessions.settled(id).await?;
    }
    Ok(Settled::Done(dead))
}
