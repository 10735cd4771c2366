//! Sessions that wait after a failover: of the requests of one answer, the end of the first is lost.

use std::time::Duration;

use tarsy_core::approvals::{Choice, RequestId};
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_engine::ports::{ClosedApproval, ClosedAs, Journal, Parking, Votes, WaitingCalls};

use super::{RESTART, Waiting, asked, asks, closes, request_of, vote};

/// The time of the second request, which is longer than that of the first.
const LONGER: Duration = Duration::from_secs(7_200);

/// A session with a second request, which is not decided.
async fn two_requests() -> Second {
    let waiting = Waiting::new().await;
    let mut second = asked("c2", RESTART);
    second.timeout = LONGER;
    let more = asks(waiting.execution, 2, vec![second]);
    waiting.store.append(waiting.lease, more).await.unwrap();
    let request = request_of(&waiting.database, waiting.request.session, "c2");
    Second { waiting, request }
}

struct Second {
    waiting: Waiting,
    request: RequestId,
}

impl Second {
    /// Asserts that the session is parked until the second request expires, and that a decision about it wakes.
    async fn assert_waits(&self) {
        let Self { waiting, request } = self;
        let seen = waiting.seq().await;
        let parked = waiting.store.park(waiting.lease, seen).await;
        assert_eq!(parked, Ok(Parking::Parked));
        assert!(waiting.holds(
            "SELECT lease_expires_at = (SELECT expires_at FROM approvals WHERE call_id = 'c2') FROM alert_sessions"
        ));
        let record = waiting
            .store
            .record_vote(vote(*request, "ana", Choice::Approve));
        assert!(record.await.unwrap().wakes.is_some());
    }
}

#[tokio::test]
async fn a_decided_request_that_the_journal_did_not_close_ends_no_wait_for_another() {
    let second = two_requests().await;
    // The checkpoint that closed it is lost; what people decided is not.
    second.waiting.vote("ana", Choice::Approve).await;
    second.waiting.age(3_601);
    second.assert_waits().await;
}

#[tokio::test]
async fn a_request_whose_decision_is_lost_is_closed_with_its_call_and_hides_no_other() {
    let second = two_requests().await;
    let waiting = &second.waiting;
    // As long as it is open, a decision about the other one is stored and does not wake.
    let lost = ClosedApproval {
        call_id: "c1".to_owned(),
        closed_as: ClosedAs::Lost,
        seen: None,
    };
    let mut close = closes(waiting.execution, 3, ApprovalOutcome::Lapsed);
    close.closed = vec![lost];
    waiting.store.append(waiting.lease, close).await.unwrap();
    assert!(waiting.holds("SELECT closed_as = 'lost' FROM approvals WHERE call_id = 'c1'"));
    second.assert_waits().await;
}
