//! What becomes of a delivered alert: insert first, then read (`reading.rs`) or claim, run (`leased.rs`), settle, answer.
//!
//! Postgres decides who works on what; the answer to the broker only says whether the message is still needed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::admit::Admission;
use super::redelivery::Hesitation;
use super::settle::SettleError;
use super::settler::Settler;
use crate::engine::ports::{
    Claim, ClaimRequest, DeadReason, Delivery, Disposition, Received, Refusal, Sessions, StoreError,
};
use crate::engine::run::instruments;
use crate::engine::run::registry::Running;
use crate::engine::worker::outage::Outages;
use crate::engine::world::{Ports, World};
use crate::investigation::alert::Alert;
use crate::investigation::follow_up::Thread;
use crate::investigation::ids::{SessionId, WorkerId};
use crate::investigation::plan::Plan;
use crate::investigation::timeline::EventDraft;

/// A claimed message, not yet looked into.
#[derive(Debug)]
pub struct Job<D> {
    /// What the first statement writes.
    pub received: Received,
    /// What the bus already found wrong with it; the alert's id is then the derived one.
    pub fault: Option<Refusal>,
    /// The id that this very delivery would have without a header: where another body under a used id goes.
    pub derived_id: SessionId,
    /// How to answer it.
    pub delivery: D,
}

/// Makes an alert and a plan of a received body.
pub trait Intake: Send + Sync + 'static {
    /// Decodes and masks.
    ///
    /// # Errors
    /// Why the alert has to be given up, or what is unavailable.
    fn prepare(&self, received: &Received) -> impl Future<Output = Result<PreparedAlert, PrepareError>> + Send;

    /// Plans the investigation of an alert that nothing else takes along or answers for.
    ///
    /// # Errors
    /// As [`Intake::prepare`].
    fn plan(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> impl Future<Output = Result<Planned, PrepareError>> + Send;
}

/// An alert, as far as it is known before it is decided where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedAlert {
    /// The alert.
    pub alert: Alert,
    /// The producer asks for an investigation although one of the fingerprint has completed within the cooldown.
    pub force: bool,
    /// The session that this one does again.
    pub retry_of: Option<SessionId>,
    /// The investigation that it is a question about.
    pub thread: Option<Box<Thread>>,
}

/// What will be done about an alert.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The first event of the session.
    pub started: EventDraft,
}

/// Why a body was not prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrepareError {
    /// The alert has to be given up.
    Refused(Refusal),
    /// What it takes to read it is unavailable: somebody shall try again, and it was no attempt.
    Unavailable(StoreError),
}

impl From<Refusal> for PrepareError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// How a worker deals with sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The process.
    pub worker: WorkerId,
    /// Its name for people.
    pub worker_name: String,
    /// How long a lease lasts without a renewal.
    pub lease: Duration,
    /// How long a session may take altogether.
    pub session_timeout: Duration,
    /// Deaths at one checkpoint, or at reading the alert, before it is given up.
    pub attempts: u32,
    /// How long a completed investigation answers for later alerts of its fingerprint.
    pub cooldown: Duration,
    /// How long an alert waits, since it was first delivered, for an MCP server of its chain that cannot be reached.
    pub tool_wait: Duration,
    /// How long a stopping worker lets current calls finish.
    pub drain_timeout: Duration,
}

/// The delivery side of a worker. Clones share everything.
#[derive(Debug)]
pub struct Dispatcher<W: World, S, I, D> {
    /// Adapters of the runs.
    pub ports: Ports<W>,
    /// Alerts and leases.
    pub sessions: Arc<S>,
    /// Decodes and plans.
    pub intake: Arc<I>,
    /// What runs here.
    pub running: Arc<Running<D>>,
    /// How.
    pub settings: Arc<Settings>,
    /// Sessions that came back because the LLM service was unavailable.
    pub hesitation: Arc<Hesitation>,
    /// When the store was unavailable.
    pub outages: Arc<Outages>,
    /// Where what is over waits until everything is on the stream.
    pub settler: Arc<Settler<S, W::Feed, D>>,
    /// The process shuts down.
    pub drain: CancellationToken,
    /// It does so at once: what still runs is released in the middle of its call.
    pub hurry: CancellationToken,
}

impl<W: World, S, I, D> Clone for Dispatcher<W, S, I, D> {
    fn clone(&self) -> Self {
        Self {
            ports: self.ports.clone(),
            sessions: Arc::clone(&self.sessions),
            intake: Arc::clone(&self.intake),
            running: Arc::clone(&self.running),
            settings: Arc::clone(&self.settings),
            hesitation: Arc::clone(&self.hesitation),
            outages: Arc::clone(&self.outages),
            settler: Arc::clone(&self.settler),
            drain: self.drain.clone(),
            hurry: self.hurry.clone(),
        }
    }
}

/// What the broker is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ack,
    Term(DeadReason),
    Nak(Duration),
    /// The settler answers, somebody else, or nobody.
    Nothing,
}

/// Tries to find a place for an alert that several workers hold at once. The store tries by itself; what races still
/// waits for somebody else.
const MAX_RACES: u32 = 3;
/// Readings whose result the store refused before the alert is given up.
const MAX_REFUSALS: u32 = 3;

impl<W: World, S: Sessions, I: Intake, D: Delivery> Dispatcher<W, S, I, D> {
    /// Brings one message to its answer, or to the settler, which answers it when everything is on the stream. Run in a
    /// task of its own: dropping the future in the middle is safe for the session, but leaves the message to the
    /// broker's patience.
    pub async fn handle(&self, job: Job<D>) {
        let Job { received, fault, derived_id, delivery } = job;
        let (id, delivery) = (received.alert_id, Arc::new(delivery));
        let answer = self.place(received, (fault, derived_id), &delivery).await.unwrap_or_else(|trouble| {
            tracing::warn!(session_id = %id, "message goes back to the queue: {trouble}");
            Answer::Nak(jittered(Duration::from_secs(2)))
        });
        answer_with(id, &*delivery, answer).await;
    }

    async fn place(
        &self,
        mut received: Received,
        (mut fault, derived_id): (Option<Refusal>, SessionId),
        delivery: &Arc<D>,
    ) -> Result<Answer, SettleError> {
        for _ in 0..MAX_RACES {
            let id = received.alert_id;
            match self.sessions.receive(received.clone()).await? {
                Disposition::UsedId if id != derived_id => {
                    received.alert_id = derived_id;
                    let detail = format!("id {id} came before, with another body");
                    fault = Some(Refusal { reason: DeadReason::UsedId, detail });
                }
                Disposition::UsedId => return Ok(Answer::Term(DeadReason::UsedId)),
                Disposition::Opened => return self.take_over(id, received.stream_sequence, delivery).await,
                Disposition::Joined(_) | Disposition::Ended | Disposition::Dead(_) => {
                    return Ok(self.settler.take(id, delivery));
                }
                Disposition::Undecided { attempts } => {
                    match self.decide(&received, (fault.clone(), attempts), delivery).await {
                        Ok(Admission::Session(claimed, asked_at)) => {
                            instruments::opened(derived_id);
                            return Ok(self.run((claimed, asked_at), delivery).await);
                        }
                        Ok(Admission::Placed) => return Ok(self.settler.take(id, delivery)),
                        // It was an attempt, as if the worker had died.
                        Ok(Admission::Died) => return Ok(Answer::Nak(jittered(self.settings.lease))),
                        Ok(Admission::Later(delay)) => {
                            self.refund_attempt(id).await;
                            return Ok(Answer::Nak(delay));
                        }
                        Ok(Admission::Waits(delay)) => return Ok(Answer::Nak(delay)),
                        Ok(Admission::Raced) => self.refund_attempt(id).await,
                        // What the store does not take it will not take later: the reading counts.
                        Err(StoreError::Refused(why)) if attempts >= MAX_REFUSALS => {
                            let detail = format!("the store refused it: {why}");
                            let refusal = Refusal { reason: DeadReason::AttemptsExhausted, detail };
                            self.sessions.give_up(id, refusal).await?;
                            return Ok(self.settler.take(id, delivery));
                        }
                        Err(error @ StoreError::Refused(_)) => return Err(error.into()),
                        Err(error) => {
                            self.refund_attempt(id).await;
                            return Err(error.into());
                        }
                    }
                }
            }
        }
        tracing::warn!(session_id = %received.alert_id, "no place found in {MAX_RACES} tries");
        Ok(Answer::Nak(jittered(Duration::from_secs(1))))
    }

    async fn take_over(&self, id: SessionId, sequence: u64, delivery: &Arc<D>) -> Result<Answer, SettleError> {
        if self.running.adopt(id, delivery) {
            return Ok(Answer::Nothing);
        }
        if self.drain.is_cancelled() {
            return Ok(Answer::Nak(Duration::ZERO));
        }
        let request = ClaimRequest {
            worker: self.settings.worker,
            worker_name: self.settings.worker_name.clone(),
            token: Uuid::new_v4(),
            lease: self.settings.lease,
            stream_sequence: Some(sequence),
            excuse: self.outages.excuse(self.settings.lease),
        };
        let turn = self.running.beside_others().await;
        let asked_at = Instant::now();
        let claim = self.sessions.claim(id, request).await?;
        drop(turn);
        match claim {
            Claim::Taken(claimed) => {
                metrics::counter!("tarsy_sessions_resumed_total").increment(1);
                tracing::info!(session_id = %id, epoch = claimed.lease.epoch, "session taken over");
                Ok(self.run((claimed, asked_at), delivery).await)
            }
            Claim::Busy(remaining) => Ok(Answer::Nak(jittered(remaining))),
            Claim::Ended { .. } => Ok(self.settler.take(id, delivery)),
            Claim::Incompatible | Claim::Unknown => Ok(Answer::Nak(jittered(Duration::from_secs(30)))),
        }
    }
}

/// Gives the broker its answer.
pub(crate) async fn answer_with<D: Delivery>(id: SessionId, delivery: &D, answer: Answer) {
    let told = match answer {
        Answer::Ack => delivery.ack().await,
        Answer::Term(reason) => delivery.term(reason.as_str()).await,
        Answer::Nak(delay) => delivery.nak(delay).await,
        Answer::Nothing => Ok(()),
    };
    if let Err(error) = told {
        // It comes again and finds its place.
        tracing::warn!(session_id = %id, "message was not answered: {error}");
    }
}

/// Between the delay and one and a half of it, so that many messages do not come back at once.
pub(crate) fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(1.0 + fastrand::f64() / 2.0)
}
