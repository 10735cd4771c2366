//! `Runs`, the sessions that this process runs, each with its lease, its control handle and its latest delivery.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::control::Control;
use crate::ports::Lease;
use tarsy_core::ids::SessionId;

/// The time between two checks whether isolation is possible.
const ISOLATION_INTERVAL: Duration = Duration::from_millis(200);

/// The registry of the sessions that run in this process.
#[derive(Debug)]
pub struct Runs<D> {
    runs: Mutex<BTreeMap<SessionId, RunHandle<D>>>,
    added: Notify,
    isolation: RwLock<()>,
}

/// One session that runs in this process.
#[derive(Debug)]
pub struct RunHandle<D> {
    pub lease: Lease,
    pub control: Control,
    /// The session's latest message: the one that is acknowledged in the end. `None` while the message of a session
    /// that was taken over without it is not redelivered.
    pub delivery: Option<Arc<D>>,
}

/// A run in the registry. Dropped, it is removed.
#[derive(Debug)]
pub struct Registered<'r, D> {
    runs: &'r Runs<D>,
    lease: Lease,
}

impl<D> Registered<'_, D> {
    /// Removes the run and returns it with its latest delivery.
    pub fn remove(self) -> Option<RunHandle<D>> {
        self.runs.remove(self.lease)
    }
}

impl<D> Drop for Registered<'_, D> {
    fn drop(&mut self) {
        self.runs.remove(self.lease);
    }
}

impl<D> Clone for RunHandle<D> {
    fn clone(&self) -> Self {
        Self {
            lease: self.lease,
            control: self.control.clone(),
            delivery: self.delivery.clone(),
        }
    }
}

impl<D> Default for Runs<D> {
    fn default() -> Self {
        Self {
            runs: Mutex::default(),
            added: Notify::new(),
            isolation: RwLock::new(()),
        }
    }
}

impl<D> Runs<D> {
    /// Adds a run until the guard is dropped, however its task ends.
    pub fn insert(&self, run: RunHandle<D>) -> Registered<'_, D> {
        let lease = run.lease;
        self.runs.lock().insert(lease.session_id, run);
        self.added.notify_one();
        self.gauge();
        Registered { runs: self, lease }
    }

    /// Removes the run of this very lease: a later run of the session may have taken its place.
    fn remove(&self, lease: Lease) -> Option<RunHandle<D>> {
        let run = match self.runs.lock().entry(lease.session_id) {
            Entry::Occupied(entry) if entry.get().lease == lease => Some(entry.remove()),
            Entry::Occupied(_) | Entry::Vacant(_) => None,
        };
        self.gauge();
        run
    }

    /// Whether the session runs here. If so, its run acknowledges this delivery instead of the earlier one.
    pub(crate) fn adopt(&self, session: SessionId, delivery: &Arc<D>) -> bool {
        let mut runs = self.runs.lock();
        let run = runs.get_mut(&session);
        run.map(|run| run.delivery = Some(Arc::clone(delivery)))
            .is_some()
    }

    /// All runs, in the order of their sessions' ids.
    pub fn all(&self) -> Vec<RunHandle<D>> {
        self.runs.lock().values().cloned().collect()
    }

    /// The sessions that run here, in the order of their ids.
    pub fn sessions(&self) -> Vec<SessionId> {
        self.runs.lock().keys().copied().collect()
    }

    /// The run of a session that runs here.
    pub fn get(&self, session: SessionId) -> Option<RunHandle<D>> {
        self.runs.lock().get(&session).cloned()
    }

    /// Waits until a run was added since the last call returned. One task may wait. Cancel safe.
    pub async fn added(&self) {
        self.added.notified().await;
    }

    /// A guard that is held while the worker prepares an alert or claims a session. Many may be held at the same time.
    /// Cancel safe.
    pub async fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.isolation.read().await
    }

    /// Waits until a crash of this process could not exhaust the attempts of any session: no alert is being prepared,
    /// no claim is in flight, and every run has written a checkpoint since it was resumed after a death. While the
    /// guard is held, none of these starts. Cancel safe.
    pub async fn exclusive(&self) -> RwLockWriteGuard<'_, ()> {
        loop {
            // Not in the lock's queue: while this call waited there for a slow preparation, no other could begin.
            if let Ok(guard) = self.isolation.try_write()
                && !self.all().iter().any(|run| run.control.is_at_risk())
            {
                return guard;
            }
            tokio::time::sleep(ISOLATION_INTERVAL).await; // pacing of checks
        }
    }

    fn gauge(&self) {
        let count = u32::try_from(self.runs.lock().len()).unwrap_or(u32::MAX);
        metrics::gauge!("tarsy_sessions_running").set(f64::from(count));
    }
}
