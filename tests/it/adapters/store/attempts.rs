//! The attempts of model calls, as the timeline shows them to a worker that continues a session.

use std::collections::BTreeMap;

use tarsy_engine::ports::{Checkpoint, Claim, Journal, RecordedAttempts, Sessions};

use super::fixture::{checkpoint, claim_request, prompt, running_session, steal};
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn claims_since_the_last_event_of_an_execution_are_its_tries() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 2).await;
    let session = lease.session_id;
    let [first, second] = [executions[0], executions[1]];
    let recorded = async |claims, by_iteration: &[(u32, u32)], execution| {
        let by_iteration: BTreeMap<u32, u32> = by_iteration.iter().copied().collect();
        let expected = RecordedAttempts {
            claims,
            by_iteration,
        };
        assert_eq!(store.attempts(session, execution).await, Ok(expected));
    };
    recorded(0, &[], first).await;
    store.append(lease, checkpoint(first, 1)).await.unwrap();

    let lease = steal(&store, &database, session).await.lease;
    recorded(1, &[(1, 1)], first).await;
    // Nothing of the second one is on the timeline: the start of its stage counts.
    recorded(1, &[], second).await;
    store
        .append(lease, prompt(second, 1, "hello"))
        .await
        .unwrap();
    store
        .append(
            lease,
            Checkpoint {
                attempt: 2,
                ..checkpoint(first, 2)
            },
        )
        .await
        .unwrap();
    recorded(0, &[(1, 1), (2, 2)], first).await;
    recorded(1, &[], second).await;

    store.release(lease, "drain").await.unwrap();
    let Ok(Claim::Taken(claimed)) = store.claim(session, claim_request("w3")).await else {
        panic!("not free")
    };
    assert_eq!(claimed.lease.epoch, 4);
    recorded(1, &[(1, 1), (2, 2)], first).await;
    recorded(2, &[], second).await;
}
