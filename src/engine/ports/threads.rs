//! Ended investigations with the questions about them.

use super::journal::StoreError;
use crate::investigation::follow_up::Thread;
use crate::investigation::ids::SessionId;

/// Reads threads.
pub trait Threads: Send + Sync + 'static {
    /// The investigation that `session` is, or that it asks about, with everything that was answered about it since;
    /// `None` when there is no such session.
    fn thread(&self, session: SessionId) -> impl Future<Output = Result<Option<Thread>, StoreError>> + Send;
}
