//! The session that `{{session}}` in headers stands for, and whether its server may forget it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use tarsy_config::SESSION_IN_HEADERS;
use tarsy_core::ids::SessionId;

/// The session that a connection is for. All connections of a run share it.
#[derive(Debug)]
pub(in crate::client) struct HeaderSession {
    id: SessionId,
    ended: AtomicBool,
}

impl HeaderSession {
    pub(in crate::client) fn new(id: SessionId) -> Self {
        Self {
            id,
            ended: AtomicBool::new(false),
        }
    }

    /// A random id of a connection that no session uses: for the list of tools, or for the call of a person. What the
    /// server keeps for it ends with the connection.
    pub(super) fn of_one_connection() -> Self {
        let random = fastrand::u128(..).to_ne_bytes();
        Self {
            id: SessionId(uuid::Builder::from_random_bytes(random).into_uuid()),
            ended: AtomicBool::new(true),
        }
    }

    /// No run continues with the session: its connections delete what the server keeps for it when they close.
    pub(in crate::client) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The value of a header, with the id in place of `{{session}}`.
    pub(super) fn named_in(&self, value: &str) -> String {
        value.replace(SESSION_IN_HEADERS, &self.id.to_string())
    }
}

/// Whether a header names the session.
pub(super) fn is_named_in(headers: &BTreeMap<String, String>) -> bool {
    headers
        .values()
        .any(|value| value.contains(SESSION_IN_HEADERS))
}
