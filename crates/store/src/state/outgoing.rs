//! `Outgoing`, the notifications that this process writes into the outbox.

use std::sync::Arc;

use tokio::sync::Notify;

use tarsy_core::notification::route::{Filters, Planned};
use tarsy_engine::ports::{JoinRequest, OpenRequest};

/// The notifications that this process writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    filters: Arc<Filters>,
    changed: Arc<Notify>,
}

impl Outgoing {
    /// The same with these routes.
    pub(crate) fn filtered(self, filters: Filters) -> Self {
        Self {
            filters: Arc::new(filters),
            ..self
        }
    }

    /// Wakes the senders of this process.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// The rows of a session that opens; a question has only those of the thread in which it was asked.
    pub(crate) fn of_session(&self, request: &OpenRequest) -> Vec<Planned> {
        match (&request.parent, &request.answer_route) {
            (None, _) => self.filters.of_session(&request.plan.chain),
            (Some(_), Some(route)) => self.filters.of_answer(route),
            (Some(_), None) => Vec::new(),
        }
    }

    /// The rows of an alert that opens no investigation: it is covered, or a session lists it above a limit.
    pub(crate) fn of_list(&self, request: &JoinRequest) -> Vec<Planned> {
        request
            .limit
            .as_ref()
            .map(|limit| self.filters.of_session(&limit.chain))
            .unwrap_or_else(|| self.filters.of_covered().collect())
    }

    /// The rows of each call that waits for a person.
    pub(crate) fn of_request(&self) -> Vec<Planned> {
        self.filters.of_request()
    }

    pub(crate) fn of_dead_letter(&self) -> Vec<Planned> {
        self.filters.of_dead_letter()
    }

    /// A statement of this process may have made a notification due.
    pub(crate) fn has_changed(&self) {
        if !self.filters.is_empty() {
            self.changed.notify_waiters();
        }
    }
}
