//! Notifications: the rows of the outbox that are due, and the providers that take the messages.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;

use super::lease::StoreError;
use tarsy_core::ids::SessionId;
use tarsy_core::notification::summary::Summary;
use tarsy_core::notification::{Notification, NotificationKey};

/// Takes due notifications of one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationClaim {
    pub route: String,
    /// The limit of returned rows.
    pub limit: u32,
    /// No other worker takes them within this time.
    pub lease: Duration,
}

/// A notification that this worker may send.
#[derive(Clone, Debug, PartialEq)]
pub struct DueNotification {
    pub key: NotificationKey,
    /// The lease under which its result is recorded.
    pub lease: Uuid,
    /// Attempts, this one included.
    pub attempts: u32,
    /// The answer to an earlier attempt is not known.
    pub in_doubt: bool,
    /// The time since it was due for the first time, by the store's clock.
    pub waited: Duration,
    /// The receipt of the first message of the session.
    pub thread: Option<String>,
    /// The thread, `<channel>/<thread_ts>`, in which the question was asked that the session answers.
    pub asked_in: Option<String>,
    /// The session that it is about: for a covered alert the earlier one.
    pub about: SessionId,
    pub summary: Summary,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationResult {
    /// The provider has the message, and calls it by the receipt.
    Sent { receipt: Option<String> },
    /// The route does not want it, or the alert names nothing to which it belongs.
    Filtered,
    /// It will not be sent, for this reason.
    GivenUp { reason: String },
    /// It is due again after this time.
    Failed {
        reason: String,
        retry_after: Duration,
        arrival: Arrival,
    },
}

/// Whether a failed attempt can have reached the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The provider has refused the message, or was not reached.
    Refused,
    /// The provider may have the message.
    Unknown,
}

/// The state of the whole outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Rows of unknown routes that were given up.
    pub closed: u64,
    /// The time that the oldest notification of the known routes has been due.
    pub oldest: Option<Duration>,
}

/// The outbox of notifications. The statements that open sessions and give alerts up write its rows.
pub trait Notifications: Send + Sync + 'static {
    /// Takes due notifications. A row whose claim has no reply is due again when its lease has expired.
    fn claim_notifications(
        &self,
        claim: NotificationClaim,
    ) -> impl Future<Output = Result<Vec<DueNotification>, StoreError>> + Send;

    /// Records a result, unless the lease is no longer valid.
    fn record_notification(
        &self,
        key: NotificationKey,
        lease: Uuid,
        result: NotificationResult,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Gives up what other routes than these have been due for longer than `max_age`, and returns the backlog.
    fn notification_backlog(
        &self,
        routes: Vec<String>,
        max_age: Duration,
    ) -> impl Future<Output = Result<Backlog, StoreError>> + Send;

    /// Wakes a waiter when this process has written something that may make a notification due.
    fn notifications_changed(&self) -> Arc<Notify>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderAnswer {
    /// It has taken the message.
    Accepted { receipt: Option<String> },
    /// It has the message of an earlier attempt.
    Found { receipt: Option<String> },
    /// The alert names nothing to which the message could be added.
    NoPlace { reason: String },
    /// It refuses the message, which no later attempt can change.
    Rejected { reason: String },
    /// A later attempt may succeed, not before this time if it is given.
    Unavailable {
        reason: String,
        retry_after: Option<Duration>,
        arrival: Arrival,
    },
}

/// Sends messages by the routes of the configuration.
pub trait Notifier: Send + Sync + 'static {
    /// Sends a message; `thread` is the receipt of the session's first one. Ends within its own time limit.
    fn send(
        &self,
        message: Notification,
        thread: Option<String>,
    ) -> impl Future<Output = ProviderAnswer> + Send;
}
