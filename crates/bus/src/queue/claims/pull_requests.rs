//! The pull requests of the claim loop: sends them, receives their replies and knows which ones the server still has.
//!
//! One inbox lives as long as the requests, and every message on it is answered: claimed while there is a slot,
//! released otherwise. Unsubscribing while requests are at the server would lose an alert that is on its way
//! (async-nats' `drain` does not wait for the server), so the claim loop ends only when every request is known to be
//! over.

use std::time::Duration;

use async_nats::Message;
use async_nats::jetstream::consumer::{Consumer, pull};
use tokio::time::Instant;

use super::pending_pulls::PendingPulls;
use super::watchdog::ConsumerProgress;
use crate::connection::Nats;
use crate::error::Error;
use crate::names::{ALERTS, Priority};
use crate::stream::pull::{PullInbox, PullReply};

/// The longest time that the server may take to reply to a request that does not wait for alerts.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// The pull requests at the server are lost or unknown; holds the cause.
#[derive(Debug)]
pub(super) struct Lost(pub(super) String);

impl<E: std::error::Error> From<E> for Lost {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

pub(super) struct PullRequests {
    nats: Nats,
    pub(super) inbox: PullInbox,
    consumers: Vec<(Priority, Consumer<pull::Config>)>,
    pub(super) pending: PendingPulls,
    /// The time by which the requests before a loss are over.
    unknown_until: Option<Instant>,
}

impl PullRequests {
    pub(super) async fn open(nats: &Nats) -> Result<Self, Error> {
        Ok(Self {
            nats: nats.clone(),
            inbox: PullInbox::open(nats).await?,
            consumers: Vec::new(),
            pending: PendingPulls::default(),
            unknown_until: None,
        })
    }

    /// Looks the consumers up, unless that is done.
    pub(super) async fn find_consumers(&mut self) -> Result<(), Error> {
        if !self.consumers.is_empty() {
            return Ok(());
        }
        let mut consumers = Vec::with_capacity(Priority::ALL.len());
        for priority in Priority::ALL {
            let found = self
                .nats
                .jetstream
                .get_consumer_from_stream(priority.as_str(), ALERTS)
                .await;
            let consumer =
                found.map_err(|error| Error::admin(priority.consumer(), "read", &error))?;
            consumers.push((priority, consumer));
        }
        self.consumers = consumers;
        Ok(())
    }

    /// Sends a request whose messages and heartbeats come at least every `idle_timeout`.
    pub(super) async fn send(
        &mut self,
        priority: Priority,
        request: pull::BatchConfig,
        idle_timeout: Duration,
    ) -> Result<(), Lost> {
        let Some((_, consumer)) = self.consumers.iter().find(|(of, _)| *of == priority) else {
            return Err(Lost(format!("no consumer {}", priority.as_str())));
        };
        let number = self.pending.add(priority, request.batch, idle_timeout);
        let sent = consumer.request_batch(request, self.inbox.reply_to(number).into());
        match tokio::time::timeout(REPLY_TIMEOUT, sent).await {
            Ok(sent) => Ok(sent?),
            Err(_) => Err(Lost("the connection takes no pull request".to_owned())),
        }
    }

    /// Records a reply; returns its message if it has one.
    pub(super) fn record(&mut self, reply: PullReply) -> Result<Option<Message>, Lost> {
        match reply {
            PullReply::Message(message) => return Ok(Some(*message)),
            PullReply::Heartbeat(number) => self.pending.heartbeat(number),
            PullReply::Ended(number) => self.pending.ended(number),
            PullReply::Lost(reason) => return Err(Lost(reason)),
        }
        Ok(None)
    }

    /// Forgets all requests after a loss; they end at the server within `expires`.
    pub(super) fn reset(&mut self, expires: Duration) {
        self.consumers.clear();
        self.pending.clear();
        self.unknown_until = Some(Instant::now() + expires);
    }

    /// Replies on another inbox from now on.
    pub(super) async fn replace_inbox(&mut self) -> Result<(), Error> {
        self.inbox = PullInbox::open(&self.nats).await?;
        Ok(())
    }

    /// The next reply to a request that may still be at the server; `None` when there is no such request.
    pub(super) async fn next_outstanding(&mut self) -> Option<PullReply> {
        if self.pending.is_empty()
            && self
                .unknown_until
                .is_none_or(|until| until <= Instant::now())
        {
            return None;
        }
        let deadline = self.pending.deadline().or(self.unknown_until);
        tokio::select! {
            reply = self.inbox.next() => Some(reply),
            () = sleep_until(deadline) => None,
        }
    }

    /// The consumers, of the priorities that are wanted, that have alerts to deliver.
    pub(super) async fn waiting(
        &self,
        is_wanted: impl Fn(Priority) -> bool + Send + Sync,
    ) -> Result<Vec<ConsumerProgress>, Lost> {
        let mut waiting = Vec::new();
        for (priority, consumer) in &self.consumers {
            if !is_wanted(*priority) {
                continue;
            }
            let info = tokio::time::timeout(REPLY_TIMEOUT, consumer.get_info()).await;
            let info = info.map_err(|_| Lost("no answer about a consumer".to_owned()))??;
            waiting.extend(ConsumerProgress::new(*priority, &info));
        }
        Ok(waiting)
    }
}

/// Never returns without a deadline.
pub(super) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
