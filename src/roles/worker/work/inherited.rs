//! Continues the sessions of earlier workers of this pod.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::Worker;
use tarsy_engine::ports::{Inherited, Intake};

impl<I: Intake> Worker<I> {
    /// The sessions of earlier workers of this pod, each with a slot. Those that find none wait for their leases.
    pub(super) async fn find_inherited(
        &self,
        slots: &Arc<Semaphore>,
    ) -> Vec<(Inherited, OwnedSemaphorePermit)> {
        let sessions = self
            .dispatcher
            .inherited(&self.predecessors, slots.available_permits())
            .await;
        sessions
            .into_iter()
            .filter_map(|session| Some((session, Arc::clone(slots).try_acquire_owned().ok()?)))
            .collect()
    }

    /// Continues these sessions, each in a separate job.
    pub(super) fn run_inherited(
        &self,
        inherited: Vec<(Inherited, OwnedSemaphorePermit)>,
        jobs: &TaskTracker,
    ) {
        if inherited.is_empty() {
            return;
        }
        let dispatcher = Arc::clone(&self.dispatcher);
        let tracker = jobs.clone();
        let predecessors = self.predecessors.clone();
        jobs.spawn(async move {
            if !dispatcher.may_inherit().await {
                tracing::info!(
                    sessions = inherited.len(),
                    "sessions of the worker before this one wait for their leases"
                );
                return;
            }
            for (session, slot) in inherited {
                let dispatcher = Arc::clone(&dispatcher);
                let predecessors = predecessors.clone();
                tracker.spawn(async move {
                    dispatcher.inherit(session, predecessors).await;
                    drop(slot);
                });
            }
        });
    }
}
