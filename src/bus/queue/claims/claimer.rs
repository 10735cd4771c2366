//! The task behind the claims: asks each priority for what it has, then waits at all of them for the next alert.
//!
//! One inbox lives as long as the task, and whatever comes on it is answered: taken while there is a slot, given back
//! otherwise. Unsubscribing with requests at the server would lose an alert that is just on its way (async-nats' `drain`
//! does not wait for the server), so the end waits until every request is known to be over.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Message;
use async_nats::jetstream::consumer::{Consumer, pull};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::job::{Claimed, ClaimedJob};
use super::requests::Requests;
use super::rotation::{Turns, allowed};
use super::watchdog::{Standing, Watchdog};
use super::{ClaimSettings, Flow};
use crate::bus::connection::{ConnectionState, Nats};
use crate::bus::error::Error;
use crate::bus::names::{ALERTS, Priority};
use crate::bus::queue::pull::{Answer, Inbox};

/// An answer to "what have you now" that takes longer is lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);

type Consumers = Vec<(Priority, Consumer<pull::Config>)>;

/// What the claim loop is given.
pub(super) struct Parts {
    pub(super) nats: Nats,
    pub(super) settings: ClaimSettings,
    pub(super) slots: Arc<Semaphore>,
    pub(super) flow: watch::Receiver<Flow>,
    pub(super) jobs: mpsc::Sender<ClaimedJob>,
    pub(super) stop: CancellationToken,
}

/// The claim loop.
pub(super) struct Claimer {
    parts: Parts,
    link: watch::Receiver<ConnectionState>,
    inbox: Inbox,
    consumers: Consumers,
    free: Option<OwnedSemaphorePermit>,
    requests: Requests,
    /// After a loss: when the requests from before it are over at the latest.
    unknown_until: Option<Instant>,
    turns: Turns,
    watchdog: Watchdog,
}

/// Something came between.
#[derive(Debug)]
enum Break {
    /// No alerts are wanted any more.
    Stopped,
    /// Slots or flow have changed: look again.
    Again,
    /// The requests are gone.
    Lost(String),
}

impl Claimer {
    /// Claims until `stop`, then waits for the requests that are still at the server: at most `expires`.
    pub(super) async fn run(parts: Parts) {
        let inbox = tokio::select! {
            () = parts.stop.cancelled() => return,
            opened = Inbox::open(&parts.nats) => match opened {
                Ok(inbox) => inbox,
                Err(error) => return tracing::error!(%error, "no alerts can be claimed"),
            },
        };
        let mut claimer = Self {
            watchdog: Watchdog::new(parts.settings.stall_after, parts.settings.expires),
            link: parts.nats.watch_connection(),
            parts,
            inbox,
            consumers: Vec::new(),
            free: None,
            requests: Requests::default(),
            unknown_until: None,
            turns: Turns::default(),
        };
        claimer.claim_until_stopped().await;
        claimer.settle().await;
    }

    async fn claim_until_stopped(&mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.claim().await {
                Ok(()) | Err(Break::Again) => pause = FIRST_PAUSE,
                Err(Break::Stopped) => return,
                Err(Break::Lost(reason)) => {
                    tracing::warn!(%reason, "claiming was interrupted and begins again");
                    self.consumers.clear();
                    self.requests.forget();
                    self.watchdog.calm();
                    self.unknown_until = Some(Instant::now() + self.parts.settings.expires);
                    let until = Instant::now() + pause;
                    pause = (2 * pause).min(MAX_PAUSE);
                    if matches!(self.rest(until).await, Err(Break::Stopped)) {
                        return;
                    }
                }
            }
        }
    }

    /// One look at slots and priorities, and one wait.
    async fn claim(&mut self) -> Result<(), Break> {
        self.refill();
        let wanted = *self.parts.flow.borrow_and_update() == Flow::Claim;
        if !wanted || self.room(Priority::Critical) == 0 {
            self.free = None;
            let waited = self.wait_for_slots(wanted).await;
            self.watchdog.calm();
            return waited;
        }
        if self.consumers.is_empty() {
            self.consumers = self.find_consumers().await.map_err(|error| Break::Lost(error.to_string()))?;
        }
        if self.sweep().await? == 0 && self.room(Priority::Critical) > 0 {
            self.wait_everywhere().await?;
        }
        Ok(())
    }

    /// Takes what is there now, by the turn's order. A priority whose request waits has nothing.
    async fn sweep(&mut self) -> Result<usize, Break> {
        let turn = self.turns.next(self.room(Priority::Critical));
        let mut got = 0;
        for priority in turn.order {
            let batch = turn.most.saturating_sub(got).min(self.room(priority));
            if batch == 0 || self.requests.has(priority) {
                continue;
            }
            let request = pull::BatchConfig { batch, no_wait: true, ..pull::BatchConfig::default() };
            self.ask(priority, request, ANSWER_TIMEOUT).await?;
            while self.requests.has(priority) {
                let answer = self.answer().await?;
                got += usize::from(self.deal_with(answer, true).await?);
            }
        }
        Ok(got)
    }

    /// Waits at every priority that has room until one alert has come, or a slot more makes room.
    async fn wait_everywhere(&mut self) -> Result<(), Break> {
        let heartbeat = self.parts.settings.expires / 4;
        let slots = Arc::clone(&self.parts.slots);
        loop {
            self.look_for_a_stall().await?;
            for priority in Priority::ALL {
                if self.room(priority) > 0 && !self.requests.has(priority) {
                    let request = pull::BatchConfig {
                        batch: 1,
                        expires: Some(self.parts.settings.expires),
                        idle_heartbeat: heartbeat,
                        ..pull::BatchConfig::default()
                    };
                    let patience = 2 * heartbeat + Duration::from_millis(500);
                    self.ask(priority, request, patience).await?;
                }
            }
            let answer = tokio::select! {
                biased;
                Ok(slot) = slots.acquire() => {
                    drop(slot);
                    return Ok(());
                }
                answer = self.answer() => answer?,
            };
            if self.deal_with(answer, true).await? {
                return Ok(());
            }
        }
    }

    /// Waits for a slot or the word to claim, and gives back what still comes.
    async fn wait_for_slots(&mut self, wanted: bool) -> Result<(), Break> {
        let slots = Arc::clone(&self.parts.slots);
        loop {
            let slot = async { if wanted { slots.acquire().await } else { std::future::pending().await } };
            let answer = tokio::select! {
                biased;
                Ok(slot) = slot => {
                    drop(slot);
                    return Ok(());
                }
                answer = self.answer() => answer?,
            };
            self.deal_with(answer, false).await?;
        }
    }

    async fn ask(&mut self, priority: Priority, request: pull::BatchConfig, patience: Duration) -> Result<(), Break> {
        let Some((_, consumer)) = self.consumers.iter().find(|(of, _)| *of == priority) else {
            return Err(Break::Lost(format!("no consumer {}", priority.as_str())));
        };
        let number = self.requests.add(priority, request.batch, patience);
        let sent = consumer.request_batch(request, self.inbox.reply_to(number).into());
        match tokio::time::timeout(ANSWER_TIMEOUT, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Break::Lost(error.to_string())),
            Err(_) => Err(Break::Lost("the connection takes no pull request".to_owned())),
        }
    }

    /// The next answer, unless something else comes first. Cancel safe.
    async fn answer(&mut self) -> Result<Answer, Break> {
        tokio::select! {
            biased;
            () = self.parts.stop.cancelled() => Err(Break::Stopped),
            answer = self.inbox.next() => Ok(answer),
            Ok(()) = self.parts.flow.changed() => Err(Break::Again),
            Ok(()) = self.link.changed() => Err(Break::Lost("the connection changed".to_owned())),
            () = sleep_until(self.requests.overdue()) => Err(Break::Lost("a pull request was forgotten".to_owned())),
        }
    }

    /// Whether the answer became a job.
    async fn deal_with(&mut self, answer: Answer, wanted: bool) -> Result<bool, Break> {
        match answer {
            Answer::Message(message) => return Ok(self.take(*message, wanted).await),
            Answer::Heartbeat(number) => self.requests.alive(number),
            Answer::Over(number) => self.requests.over(number),
            Answer::Lost(reason) => return Err(Break::Lost(reason)),
        }
        Ok(false)
    }

    /// Hands a message over as a job; gives it back when it is not wanted, has no slot or nobody takes it.
    async fn take(&mut self, message: Message, wanted: bool) -> bool {
        let subject = message.subject.clone();
        let claimed = Claimed::read(self.parts.nats.jetstream(), message, self.parts.settings.max_alert_bytes);
        let Some(claimed) = claimed else {
            tracing::error!(%subject, "a message without a delivery came on the claim inbox");
            return false;
        };
        self.requests.delivered(claimed.priority);
        let has_room = wanted && self.room(claimed.priority) > 0;
        let slot = self.free.as_mut().filter(|_| has_room).and_then(split_one);
        let Some(slot) = slot else {
            claimed.job.delivery.give_back().await;
            return false;
        };
        match self.parts.jobs.try_send(claimed.with_slot(slot)) {
            Ok(()) => {
                self.turns.gave_one();
                self.watchdog.calm();
                true
            }
            Err(TrySendError::Full(claimed) | TrySendError::Closed(claimed)) => {
                claimed.job.delivery.give_back().await;
                false
            }
        }
    }

    /// Gives back what comes until `until`.
    async fn rest(&mut self, until: Instant) -> Result<(), Break> {
        loop {
            let answer = tokio::select! {
                () = self.parts.stop.cancelled() => return Err(Break::Stopped),
                () = tokio::time::sleep_until(until) => return Ok(()),
                answer = self.inbox.next() => answer,
            };
            // Whatever is wrong is what is rested from.
            if self.deal_with(answer, false).await.is_err() {
                tokio::select! {
                    () = self.parts.stop.cancelled() => return Err(Break::Stopped),
                    () = tokio::time::sleep_until(until) => return Ok(()),
                }
            }
        }
    }

    /// At the end: gives back what comes until no request can be left at the server.
    async fn settle(&mut self) {
        let limit = Instant::now() + self.parts.settings.expires + Duration::from_secs(1);
        while !self.requests.is_empty() || self.unknown_until.is_some_and(|until| until > Instant::now()) {
            let answer = tokio::select! {
                answer = self.inbox.next() => answer,
                () = sleep_until(self.requests.overdue().or(self.unknown_until)) => return,
                () = tokio::time::sleep_until(limit) => return,
            };
            if self.deal_with(answer, false).await.is_err() {
                return;
            }
        }
    }

    /// Begins anew, with another inbox, when alerts wait although this worker has room and asks for them.
    async fn look_for_a_stall(&mut self) -> Result<(), Break> {
        if !self.watchdog.is_due() {
            return Ok(());
        }
        let mut found = Vec::new();
        for (priority, consumer) in &self.consumers {
            if self.room(*priority) > 0 {
                let info = tokio::time::timeout(ANSWER_TIMEOUT, consumer.get_info()).await;
                let info = info.map_err(|_| Break::Lost("no answer about a consumer".to_owned()))?;
                let info = info.map_err(|error| Break::Lost(error.to_string()))?;
                found.extend(Standing::of(*priority, &info));
            }
        }
        let Some(priority) = self.watchdog.looked(found) else {
            return Ok(());
        };
        metrics::counter!("tarsy_claim_stalls_total").increment(1);
        let opened = Inbox::open(&self.parts.nats).await;
        self.inbox = opened.map_err(|error| Break::Lost(error.to_string()))?;
        Err(Break::Lost(format!("{} alerts wait and none is delivered", priority.as_str())))
    }

    /// How many more alerts of this priority may be taken.
    fn room(&self, priority: Priority) -> usize {
        let free = self.free.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        allowed(priority, free, self.parts.settings.reserved_critical_slots)
    }

    /// Takes every free slot.
    fn refill(&mut self) {
        while let Ok(another) = Arc::clone(&self.parts.slots).try_acquire_owned() {
            match &mut self.free {
                Some(free) => free.merge(another),
                None => self.free = Some(another),
            }
        }
    }

    async fn find_consumers(&self) -> Result<Consumers, Error> {
        let mut consumers = Vec::with_capacity(Priority::ALL.len());
        for priority in Priority::ALL {
            let found = self.parts.nats.jetstream().get_consumer_from_stream(priority.as_str(), ALERTS).await;
            let consumer = found.map_err(|error| Error::Admin {
                object: format!("{ALERTS}/{}", priority.as_str()),
                action: "read",
                reason: error.to_string(),
            })?;
            consumers.push((priority, consumer));
        }
        Ok(consumers)
    }
}

fn split_one(free: &mut OwnedSemaphorePermit) -> Option<OwnedSemaphorePermit> {
    free.split(1)
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
