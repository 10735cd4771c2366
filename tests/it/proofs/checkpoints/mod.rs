//! Eight agents of one session write checkpoints while workers take the session from each other, replies are lost,
//! backends die, statements stall inside the server, sessions are released and sweepers run. In every case the store
//! has each checkpoint once, in order, and no write of an owner after its successor has begun.
//!
//! The suite writes 600 checkpoints, the proof 1,500; `TARSY_PROOF_CHECKPOINTS=20000` makes it long.

mod faults;
pub(crate) mod relay;
mod verify;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tarsy_core::execution::entry::{Entry, ToolResult};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    Checkpoint, Claim, ClaimRequest, Journal, Lease, Sessions, StoreError, Sweep, Swept,
};
use tarsy_store::{ConnectOptions, Store};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use self::faults::{Fault, STALLS, terminate};
use self::relay::Relay;
use crate::adapters::store::fixture::{checkpoint, claim_request, completed, running_session};
use crate::support::figures::by_depth;
use crate::support::postgres::TestDatabase;

const AGENTS: u32 = 8;
const OWNERS: usize = 3;
const CHECKPOINTS: u64 = 600;
const CHECKPOINTS_IN_PROOF: u64 = 1500;
/// Refused writes after which an agent of a superseded owner stops.
const MAX_REFUSED: u32 = 4;

/// One write of a checkpoint with the reply that the writer received.
#[derive(Clone, Debug)]
struct WriteRecord {
    id: Uuid,
    execution: Uuid,
    number: u32,
    epoch: u32,
    fault: Fault,
    answer: Result<Vec<Option<u32>>, StoreError>,
}

/// State that all tasks of the test share.
struct Shared {
    database: TestDatabase,
    store: Store,
    goal: u64,
    acknowledged: watch::Sender<u64>,
    ledger: Mutex<Vec<WriteRecord>>,
    /// The number of releases; each begins an epoch without an owner.
    released: AtomicU32,
}

impl Shared {
    fn is_over(&self) -> bool {
        *self.acknowledged.borrow() >= self.goal
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_fault_loses_duplicates_or_reorders_a_checkpoint() {
    let goal = by_depth("TARSY_PROOF_CHECKPOINTS", CHECKPOINTS, CHECKPOINTS_IN_PROOF);
    let database = TestDatabase::create().await;
    database.execute(STALLS);
    let store = database.store();
    let (first, executions) = running_session(&store, AGENTS).await;
    let session = first.session_id;
    // A lease of zero length: every claim succeeds, and no checkpoint extends it.
    database.execute(
        "UPDATE alert_sessions SET lease_expires_at = clock_timestamp(), lease_period = '0'",
    );
    let (acknowledged, _) = watch::channel(0);
    let shared = Arc::new(Shared {
        database,
        store,
        goal,
        acknowledged,
        ledger: Mutex::default(),
        released: AtomicU32::new(0),
    });
    let began = Instant::now();

    let mut owners = JoinSet::new();
    owners.spawn(own(Arc::clone(&shared), first, executions.clone()));
    for _ in 0..OWNERS {
        owners.spawn(steal_repeatedly(
            Arc::clone(&shared),
            session,
            executions.clone(),
        ));
    }
    owners.spawn(sweep_repeatedly(Arc::clone(&shared), session));
    while let Some(owner) = owners.join_next().await {
        owner.expect("an owner");
    }
    let last = steal(&shared, session)
        .await
        .expect("no other task is left");
    shared
        .store
        .finish(last, completed())
        .await
        .expect("the end");

    let ledger = shared.ledger.lock().await;
    println!(
        "{} checkpoints acknowledged in {:.1} s",
        *shared.acknowledged.borrow(),
        began.elapsed().as_secs_f64()
    );
    verify::ledger(&shared.database, session, &ledger);
    verify::rows(
        &shared.database,
        session,
        shared.released.load(Ordering::SeqCst),
    );
}

/// Repeatedly claims the session after some more checkpoints and runs its agents; the previous owner continues as if
/// it still had the lease.
async fn steal_repeatedly(shared: Arc<Shared>, session: SessionId, executions: Vec<ExecutionId>) {
    let mut acknowledged = shared.acknowledged.subscribe();
    let mut runs = JoinSet::new();
    while !shared.is_over() {
        let next = *acknowledged.borrow() + fastrand::u64(30..200);
        acknowledged
            .wait_for(|count| *count >= next.min(shared.goal))
            .await
            .expect("the test continues");
        if shared.is_over() {
            break;
        }
        while let Some(lease) = steal(&shared, session).await {
            runs.spawn(own(Arc::clone(&shared), lease, executions.clone()));
            if fastrand::u32(0..4) > 0 {
                break;
            }
            // Without another claim all writing would stop.
            release(&shared, lease).await;
        }
    }
    while let Some(run) = runs.join_next().await {
        run.expect("an owner's run");
    }
}

/// Releases the session while its agents still write.
async fn release(shared: &Shared, lease: Lease) {
    match shared.store.release(lease, "drain").await {
        Ok(()) => {
            shared.released.fetch_add(1, Ordering::SeqCst);
        }
        Err(StoreError::LeaseLost { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
}

/// Sweeps repeatedly: each sweep finds the session without an owner, or skips its locked row.
async fn sweep_repeatedly(shared: Arc<Shared>, session: SessionId) {
    let mut acknowledged = shared.acknowledged.subscribe();
    let sweep = Sweep {
        interval: Duration::ZERO,
        min_age: Duration::ZERO,
        limit: 10,
    };
    let mut found = 0;
    while !shared.is_over() {
        let next = *acknowledged.borrow() + 5;
        acknowledged
            .wait_for(|count| *count >= next.min(shared.goal))
            .await
            .expect("the test continues");
        match shared.store.sweep(sweep).await.expect("a sweep").as_slice() {
            [] => {}
            [Swept::Idle(alert)] => {
                assert_eq!(alert.body.as_deref(), Some(session.to_string().as_bytes()));
                found += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    println!("found by {found} sweeps");
    assert!(found > 0, "no sweep found the session");
}

/// Claims the session; `None` when another task was faster.
async fn steal(shared: &Shared, session: SessionId) -> Option<Lease> {
    let request = ClaimRequest {
        lease: Duration::ZERO,
        ..claim_request("thief")
    };
    match shared
        .store
        .claim(session, request)
        .await
        .expect("an answer to the claim")
    {
        Claim::Taken(claimed) => Some(claimed.lease),
        Claim::Busy(_) => None,
        other @ (Claim::Waiting | Claim::Ended { .. } | Claim::Incompatible | Claim::Unknown) => {
            panic!("{other:?}")
        }
    }
}

/// Runs all agents of a session under one lease until it is lost or the test is over.
async fn own(shared: Arc<Shared>, lease: Lease, executions: Vec<ExecutionId>) {
    let record = shared
        .store
        .load(lease.session_id)
        .await
        .expect("the session");
    let mut agents = JoinSet::new();
    for execution in executions {
        let committed = record.stages[0]
            .executions
            .iter()
            .find(|e| e.execution_id == execution)
            .expect("it has begun");
        agents.spawn(run_agent(
            Arc::clone(&shared),
            lease,
            execution,
            committed.checkpoint,
        ));
    }
    while let Some(agent) = agents.join_next().await {
        agent.expect("an agent");
    }
}

async fn run_agent(shared: Arc<Shared>, lease: Lease, execution: ExecutionId, committed: u32) {
    let relay = Relay::start(shared.database.url()).await;
    let name = Uuid::new_v4().to_string();
    let options = ConnectOptions {
        application_name: name.clone(),
        pool_size: 2,
        ..ConnectOptions::new(relay.url(shared.database.url()))
    };
    let store = Store::new(&options).expect("a pool");
    let (mut number, mut refused) = (committed + 1, 0);
    while refused < MAX_REFUSED && !shared.is_over() {
        let fault = Fault::random();
        let injection = Injection {
            fault,
            relay: &relay,
            application: &name,
        };
        let answer = write(
            &shared,
            &store,
            NextCheckpoint {
                lease,
                execution,
                number,
            },
            injection,
        )
        .await;
        match answer {
            Ok(()) => {
                number += 1;
                shared.acknowledged.send_modify(|count| *count += 1);
            }
            Err(StoreError::LeaseLost { .. }) => refused += 1,
            Err(
                StoreError::Ended
                | StoreError::Behind(_)
                | StoreError::Conflict(_)
                | StoreError::Refused(_)
                | StoreError::Undecided(_)
                | StoreError::TimedOut(_)
                | StoreError::Unavailable(_),
            ) => {
                return;
            }
        }
    }
}

/// The checkpoint that an agent writes next.
struct NextCheckpoint {
    lease: Lease,
    execution: ExecutionId,
    number: u32,
}

/// A fault and the parts that it acts on.
struct Injection<'a> {
    fault: Fault,
    relay: &'a Relay,
    application: &'a str,
}

/// Writes one checkpoint under one fault, and records the reply.
async fn write(
    shared: &Shared,
    store: &Store,
    next: NextCheckpoint,
    injection: Injection<'_>,
) -> Result<(), StoreError> {
    let NextCheckpoint {
        lease,
        execution,
        number,
    } = next;
    let Injection {
        fault,
        relay,
        application,
    } = injection;
    let mut written = with_result(checkpoint(execution, number));
    let id = written.id;
    let answer = match fault {
        Fault::Plain => store.append(lease, written).await,
        Fault::Stalled => {
            stall(&mut written, 20..220);
            store.append(lease, written).await
        }
        Fault::ReplyLost => {
            relay.lose_reply_to(id);
            store.append(lease, written).await
        }
        Fault::BackendKilled => {
            let (answer, ()) = tokio::join!(
                store.append(lease, written),
                terminate(&shared.database, application)
            );
            answer
        }
        Fault::SentTwice => {
            // The first write lasts until the second one has begun.
            stall(&mut written, 10..30);
            let (one, two) = tokio::join!(
                store.append(lease, written.clone()),
                shared.store.append(lease, written)
            );
            match (one, two) {
                (Err(conflict @ StoreError::Conflict(_)), _)
                | (_, Err(conflict @ StoreError::Conflict(_))) => Err(conflict),
                // One write may come after a takeover; then the success of the other one counts.
                (one, two) => one.or(two),
            }
        }
    };
    let record = WriteRecord {
        id,
        execution: execution.0,
        number,
        epoch: lease.epoch,
        fault,
        answer: answer.clone().map(|appended| appended.events),
    };
    shared.ledger.lock().await.push(record);
    answer.map(|_numbers| ())
}

/// Makes the second entry a tool result, whose event is the second event.
fn with_result(mut checkpoint: Checkpoint) -> Checkpoint {
    let call_id = format!("c{}", checkpoint.number);
    let metadata = json!({"checkpoint": checkpoint.id, "call_id": call_id});
    checkpoint.events.pop();
    checkpoint
        .events
        .push(EventDraft::new(EventType::ToolResult, "ok", metadata));
    checkpoint.entries.pop();
    checkpoint.entries.push(result(call_id, "ok"));
    checkpoint
}

fn result(call_id: String, content: &str) -> Entry {
    let (tool, content) = ("k8s.get".to_owned(), content.to_owned());
    Entry::ToolResult(ToolResult {
        call_id,
        tool,
        content,
        ..ToolResult::default()
    })
}

/// Makes the trigger of [`STALLS`] sleep at this checkpoint.
fn stall(checkpoint: &mut Checkpoint, millis: Range<u32>) {
    checkpoint.entries.pop();
    let content = format!("stall 0.{:03}", fastrand::u32(millis));
    checkpoint
        .entries
        .push(result(format!("c{}", checkpoint.number), &content));
}
