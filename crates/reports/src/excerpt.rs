//! Events whose contents may be cut: a page of a long session shows the beginning of most of them.

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;

/// The events to read, and the limit of each content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcerptPage {
    pub session: SessionId,
    /// The events after this number; 0: from the first.
    pub after: u32,
    pub limit: u32,
    /// Characters of one content.
    pub characters: u32,
}

/// An event, whole or with the beginning of its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    pub event: TimelineEvent,
    pub is_cut: bool,
}
