//! `WaitingRoom`, the executions of a stage that are open, and those of them that wait for people.
//!
//! When all of them wait, the one that has come last parks the session, and the others end with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{MutexGuard, watch};

use crate::run::control::Interrupted;
use tarsy_core::ids::ExecutionId;

/// The executions of a stage.
#[derive(Debug)]
pub(in crate::run) struct WaitingRoom {
    members: Mutex<Members>,
    /// Incremented with each change.
    changes: watch::Sender<u64>,
    parking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Members {
    /// Without an end.
    open: BTreeSet<ExecutionId>,
    /// The request that each waits for: the number of its event.
    waiting: BTreeMap<ExecutionId, u32>,
    /// The reason for which this run has to end.
    interrupted: Option<Interrupted>,
}

/// An execution that waits until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    room: Arc<WaitingRoom>,
    execution: ExecutionId,
}

/// The executions that wait, each with the number of its request.
pub(super) type Heads = Vec<(ExecutionId, u32)>;

impl WaitingRoom {
    /// The room of a stage with these open executions.
    pub(in crate::run) fn new(open: impl IntoIterator<Item = ExecutionId>) -> Arc<Self> {
        let members = Members {
            open: open.into_iter().collect(),
            waiting: BTreeMap::new(),
            interrupted: None,
        };
        Arc::new(Self {
            members: Mutex::new(members),
            changes: watch::Sender::new(0),
            parking: tokio::sync::Mutex::new(()),
        })
    }

    /// The execution waits for this request.
    pub(super) fn enter(self: &Arc<Self>, execution: ExecutionId, request: u32) -> Waiting {
        self.members.lock().waiting.insert(execution, request);
        Waiting {
            room: Arc::clone(self),
            execution,
        }
    }

    /// The execution has ended, and its end is committed.
    pub(in crate::run) fn ended(&self, execution: ExecutionId) {
        self.members.lock().open.remove(&execution);
        self.notify();
    }

    /// The run has to end: those who wait end as well. The first reason stays.
    pub(in crate::run) fn interrupt(&self, why: &Interrupted) {
        self.members
            .lock()
            .interrupted
            .get_or_insert_with(|| why.clone());
        self.notify();
    }

    /// The reason for which the run has to end.
    pub(super) fn interrupted(&self) -> Option<Interrupted> {
        self.members.lock().interrupted.clone()
    }

    /// All open executions, if each of them waits.
    pub(super) fn all_waiting(&self) -> Option<Heads> {
        let members = self.members.lock();
        members
            .open
            .iter()
            .map(|open| Some((*open, *members.waiting.get(open)?)))
            .collect()
    }

    /// The turn to park: only one execution parks the session.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.parking.lock().await
    }

    /// Has those who wait read the outcomes again.
    pub(super) fn notify(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The changes from now on.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.room.members.lock().waiting.remove(&self.execution);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn all_wait_when_each_open_execution_does_and_the_first_interruption_stays() {
        let [first, second] = [1, 2].map(|id| ExecutionId(Uuid::from_u128(id)));
        let room = WaitingRoom::new([first, second]);
        let waiting = room.enter(first, 7);
        assert_eq!(room.all_waiting(), None);
        let other = room.enter(second, 9);
        assert_eq!(room.all_waiting(), Some(vec![(first, 7), (second, 9)]));
        drop(other);
        assert_eq!(room.all_waiting(), None);
        room.ended(second);
        assert_eq!(room.all_waiting(), Some(vec![(first, 7)]));
        drop(waiting);
        room.interrupt(&Interrupted::Parked);
        room.interrupt(&Interrupted::LeaseLost);
        assert_eq!(room.interrupted(), Some(Interrupted::Parked));
    }
}
