//! Reads for people: lists, one request with everything that a person sees, votes for an audit.

use std::time::Duration;

use tarsy_core::approvals::{Choice, Refusal, RequestId};
use tarsy_core::clock::Moment;
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_engine::ports::{Journal, RequestCounts, Vote, Votes, WaitingCalls};
use tarsy_reports::{ApprovalFilter, RequestState, Requests, VotePage};

use super::{RESTART, Waiting, asked, asks, closes, request_of, vote};
use crate::adapters::store::fixture::{completed, running_session};

fn filter(requests: Requests) -> ApprovalFilter {
    ApprovalFilter {
        limit: 100,
        requests,
        ..ApprovalFilter::default()
    }
}

#[tokio::test]
async fn open_requests_are_listed_oldest_first_and_others_by_their_state() {
    let waiting = Waiting::new().await;
    let (lease, executions) = running_session(&waiting.store, 1).await;
    let second = asks(executions[0], 1, vec![asked("c1", "k8s.delete")]);
    waiting.store.append(lease, second).await.unwrap();
    let ids = async |requests| {
        let rows = waiting.store.approvals(filter(requests)).await.unwrap();
        rows.iter()
            .map(|row| (row.tool.clone(), row.state))
            .collect::<Vec<_>>()
    };
    let restart = |state| (RESTART.to_owned(), state);
    let delete = |state| ("k8s.delete".to_owned(), state);
    let open = RequestState::Open;
    assert_eq!(ids(Requests::Open).await, [restart(open), delete(open)]);
    assert_eq!(ids(Requests::All).await, [delete(open), restart(open)]);
    waiting.vote("ana", Choice::Approve).await;
    assert_eq!(ids(Requests::Open).await, [delete(open)]);
    let decided = restart(RequestState::Decided);
    assert_eq!(ids(Requests::All).await, [delete(open), decided]);
    let start = closes(waiting.execution, 2, ApprovalOutcome::Approved);
    waiting.store.append(waiting.lease, start).await.unwrap();
    waiting.store.finish(lease, completed()).await.unwrap();
    assert_eq!(ids(Requests::Open).await, []);
    let ended = delete(RequestState::Ended);
    assert_eq!(
        ids(Requests::All).await,
        [ended, restart(RequestState::Closed)]
    );

    let of_session = ApprovalFilter {
        session: Some(lease.session_id),
        ..filter(Requests::All)
    };
    let rows = waiting.store.approvals(of_session).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        rows[0].id(),
        request_of(&waiting.database, lease.session_id, "c1")
    );
    assert_eq!(rows[0].title.as_deref(), Some("disk full on db-1"));
    let since = ApprovalFilter {
        since: Some(Moment::Ago(Duration::from_secs(60))),
        ..filter(Requests::All)
    };
    waiting.age(61);
    assert_eq!(waiting.store.approvals(since).await.unwrap(), []);
}

#[tokio::test]
async fn one_request_has_all_that_a_person_sees() {
    let waiting = Waiting::new().await;
    waiting.database.execute(&format!(
        "UPDATE timeline_events SET event_type = 'tool_result', content = 'CrashLoop', metadata = '{{\"tool\": \"k8s.get\"}}' \
         WHERE session_id = '{}' AND session_seq = 3",
        waiting.request.session
    ));
    waiting.vote("eve", Choice::Approve).await;
    let start = closes(waiting.execution, 2, ApprovalOutcome::Approved);
    waiting.store.append(waiting.lease, start).await.unwrap();
    waiting.database.execute(&format!(
        "INSERT INTO tool_interactions (session_id, execution_id, created_at, checkpoint, call_no, iteration, duration_ms, \
         read_only, state, call_id, tool, arguments) \
         VALUES ('{}', '{}', now(), 9, 1, 1, 1, false, 'lost', 'c1', 'k8s.restart', '')",
        waiting.request.session, waiting.execution.0
    ));
    let again = asks(waiting.execution, 3, vec![asked("c2", RESTART)]);
    waiting.store.append(waiting.lease, again).await.unwrap();
    let second = request_of(&waiting.database, waiting.request.session, "c2");
    waiting
        .store
        .record_vote(Vote {
            refused: Some(Refusal::NoRight),
            ..vote(second, "ana", Choice::Approve)
        })
        .await
        .unwrap();
    let detail = waiting.store.approval(second).await.unwrap().unwrap();
    assert_eq!(detail.row.id(), second);
    assert_eq!(detail.call.arguments, "{\"pod\":\"db-1\"}");
    assert_eq!(detail.call.why, "The pod does not come back.");
    assert_eq!(detail.call.agent.as_deref(), Some("analyst-1"));
    assert_eq!(detail.call.channels, ["web", "cli"]);
    assert!(!detail.alert.is_resolved && !detail.alert.is_waiting);
    assert_eq!(
        detail.alert.body.as_deref(),
        Some("the disk of db-1 is full")
    );
    let [result] = detail.evidence.as_slice() else {
        panic!("{:?}", detail.evidence)
    };
    assert_eq!((result.event, result.content.as_str()), (3, "CrashLoop"));
    let [other] = detail.others.as_slice() else {
        panic!("{:?}", detail.others)
    };
    assert!(other.is_same_call);
    assert_eq!(other.call_state.as_deref(), Some("lost"));
    let [cast] = detail.votes_cast.as_slice() else {
        panic!("{:?}", detail.votes_cast)
    };
    assert_eq!(
        (cast.person.as_str(), cast.refused.as_deref()),
        ("ana", Some("no_right"))
    );
    assert_eq!(
        waiting
            .store
            .approval_vote(cast.vote_id)
            .await
            .unwrap()
            .as_ref(),
        Some(cast)
    );
    let unknown = RequestId {
        event: 99,
        ..second
    };
    assert_eq!(waiting.store.approval(unknown).await.unwrap(), None);
}

#[tokio::test]
async fn an_export_has_each_vote_once_over_its_pages() {
    let waiting = Waiting::new().await;
    for _ in 0..5 {
        waiting
            .store
            .record_vote(Vote {
                refused: Some(Refusal::NoRight),
                ..vote(waiting.request, "eve", Choice::Approve)
            })
            .await
            .unwrap();
    }
    let mut page = VotePage {
        limit: 2,
        ..VotePage::default()
    };
    let mut seen = Vec::new();
    loop {
        let votes = waiting.store.approval_votes(page.clone()).await.unwrap();
        let Some(last) = votes.last() else { break };
        page.after = Some(last.vote.vote_id);
        assert!(
            votes
                .iter()
                .all(|vote| vote.tool.as_deref() == Some(RESTART))
        );
        seen.extend(votes.into_iter().map(|vote| vote.vote.vote_id));
    }
    assert_eq!(seen.len(), 5);
    seen.dedup();
    assert_eq!(seen.len(), 5);
}

#[tokio::test]
async fn requests_are_counted_for_their_limits() {
    let waiting = Waiting::new().await;
    let more = asks(
        waiting.execution,
        2,
        vec![asked("c2", RESTART), asked("c3", RESTART)],
    );
    waiting.store.append(waiting.lease, more).await.unwrap();
    waiting.vote("ana", Choice::Deny).await;
    let counts = waiting
        .store
        .request_counts(waiting.request.session, 1_000)
        .await
        .unwrap();
    assert_eq!(
        RequestCounts {
            age: Duration::ZERO,
            ..counts
        },
        RequestCounts {
            open: 2,
            of_session: 3,
            age: Duration::ZERO
        }
    );
    assert!(counts.age < Duration::from_secs(60));
    let enough = waiting
        .store
        .request_counts(waiting.request.session, 1)
        .await
        .unwrap();
    assert_eq!(enough.open, 1);
}
