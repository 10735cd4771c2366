//! Fakes of the broker's ports: messages, the queue, cancel requests and the workers' status.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::ports::*;
use tarsy_core::ids::SessionId;

/// A message that records how it is acknowledged. Clones share the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeDelivery {
    acknowledgements: Arc<Mutex<Vec<String>>>,
    delays: Arc<Mutex<Vec<Duration>>>,
    answers: BrokerAnswers,
}

/// The behaviour of the fake broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BrokerAnswers {
    #[default]
    Ok,
    Unavailable,
    Never,
}

impl FakeDelivery {
    /// A message of a broker that does not answer.
    pub(crate) fn unanswered() -> Self {
        Self {
            answers: BrokerAnswers::Never,
            ..Self::default()
        }
    }

    /// Heartbeats and acknowledgements, in order.
    pub(crate) fn acknowledgements(&self) -> Vec<String> {
        self.acknowledgements.lock().clone()
    }

    /// The delays of the naks, in order.
    pub(crate) fn delays(&self) -> Vec<Duration> {
        self.delays.lock().clone()
    }

    /// Whether both are clones of one message.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.acknowledgements, &other.acknowledgements)
    }

    async fn record(&self, acknowledgement: String) -> Result<(), BrokerUnavailable> {
        match self.answers {
            BrokerAnswers::Never => std::future::pending().await,
            BrokerAnswers::Unavailable => Err(BrokerUnavailable("no servers".to_owned())),
            BrokerAnswers::Ok => {
                self.acknowledgements.lock().push(acknowledgement);
                Ok(())
            }
        }
    }
}

impl Delivery for FakeDelivery {
    async fn progress(&self) -> Result<(), BrokerUnavailable> {
        self.record("progress".to_owned()).await
    }
    async fn ack(&self) -> Result<(), BrokerUnavailable> {
        self.record("ack".to_owned()).await
    }
    async fn nak(&self, delay: Duration) -> Result<(), BrokerUnavailable> {
        self.delays.lock().push(delay);
        self.record(
            if delay.is_zero() {
                "nak now"
            } else {
                "nak later"
            }
            .to_owned(),
        )
        .await
    }
    async fn term(&self, reason: &str) -> Result<(), BrokerUnavailable> {
        self.record(format!("term {reason}")).await
    }
}

/// A queue that has every message, none, or is unavailable.
#[derive(Debug)]
pub(crate) struct FakeQueue {
    pub holds: Mutex<Result<bool, BrokerUnavailable>>,
    pub requeued: Mutex<Vec<SessionId>>,
    /// The published parts of bodies with several alerts.
    pub parts: Mutex<Vec<(SessionId, u32)>>,
}

impl Default for FakeQueue {
    fn default() -> Self {
        Self {
            holds: Mutex::new(Ok(true)),
            requeued: Mutex::default(),
            parts: Mutex::default(),
        }
    }
}

impl Queue for FakeQueue {
    async fn holds(
        &self,
        _alert: SessionId,
        _stream_sequence: u64,
    ) -> Result<bool, BrokerUnavailable> {
        self.holds.lock().clone()
    }

    async fn requeue(&self, alert: &IdleAlert) -> Result<u64, BrokerUnavailable> {
        self.requeued.lock().push(alert.alert_id);
        Ok(42)
    }

    async fn publish_part(&self, received: &Received, part: u32) -> Result<(), BrokerUnavailable> {
        self.holds.lock().clone()?;
        self.parts.lock().push((received.alert_id, part));
        Ok(())
    }
}

/// A stream of cancel requests.
#[derive(Debug)]
pub(crate) struct FakeCancelRequests {
    pub send: mpsc::Sender<CancelNotice>,
    receive: tokio::sync::Mutex<mpsc::Receiver<CancelNotice>>,
    pub stored: Mutex<BTreeSet<SessionId>>,
    /// The number of times that a request was looked up.
    pub lookups: Mutex<usize>,
    pub answers: Mutex<BrokerAnswers>,
}

impl Default for FakeCancelRequests {
    fn default() -> Self {
        let (send, receive) = mpsc::channel(8);
        Self {
            send,
            receive: tokio::sync::Mutex::new(receive),
            stored: Mutex::default(),
            lookups: Mutex::default(),
            answers: Mutex::default(),
        }
    }
}

impl CancelRequests for FakeCancelRequests {
    async fn next(&self) -> CancelNotice {
        match self.receive.lock().await.recv().await {
            Some(notice) => notice,
            None => std::future::pending().await,
        }
    }

    async fn cancel_requested(&self, session: SessionId) -> Result<bool, BrokerUnavailable> {
        *self.lookups.lock() += 1;
        let answers = *self.answers.lock();
        match answers {
            BrokerAnswers::Ok => Ok(self.stored.lock().contains(&session)),
            BrokerAnswers::Unavailable => Err(BrokerUnavailable("no servers".to_owned())),
            BrokerAnswers::Never => std::future::pending().await,
        }
    }

    async fn requested_by(&self, session: SessionId) -> Option<String> {
        let stored = self.stored.lock().contains(&session);
        stored.then(|| "ada".to_owned())
    }
}

/// Records each announcement with its time.
#[derive(Debug, Default)]
pub(crate) struct FakePresence(pub(crate) Mutex<Vec<(Instant, WorkerStatus)>>);

impl Presence for FakePresence {
    fn announce(&self, worker: &WorkerStatus) {
        self.0.lock().push((Instant::now(), worker.clone()));
    }
}
