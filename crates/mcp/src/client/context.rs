//! The state that all connections share.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use tarsy_mask::Mask;

/// The state that all connections share.
#[derive(Debug)]
pub(super) struct ConnectionContext {
    pub(super) mask: Mask,
    pub(super) shutdown: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl ConnectionContext {
    pub(super) fn masked(&self, text: &str) -> String {
        self.mask.apply(text).into_owned()
    }
}
