//! The mask of a process, which its logs and its traces share.

use parking_lot::RwLock;
use std::sync::Arc;

use tarsy_mask::Mask;

/// The mask of a process. Clones share it. It is set after the first lines are written, because the configuration names
/// most of the secrets; until then only the built-in patterns are masked.
#[derive(Clone, Debug, Default)]
pub struct ProcessMask(Arc<RwLock<Mask>>);

impl ProcessMask {
    /// Applies this mask to every later line and span of the process.
    pub fn set(&self, mask: Mask) {
        *self.0.write() = mask;
    }

    /// The mask as it is now.
    pub(crate) fn current(&self) -> Mask {
        self.0.read().clone()
    }
}
