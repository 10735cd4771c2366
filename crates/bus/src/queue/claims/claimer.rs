//! The claim loop: requests the alerts of each priority in turn, then waits for the next alert of any priority.

use std::ops::ControlFlow::{self, Break, Continue};
use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::job::{Claimed, ClaimedJob};
use super::pull_requests::{Lost, PullRequests, REPLY_TIMEOUT, sleep_until};
use super::rotation::PriorityRotation;
use super::settings::{ClaimSettings, Flow};
use super::slots::Slots;
use super::watchdog::Watchdog;
use crate::connection::{ConnectionState, Nats};
use crate::names::Priority;
use crate::stream::pull::PullReply;
use tarsy_engine::backoff::Backoff;

/// Short at its longest, because a leader may be lost again a few seconds after it was elected.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    max: Duration::from_secs(2),
};

pub(super) struct Claimer {
    nats: Nats,
    settings: ClaimSettings,
    flow: watch::Receiver<Flow>,
    /// Closed when the loop has to stop.
    jobs: mpsc::Sender<ClaimedJob>,
    connection: watch::Receiver<ConnectionState>,
    slots: Slots,
    pulls: PullRequests,
    rotation: PriorityRotation,
    watchdog: Watchdog,
}

/// The reason why a round of claims ends early.
#[derive(Debug)]
enum Interruption {
    Stopped,
    FlowChanged,
    Lost(Lost),
}

type Claiming<T = ()> = ControlFlow<Interruption, T>;

fn or_lost<T>(result: Result<T, impl Into<Lost>>) -> Claiming<T> {
    match result {
        Ok(value) => Continue(value),
        Err(error) => Break(Interruption::Lost(error.into())),
    }
}

impl Claimer {
    /// Claims until `jobs` is closed, then waits for the requests that are still at the server: at most `expires`.
    pub(super) async fn run(
        nats: Nats,
        settings: ClaimSettings,
        slots: Slots,
        flow: watch::Receiver<Flow>,
        jobs: mpsc::Sender<ClaimedJob>,
    ) {
        let pulls = tokio::select! {
            () = jobs.closed() => return,
            opened = PullRequests::open(&nats) => match opened {
                Ok(pulls) => pulls,
                Err(error) => return tracing::error!(%error, "claiming failed: no inbox"),
            },
        };
        let mut claimer = Self {
            connection: nats.watch_connection(),
            watchdog: Watchdog::new(settings.stall_after, settings.expires),
            rotation: PriorityRotation::default(),
            nats,
            settings,
            flow,
            jobs,
            slots,
            pulls,
        };
        claimer.claim_until_stopped().await;
        claimer.finish().await;
    }

    async fn claim_until_stopped(&mut self) {
        let mut losses = 0;
        loop {
            match self.claim_round().await {
                Continue(()) | Break(Interruption::FlowChanged) => losses = 0,
                Break(Interruption::Stopped) => return,
                Break(Interruption::Lost(Lost(reason))) => {
                    tracing::warn!(%reason, "claiming interrupted: starting again");
                    self.pulls.reset(self.settings.expires);
                    self.watchdog.reset();
                    let until = Instant::now() + BACKOFF.delay(losses);
                    losses += 1;
                    if self.back_off(until).await.is_break() {
                        return;
                    }
                }
            }
        }
    }

    /// Checks flow and slots, asks every priority once, and waits for the next alert if none had one.
    async fn claim_round(&mut self) -> Claiming {
        self.slots.acquire_free();
        let flow = *self.flow.borrow_and_update();
        if flow == Flow::Pause || self.slots.available(Priority::Critical) == 0 {
            self.slots.release_free();
            let outcome = match flow {
                Flow::Claim => self.release_until(self.slots.freed()).await,
                Flow::Pause => self.release_until(std::future::pending()).await,
            };
            self.watchdog.reset();
            return outcome;
        }
        or_lost(self.pulls.find_consumers().await)?;
        if self.claim_available().await? == 0 && self.slots.available(Priority::Critical) > 0 {
            self.wait_for_alert().await?;
        }
        Continue(())
    }

    /// Claims the alerts that are there now, in the order of the rotation; returns how many. A priority whose request
    /// waits has none.
    async fn claim_available(&mut self) -> Claiming<usize> {
        let round = self.rotation.next(self.slots.available(Priority::Critical));
        let mut claimed = 0;
        for priority in round.order {
            let batch = round
                .max_alerts
                .saturating_sub(claimed)
                .min(self.slots.available(priority));
            if batch == 0 || self.pulls.pending.has(priority) {
                continue;
            }
            let request = pull::BatchConfig {
                batch,
                no_wait: true,
                ..pull::BatchConfig::default()
            };
            or_lost(self.pulls.send(priority, request, REPLY_TIMEOUT).await)?;
            while self.pulls.pending.has(priority) {
                let reply = self.next_reply().await?;
                claimed += usize::from(self.claim(reply).await?);
            }
        }
        Continue(claimed)
    }

    /// Waits at every priority that may have a slot, until one alert has arrived or another slot is free.
    async fn wait_for_alert(&mut self) -> Claiming {
        let heartbeat = self.settings.expires / 4;
        let freed = self.slots.freed();
        tokio::pin!(freed);
        loop {
            self.check_for_stall().await?;
            for priority in Priority::ALL {
                if self.slots.available(priority) > 0 && !self.pulls.pending.has(priority) {
                    let request = pull::BatchConfig {
                        batch: 1,
                        expires: Some(self.settings.expires),
                        idle_heartbeat: heartbeat,
                        ..pull::BatchConfig::default()
                    };
                    let idle_timeout = 2 * heartbeat + Duration::from_millis(500);
                    or_lost(self.pulls.send(priority, request, idle_timeout).await)?;
                }
            }
            let reply = tokio::select! {
                biased;
                () = &mut freed => return Continue(()),
                reply = self.next_reply() => reply?,
            };
            if self.claim(reply).await? {
                return Continue(());
            }
        }
    }

    /// Releases every message that arrives until `done`.
    async fn release_until(&mut self, done: impl Future<Output = ()> + Send) -> Claiming {
        tokio::pin!(done);
        loop {
            let reply = tokio::select! {
                biased;
                () = &mut done => return Continue(()),
                reply = self.next_reply() => reply?,
            };
            self.release(reply).await?;
        }
    }

    /// Releases every message that arrives until `until`, while the connection recovers.
    async fn back_off(&mut self, until: Instant) -> Claiming {
        let mut is_lost = false;
        loop {
            let reply = tokio::select! {
                () = self.jobs.closed() => return Break(Interruption::Stopped),
                () = tokio::time::sleep_until(until) => return Continue(()),
                reply = self.pulls.inbox.next(), if !is_lost => reply,
            };
            is_lost = self.release(reply).await.is_break();
        }
    }

    /// Releases every message that still arrives, until no request can be left at the server.
    async fn finish(&mut self) {
        let limit = Instant::now() + self.settings.expires + Duration::from_secs(1);
        while let Ok(Some(reply)) =
            tokio::time::timeout_at(limit, self.pulls.next_outstanding()).await
        {
            if self.release(reply).await.is_break() {
                return;
            }
        }
    }

    /// The next reply, unless an interruption comes first. Cancel safe.
    async fn next_reply(&mut self) -> Claiming<PullReply> {
        let deadline = self.pulls.pending.deadline();
        let lost = |reason: &str| Break(Interruption::Lost(Lost(reason.to_owned())));
        tokio::select! {
            biased;
            () = self.jobs.closed() => Break(Interruption::Stopped),
            reply = self.pulls.inbox.next() => Continue(reply),
            Ok(()) = self.flow.changed() => Break(Interruption::FlowChanged),
            Ok(()) = self.connection.changed() => lost("the connection changed"),
            () = sleep_until(deadline) => lost("the server has lost a pull request"),
        }
    }

    /// Turns the message of a reply into a job; returns whether it has become one. Without a slot it is released.
    async fn claim(&mut self, reply: PullReply) -> Claiming<bool> {
        let Some(claimed) = self.read(reply)? else {
            return Continue(false);
        };
        let Some(slot) = self.slots.take(claimed.priority) else {
            claimed.job.delivery.release().await;
            return Continue(false);
        };
        if let Err(unsent) = self.jobs.try_send(claimed.with_slot(slot)) {
            unsent.into_inner().job.delivery.release().await;
            return Continue(false);
        }
        self.rotation.granted();
        self.watchdog.reset();
        Continue(true)
    }

    /// Releases the message of a reply.
    async fn release(&mut self, reply: PullReply) -> Claiming {
        if let Some(claimed) = self.read(reply)? {
            claimed.job.delivery.release().await;
        }
        Continue(())
    }

    /// `None` for a message that is not a delivery of the queue: it cannot be answered.
    fn read(&mut self, reply: PullReply) -> Claiming<Option<Claimed>> {
        let Some(message) = or_lost(self.pulls.record(reply))? else {
            return Continue(None);
        };
        let subject = message.subject.clone();
        let claimed = Claimed::read(&self.nats.jetstream, message, self.settings.max_body_bytes);
        match &claimed {
            Some(claimed) => self.pulls.pending.delivered(claimed.priority),
            None => tracing::error!(%subject, "message ignored: not a delivery of the queue"),
        }
        Continue(claimed)
    }

    /// Starts again, with another inbox, if alerts wait although this worker has slots and has requested them.
    async fn check_for_stall(&mut self) -> Claiming {
        if !self.watchdog.is_due() {
            return Continue(());
        }
        let waiting = or_lost(
            self.pulls
                .waiting(|priority| self.slots.available(priority) > 0)
                .await,
        )?;
        let Some(priority) = self.watchdog.record_check(waiting) else {
            return Continue(());
        };
        metrics::counter!("tarsy_claim_stalls_total").increment(1);
        or_lost(self.pulls.replace_inbox().await)?;
        Break(Interruption::Lost(Lost(format!(
            "{} alerts wait and none is delivered",
            priority.as_str()
        ))))
    }
}
