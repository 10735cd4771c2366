//! The pieces of one answer, emitted as deltas with offsets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::performed::millis;
use crate::ports::Feed;
use tarsy_core::plan::Strategy;
use tarsy_core::timeline::{Delta, DeltaKind};

/// Emits the pieces of one answer.
pub(super) struct Deltas<F> {
    feed: Arc<F>,
    first: Delta,
    /// The kind of the text: one that has to be parsed first is not for people.
    text_kind: DeltaKind,
    text: AtomicU64,
    thinking: AtomicU64,
    began: Instant,
    /// The time of the last piece, in milliseconds since `began`.
    last_ms: AtomicU64,
}

/// The longest pause between two pieces of an answer that is still arriving.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl<F: Feed> Deltas<F> {
    /// `first` is copied into every delta, with its own kind, offset and text.
    pub(super) fn new(feed: &Arc<F>, first: Delta, strategy: Strategy) -> Self {
        let text_kind = if strategy == Strategy::React {
            DeltaKind::Raw
        } else {
            DeltaKind::Text
        };
        Self {
            feed: Arc::clone(feed),
            first,
            text_kind,
            text: AtomicU64::new(0),
            thinking: AtomicU64::new(0),
            began: Instant::now(),
            last_ms: AtomicU64::new(0),
        }
    }

    pub(super) fn send(&self, kind: DeltaKind, text: &str) {
        let (kind, sent) = match kind {
            DeltaKind::Thinking => (kind, &self.thinking),
            DeltaKind::Text | DeltaKind::Raw => (self.text_kind, &self.text),
        };
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let offset = sent.fetch_add(length, Ordering::Relaxed);
        self.last_ms
            .store(millis(self.began.elapsed()), Ordering::Relaxed);
        self.feed.delta(Delta {
            kind,
            offset,
            delta: text.to_owned(),
            ..self.first.clone()
        });
    }

    /// Whether the answer is still arriving: a piece of it was emitted a short time ago.
    pub(super) fn are_arriving(&self) -> bool {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        self.have_begun() && self.began.elapsed().saturating_sub(last) <= LONGEST_PAUSE
    }

    /// Whether a piece was emitted.
    pub(super) fn have_begun(&self) -> bool {
        self.text.load(Ordering::Relaxed) + self.thinking.load(Ordering::Relaxed) > 0
    }
}
