//! The connections to a server with `scope: session`, each assigned to one run.

use parking_lot::Mutex;
use std::sync::Arc;

use super::session_limit::SessionLimit;
use super::slot::ConnectionSlot;
use super::transport::http::HeaderSession;
use tarsy_engine::ports::{Lease, SessionAfterRun};

/// The connections of the sessions that run now, by the lease of their run.
#[derive(Debug)]
pub(super) struct SessionConnections {
    limit: SessionLimit,
    runs: Mutex<Vec<Run>>,
}

#[derive(Debug)]
struct Run {
    lease: Lease,
    slot: Arc<ConnectionSlot>,
}

impl SessionConnections {
    /// Limits the connections to `max`, including those that are being closed.
    pub(super) fn new(max: u32) -> Self {
        Self {
            limit: SessionLimit::new(max),
            runs: Mutex::default(),
        }
    }

    /// The place of the connection of this run, which is opened by its first call.
    pub(super) fn slot(&self, lease: Lease) -> Arc<ConnectionSlot> {
        let mut runs = self.runs.lock();
        // A call that was dropped at the end of its run may have left a place without a connection.
        runs.retain(|run| {
            run.lease == lease || run.slot.is_opened() || Arc::strong_count(&run.slot) > 1
        });
        if let Some(run) = runs.iter().find(|run| run.lease == lease) {
            return Arc::clone(&run.slot);
        }
        let slot = Arc::new(ConnectionSlot::limited(
            self.limit.clone(),
            HeaderSession::new(lease.session_id),
        ));
        runs.push(Run {
            lease,
            slot: Arc::clone(&slot),
        });
        slot
    }

    /// Closes the connection of this run.
    pub(super) fn end(&self, lease: Lease, session: SessionAfterRun) {
        self.runs.lock().retain(|run| {
            let is_other = run.lease != lease;
            if !is_other && session == SessionAfterRun::Ended {
                run.slot.session_ended();
            }
            is_other
        });
    }
}
