//! The sessions that this process runs, each with its lease, its reins and its present delivery.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::control::Control;
use crate::engine::ports::Lease;
use crate::investigation::ids::SessionId;

/// Between two looks at whether an alert can be read alone.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Shared by the dispatcher, the runs and the renewal.
#[derive(Debug)]
pub struct Running<D> {
    runs: Mutex<BTreeMap<SessionId, Run<D>>>,
    entered: Notify,
    turns: RwLock<()>,
}

/// One session of this process.
#[derive(Debug)]
pub struct Run<D> {
    /// The right to write.
    pub lease: Lease,
    /// The reins.
    pub control: Control,
    /// The message that has to be answered in the end: the latest one of the session.
    pub delivery: Arc<D>,
}

/// A run that is in the list.
#[derive(Debug)]
pub struct Entered<'r, D> {
    running: &'r Running<D>,
    lease: Lease,
}

impl<D> Entered<'_, D> {
    /// Takes the run out, with its latest delivery.
    pub fn leave(self) -> Option<Run<D>> {
        self.running.remove(self.lease)
    }
}

impl<D> Drop for Entered<'_, D> {
    fn drop(&mut self) {
        self.running.remove(self.lease);
    }
}

impl<D> Clone for Run<D> {
    fn clone(&self) -> Self {
        Self { lease: self.lease, control: self.control.clone(), delivery: Arc::clone(&self.delivery) }
    }
}

impl<D> Default for Running<D> {
    fn default() -> Self {
        Self { runs: Mutex::new(BTreeMap::new()), entered: Notify::new(), turns: RwLock::new(()) }
    }
}

impl<D> Running<D> {
    /// Adds a run; it is taken out when the guard is dropped, however its task ends.
    pub fn insert(&self, run: Run<D>) -> Entered<'_, D> {
        let lease = run.lease;
        self.lock().insert(lease.session_id, run);
        self.entered.notify_one();
        self.gauge();
        Entered { running: self, lease }
    }

    /// Only the run of this very lease: a later one of the session may have taken its place.
    fn remove(&self, lease: Lease) -> Option<Run<D>> {
        let run = match self.lock().entry(lease.session_id) {
            Entry::Occupied(entry) if entry.get().lease == lease => Some(entry.remove()),
            Entry::Occupied(_) | Entry::Vacant(_) => None,
        };
        self.gauge();
        run
    }

    /// Whether the session runs here. If so, this delivery of it becomes its delivery.
    pub fn adopt(&self, session: SessionId, delivery: &Arc<D>) -> bool {
        let mut runs = self.lock();
        let run = runs.get_mut(&session);
        run.map(|run| run.delivery = Arc::clone(delivery)).is_some()
    }

    /// All runs, in order of their sessions.
    pub fn all(&self) -> Vec<Run<D>> {
        self.lock().values().cloned().collect()
    }

    /// The run of a session, if it runs here.
    pub fn get(&self, session: SessionId) -> Option<Run<D>> {
        self.lock().get(&session).cloned()
    }

    /// Returns when a run was added since the last call returned. One task may wait. Cancel safe.
    pub async fn entered(&self) {
        self.entered.notified().await;
    }

    /// Held while an alert is read or a session is claimed. Cancel safe.
    pub async fn beside_others(&self) -> RwLockReadGuard<'_, ()> {
        self.turns.read().await
    }

    /// Returns when a death of this process would be counted for nobody twice: nothing is read or claimed, and every
    /// run has written something since its last owner died. Nothing of that begins while the guard is held. Cancel
    /// safe.
    pub async fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        loop {
            // Not in the queue of the lock, where a slow reading would hold up all that comes behind it.
            if let Ok(alone) = self.turns.try_write()
                && !self.all().iter().any(|run| run.control.is_at_risk())
            {
                return alone;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await; // pacing of looks
        }
    }

    fn gauge(&self) {
        let count = u32::try_from(self.lock().len()).unwrap_or(u32::MAX);
        metrics::gauge!("tarsy_sessions_running").set(f64::from(count));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Run<D>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
