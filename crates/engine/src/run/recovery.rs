//! Recovery from lost commits: when a session is claimed or settled, the timeline stream may have events that the
//! store has lost. They are restored first, so that the timeline keeps one order and the calls of the lost steps are
//! known.

use uuid::Uuid;

use crate::ports::{BrokerUnavailable, Feed, Lease, Recover, Recovered, Sessions, StoreError};
use tarsy_core::ids::SessionId;

/// Compares store and stream, and restores the events that the store has lost. `None`: the store has lost nothing, or
/// the stream is unavailable; then the publisher retains the session's events until the next claim or settlement
/// compares again.
pub(crate) async fn reconcile<S: Sessions, F: Feed>(
    sessions: &S,
    feed: &F,
    session_id: SessionId,
    lease: Option<Lease>,
) -> Result<Option<Recovered>, StoreError> {
    let divergence = match feed.divergence(session_id).await {
        Ok(Some(divergence)) => divergence,
        Ok(None) => return Ok(None),
        Err(BrokerUnavailable(error)) => {
            tracing::warn!(%session_id, error, "timeline not compared with the store: the broker is unavailable");
            return Ok(None);
        }
    };
    let kept = divergence.kept;
    let restored = divergence.events.len();
    let recovered = sessions
        .recover(Recover {
            id: Uuid::new_v4(),
            session_id,
            lease,
            divergence,
        })
        .await?;
    metrics::counter!("tarsy_lost_commits_total").increment(1);
    tracing::error!(
        %session_id,
        kept,
        restored,
        "database has lost commits of a session: it was restored, or failed over without its last commits"
    );
    Ok(Some(recovered))
}
