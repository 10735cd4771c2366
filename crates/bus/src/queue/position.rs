//! The length of the queue and the position of an alert in it.

use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use chrono::{DateTime, Utc};

use crate::connection::{Nats, REQUEST_TIMEOUT};
use crate::error::{Error, within};
use crate::names::{ALERTS, Priority};
use crate::stream::get::{first_from, message_at};

/// The number of earlier alerts that are counted; for more, only an upper bound is returned.
const MAX_COUNTED: u64 = 200;
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// The position of an alert in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePosition {
    /// No worker has claimed it yet.
    Waiting {
        /// Alerts of its priority that wait before it, without those that wait for a redelivery.
        ahead: u64,
        /// Whether they were counted; otherwise `ahead` is an upper bound.
        exact: bool,
    },
    /// A worker has it, or has released it.
    Claimed,
    /// The queue does not have it any more.
    Gone,
}

/// The length of the queue of one priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    pub priority: Priority,
    /// Alerts that were never delivered.
    pub pending: u64,
    /// Alerts that are claimed, or wait for a redelivery.
    pub in_progress: u64,
    /// Age of the oldest of all these alerts; `None` if there is none.
    pub oldest: Option<Duration>,
}

impl Nats {
    /// The position of the alert at `sequence` of the stream of alerts, among those of its priority.
    ///
    /// # Errors
    ///
    /// When the stream or the priority's consumer cannot be read.
    pub async fn queue_position(
        &self,
        priority: Priority,
        sequence: u64,
    ) -> Result<QueuePosition, Error> {
        let message = message_at(self, ALERTS, sequence).await?;
        if message.and_then(|message| Priority::of_subject(&message.subject)) != Some(priority) {
            return Ok(QueuePosition::Gone);
        }
        let info = self.consumer_of(priority).await?;
        let delivered = info.delivered.stream_sequence;
        if delivered >= sequence {
            return Ok(QueuePosition::Claimed);
        }
        let upper_bound = info
            .num_pending
            .saturating_sub(1)
            .min(sequence - delivered - 1);
        if upper_bound == 0 {
            return Ok(QueuePosition::Waiting {
                ahead: 0,
                exact: true,
            });
        }
        let counted =
            tokio::time::timeout(COUNT_TIMEOUT, self.count(priority, delivered + 1, sequence))
                .await;
        match counted {
            Ok(Ok(Some(ahead))) => Ok(QueuePosition::Waiting { ahead, exact: true }),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) | Err(_) => Ok(QueuePosition::Waiting {
                ahead: upper_bound,
                exact: false,
            }),
        }
    }

    /// Counts the alerts of a priority from `from` on and before `before`; `None` if there are more than
    /// [`MAX_COUNTED`].
    async fn count(
        &self,
        priority: Priority,
        from: u64,
        before: u64,
    ) -> Result<Option<u64>, Error> {
        let mut counted = 0;
        for filter in priority.filters() {
            let mut next = from;
            while next < before {
                let found = first_from(self, ALERTS, &filter, next).await?;
                let Some(found) = found.filter(|message| message.sequence < before) else {
                    break;
                };
                counted += 1;
                if counted > MAX_COUNTED {
                    return Ok(None);
                }
                next = found.sequence + 1;
            }
        }
        Ok(Some(counted))
    }

    /// The length of the queue of each priority, the highest first.
    ///
    /// # Errors
    ///
    /// When the stream or a consumer cannot be read.
    pub async fn backlog(&self) -> Result<Vec<Backlog>, Error> {
        let mut backlog = self.backlog_without_ages().await?;
        for of in &mut backlog {
            if of.pending > 0 || of.in_progress > 0 {
                of.oldest = self.age_of_oldest(of.priority).await?;
            }
        }
        Ok(backlog)
    }

    /// The same without the age of the oldest alert, for which a client has to be permitted to read queued alerts.
    ///
    /// # Errors
    ///
    /// When a consumer cannot be read.
    pub async fn backlog_without_ages(&self) -> Result<Vec<Backlog>, Error> {
        let mut backlog = Vec::with_capacity(Priority::ALL.len());
        for priority in Priority::ALL {
            let info = self.consumer_of(priority).await?;
            backlog.push(Backlog {
                priority,
                pending: info.num_pending,
                in_progress: u64::try_from(info.num_ack_pending).unwrap_or(u64::MAX),
                oldest: None,
            });
        }
        Ok(backlog)
    }

    async fn age_of_oldest(&self, priority: Priority) -> Result<Option<Duration>, Error> {
        let mut oldest_ns = None;
        for filter in priority.filters() {
            let first = first_from(self, ALERTS, &filter, 1).await?;
            let stored_at_ns = first.map(|message| message.time.unix_timestamp_nanos());
            oldest_ns = oldest_ns.into_iter().chain(stored_at_ns).min();
        }
        let stored_at = oldest_ns
            .and_then(|ns| i64::try_from(ns).ok())
            .map(DateTime::from_timestamp_nanos);
        // For display. If the clocks differ the age is inexact, but never negative.
        Ok(stored_at.map(|stored_at| (Utc::now() - stored_at).to_std().unwrap_or_default()))
    }

    pub(super) async fn consumer_of(&self, priority: Priority) -> Result<Info, Error> {
        let object = priority.consumer();
        let read = async {
            let stream = self.jetstream.get_stream_no_info(ALERTS).await;
            let stream = stream.map_err(|error| self.admin(&object, "read", &error))?;
            let info = stream.consumer_info(priority.as_str()).await;
            info.map_err(|error| {
                if error.kind() == ConsumerInfoErrorKind::NoResponders {
                    self.no_jetstream()
                } else {
                    self.admin(&object, "read", &error)
                }
            })
        };
        within(REQUEST_TIMEOUT, format!("{object} gave no answer"), read).await
    }
}
