//! Observes a response writer, for the metrics of the request: times, tokens, retries and end.

use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::Instant;

use crate::proto::generate_response::Content;
use crate::proto::{FinishInfo, UsageInfo};
use tarsy_core::vocabulary::ErrorCode;
use tarsy_engine::trace::gen_ai;

/// The facts of one answer. Each is kept even if the client does not accept the message.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The time when the first part of the answer was written.
    pub(super) first_chunk: OnceLock<Instant>,
    pub(super) finish: OnceLock<&'static str>,
    pub(super) error: OnceLock<&'static str>,
    usage: Mutex<Option<UsageInfo>>,
    retries: AtomicU32,
}

impl Observed {
    /// The newest usage, which counts for the whole answer.
    pub(super) fn usage(&self) -> Option<UsageInfo> {
        *self.usage.lock()
    }

    pub(super) fn retries(&self) -> u32 {
        self.retries.load(Ordering::Relaxed)
    }

    pub(super) fn content(&self, content: &Content) {
        if let Content::Usage(usage) = content {
            *self.usage.lock() = Some(*usage);
        } else {
            self.first_chunk.get_or_init(Instant::now);
        }
    }

    pub(super) fn finished(&self, finish: &FinishInfo) {
        self.finish
            .get_or_init(|| gen_ai::finish_reason(&finish.reason));
    }

    pub(super) fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// The first error of an answer is its cause.
    pub(super) fn failed(&self, code: &str) {
        self.error.get_or_init(|| ErrorCode::parse(code).as_str());
    }
}
