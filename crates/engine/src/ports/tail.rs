//! The events that this process has committed, kept in memory so that the publisher need not read them from the
//! table.

use parking_lot::Mutex;
use std::collections::VecDeque;

use tokio::sync::Notify;

use tarsy_core::timeline::TimelineEvent;

/// More events than a publisher has left to publish while the broker is well. Further ones are read from the table.
const MAX_EVENTS: usize = 64;

/// The end of a session's table of events, as far as this process has written it: in the order of the commits, with
/// gaps where others have written.
#[derive(Debug, Default)]
pub struct Tail {
    events: Mutex<Events>,
    grown: Notify,
}

/// The events that were committed since the last call.
#[derive(Debug, Default, PartialEq)]
pub struct Events {
    pub committed: VecDeque<TimelineEvent>,
    /// There are more, and only the table has them.
    pub overflowed: bool,
}

impl Events {
    fn only_in_the_table() -> Self {
        Self {
            committed: VecDeque::new(),
            overflowed: true,
        }
    }
}

impl Tail {
    /// Adds events that were committed. Never waits.
    pub fn push(&self, events: Vec<TimelineEvent>) {
        if events.is_empty() {
            return;
        }
        let mut kept = self.events.lock();
        if kept.committed.len() + events.len() > MAX_EVENTS {
            *kept = Events::only_in_the_table();
        } else if !kept.overflowed {
            kept.committed.extend(events);
        }
        self.grown.notify_one();
    }

    /// Events were committed that only the table has.
    pub fn overflow(&self) {
        *self.events.lock() = Events::only_in_the_table();
        self.grown.notify_one();
    }

    /// Takes everything that was committed since the last call.
    pub fn take(&self) -> Events {
        std::mem::take(&mut self.events.lock())
    }

    /// Waits until events were added since this method returned last. One task may wait. Cancel safe.
    pub async fn grown(&self) {
        self.grown.notified().await;
    }
}
