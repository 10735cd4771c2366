//! Waits a moment for what a worker records of a message.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::roles::web::backend::Backend;
use tarsy_reports::{FreezeReport, VoteReport};
use tarsy_web::ports::{NoRecord, Recorded, Unavailable};

/// The time for which a page waits for a worker.
const RECORD_TIMEOUT: Duration = Duration::from_secs(3);
/// The delays between reads while a page waits.
const READ_INTERVAL: Duration = Duration::from_millis(100);

/// A record without more to show of it.
struct Found;

impl Backend {
    /// The vote, once a worker has recorded it; after a moment the reason why it is missing.
    pub(super) async fn recorded_vote(
        &self,
        vote: Uuid,
        sent: NoRecord,
    ) -> Result<VoteReport, NoRecord> {
        until_read(sent, || self.read(self.store.approval_vote(vote))).await
    }

    pub(super) async fn recorded_verdict(&self, verdict: Uuid, sent: NoRecord) -> Recorded {
        let found = until_read(sent, || self.read(self.store.recorded_verdict(verdict)));
        recorded(found.await)
    }

    /// The record of this freeze, which is not that of another one that lasts.
    pub(super) async fn recorded_begin(&self, id: Uuid, sent: NoRecord) -> Recorded {
        let found = until_read(sent, || async move {
            let freezes = self.read(self.store.approval_freezes()).await?;
            Ok(is_frozen_by(&freezes, id).then_some(Found))
        });
        recorded(found.await)
    }

    pub(super) async fn recorded_end(&self, sent: NoRecord) -> Recorded {
        let found = until_read(sent, || async move {
            let lasting = self.read(self.store.approval_freeze()).await?;
            Ok(lasting.is_none().then_some(Found))
        });
        recorded(found.await)
    }
}

/// Reads until there is a record, or the time is over; then `sent` is why it is missing, or that it cannot be read.
async fn until_read<T, R>(sent: NoRecord, read: impl Fn() -> R) -> Result<T, NoRecord>
where
    R: Future<Output = Result<Option<T>, Unavailable>>,
{
    let until = Instant::now() + RECORD_TIMEOUT;
    loop {
        let missing = match read().await {
            Ok(Some(record)) => return Ok(record),
            Ok(None) => sent,
            Err(_) => NoRecord::Unread,
        };
        if Instant::now() >= until {
            return Err(missing);
        }
        tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
    }
}

fn recorded<T>(found: Result<T, NoRecord>) -> Recorded {
    match found {
        Ok(_) => Recorded::Yes,
        Err(missing) => Recorded::No(missing),
    }
}

/// Whether the freeze with this id is recorded, and no person has ended it.
pub(super) fn is_frozen_by(freezes: &[FreezeReport], id: Uuid) -> bool {
    let mut freezes = freezes.iter();
    freezes.any(|freeze| freeze.freeze_id == id && freeze.ended_at.is_none())
}
