//! `Positions` and `History`, the positions that the background work of this process has reached.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The session after which the next batch of a table begins, so that it does not read the index entries of rows that
/// earlier batches have deleted: they stay until a vacuum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions(Arc<Mutex<BTreeMap<&'static str, Uuid>>>);

impl Positions {
    pub(crate) fn get(&self, table: &str) -> Uuid {
        self.0.lock().get(table).copied().unwrap_or_default()
    }

    pub(crate) fn set(&self, table: &'static str, session: Uuid) {
        self.0.lock().insert(table, session);
    }
}

/// The position up to which the history has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Arc<Mutex<Reached>>);

/// A place in the history of sessions, from the newest to the oldest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reached {
    #[default]
    Nothing,
    Session {
        settled_at: DateTime<Utc>,
        session_id: Uuid,
    },
    /// The oldest session.
    End,
}

impl History {
    pub(crate) fn get(&self) -> Reached {
        *self.0.lock()
    }

    pub(crate) fn set(&self, reached: Reached) {
        *self.0.lock() = reached;
    }
}
