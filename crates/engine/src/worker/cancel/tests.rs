//! Tests of the cancel listener: a request reaches its run on every path, and no path delays a run.

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::ports::{Claim, SettlementStatus};
use crate::run::control::Control;
use crate::run::registry::Registered;
use crate::testing::delivery::{DeliveryHarness, LEASE, SETTLED, until, words};
use crate::testing::{BrokerAnswers, FakeCancelRequests, FakeDelivery};
use crate::worker::cancel::*;
use tarsy_core::execution::entry::StopReason;

/// A running listener.
struct Scenario {
    harness: DeliveryHarness,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl Scenario {
    fn begin(answers: BrokerAnswers) -> Self {
        Self::begin_with(answers, SETTLED)
    }

    /// `standing` is that of every session.
    fn begin_with(answers: BrokerAnswers, standing: SettlementStatus) -> Self {
        let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, standing);
        *harness.scene.ports.cancel_requests.answers.lock() = answers;
        let end = CancellationToken::new();
        let task = tokio::spawn(CancelListener(Arc::clone(&harness.dispatcher)).run(end.clone()));
        Self { harness, end, task }
    }

    fn open(&self) -> (Control, Registered<'_, FakeDelivery>) {
        self.harness.insert_run(FakeDelivery::default())
    }

    fn requests(&self) -> &FakeCancelRequests {
        &self.harness.scene.ports.cancel_requests
    }

    async fn emit(&self, notice: CancelNotice) {
        self.requests().send.send(notice).await.unwrap();
    }

    fn store(&self) {
        self.requests()
            .stored
            .lock()
            .insert(self.harness.scene.session);
    }

    fn lookups(&self) -> usize {
        *self.requests().lookups.lock()
    }

    async fn finish(self) {
        self.end.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_running_session_stops_it_and_is_written_into_the_store() {
    let scenario = Scenario::begin(BrokerAnswers::Ok);
    let (control, registered) = scenario.open();
    until(|| scenario.lookups() > 0).await;
    let began = Instant::now();
    scenario
        .emit(CancelNotice::Requested(SessionId(uuid::Uuid::from_u128(
            99,
        ))))
        .await;
    scenario
        .emit(CancelNotice::Requested(scenario.harness.scene.session))
        .await;
    control.stopped().await;
    assert_eq!(
        (control.stop_reason(), began.elapsed()),
        (Some(StopReason::Cancelled), Duration::ZERO)
    );
    until(|| scenario.harness.sessions.asked() == words(&["cancel 7"])).await;
    drop(registered);
    scenario.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_session_of_no_worker_is_written_unless_the_session_is_over() {
    let running = SettlementStatus {
        over: false,
        ..SETTLED
    };
    for (standing, asked) in [
        (running, words(&["cancel 99"])),
        (SETTLED, words(&["settled"])),
    ] {
        let scenario = Scenario::begin_with(BrokerAnswers::Ok, standing);
        *scenario.harness.sessions.cancel_outcome.lock() = CancelOutcome::Cancelled;
        scenario
            .emit(CancelNotice::Requested(SessionId(uuid::Uuid::from_u128(
                99,
            ))))
            .await;
        tokio::time::sleep(2 * MAX_JITTER).await; // paused time
        assert_eq!(scenario.harness.sessions.asked(), asked);
        scenario.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_session_in_the_queue_takes_effect_when_it_is_opened() {
    let scenario = Scenario::begin(BrokerAnswers::Ok);
    scenario.store();
    tokio::time::sleep(LEASE / 10).await; // paused time: between two renewals
    let began = Instant::now();
    let (control, registered) = scenario.open();
    control.stopped().await;
    assert_eq!(
        (control.stop_reason(), began.elapsed()),
        (Some(StopReason::Cancelled), Duration::ZERO)
    );
    drop(registered);
    scenario.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_missed_request_is_looked_up_when_the_subscription_stands_again() {
    let scenario = Scenario::begin(BrokerAnswers::Ok);
    let (control, registered) = scenario.open();
    until(|| scenario.lookups() > 0).await;
    scenario.store();
    let began = Instant::now();
    scenario.emit(CancelNotice::Missed).await;
    control.stopped().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    drop(registered);
    scenario.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_notice_is_looked_up_with_the_next_renewal() {
    let scenario = Scenario::begin(BrokerAnswers::Ok);
    let (control, registered) = scenario.open();
    until(|| scenario.lookups() > 0).await;
    scenario.store();
    let began = Instant::now();
    control.stopped().await;
    assert!(began.elapsed() <= LEASE / 3, "{:?}", began.elapsed());
    let lookups = scenario.lookups();
    tokio::time::sleep(LEASE).await; // paused time
    assert_eq!(
        scenario.lookups(),
        lookups,
        "no request is looked up for a run that stops"
    );
    drop(registered);
    scenario.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_broker_or_store_delays_neither_runs_nor_requests() {
    for broker in [BrokerAnswers::Unavailable, BrokerAnswers::Never] {
        let scenario = Scenario::begin(broker);
        *scenario.harness.sessions.unavailable.lock() = Some("cancel");
        let (control, registered) = scenario.open();
        until(|| scenario.lookups() > 2).await;
        assert_eq!(control.stop_reason(), None);
        let began = Instant::now();
        scenario
            .emit(CancelNotice::Requested(scenario.harness.scene.session))
            .await;
        control.stopped().await;
        assert_eq!(began.elapsed(), Duration::ZERO, "{broker:?}");
        drop(registered);
        scenario.finish().await;
    }
}
