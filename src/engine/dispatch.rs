//! What becomes of a delivered alert: insert first, then decode, open or join, claim, run, settle, answer.
//!
//! Postgres decides who works on what; the answer to the broker only says whether the message is still needed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::control::{Broken, Control, HandBack};
use super::measure;
use super::ports::{
    BrokerAway, Claim, ClaimRequest, Claimed, DeadReason, Delivery, Feed, JournalError, OpenRequest, Opened, Place,
    Received, Refusal, Sessions,
};
use super::running::{Run, Running};
use super::session::{end_now, investigate};
use super::world::{Ports, World};
use crate::investigation::alert::Alert;
use crate::investigation::entry::StopReason;
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
    /// Decodes, masks and plans.
    ///
    /// # Errors
    /// Why the alert has to be given up.
    fn understand(&self, received: &Received) -> impl Future<Output = Result<Understood, Refusal>> + Send;
}

/// An alert and what will be done about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Understood {
    /// The alert.
    pub alert: Alert,
    /// The plan.
    pub plan: Plan,
    /// The first event of the session.
    pub started: EventDraft,
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
    /// Deaths at one checkpoint before the alert is given up.
    pub attempts: u32,
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
    /// The process shuts down.
    pub drain: CancellationToken,
}

impl<W: World, S, I, D> Clone for Dispatcher<W, S, I, D> {
    fn clone(&self) -> Self {
        Self {
            ports: self.ports.clone(),
            sessions: Arc::clone(&self.sessions),
            intake: Arc::clone(&self.intake),
            running: Arc::clone(&self.running),
            settings: Arc::clone(&self.settings),
            drain: self.drain.clone(),
        }
    }
}

/// What the broker is told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Ack,
    Term(DeadReason),
    Nak(Duration),
    /// Somebody else answers, or nobody does.
    Nothing,
}

/// The store or the broker is away: somebody will try again.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Store(#[from] JournalError),
    #[error(transparent)]
    Broker(#[from] BrokerAway),
}

/// Tries to find a place for an alert that several workers hold at once. The store tries by itself; what races still
/// waits for somebody else, such as the end of a session that is being cancelled.
const MAX_RACES: u32 = 3;

impl<W: World, S: Sessions, I: Intake, D: Delivery> Dispatcher<W, S, I, D> {
    /// Brings one message to its answer; returns when it is given. Run in a task of its own: dropping the future in
    /// the middle is safe for the session, but leaves the message to the broker's patience.
    pub async fn handle(&self, job: Job<D>) {
        let Job { received, fault, derived_id, delivery } = job;
        let (id, delivery) = (received.alert_id, Arc::new(delivery));
        let answer = self.place(received, (fault, derived_id), &delivery).await.unwrap_or_else(|trouble| {
            tracing::warn!(session_id = %id, "message goes back to the queue: {trouble}");
            Answer::Nak(jittered(Duration::from_secs(2)))
        });
        self.answer(id, &delivery, answer).await;
    }

    async fn answer(&self, id: SessionId, delivery: &D, answer: Answer) {
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

    async fn place(
        &self,
        mut received: Received,
        (mut fault, derived_id): (Option<Refusal>, SessionId),
        delivery: &Arc<D>,
    ) -> Result<Answer, Trouble> {
        for _ in 0..MAX_RACES {
            let id = received.alert_id;
            match self.sessions.receive(received.clone()).await? {
                Place::UsedId if id != derived_id => {
                    received.alert_id = derived_id;
                    let detail = format!("id {id} came before, with another body");
                    fault = Some(Refusal { reason: DeadReason::UsedId, detail });
                }
                Place::UsedId => return Ok(Answer::Term(DeadReason::UsedId)),
                Place::Opened => return self.take_over(id, received.stream_sequence, delivery).await,
                Place::Joined(_) | Place::Ended | Place::Dead(_) => return self.settle(id).await,
                Place::Undecided { .. } => match fault {
                    Some(refusal) => return self.bury(id, refusal).await,
                    None => {
                        if let Some(answer) = self.open(&received, derived_id, delivery).await? {
                            return Ok(answer);
                        }
                    }
                },
            }
        }
        tracing::warn!(session_id = %received.alert_id, "no place found in {MAX_RACES} tries");
        Ok(Answer::Nak(jittered(Duration::from_secs(1))))
    }

    async fn bury(&self, id: SessionId, refusal: Refusal) -> Result<Answer, Trouble> {
        self.sessions.bury(id, refusal).await?;
        self.settle(id).await
    }

    /// `None` when another worker was faster: look at the alert's place again.
    async fn open(
        &self,
        received: &Received,
        derived_id: SessionId,
        delivery: &Arc<D>,
    ) -> Result<Option<Answer>, Trouble> {
        let id = received.alert_id;
        let understood = match self.intake.understand(received).await {
            Ok(understood) => understood,
            Err(refusal) => return self.bury(id, refusal).await.map(Some),
        };
        let Understood { alert, plan, started } = understood;
        let request = OpenRequest {
            alert_id: id,
            alert,
            plan,
            worker: self.settings.worker,
            worker_name: self.settings.worker_name.clone(),
            token: Uuid::new_v4(),
            lease: self.settings.lease,
            session_timeout: self.settings.session_timeout,
            started,
            cooldown: Duration::ZERO,
            force: false,
            retry_of: None,
        };
        let asked_at = Instant::now();
        match self.sessions.open(request).await? {
            Opened::Session(claimed) => {
                measure::opened(derived_id);
                tracing::info!(session_id = %id, epoch = claimed.lease.epoch, "session opened");
                Ok(Some(self.run((claimed, asked_at), delivery).await))
            }
            Opened::Joined(target) => {
                tracing::info!(session_id = %id, target = %target, "alert joined an open session");
                self.ports.feed.poke(target);
                self.settle(id).await.map(Some)
            }
            Opened::Cooling(_) => self.settle(id).await.map(Some),
            Opened::Closing(_) => Ok(Some(Answer::Nak(jittered(Duration::from_secs(2))))),
            Opened::NotInvestigated => self.settle(id).await.map(Some),
            Opened::Raced => Ok(None),
        }
    }

    async fn take_over(&self, id: SessionId, sequence: u64, delivery: &Arc<D>) -> Result<Answer, Trouble> {
        if self.running.adopt(id, delivery) {
            return Ok(Answer::Nothing);
        }
        let request = ClaimRequest {
            worker: self.settings.worker,
            worker_name: self.settings.worker_name.clone(),
            token: Uuid::new_v4(),
            lease: self.settings.lease,
            stream_sequence: Some(sequence),
        };
        let asked_at = Instant::now();
        match self.sessions.claim(id, request).await? {
            Claim::Taken(claimed) => {
                metrics::counter!("tarsy_sessions_resumed_total").increment(1);
                tracing::info!(session_id = %id, epoch = claimed.lease.epoch, "session taken over");
                Ok(self.run((claimed, asked_at), delivery).await)
            }
            Claim::Busy(remaining) => Ok(Answer::Nak(jittered(remaining))),
            Claim::Over { .. } => self.settle(id).await,
            Claim::TooNew | Claim::Unknown => Ok(Answer::Nak(jittered(Duration::from_secs(30)))),
        }
    }

    /// Runs a claimed session and answers its latest delivery, which may not be the one that brought it.
    async fn run(&self, (claimed, asked_at): (Claimed, Instant), delivery: &Arc<D>) -> Answer {
        let lease = claimed.lease;
        // The store's answer may have been on its way for longer than the lease lasts.
        let control = Control::new(asked_at, self.settings.lease.mul_f64(2.0 / 3.0), self.drain.clone());
        let entered = self.running.insert(Run { lease, control: control.clone(), delivery: Arc::clone(delivery) });
        let ended = self.drive(&claimed, control).await;
        let latest = entered.leave().map_or_else(|| Arc::clone(delivery), |run| run.delivery);
        let answer = match ended {
            Ok(()) => {
                measure::ended(&claimed, self.settings.session_timeout, asked_at.elapsed());
                self.settle_or_later(lease.session_id).await
            }
            Err(Broken::LeaseLost) => {
                tracing::warn!(session_id = %lease.session_id, epoch = lease.epoch, "lease lost");
                Answer::Nothing
            }
            // The lease has to run out: a hand-back would be no attempt, and the same call would be paid for ever.
            Err(Broken::Panicked) => Answer::Nak(jittered(self.settings.lease)),
            Err(Broken::HandBack(reason)) => self.hand_back(&claimed, &reason).await,
        };
        self.answer(lease.session_id, &latest, answer).await;
        Answer::Nothing
    }

    async fn drive(&self, claimed: &Claimed, control: Control) -> Result<(), Broken> {
        let (lease, remaining) = (claimed.lease, claimed.remaining);
        self.ports.feed.poke(lease.session_id);
        let end = if claimed.cancel_requested {
            Some(StopReason::Cancelled)
        } else if remaining.is_zero() {
            Some(StopReason::Deadline)
        } else {
            (claimed.attempts >= self.settings.attempts).then_some(StopReason::AttemptsExhausted)
        };
        if let Some(reason) = end {
            return end_now(&self.ports, lease, reason).await;
        }
        let deadline = async {
            tokio::time::sleep(remaining).await; // the deadline itself
            control.stop(StopReason::Deadline);
            std::future::pending::<()>().await;
        };
        let drained = async {
            self.drain.cancelled().await;
            tokio::time::sleep(self.settings.drain_timeout).await; // the drain timeout itself
        };
        tokio::select! {
            ended = investigate(self.ports.clone(), lease, control.clone()) => ended,
            () = deadline => Ok(()),
            () = drained => Err(Broken::HandBack(HandBack::Drain)),
        }
    }

    /// The store first: whoever gets the message next must find the session free.
    async fn hand_back(&self, claimed: &Claimed, reason: &HandBack) -> Answer {
        let session_id = claimed.lease.session_id;
        tracing::info!(%session_id, "session handed back: {reason}");
        match self.sessions.release(claimed.lease).await {
            Ok(()) => {}
            // Another worker has the message, too.
            Err(error @ JournalError::LeaseLost { .. }) => {
                tracing::warn!(%session_id, "not handed back: {error}");
                return Answer::Nothing;
            }
            // The end was committed, only the answer to it was lost.
            Err(JournalError::Ended) => return self.settle_or_later(session_id).await,
            Err(error @ (JournalError::Conflict(_) | JournalError::Away(_))) => {
                tracing::warn!(%session_id, "lease has to run out: {error}");
                return Answer::Nak(jittered(self.settings.lease));
            }
        }
        match reason {
            HandBack::Drain => Answer::Nak(Duration::ZERO),
            HandBack::StoreAway(_) => Answer::Nak(jittered(Duration::from_secs(2))),
            // Longer than the probe takes to find out: each return costs a claim and an event.
            HandBack::ModelAway(_) => Answer::Nak(jittered(Duration::from_secs(5))),
            HandBack::NotForUs(_) => Answer::Nak(jittered(Duration::from_secs(30))),
        }
    }

    async fn settle_or_later(&self, id: SessionId) -> Answer {
        self.settle(id).await.unwrap_or_else(|trouble| {
            tracing::warn!(session_id = %id, "session is not settled yet: {trouble}");
            Answer::Nak(jittered(Duration::from_secs(2)))
        })
    }

    /// Everything that is owed to the world is on the stream; only then is the message done.
    async fn settle(&self, id: SessionId) -> Result<Answer, Trouble> {
        let standing = self.sessions.standing(id).await?;
        if !standing.over {
            return Ok(Answer::Nak(jittered(Duration::from_secs(2))));
        }
        let dead = standing.owes.as_ref().map(|letter| letter.reason);
        if !standing.settled {
            if let Some(letter) = standing.owes {
                self.ports.feed.bury(letter).await?;
            }
            self.ports.feed.drain(id, standing.last_seq).await?;
            self.sessions.settled(id).await?;
        }
        Ok(dead.map_or(Answer::Ack, Answer::Term))
    }
}

/// Between the delay and one and a half of it, so that many messages do not come back at once.
fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(1.0 + fastrand::f64() / 2.0)
}
