//! `RouteSender`, which sends the due notifications of one route, and `BacklogWatch`, which watches the whole outbox.
//!
//! Every worker does both; a lease keeps a row from being sent by two of them. A message is sent at least once: when a
//! worker dies between the provider's answer and its record, the next one sends it again, with the same key and a
//! remark.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::ports::{
    Arrival, DueNotification, NotificationClaim, NotificationResult, Notifications, Notifier,
    ProviderAnswer,
};
use tarsy_core::approvals::RequestId;
use tarsy_core::notification::request::Request;
use tarsy_core::notification::route::Filter;
use tarsy_core::notification::summary::Summary;
use tarsy_core::notification::template::Template;
use tarsy_core::notification::{Moment, Notification};
use tarsy_core::public_url::PublicUrl;

/// Messages of a route that are sent at the same time.
const MAX_CONCURRENT: u32 = 8;
/// A row is leased for so many times the limit of an attempt: its result has to be recorded, too.
const LEASE_TIMEOUTS: u32 = 3;
/// The time between two claims while this process has changed nothing: other workers may have left something due.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The time between the attempts of one notification.
const RETRY: Backoff = Backoff {
    first: Duration::from_secs(2),
    max: Duration::from_secs(300),
};
/// The longest pause that a provider can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);
/// A notification that has been due for longer is given up.
pub const MAX_AGE: Duration = Duration::from_secs(24 * 3_600);
/// A drain waits for running attempts, so that few are in doubt.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two looks at the backlog.
const BACKLOG_INTERVAL: Duration = Duration::from_secs(15);

/// A route as the sender needs it.
#[derive(Clone, Debug)]
pub struct SenderRoute {
    pub name: String,
    /// The word of its kind, for metrics.
    pub kind: &'static str,
    /// The time limit for one attempt.
    pub timeout: Duration,
    pub filter: Filter,
    pub template: Option<Template>,
    pub started_template: Option<Template>,
}

/// Sends the notifications of one route.
#[derive(Debug)]
pub struct RouteSender<S, N> {
    pub store: Arc<S>,
    pub notifier: Arc<N>,
    pub route: SenderRoute,
    pub public_url: Option<PublicUrl>,
}

impl<S: Notifications, N: Notifier> RouteSender<S, N> {
    /// Sends until `end` is cancelled; attempts that then run have some seconds to end.
    pub async fn run(self, end: CancellationToken) {
        let changed = self.store.notifications_changed();
        let mut failures = 0;
        while !end.is_cancelled() {
            // Registered before the claim: a change during it wakes this loop.
            let mut woken = std::pin::pin!(changed.notified());
            woken.as_mut().enable();
            let claim = NotificationClaim {
                route: self.route.name.clone(),
                limit: MAX_CONCURRENT,
                lease: self.route.timeout * LEASE_TIMEOUTS,
            };
            let delay = match self.store.claim_notifications(claim).await {
                Ok(due) if due.is_empty() => POLL_INTERVAL,
                Ok(due) => {
                    failures = 0;
                    let abort = async {
                        end.cancelled().await;
                        sleep(DRAIN_TIMEOUT).await; // the drain timeout itself
                    };
                    tokio::select! {
                        pause = self.send_all(due) => {
                            // The provider has asked for the pause, so no change cuts it short.
                            if let Some(pause) = pause {
                                end.run_until_cancelled(sleep(pause)).await;
                            }
                            continue;
                        }
                        () = abort => return,
                    }
                }
                Err(error) => {
                    failures += 1;
                    tracing::debug!(
                        route = self.route.name,
                        "notifications not claimed: {error}"
                    );
                    RETRY.delay(failures)
                }
            };
            tokio::select! {
                () = sleep(delay) => {} // pacing of looks
                () = woken => {}
                () = end.cancelled() => return,
            }
        }
    }

    /// Sends what is due, and returns the longest pause that the provider has asked for.
    async fn send_all(&self, due: Vec<DueNotification>) -> Option<Duration> {
        join_all(due.into_iter().map(|due| self.send(due)))
            .await
            .into_iter()
            .flatten()
            .max()
    }

    async fn send(&self, due: DueNotification) -> Option<Duration> {
        let key = due.key.clone();
        let lease = due.lease;
        let attempt = self.attempt(due).await;
        let outcome = attempt.outcome;
        metrics::counter!("tarsy_notifications_total", "kind" => self.route.kind, "outcome" => outcome)
            .increment(1);
        match &attempt.result {
            NotificationResult::Sent { .. } | NotificationResult::Filtered => {
                tracing::debug!(session_id = %key.session, route = key.route, outcome, "notification closed");
            }
            NotificationResult::Failed { reason, .. } => {
                tracing::warn!(session_id = %key.session, route = key.route, "notification not sent yet: {reason}");
            }
            NotificationResult::GivenUp { reason } => {
                tracing::error!(session_id = %key.session, route = key.route, "notification given up: {reason}");
            }
        }
        if let Err(error) = self
            .store
            .record_notification(key.clone(), lease, attempt.result)
            .await
        {
            tracing::warn!(session_id = %key.session, route = key.route, "result of a notification not recorded: {error}");
        }
        attempt.pause
    }

    /// Whether the route wants a notification. A message that has asked loses its buttons, also if the alert has
    /// changed since.
    fn wants(&self, moment: Moment, summary: &Summary) -> bool {
        moment == Moment::Decided || self.route.filter.accepts(moment, summary)
    }

    async fn attempt(&self, due: DueNotification) -> Attempt {
        let DueNotification {
            key,
            attempts,
            in_doubt,
            waited,
            thread,
            asked_in,
            about,
            summary,
            ..
        } = due;
        // A person waits in the thread for the answer, whatever the route filters.
        let is_answer = asked_in.is_some() && key.moment == Moment::Ended;
        let is_wanted = is_answer || self.wants(key.moment, &summary);
        // One that may have arrived is searched, because its buttons have to go.
        if !is_wanted || !in_doubt && is_settled(key.moment, &summary) {
            return Attempt::new("filtered", NotificationResult::Filtered);
        }
        let template = match key.moment {
            Moment::Started => self.route.started_template.clone(),
            Moment::Ended => self.route.template.clone(),
            Moment::Covered | Moment::Approval | Moment::Decided => None,
        };
        let url = self.public_url.as_ref().map(|url| match key.request {
            Some(event) => url.approval(RequestId {
                session: about,
                event,
            }),
            None => url.session(about),
        });
        let session = key.session;
        let message = Notification {
            key,
            about,
            summary,
            url,
            template,
            may_repeat: in_doubt,
            stays_in_thread: is_answer,
        };
        match self.notifier.send(message, thread.or(asked_in)).await {
            ProviderAnswer::Accepted { receipt } => Attempt::new(
                if in_doubt { "repeated" } else { "sent" },
                NotificationResult::Sent { receipt },
            ),
            ProviderAnswer::Found { receipt } => {
                Attempt::new("found", NotificationResult::Sent { receipt })
            }
            ProviderAnswer::NoPlace { reason } => {
                tracing::debug!(session_id = %session, "notification filtered: {reason}");
                Attempt::new("filtered", NotificationResult::Filtered)
            }
            ProviderAnswer::Rejected { reason } => {
                Attempt::new("given_up", NotificationResult::GivenUp { reason })
            }
            ProviderAnswer::Unavailable { reason, .. } if waited >= MAX_AGE => {
                let hours = MAX_AGE.as_secs() / 3_600;
                let reason = format!("not sent within {hours} hours; the last attempt: {reason}");
                Attempt::new("given_up", NotificationResult::GivenUp { reason })
            }
            ProviderAnswer::Unavailable {
                reason,
                retry_after,
                arrival,
            } => {
                let pause = retry_after.map(|pause| pause.min(MAX_RETRY_AFTER));
                let backoff = RETRY.delay(attempts.saturating_sub(1));
                let retry_after = pause.map_or(backoff, |pause| pause.max(backoff));
                // An attempt that was refused does not remove the doubt about an earlier one.
                let arrival = if in_doubt { Arrival::Unknown } else { arrival };
                let result = NotificationResult::Failed {
                    reason,
                    retry_after,
                    arrival,
                };
                Attempt {
                    pause,
                    ..Attempt::new("failed", result)
                }
            }
        }
    }
}

/// Whether a message about a request has no use any more: all was decided before it was sent, or the request is gone.
fn is_settled(moment: Moment, summary: &Summary) -> bool {
    let request = summary.request.as_ref();
    match moment {
        Moment::Approval => !request.is_some_and(Request::is_open),
        Moment::Decided => request.is_none(),
        Moment::Started | Moment::Ended | Moment::Covered => false,
    }
}

/// An attempt that has ended.
struct Attempt {
    /// The label of the metric.
    outcome: &'static str,
    result: NotificationResult,
    /// The time during which the provider wants no further message.
    pause: Option<Duration>,
}

impl Attempt {
    fn new(outcome: &'static str, result: NotificationResult) -> Self {
        Self {
            outcome,
            result,
            pause: None,
        }
    }
}

/// Gives up the rows of routes that were removed, and shows how long the oldest row has been due.
#[derive(Debug)]
pub struct BacklogWatch<S> {
    pub store: Arc<S>,
    /// The names of all routes.
    pub routes: Vec<String>,
}

impl<S: Notifications> BacklogWatch<S> {
    /// Looks until `end` is cancelled.
    pub async fn run(self, end: CancellationToken) {
        let mut ticks = tokio::time::interval(BACKLOG_INTERVAL);
        while end.run_until_cancelled(ticks.tick()).await.is_some() {
            match self
                .store
                .notification_backlog(self.routes.clone(), MAX_AGE)
                .await
            {
                Ok(backlog) => {
                    let oldest = backlog.oldest.unwrap_or_default();
                    metrics::gauge!("tarsy_notifications_oldest_seconds").set(oldest.as_secs_f64());
                    if backlog.closed > 0 {
                        tracing::error!(
                            count = backlog.closed,
                            "notifications given up: no worker has their route"
                        );
                    }
                }
                Err(error) => tracing::debug!("backlog of notifications not read: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
