//! Requests for approvals: what a checkpoint asks and closes, what people decide, and sessions that wait for them.

mod checkpoints;
mod ends;
mod freezes;
mod messages;
mod parks;
mod reads;
mod recoveries;
mod rivals;
mod votes;
mod wakes;

use std::time::Duration;

use serde_json::json;
use tarsy_core::approvals::{CallHash, Channel, Choice, RequestId};
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::WhenResolved;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    AskedApproval, Checkpoint, ClosedApproval, ClosedAs, Journal, Lease, Parking, Vote, VoteRecord,
    Votes, WaitingCalls,
};
use tarsy_store::{ConnectOptions, Store};
use uuid::Uuid;

use super::fixture::{prompt, running_session};
use crate::support::postgres::TestDatabase;

const RESTART: &str = "k8s.restart";
const HASH: CallHash = CallHash([7; 32]);
const TIMEOUT: Duration = Duration::from_secs(3_600);
const VALID_FOR: Duration = Duration::from_secs(900);

fn asked(call_id: &str, tool: &str) -> AskedApproval {
    AskedApproval {
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        policy: "default".to_owned(),
        arguments: "{\"pod\":\"db-1\"}".to_owned(),
        call_sha256: HASH,
        schema_sha256: [9; 32],
        why: "The pod does not come back.".to_owned(),
        evidence: vec![2, 3],
        origins: json!([{"value": "db-1", "in": "event 2"}]),
        quorum: 1,
        timeout: TIMEOUT,
        valid_for: VALID_FOR,
        on_resolved: WhenResolved::Withdraw,
        other_person: false,
        channels: vec!["web", "cli"],
    }
}

/// A checkpoint that makes these requests, each with its event, after another event.
fn asks(execution: ExecutionId, number: u32, asked: Vec<AskedApproval>) -> Checkpoint {
    let mut events = vec![EventDraft::new(EventType::LlmResponse, "hm", json!(null))];
    events.extend(asked.iter().map(|request| {
        let word = "approval_requested".to_owned();
        EventDraft::new(word.into(), "", json!({"call_id": request.call_id}))
    }));
    Checkpoint {
        events,
        asked,
        ..prompt(execution, number, "")
    }
}

/// A checkpoint that closes the request of this call.
fn closes(execution: ExecutionId, number: u32, outcome: ApprovalOutcome) -> Checkpoint {
    let closed = ClosedApproval {
        call_id: "c1".to_owned(),
        closed_as: ClosedAs::Outcome(outcome),
        seen: None,
    };
    let word = "approval_ended".to_owned();
    Checkpoint {
        events: vec![EventDraft::new(word.into(), "", json!({"call_id": "c1"}))],
        closed: vec![closed],
        ..prompt(execution, number, "")
    }
}

/// A session whose one execution waits for a decision about one call.
struct Waiting {
    database: TestDatabase,
    store: Store,
    lease: Lease,
    execution: ExecutionId,
    request: RequestId,
}

impl Waiting {
    async fn new() -> Self {
        Self::with(asked("c1", RESTART)).await
    }

    async fn with(asked: AskedApproval) -> Self {
        let database = TestDatabase::create().await;
        let store = database.store();
        let (lease, executions) = running_session(&store, 1).await;
        let execution = executions[0];
        let call = asked.call_id.clone();
        store
            .append(lease, asks(execution, 1, vec![asked]))
            .await
            .unwrap();
        let request = request_of(&database, lease.session_id, &call);
        Self {
            database,
            store,
            lease,
            execution,
            request,
        }
    }

    /// The session's last event number.
    async fn seq(&self) -> u32 {
        let outcomes = self.store.outcomes(self.lease.session_id).await;
        outcomes.unwrap().event_seq
    }

    async fn park(&self) {
        let seen = self.seq().await;
        let parked = self.store.park(self.lease, seen).await;
        assert_eq!(parked, Ok(Parking::Parked));
    }

    async fn vote(&self, person: &str, choice: Choice) -> VoteRecord {
        let vote = vote(self.request, person, choice);
        self.store.record_vote(vote).await.unwrap()
    }

    /// A store whose statements can be found by this name.
    fn named(&self, application: &str) -> Store {
        let options = ConnectOptions {
            application_name: application.to_owned(),
            ..ConnectOptions::new(self.database.url())
        };
        Store::new(&options).unwrap()
    }

    fn holds(&self, sql: &str) -> bool {
        self.database.holds(sql)
    }

    /// Moves the times of the request this many seconds into the past.
    fn age(&self, seconds: u32) {
        self.database.execute(&format!(
            "UPDATE approvals SET asked_at = asked_at - i, expires_at = expires_at - i, outcome_at = outcome_at - i \
             FROM (SELECT interval '{seconds} s' AS i) t; \
             UPDATE alert_sessions SET lease_expires_at = lease_expires_at - i, deadline_at = deadline_at - i \
             FROM (SELECT interval '{seconds} s' AS i) t WHERE lease_owner IS NULL"
        ));
    }
}

fn request_of(database: &TestDatabase, session: SessionId, call: &str) -> RequestId {
    let sql = format!(
        "SELECT event_seq::bigint FROM approvals WHERE session_id = '{session}' AND call_id = '{call}'"
    );
    RequestId {
        session,
        event: u32::try_from(database.number(&sql)).unwrap(),
    }
}

fn vote(request: RequestId, person: &str, choice: Choice) -> Vote {
    Vote {
        id: Uuid::new_v4(),
        request,
        person: person.to_owned(),
        account: format!("{person}@example.com"),
        groups: vec!["sre".to_owned()],
        channel: Channel::Cli,
        address: Some("203.0.113.7".to_owned()),
        choice,
        comment: None,
        seen: HASH,
        seen_updates: 0,
        refused: None,
        age: Duration::ZERO,
    }
}
