//! Implements the port [`Notifications`]: the outbox of notifications.

use std::sync::Arc;
use std::time::Duration;

use diesel::prelude::*;
use tokio::sync::Notify;
use uuid::Uuid;

use tarsy_core::notification::NotificationKey;
use tarsy_core::notification::route::Filters;
use tarsy_engine::ports::{
    Backlog, DueNotification, NotificationClaim, NotificationResult, Notifications, StoreError,
};

use super::call::{Operation, once};
use super::connect::Store;
use super::rows::number;
use super::writes::notify::{ClaimNotifications, CloseUnrouted, DueRow, RecordNotification};

impl Store {
    /// The same store; it writes a row for each notification that these routes may need. Without routes no statement
    /// has more to do.
    #[must_use]
    pub fn notifying(self, filters: Filters) -> Self {
        Self {
            outgoing: self.outgoing.filtered(filters),
            ..self
        }
    }
}

impl Notifications for Store {
    /// Sent once: sent again it would find the rows taken by itself.
    async fn claim_notifications(
        &self,
        claim: NotificationClaim,
    ) -> Result<Vec<DueNotification>, StoreError> {
        let write = Arc::new(ClaimNotifications::new(claim));
        let statement = Arc::clone(&write);
        let rows: Vec<DueRow> = once(
            &self.pool,
            self.call_timeout,
            Operation::NotifyClaim,
            move |connection| (&*statement).get_results(connection),
        )
        .await?;
        Ok(rows.into_iter().filter_map(|row| write.due(row)).collect())
    }

    async fn record_notification(
        &self,
        key: NotificationKey,
        lease: Uuid,
        result: NotificationResult,
    ) -> Result<(), StoreError> {
        let write = RecordNotification::new(key, lease, result);
        // No row: another worker has taken it since, or this statement has recorded the result before.
        self.run(Operation::NotifyRecord, move |connection| {
            (&write).execute(connection)
        })
        .await?;
        self.outgoing.has_changed();
        Ok(())
    }

    /// Sent once: the next look is due soon.
    async fn notification_backlog(
        &self,
        routes: Vec<String>,
        max_age: Duration,
    ) -> Result<Backlog, StoreError> {
        let write = CloseUnrouted {
            routes,
            max_age: max_age.as_secs_f64(),
        };
        let (closed, oldest): (i64, Option<f64>) = once(
            &self.pool,
            self.call_timeout,
            Operation::NotifyBacklog,
            move |connection| (&write).get_result(connection),
        )
        .await?;
        Ok(Backlog {
            closed: number::from_big(closed),
            oldest: oldest.map(number::from_seconds),
        })
    }

    fn notifications_changed(&self) -> Arc<Notify> {
        self.outgoing.changed()
    }
}
