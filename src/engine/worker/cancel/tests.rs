//! A request reaches its run on every way, and no way holds a run up.

use std::sync::Mutex;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::engine::ports::{BrokerUnavailable, Claim};
use crate::engine::run::control::Control;
use crate::engine::run::registry::Entered;
use crate::engine::testing::delivery::{Desk, FakeSessions, LEASE, SETTLED, Told, until, words};
use crate::engine::testing::lock;
use crate::engine::worker::cancel::*;
use crate::investigation::execution::entry::StopReason;

/// A stream of requests.
#[derive(Debug)]
struct FakeRequests {
    heard: tokio::sync::Mutex<mpsc::Receiver<Request>>,
    stored: Mutex<BTreeSet<SessionId>>,
    reads: Mutex<usize>,
    broker: Broker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broker {
    Answers,
    Refuses,
    Silent,
}

impl Requests for FakeRequests {
    async fn next(&self) -> Request {
        match self.heard.lock().await.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }

    async fn cancel_requested(&self, session: SessionId) -> Result<bool, BrokerUnavailable> {
        *lock(&self.reads) += 1;
        match self.broker {
            Broker::Answers => Ok(lock(&self.stored).contains(&session)),
            Broker::Refuses => Err(BrokerUnavailable("no servers".to_owned())),
            Broker::Silent => std::future::pending().await,
        }
    }
}

struct Hearing {
    desk: Desk,
    requests: Arc<FakeRequests>,
    says: mpsc::Sender<Request>,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl Hearing {
    fn begin(broker: Broker) -> Self {
        let desk = Desk::new(vec![], vec![], Claim::Unknown, SETTLED);
        let (says, heard) = mpsc::channel(8);
        let heard = tokio::sync::Mutex::new(heard);
        let requests = Arc::new(FakeRequests { heard, stored: Mutex::default(), reads: Mutex::default(), broker });
        let end = CancellationToken::new();
        let sessions: Arc<FakeSessions> = Arc::clone(&desk.sessions);
        let running = Arc::clone(&desk.dispatcher.running);
        let task = tokio::spawn(hear_requests(Arc::clone(&requests), sessions, running, (LEASE, end.clone())));
        Self { desk, requests, says, end, task }
    }

    fn open(&self) -> (Control, Entered<'_, Told>) {
        let control = Control::new(Instant::now(), LEASE, CancellationToken::new());
        let delivery = Arc::new(Told::default());
        let run = Run { lease: self.desk.scene.lease(), control: control.clone(), delivery };
        (control, self.desk.dispatcher.running.insert(run))
    }

    fn store(&self) {
        lock(&self.requests.stored).insert(self.desk.scene.session);
    }

    fn reads(&self) -> usize {
        *lock(&self.requests.reads)
    }

    async fn finish(self) {
        self.end.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_heard_while_the_session_runs_and_written_into_the_store() {
    let hearing = Hearing::begin(Broker::Answers);
    let (control, entered) = hearing.open();
    until(|| hearing.reads() > 0).await;
    let began = Instant::now();
    hearing.says.send(Request::Cancel(SessionId(uuid::Uuid::from_u128(99)))).await.unwrap();
    hearing.says.send(Request::Cancel(hearing.desk.scene.session)).await.unwrap();
    control.stopped().await;
    assert_eq!((control.stop_reason(), began.elapsed()), (Some(StopReason::Cancelled), Duration::ZERO));
    until(|| hearing.desk.sessions.asked() == words(&["cancel 7"])).await;
    drop(entered);
    hearing.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_session_in_the_queue_takes_effect_when_it_is_opened() {
    let hearing = Hearing::begin(Broker::Answers);
    hearing.store();
    tokio::time::sleep(LEASE / 10).await; // paused time: between two renewals
    let began = Instant::now();
    let (control, entered) = hearing.open();
    control.stopped().await;
    assert_eq!((control.stop_reason(), began.elapsed()), (Some(StopReason::Cancelled), Duration::ZERO));
    drop(entered);
    hearing.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_missed_is_read_when_the_subscription_stands_again() {
    let hearing = Hearing::begin(Broker::Answers);
    let (control, entered) = hearing.open();
    until(|| hearing.reads() > 0).await;
    hearing.store();
    let began = Instant::now();
    hearing.says.send(Request::Missed).await.unwrap();
    control.stopped().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(entered);
    hearing.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_heard_of_is_read_with_the_next_renewal() {
    let hearing = Hearing::begin(Broker::Answers);
    let (control, entered) = hearing.open();
    until(|| hearing.reads() > 0).await;
    hearing.store();
    let began = Instant::now();
    control.stopped().await;
    assert!(began.elapsed() <= LEASE / 3, "{:?}", began.elapsed());
    let reads = hearing.reads();
    tokio::time::sleep(LEASE).await; // paused time
    assert_eq!(hearing.reads(), reads, "nothing is read for a run that stops");
    drop(entered);
    hearing.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_broker_or_store_that_is_away_holds_up_neither_runs_nor_requests() {
    for broker in [Broker::Refuses, Broker::Silent] {
        let hearing = Hearing::begin(broker);
        *lock(&hearing.desk.sessions.unavailable) = Some("cancel");
        let (control, entered) = hearing.open();
        until(|| hearing.reads() > 2).await;
        assert_eq!(control.stop_reason(), None);
        let began = Instant::now();
        hearing.says.send(Request::Cancel(hearing.desk.scene.session)).await.unwrap();
        control.stopped().await;
        assert_eq!(began.elapsed(), Duration::ZERO, "{broker:?}");
        drop(entered);
        hearing.finish().await;
    }
}
