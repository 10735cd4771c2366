//! The tails of sessions: events that this process has committed reach the publisher without a read of the table.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use diesel::result::QueryResult;

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::{StoreError, Tail};

/// The tails that a publisher holds. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tails(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    tails: HashMap<SessionId, Weak<Tail>>,
    /// Dropped tails are removed when the map has this size.
    sweep_at: usize,
}

const MIN_SWEEP: usize = 64;

/// The verdict on a write, and what it has returned.
pub(crate) type Verdict<T> = QueryResult<Result<Committed<T>, StoreError>>;

/// The outcome of a write, with the events that it has committed.
#[derive(Debug, Default)]
pub(crate) struct Committed<T> {
    pub outcome: T,
    /// `None`: only the table has them, as after a lost reply.
    pub events: Option<Vec<TimelineEvent>>,
}

impl Tails {
    /// The tail of a session, from now on.
    pub(crate) fn follow(&self, session: SessionId) -> Arc<Tail> {
        let mut held = self.0.lock();
        if let Some(tail) = held.tails.get(&session).and_then(Weak::upgrade) {
            return tail;
        }
        if held.tails.len() >= held.sweep_at {
            held.tails.retain(|_, tail| tail.strong_count() > 0);
            held.sweep_at = (2 * held.tails.len()).max(MIN_SWEEP);
        }
        let tail = Arc::<Tail>::default();
        held.tails.insert(session, Arc::downgrade(&tail));
        tail
    }

    /// Passes on what a write has committed.
    pub(crate) fn pass_on<T>(&self, session: SessionId, committed: Committed<T>) -> T {
        let Committed { outcome, events } = committed;
        let tail = self.0.lock().tails.get(&session).and_then(Weak::upgrade);
        match (tail, events) {
            (Some(tail), Some(events)) => tail.push(events),
            (Some(tail), None) => tail.overflow(),
            (None, _) => {}
        }
        outcome
    }
}
