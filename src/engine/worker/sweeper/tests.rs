//! Each kind of thing that a sweep finds, and what is done about it.

use std::sync::Mutex;

use serde_json::json;

use crate::engine::ports::{BrokerUnavailable, Pruned, SettlementStatus};
use crate::engine::run::control::Control;
use crate::engine::run::registry::Run;
use crate::engine::testing::delivery::{Desk, SETTLED, Told, until, words};
use crate::engine::testing::{Fakes, lock};
use crate::engine::worker::sweeper::*;
use crate::investigation::execution::entry::StopReason;
use crate::investigation::intake::headers::SESSION_ID;

/// A stream of alerts that has the job, or not, or is unavailable.
#[derive(Debug)]
struct FakeQueue {
    holds: Result<bool, BrokerUnavailable>,
    requeued: Mutex<Vec<SessionId>>,
}

impl FakeQueue {
    fn that(holds: Result<bool, BrokerUnavailable>) -> Self {
        Self { holds, requeued: Mutex::default() }
    }
}

impl Queue for FakeQueue {
    async fn holds(&self, _alert: SessionId, _stream_sequence: u64) -> Result<bool, BrokerUnavailable> {
        self.holds.clone()
    }

    async fn requeue(&self, alert: &IdleAlert) -> Result<u64, BrokerUnavailable> {
        lock(&self.requeued).push(alert.alert_id);
        Ok(42)
    }
}

type FakeSweeper = Sweeper<Fakes, crate::engine::testing::delivery::FakeSessions, FakeQueue, Told>;

fn sweeper(desk: &Desk, queue: FakeQueue) -> FakeSweeper {
    Sweeper {
        ports: desk.scene.ports.clone(),
        sessions: Arc::clone(&desk.sessions),
        queue: Arc::new(queue),
        retention: Retention::default(),
        running: Arc::clone(&desk.dispatcher.running),
        settler: Arc::clone(&desk.dispatcher.settler),
        settings: Arc::clone(&desk.dispatcher.settings),
        interval: Duration::from_secs(15),
    }
}

/// What the store is asked after it was swept, and what was queued again.
async fn swept(desk: &Desk, queue: FakeQueue, found: Vec<Swept>) -> (Vec<String>, usize) {
    *lock(&desk.sessions.swept) = vec![found];
    let sweeper = sweeper(desk, queue);
    assert!(!sweeper.sweep(false).await);
    let requeued = lock(&sweeper.queue.requeued).len();
    (desk.sessions.asked().split_off(1), requeued)
}

fn desk(claim: Claim) -> Desk {
    Desk::new(vec![], vec![], claim, SETTLED)
}

fn any() -> Desk {
    desk(Claim::Unknown)
}

fn idle(desk: &Desk) -> IdleAlert {
    IdleAlert {
        alert_id: desk.scene.session,
        undecided: true,
        subject: "tarsy.alerts.normal".to_owned(),
        headers: json!({}),
        body: Some(b"disk full".to_vec()),
        stream_sequence: 3,
    }
}

const HELD: Result<bool, BrokerUnavailable> = Ok(true);
const GONE: Result<bool, BrokerUnavailable> = Ok(false);

#[tokio::test]
async fn a_session_past_its_deadline_is_ended_and_settled_without_a_job() {
    for (cancel_requested, reason) in [(false, StopReason::Deadline), (true, StopReason::Cancelled)] {
        let claimed = Claimed { remaining: Duration::ZERO, cancel_requested, ..any().claimed() };
        let desk = desk(Claim::Taken(claimed));
        let found = vec![Swept::Overdue(desk.scene.session)];
        let asked = swept(&desk, FakeQueue::that(HELD), found).await;
        assert_eq!(asked, (words(&["claim 7 without a job", "settled"]), 0));
        assert_eq!(desk.scene.disk().end.as_ref().map(|end| end.reason), Some(reason));
    }
}

#[tokio::test]
async fn a_sweep_takes_nothing_from_whoever_is_faster() {
    let busy = desk(Claim::Busy(Duration::from_secs(5)));
    let found = vec![Swept::Overdue(busy.scene.session)];
    assert_eq!(swept(&busy, FakeQueue::that(HELD), found).await.0, words(&["claim 7 without a job"]));

    let over = desk(Claim::Ended { settled: false });
    let found = vec![Swept::Overdue(over.scene.session)];
    assert_eq!(swept(&over, FakeQueue::that(HELD), found).await.0, words(&["claim 7 without a job", "settled"]));

    let standing = SettlementStatus { over: false, ..SETTLED };
    let early = Desk::new(vec![], vec![], Claim::Taken(any().claimed()), standing);
    let found = vec![Swept::Overdue(early.scene.session)];
    assert_eq!(swept(&early, FakeQueue::that(HELD), found).await.0, words(&["claim 7 without a job", "release"]));
    assert!(early.scene.disk().end.is_none());
}

#[tokio::test]
async fn an_alert_whose_job_is_gone_is_queued_again_and_one_whose_job_is_there_is_left() {
    let held = any();
    assert_eq!(swept(&held, FakeQueue::that(HELD), vec![Swept::Idle(idle(&held))]).await, (vec![], 0));
    let gone = any();
    let asked = swept(&gone, FakeQueue::that(GONE), vec![Swept::Idle(idle(&gone))]).await;
    assert_eq!(asked, (words(&["requeued 7 as 42"]), 1));
    let open = any();
    let without_body = IdleAlert { undecided: false, body: None, ..idle(&open) };
    assert_eq!(swept(&open, FakeQueue::that(GONE), vec![Swept::Idle(without_body)]).await, (vec![], 0));
}

#[tokio::test]
async fn a_session_that_runs_here_is_not_queued_again() {
    let desk = any();
    let control = Control::new(tokio::time::Instant::now(), Duration::from_secs(20), CancellationToken::new());
    let delivery = Arc::new(Told::default());
    let _entered = desk.dispatcher.running.insert(Run { lease: desk.scene.lease(), control, delivery });
    assert_eq!(swept(&desk, FakeQueue::that(GONE), vec![Swept::Idle(idle(&desk))]).await, (vec![], 0));
}

#[tokio::test]
async fn an_alert_that_the_bus_found_faulty_is_buried_where_its_worker_left_it() {
    let chosen = "019f0000-0000-7000-8000-000000000001";
    let used = format!("give_up 7 used_id: id {chosen} came before, with another body");
    let cases = [
        (json!({SESSION_ID: chosen}), Some(b"x".to_vec()), used.as_str()),
        (json!({SESSION_ID: "42"}), Some(b"x".to_vec()), "give_up 7 invalid_id: Tarsy-Session-Id holds no UUIDv7: 42"),
        (json!({}), None, "give_up 7 too_large: the body is larger than what is taken"),
    ];
    for (headers, body, buried) in cases {
        let desk = any();
        let alert = IdleAlert { headers, body, ..idle(&desk) };
        let asked = swept(&desk, FakeQueue::that(HELD), vec![Swept::Idle(alert)]).await;
        assert_eq!(asked, (words(&[buried, "settled"]), 0));
    }
    let sound = any();
    let id = SessionId::parse(chosen).unwrap();
    let alert = IdleAlert { alert_id: id, headers: json!({SESSION_ID: chosen}), ..idle(&sound) };
    assert_eq!(swept(&sound, FakeQueue::that(HELD), vec![Swept::Idle(alert)]).await, (vec![], 0));
}

#[tokio::test]
async fn an_end_that_nobody_settled_is_settled_and_twice_does_no_harm() {
    let desk = any();
    let id = desk.scene.session;
    let found = vec![Swept::Unsettled(id), Swept::Unsettled(id)];
    assert_eq!(swept(&desk, FakeQueue::that(HELD), found).await.0, words(&["settled", "settled"]));

    let claimed = Claimed { remaining: Duration::ZERO, ..any().claimed() };
    let ended = self::desk(Claim::Taken(claimed));
    let found = vec![Swept::Overdue(id)];
    swept(&ended, FakeQueue::that(HELD), found.clone()).await;
    // Whoever is second is refused by the fence.
    ended.scene.disk().epoch += 1;
    swept(&ended, FakeQueue::that(HELD), found).await;
    assert_eq!(ended.scene.disk().events.len(), 1, "one end");
}

#[tokio::test]
async fn one_trouble_keeps_a_sweep_from_nothing_else() {
    let desk = any();
    let broker = FakeQueue::that(Err(BrokerUnavailable("no servers".to_owned())));
    let found = vec![Swept::Idle(idle(&desk)), Swept::Unsettled(desk.scene.session)];
    assert_eq!(swept(&desk, broker, found).await, (words(&["settled"]), 0));
}

#[tokio::test(start_paused = true)]
async fn sweeps_go_on_after_the_store_was_away_and_end_when_they_are_told() {
    let desk = any();
    *lock(&desk.sessions.unavailable) = Some("sweep");
    let end = CancellationToken::new();
    let sweeping = tokio::spawn(sweeper(&desk, FakeQueue::that(HELD)).run(end.clone()));
    until(|| desk.sessions.asked().len() == 3).await;
    *lock(&desk.sessions.unavailable) = None;
    *lock(&desk.sessions.swept) = vec![vec![Swept::Unsettled(desk.scene.session)]];
    until(|| desk.sessions.asked().contains(&"settled".to_owned())).await;
    let began = tokio::time::Instant::now();
    until(|| desk.sessions.asked().len() == 7).await;
    assert_eq!(began.elapsed().as_secs(), 30, "one every 15 s");
    end.cancel();
    sweeping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_old_is_deleted_in_batches_and_only_when_an_age_is_configured() {
    let batch = || Pruned { rows: [("entries", 500)].into() };
    for (retention, left) in [(Retention::default(), 3), (Retention::of_all(Duration::from_hours(1)), 0)] {
        let desk = any();
        *lock(&desk.sessions.pruned) = vec![batch(), batch(), batch()];
        let end = CancellationToken::new();
        let sweeper = Sweeper { retention, ..sweeper(&desk, FakeQueue::that(HELD)) };
        let sweeping = tokio::spawn(sweeper.run(end.clone()));
        until(|| desk.sessions.asked().iter().filter(|asked| *asked == "sweep").count() == 3).await;
        assert_eq!(lock(&desk.sessions.pruned).len(), left);
        end.cancel();
        sweeping.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_to_delete_is_swept_all_the_same() {
    let desk = any();
    *lock(&desk.sessions.unavailable) = Some("prune");
    let end = CancellationToken::new();
    let retention = Retention::of_all(Duration::from_hours(1));
    let sweeping = tokio::spawn(Sweeper { retention, ..sweeper(&desk, FakeQueue::that(HELD)) }.run(end.clone()));
    until(|| desk.sessions.asked().len() == 6).await;
    assert_eq!(desk.sessions.asked(), words(&["sweep", "prune", "sweep", "prune", "sweep", "prune"]));
    end.cancel();
    sweeping.await.unwrap();
}
