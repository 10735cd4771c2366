//! The mask of this process, for log lines and for exported spans.

use std::sync::{PoisonError, RwLock};

use tarsy_mask::Mask;

/// The mask of this process. It is set after the first lines are written, because the configuration names most of the
/// secrets; until then only the built-in patterns are masked.
static MASK: RwLock<Option<Mask>> = RwLock::new(None);

/// Applies this mask to every later line of this process.
pub fn hide(mask: Mask) {
    *MASK.write().unwrap_or_else(PoisonError::into_inner) = Some(mask);
}

/// The mask of this process as it is now.
pub(crate) fn current_mask() -> Mask {
    MASK.read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
        .unwrap_or_default()
}
