//! Votes: who counts, once, and what is refused.

use std::time::Duration;

use tarsy_core::approvals::{CallHash, Choice, Refusal, RequestId};
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_engine::ports::{AskedApproval, Journal, RequestFacts, Vote, Votes};

use super::{RESTART, VALID_FOR, Waiting, asked, closes, vote};
use crate::adapters::store::fixture::{completed, new_id};

fn of_two() -> AskedApproval {
    AskedApproval {
        quorum: 2,
        ..asked("c1", RESTART)
    }
}

#[tokio::test]
async fn two_people_have_to_approve_where_the_quorum_is_two() {
    let waiting = Waiting::with(of_two()).await;
    let first = waiting.vote("ana", Choice::Approve).await;
    assert_eq!((first.refused, first.outcome), (None, None));
    let again = waiting.vote("ana", Choice::Approve).await;
    assert_eq!((again.refused, again.outcome), (Some(Refusal::Again), None));
    let second = waiting.vote("ben", Choice::Approve).await;
    assert_eq!(
        (second.refused, second.outcome.as_deref()),
        (None, Some("approved"))
    );
    let late = waiting.vote("eve", Choice::Approve).await;
    assert_eq!(late.refused, Some(Refusal::Decided));
    assert!(waiting.holds("SELECT votes = 2 AND decided_by = '{ana,ben}' FROM approvals"));
    assert!(waiting.holds(
        "SELECT array_agg(content ORDER BY session_seq) = ARRAY['ana approved the call of k8s.restart (1 of 2)', \
         'ben approved the call of k8s.restart'] FROM timeline_events WHERE event_type = 'approval_decided'"
    ));
    assert!(waiting.holds(
        "SELECT metadata = '{\"by\": \"ben\", \"call_id\": \"c1\", \"channel\": \"cli\", \"choice\": \"approve\", \
         \"outcome\": \"approved\", \"quorum\": 2, \"tool\": \"k8s.restart\", \"votes\": 2}' \
         || jsonb_build_object('request', (SELECT event_seq::bigint FROM approvals)) \
         FROM timeline_events WHERE event_type = 'approval_decided' ORDER BY session_seq DESC LIMIT 1"
    ));
}

#[tokio::test]
async fn a_person_who_approved_may_still_deny() {
    let waiting = Waiting::with(of_two()).await;
    waiting.vote("ana", Choice::Approve).await;
    let denied = waiting.vote("ana", Choice::Deny).await;
    assert_eq!(
        (denied.refused, denied.outcome.as_deref()),
        (None, Some("denied"))
    );
    assert!(waiting.holds("SELECT votes = 1 AND decided_by = '{ana}' FROM approvals"));
}

#[tokio::test]
async fn the_same_vote_twice_is_one_vote_and_has_one_answer() {
    let waiting = Waiting::with(of_two()).await;
    let vote = vote(waiting.request, "ana", Choice::Approve);
    let first = waiting.store.record_vote(vote.clone()).await.unwrap();
    assert!(!first.is_repeated);
    let again = waiting.store.record_vote(vote).await.unwrap();
    assert_eq!(
        (again.is_repeated, again.refused, again.wakes),
        (true, None, None)
    );
    assert!(waiting.holds("SELECT count(*) = 1 FROM approval_votes"));
    assert!(waiting.holds("SELECT votes = 1 FROM approvals"));
}

#[tokio::test]
async fn each_reason_for_a_refusal_has_its_word_and_its_row() {
    let waiting = Waiting::new().await;
    let of = |choice| vote(waiting.request, "ana", choice);
    let refusals = [
        (
            Vote {
                refused: Some(Refusal::NoRight),
                ..of(Choice::Approve)
            },
            Refusal::NoRight,
        ),
        (
            Vote {
                seen: CallHash([8; 32]),
                ..of(Choice::Deny)
            },
            Refusal::OtherCall,
        ),
        (
            Vote {
                seen_updates: 1,
                ..of(Choice::Approve)
            },
            Refusal::Changed,
        ),
        (
            Vote {
                age: VALID_FOR,
                ..of(Choice::Approve)
            },
            Refusal::Late,
        ),
    ];
    for (vote, refusal) in refusals {
        let record = waiting.store.record_vote(vote).await.unwrap();
        assert_eq!(record.refused, Some(refusal));
    }
    assert!(waiting.holds(
        "SELECT array_agg(refused ORDER BY at) = '{no_right,other_call,changed,late}' FROM approval_votes"
    ));
    assert!(waiting.holds("SELECT votes = 0 AND outcome IS NULL FROM approvals"));
    assert!(
        waiting.holds(
            "SELECT count(*) = 0 FROM timeline_events WHERE event_type = 'approval_decided'"
        )
    );
    waiting.age(3_601);
    assert_eq!(
        waiting.vote("ana", Choice::Deny).await.refused,
        Some(Refusal::Expired)
    );
    let unknown = RequestId {
        event: 99,
        ..waiting.request
    };
    let record = waiting
        .store
        .record_vote(vote(unknown, "ana", Choice::Deny))
        .await;
    assert_eq!(record.unwrap().refused, Some(Refusal::Unknown));
    let unknown = RequestId {
        session: new_id(),
        event: 3,
    };
    let record = waiting
        .store
        .record_vote(vote(unknown, "ana", Choice::Deny))
        .await;
    assert_eq!(record.unwrap().refused, Some(Refusal::Unknown));
}

#[tokio::test]
async fn a_denial_counts_although_the_alert_has_changed_and_it_waited() {
    let waiting = Waiting::new().await;
    let denial = Vote {
        seen_updates: 9,
        age: Duration::from_secs(2_000),
        comment: Some("not during the sale".to_owned()),
        ..vote(waiting.request, "ana", Choice::Deny)
    };
    let record = waiting.store.record_vote(denial).await.unwrap();
    assert_eq!(
        (record.refused, record.outcome.as_deref()),
        (None, Some("denied"))
    );
    assert!(waiting.holds(
        "SELECT comment = 'not during the sale' AND channel = 'cli' \
         AND outcome_at < clock_timestamp() - interval '1990 s' FROM approvals"
    ));
}

#[tokio::test]
async fn the_age_of_a_vote_counts_from_its_message() {
    let waiting = Waiting::new().await;
    let old = Vote {
        age: VALID_FOR - Duration::from_secs(2),
        ..vote(waiting.request, "ana", Choice::Approve)
    };
    waiting.store.record_vote(old).await.unwrap();
    waiting.age(3);
    let close = closes(waiting.execution, 2, ApprovalOutcome::Approved);
    assert!(waiting.store.append(waiting.lease, close).await.is_err());
}

#[tokio::test]
async fn no_vote_counts_after_the_end_of_a_session_or_a_request_to_cancel_it() {
    let waiting = Waiting::new().await;
    waiting
        .store
        .request_cancel(waiting.request.session)
        .await
        .unwrap();
    assert_eq!(
        waiting.vote("ana", Choice::Approve).await.refused,
        Some(Refusal::Ended)
    );
    waiting
        .store
        .finish(waiting.lease, completed())
        .await
        .unwrap();
    assert_eq!(
        waiting.vote("ana", Choice::Deny).await.refused,
        Some(Refusal::Ended)
    );
    let last = "SELECT event_type FROM timeline_events ORDER BY session_seq DESC LIMIT 1";
    assert_eq!(waiting.database.text(last), "session_completed");
}

#[tokio::test]
async fn refused_votes_are_limited_and_keep_no_person_from_deciding() {
    let waiting = Waiting::new().await;
    let mut last = None;
    for _ in 0..101 {
        let refused = Vote {
            refused: Some(Refusal::NoRight),
            ..vote(waiting.request, "eve", Choice::Approve)
        };
        last = waiting.store.record_vote(refused).await.unwrap().refused;
    }
    assert_eq!(last, Some(Refusal::TooMany));
    assert!(waiting.holds("SELECT count(*) = 100 FROM approval_votes"));
    let denied = waiting.vote("ana", Choice::Deny).await;
    assert_eq!(
        (denied.refused, denied.outcome.as_deref()),
        (None, Some("denied"))
    );
}

#[tokio::test]
async fn the_facts_on_which_rights_depend_are_read() {
    let waiting = Waiting::with(AskedApproval {
        other_person: true,
        ..of_two()
    })
    .await;
    waiting
        .database
        .execute("UPDATE alerts SET headers = '{\"Tarsy-Asked-By\": \"ana\"}'");
    let facts = waiting.store.request_facts(waiting.request).await.unwrap();
    let expected = RequestFacts {
        policy: "default".to_owned(),
        quorum: 2,
        channels: vec!["web".to_owned(), "cli".to_owned()],
        other_person: true,
        asked_by: Some("ana".to_owned()),
    };
    assert_eq!(facts, Some(expected));
    let unknown = RequestId {
        event: 99,
        ..waiting.request
    };
    assert_eq!(waiting.store.request_facts(unknown).await, Ok(None));
}
