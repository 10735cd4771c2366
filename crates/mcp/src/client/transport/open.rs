//! Tracks the unanswered requests of a connection.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, RequestId};

/// Requests by their ids. A server may write the number of an id as text, so the form does not count.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenRequests(Arc<Mutex<BTreeSet<String>>>);

impl OpenRequests {
    /// The one request whose answer is read.
    pub(super) fn only(request: Option<&RequestId>) -> Self {
        let open = Self::default();
        open.0.lock().extend(request.map(RequestId::to_string));
        open
    }

    /// Notes a message of ours: a request is open from now on, and a cancelled one is not.
    pub(super) fn sent(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                self.0.lock().insert(request.id.to_string());
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.answered(&id.to_string());
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
    }

    pub(super) fn answered(&self, id: &str) {
        self.0.lock().remove(id);
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.lock().contains(id)
    }

    /// The request, if exactly one is open.
    pub(super) fn single(&self) -> Option<String> {
        let ids = self.0.lock();
        if ids.len() == 1 {
            ids.first().cloned()
        } else {
            None
        }
    }
}
