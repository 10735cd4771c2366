//! Admission of an alert without a disposition: it is prepared, then opens a session, joins one, ends, or becomes a
//! dead letter.
//!
//! A crash counts as an attempt for everything the worker was doing. An alert that may have caused one is therefore
//! prepared in isolation: meanwhile this worker prepares and claims nothing else, and no run here is at risk of losing
//! an attempt.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{self, Either};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use uuid::Uuid;

use super::acknowledgement::jittered;
use super::attempt::Attempt;
use super::dispatcher::Dispatcher;
use super::heartbeat::with_heartbeat;
use super::holder::{Begun, Leased};
use crate::ports::{
    DeadReason, Delivery, Disposition, Feed, Intake, Job, JoinRequest, OpenRequest, Opened,
    Planned, PrepareError, PreparedAlert, Queue, Received, Refusal, Sessions, StoreError,
};
use crate::run::control::ReleaseReason;
use crate::run::session;
use crate::trace;
use crate::world::World;
use tarsy_core::alert_update::Change;
use tarsy_core::ids::SessionId;

/// The time until the session of the fingerprint that is being cancelled has ended.
const CANCELLING_DELAY: Duration = Duration::from_secs(2);
/// The time until the MCP servers of an alert's chain are looked for again.
const TOOLS_DELAY: Duration = Duration::from_secs(5);
/// The time until the other alerts of a body are published again.
const PARTS_DELAY: Duration = Duration::from_secs(2);
/// The jitter of suspect alerts: those that one crash has returned together request isolation at random times within
/// it.
const MAX_JITTER: Duration = Duration::from_secs(1);
/// Attempts whose result the store refused before the alert is given up.
const MAX_REFUSALS: u32 = 3;

type AlertAttempt<'a, W> = Attempt<'a, <W as World>::Sessions>;

/// The result of an attempt to admit an alert.
#[derive(Debug)]
pub(super) enum Admission {
    /// A session, leased to this worker.
    Leased(Box<Leased>),
    /// The alert has its disposition, and has opened no session.
    Placed,
    /// Another worker was faster: the alert's disposition has to be looked up again.
    Raced,
    /// Nothing was decided: the message is redelivered after this time.
    Retry(Duration),
    /// Preparing the alert panicked.
    Panicked,
}

/// The reason why a step of the preparation has no result.
enum Failure {
    Prepare(PrepareError),
    /// The step was dropped, or it panicked.
    Broken(Admission),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Prepare(PrepareError::Unavailable(error))
    }
}

impl<W: World> Dispatcher<W> {
    /// Finds the disposition of an undecided alert and ends the attempt.
    pub(super) async fn admit(
        &self,
        job: &Job<W::Delivery>,
        attempt: AlertAttempt<'_, W>,
    ) -> Result<Admission, StoreError> {
        let received = &job.received;
        let refusal = job.fault.clone().or_else(|| self.refuse_poison(&attempt));
        if let Some(refusal) = refusal {
            let given_up = self.give_up(received.alert_id, refusal).await;
            return self.conclude(received.alert_id, attempt, given_up).await;
        }
        let admission = async {
            if attempt.is_suspect() {
                return self.admit_isolated(received, attempt).await;
            }
            // Held until the alert is admitted, so that a suspect alert is prepared only when nothing else is at risk.
            let _shared = self.runs.shared().await;
            self.try_admit(received, attempt).await
        };
        with_heartbeat(self.lease() / 3, || job.delivery.progress(), admission).await
    }

    /// A worker has died, perhaps because of this very alert. The attempt is refunded while the alert waits for
    /// isolation.
    async fn admit_isolated(
        &self,
        received: &Received,
        attempt: AlertAttempt<'_, W>,
    ) -> Result<Admission, StoreError> {
        let id = received.alert_id;
        attempt.refund().await;
        let isolation = async {
            tokio::time::sleep(MAX_JITTER.mul_f64(fastrand::f64())).await; // so that no suspect is always the first
            self.runs.exclusive().await
        };
        let isolated = tokio::select! {
            () = self.shutdown.drain.cancelled() => return Ok(Admission::Retry(Duration::ZERO)),
            isolated = tokio::time::timeout(2 * self.lease(), isolation) => isolated,
        };
        let Ok(_isolated) = isolated else {
            tracing::debug!(session_id = %id, "message returned to the queue: no isolation in time");
            return Ok(Admission::Retry(jittered(self.lease())));
        };
        match self.ports.sessions.receive(received.clone()).await {
            Ok(Disposition::Undecided { attempts }) => {
                let attempt = Attempt {
                    sessions: &*self.ports.sessions,
                    alert: id,
                    number: attempts,
                };
                self.try_admit(received, attempt).await
            }
            Ok(
                Disposition::Opened
                | Disposition::Joined(_)
                | Disposition::Ended
                | Disposition::Dead(_)
                | Disposition::UsedId,
            ) => Ok(Admission::Raced),
            Err(error) => {
                tracing::warn!(session_id = %id, "message returned to the queue: {error}");
                Ok(Admission::Retry(jittered(CANCELLING_DELAY)))
            }
        }
    }

    async fn try_admit(
        &self,
        received: &Received,
        attempt: AlertAttempt<'_, W>,
    ) -> Result<Admission, StoreError> {
        let id = received.alert_id;
        let prepared = match self.refuse_poison(&attempt) {
            Some(refusal) => Err(Failure::Prepare(refusal.into())),
            None => self.prepare_and_open(received).await,
        };
        let result = match prepared {
            Ok(admission) | Err(Failure::Broken(admission)) => Ok(admission),
            Err(Failure::Prepare(PrepareError::Refused(refusal))) => {
                self.give_up(id, refusal).await
            }
            Err(Failure::Prepare(PrepareError::Unavailable(error))) => Err(error),
        };
        self.conclude(id, attempt, result).await
    }

    /// Ends the attempt as its result demands.
    async fn conclude(
        &self,
        id: SessionId,
        attempt: AlertAttempt<'_, W>,
        result: Result<Admission, StoreError>,
    ) -> Result<Admission, StoreError> {
        match &result {
            Ok(Admission::Leased(_) | Admission::Placed) => {
                self.backoff.admitted(id);
                attempt.decided();
            }
            Ok(Admission::Raced | Admission::Retry(_)) => attempt.refund().await,
            // The store will refuse the same write again: the alert is given up after some attempts.
            Err(StoreError::Refused(why)) if attempt.number >= MAX_REFUSALS => {
                attempt.failed();
                let refusal = attempts_exhausted(format!("the store refused it: {why}"));
                return self.give_up(id, refusal).await;
            }
            Ok(Admission::Panicked) | Err(StoreError::Refused(_)) => attempt.failed(),
            Err(StoreError::TimedOut(why)) => {
                attempt.refund().await;
                return self.timed_out(id, why).await;
            }
            Err(_) => attempt.refund().await,
        }
        result
    }

    /// The store did not finish a statement of the admission. An alert for which this happens again and again, while
    /// the store works for others, is given up. These attempts are not counted in the store: they are no deaths, and
    /// the alert needs no isolation.
    async fn timed_out(&self, id: SessionId, why: &str) -> Result<Admission, StoreError> {
        let redelivery = self
            .backoff
            .released(id, &ReleaseReason::StoreTimedOut(why.to_owned()));
        if redelivery.is_some_and(|redelivery| redelivery.counts_as_attempt) {
            let detail = format!("the store takes too long for it, and not for others: {why}");
            return self.give_up(id, attempts_exhausted(detail)).await;
        }
        tracing::warn!(session_id = %id, "message returned to the queue: the store took too long: {why}");
        let delay = redelivery.map_or(CANCELLING_DELAY, |redelivery| redelivery.delay);
        Ok(Admission::Retry(jittered(delay)))
    }

    /// An alert that has killed as many workers as it may is not prepared again.
    fn refuse_poison(&self, attempt: &AlertAttempt<'_, W>) -> Option<Refusal> {
        if attempt.number <= self.settings.limits.attempts {
            return None;
        }
        // This delivery is counted, too, and has killed no worker yet.
        let deaths = attempt.number.saturating_sub(1);
        Some(attempts_exhausted(format!(
            "{deaths} workers died while they read it"
        )))
    }

    async fn give_up(&self, id: SessionId, refusal: Refusal) -> Result<Admission, StoreError> {
        self.ports
            .sessions
            .give_up(id, refusal)
            .await
            .map(|()| Admission::Placed)
    }

    /// Asks the store first: an alert that joins an open session, or that a session which has just completed covers,
    /// needs no plan and no tools.
    async fn prepare_and_open(&self, received: &Received) -> Result<Admission, Failure> {
        let id = received.alert_id;
        let received = Arc::new(received.clone());
        let intake = Arc::clone(&self.ports.intake);
        let body = Arc::clone(&received);
        let prepared = Arc::new(
            self.isolate_panics(id, async move { intake.prepare(&body).await })
                .await?,
        );
        // The other alerts of the body first: once this one has its disposition, a redelivery would not publish them.
        self.publish_parts(&received, &prepared.other_parts).await?;
        let admission = self.join_or_open(received, &prepared).await?;
        if matches!(admission, Admission::Leased(_) | Admission::Placed)
            && prepared.thread.is_none()
        {
            let route = prepared
                .route
                .as_ref()
                .map_or("none", |route| route.name.as_str());
            metrics::counter!("tarsy_routes_total", "route" => route.to_owned()).increment(1);
        }
        Ok(admission)
    }

    /// The time that a completed investigation covers this alert.
    fn cooldown(&self, prepared: &PreparedAlert) -> Duration {
        prepared
            .route
            .as_ref()
            .and_then(|route| route.cooldown)
            .unwrap_or(self.settings.cooldown)
    }

    async fn join_or_open(
        &self,
        received: Arc<Received>,
        prepared: &Arc<PreparedAlert>,
    ) -> Result<Admission, Failure> {
        let id = received.alert_id;
        if prepared.thread.is_none() {
            let request = JoinRequest {
                alert_id: id,
                alert: prepared.alert.clone(),
                cooldown: self.cooldown(prepared),
                force: prepared.force,
                limit: prepared.limit.clone(),
                worker_name: self.settings.worker_name.clone(),
                on_acknowledged: self.settings.on_acknowledged,
            };
            if let Some(opened) = self.ports.sessions.join(request).await? {
                return Ok(self.opened(id, opened, Instant::now(), None));
            }
        }
        let intake = Arc::clone(&self.ports.intake);
        let alert = Arc::clone(prepared);
        let planned = self
            .isolate_panics(id, async move { intake.plan(&received, &alert).await })
            .await?;
        if self.waits_for_tools(id, &planned).await? {
            return Ok(Admission::Retry(jittered(TOOLS_DELAY)));
        }
        Ok(self.open(id, (**prepared).clone(), planned).await?)
    }

    /// Gives each other alert of the body a separate message. The alert itself gets its disposition afterwards, so a
    /// worker that dies in between leaves it undecided, and the next one publishes the same messages.
    async fn publish_parts(&self, received: &Received, parts: &[u32]) -> Result<(), Failure> {
        for part in parts {
            if let Err(error) = self.ports.queue.publish_part(received, *part).await {
                tracing::warn!(session_id = %received.alert_id, part, "message returned to the queue: {error}");
                return Err(Failure::Broken(Admission::Retry(jittered(PARTS_DELAY))));
            }
        }
        if !parts.is_empty() {
            tracing::info!(session_id = %received.alert_id, parts = parts.len(), "other alerts of the body published");
        }
        Ok(())
    }

    /// An investigation without the tools of its chain costs money and finds little, so the alert waits for a server
    /// that restarts. The store's clock bounds the wait: neither a redelivery nor another worker begins it anew. Only
    /// the age of its message bounds the wait for a required server.
    async fn waits_for_tools(&self, id: SessionId, planned: &Planned) -> Result<bool, StoreError> {
        let unavailable = &planned.plan.unavailable_servers;
        if unavailable.is_empty() {
            return Ok(false);
        }
        let servers = unavailable.join(", ");
        let is_required = !planned.awaited_servers.is_empty();
        if is_required || self.ports.sessions.waited(id).await? < self.settings.limits.tool_wait {
            metrics::counter!("tarsy_tool_server_waits_total").increment(1);
            tracing::info!(session_id = %id, "alert waits for mcp servers: unavailable: {servers}");
            return Ok(true);
        }
        metrics::counter!("tarsy_sessions_without_tools_total").increment(1);
        tracing::warn!(session_id = %id, "session begins without mcp servers: unavailable: {servers}");
        Ok(false)
    }

    /// Runs a step of the preparation in a separate task, so that a panic does not end the worker's other sessions.
    async fn isolate_panics<T: Send + 'static>(
        &self,
        id: SessionId,
        step: impl Future<Output = Result<T, PrepareError>> + Send + 'static,
    ) -> Result<T, Failure> {
        let step = AbortOnDropHandle::new(tokio::spawn(step.in_current_span()));
        let done = tokio::select! {
            biased;
            () = self.shutdown.drain.cancelled() => return Err(Failure::Broken(Admission::Retry(Duration::ZERO))),
            done = tokio::time::timeout(2 * self.lease(), step) => done,
        };
        match done {
            Ok(Ok(result)) => result.map_err(Failure::Prepare),
            Ok(Err(panic)) => {
                tracing::error!(session_id = %id, "preparing an alert panicked: {panic}");
                Err(Failure::Broken(Admission::Panicked))
            }
            Err(_elapsed) => {
                tracing::warn!(session_id = %id, "message returned to the queue: preparing the alert took too long");
                Err(Failure::Broken(Admission::Retry(jittered(self.lease()))))
            }
        }
    }

    async fn open(
        &self,
        id: SessionId,
        prepared: PreparedAlert,
        planned: Planned,
    ) -> Result<Admission, StoreError> {
        let span = trace::claim();
        let (record, first_stage) = session::opened(id, planned.plan.clone());
        let request = OpenRequest {
            alert_id: id,
            trace: trace::linkable(&span),
            cooldown: self.cooldown(&prepared),
            alert: prepared.alert,
            plan: planned.plan,
            worker: self.settings.worker,
            worker_name: self.settings.worker_name.clone(),
            token: Uuid::new_v4(),
            lease: self.lease(),
            session_timeout: self.settings.limits.session_timeout,
            started: planned.started,
            first_stage,
            force: prepared.force,
            limit: prepared.limit,
            on_acknowledged: self.settings.on_acknowledged,
            retry_of: prepared.retry_of,
            parent: prepared.thread.map(|thread| thread.root),
            answer_route: prepared.answer_route,
        };
        let asked_at = Instant::now();
        // The stream is read while the statement runs, and not waited for: no lease is renewed before the run begins.
        let opening = pin!(self.ports.sessions.open(request).instrument(span.clone()));
        let (opened, is_new) = match future::select(opening, pin!(self.ports.feed.is_new(id))).await
        {
            Either::Left((opened, reading)) => (opened?, reading.now_or_never().unwrap_or(false)),
            Either::Right((is_new, opening)) => (opening.await?, is_new),
        };
        if matches!(opened, Opened::Session(_)) {
            trace::taken(&span);
        }
        Ok(self.opened(id, opened, asked_at, Some(Begun { record, is_new })))
    }

    /// Logs and counts the disposition that the store has chosen. `begun` is the session that the request could open.
    fn opened(
        &self,
        id: SessionId,
        opened: Opened,
        asked_at: Instant,
        begun: Option<Begun>,
    ) -> Admission {
        match opened {
            Opened::Session(claimed) => {
                tracing::info!(session_id = %id, epoch = claimed.lease.epoch, "session opened");
                Admission::Leased(Box::new(Leased {
                    claimed,
                    asked_at,
                    begun,
                }))
            }
            Opened::Joined(target) => {
                metrics::counter!("tarsy_alerts_joined_total", "reason" => "open").increment(1);
                tracing::info!(session_id = %id, %target, "alert joined an open session");
                self.ports.feed.notify(target);
                Admission::Placed
            }
            Opened::Updated {
                session: target,
                changes,
            } => {
                metrics::counter!("tarsy_alerts_joined_total", "reason" => "open").increment(1);
                for change in &changes {
                    metrics::counter!("tarsy_alert_updates_total", "change" => change.as_str())
                        .increment(1);
                }
                let changes = changes
                    .into_iter()
                    .map(Change::as_str)
                    .collect::<Vec<_>>()
                    .join(", ");
                tracing::info!(session_id = %id, %target, changes, "alert joined an open session and changes it");
                self.ports.feed.notify(target);
                Admission::Placed
            }
            Opened::CoveredByCooldown(target) => {
                metrics::counter!("tarsy_alerts_joined_total", "reason" => "cooldown").increment(1);
                tracing::info!(session_id = %id, %target, "alert covered by a completed session: cooldown");
                Admission::Placed
            }
            Opened::Limited { list, route } => {
                tracing::warn!(session_id = %id, %list, route, "alert above the limit of its route: not investigated");
                metrics::counter!("tarsy_alerts_limited_total", "route" => route).increment(1);
                Admission::Placed
            }
            Opened::TargetCancelling(target) => {
                tracing::debug!(session_id = %id, %target, "message returned to the queue: session being cancelled");
                Admission::Retry(jittered(CANCELLING_DELAY))
            }
            Opened::NotInvestigated => Admission::Placed,
            Opened::Raced => Admission::Raced,
        }
    }
}

fn attempts_exhausted(detail: String) -> Refusal {
    Refusal {
        reason: DeadReason::AttemptsExhausted,
        detail,
    }
}
