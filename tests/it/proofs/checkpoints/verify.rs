//! The rules that the rows have to obey, and the comparison of the rows with the replies that the writers received.

use std::collections::{BTreeMap, HashMap};

use diesel::prelude::*;
use diesel::sql_types::{Integer, Text, Uuid as SqlUuid};
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::StoreError;
use uuid::Uuid;

use super::WriteRecord;
use crate::support::postgres::TestDatabase;

#[derive(QueryableByName)]
struct Stored {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = SqlUuid)]
    execution_id: Uuid,
    #[diesel(sql_type = Integer)]
    checkpoint: i32,
    #[diesel(sql_type = Integer)]
    event_seq: i32,
}

/// Compares the replies to the writers with the stored rows, and prints the figures.
pub(super) fn ledger(database: &TestDatabase, session: SessionId, ledger: &[WriteRecord]) {
    let rows: Vec<Stored> = diesel::sql_query(
        "SELECT a.content AS id, a.execution_id, a.checkpoint, r.event_seq
         FROM entries a JOIN entries r USING (session_id, execution_id, checkpoint)
         WHERE a.kind = 'answer' AND r.kind = 'tool_result' AND a.session_id = $1",
    )
    .bind::<SqlUuid, _>(session.0)
    .load(&mut database.connection())
    .expect("the journal");
    let number = |number: i32| u32::try_from(number).expect("a number");
    let stored: HashMap<Uuid, (Uuid, u32, u32)> = rows
        .iter()
        .map(|row| {
            let place = (
                row.execution_id,
                number(row.checkpoint),
                number(row.event_seq),
            );
            (row.id.parse().expect("an id"), place)
        })
        .collect();
    assert_eq!(stored.len(), rows.len(), "a checkpoint is stored twice");

    let mut figures: BTreeMap<String, u32> = BTreeMap::new();
    let mut acknowledged: HashMap<(Uuid, u32), Uuid> = HashMap::new();
    let mut inherited = 0;
    for record in ledger {
        let place = stored.get(&record.id);
        let is_stored =
            place.is_some_and(|place| (place.0, place.1) == (record.execution, record.number));
        let reply = match &record.answer {
            Ok(numbers) => {
                assert!(is_stored, "acknowledged but not stored: {record:?}");
                assert_eq!(
                    *numbers,
                    [None, place.map(|place| place.2)],
                    "another number than the stored one: {record:?}"
                );
                let before = acknowledged.insert((record.execution, record.number), record.id);
                assert_eq!(before, None, "acknowledged twice: {record:?}");
                "done"
            }
            Err(StoreError::LeaseLost { .. }) => {
                assert!(
                    !is_stored || record.fault.leaves_the_outcome_open(),
                    "stored, but the reply was that the lease is lost: {record:?}"
                );
                inherited += u32::from(is_stored);
                "lost"
            }
            Err(
                StoreError::Conflict(_)
                | StoreError::Refused(_)
                | StoreError::Undecided(_)
                | StoreError::Behind(_)
                | StoreError::Ended
                | StoreError::TimedOut(_)
                | StoreError::Unavailable(_),
            ) => {
                panic!("{record:?}")
            }
        };
        *figures
            .entry(format!("{:?}/{reply}", record.fault))
            .or_default() += 1;
    }
    let epochs = ledger
        .iter()
        .map(|record| record.epoch)
        .max()
        .unwrap_or_default();
    println!(
        "{} checkpoints stored, {epochs} epochs, {inherited} inherited by the next owner, {figures:?}",
        stored.len()
    );
    assert_eq!(
        stored.len(),
        acknowledged.len() + inherited as usize,
        "a stored checkpoint belongs to no write"
    );
    assert!(epochs > 5, "there were too few takeovers");
}

/// Asserts every rule that the rows have to obey.
pub(super) fn rows(database: &TestDatabase, session: SessionId, released: u32) {
    println!("released {released} times");
    for (rule, sql) in RULES {
        let sql = sql
            .replace("$session", &format!("'{session}'"))
            .replace("$released", &released.to_string());
        assert!(database.holds(&sql), "{rule}");
        println!("holds: {rule}");
    }
    let (events, entries) = (
        count(database, "timeline_events", session),
        count(database, "entries", session),
    );
    println!("{events} events, {entries} entries");
}

fn count(database: &TestDatabase, table: &str, session: SessionId) -> i64 {
    database.number(&format!(
        "SELECT count(*) FROM {table} WHERE session_id = '{session}'"
    ))
}

const RULES: [(&str, &str); 10] = [
    (
        "session_seq is unique and gap-free, and the counter is its last number",
        "SELECT count(*) = max(session_seq) AND min(session_seq) = 1 AND max(session_seq) =
            (SELECT event_seq FROM alert_sessions WHERE session_id = $session)
         FROM timeline_events WHERE session_id = $session",
    ),
    (
        "sequence_number is gap-free per execution, in the order of session_seq, and the counter is its last number",
        "SELECT bool_and(in_order AND total = e.event_count) FROM (
           SELECT execution_id, sequence_number = row_number() OVER w AS in_order,
                  count(*) OVER (PARTITION BY execution_id) AS total
           FROM timeline_events WHERE session_id = $session AND execution_id IS NOT NULL
           WINDOW w AS (PARTITION BY execution_id ORDER BY session_seq)) t
         JOIN agent_executions e ON e.session_id = $session AND e.execution_id = t.execution_id",
    ),
    (
        "entry_no is gap-free per execution, in the order of the checkpoints, two a checkpoint",
        "SELECT bool_and(entry_no = place AND checkpoint = (place + 1) / 2 AND total = e_count AND total = 2 * last)
         FROM (
           SELECT n.entry_no, n.checkpoint, row_number() OVER (PARTITION BY execution_id ORDER BY n.entry_no) AS place,
                  count(*) OVER (PARTITION BY execution_id) AS total, e.entry_count AS e_count, e.checkpoint AS last
           FROM entries n JOIN agent_executions e USING (session_id, execution_id) WHERE n.session_id = $session) t",
    ),
    (
        "no row of a superseded epoch comes after one of a newer epoch",
        "SELECT bool_and(lease_epoch >= newest) FROM (
           SELECT lease_epoch, max(lease_epoch) OVER (ORDER BY session_seq) AS newest
           FROM timeline_events WHERE session_id = $session) t",
    ),
    (
        "each epoch but those of a release begins with the event of its claim",
        "SELECT bool_and(event_type IN ('session_started', 'session_resumed')) AND count(*) =
            (SELECT lease_epoch - $released FROM alert_sessions WHERE session_id = $session)
         FROM (SELECT DISTINCT ON (lease_epoch) lease_epoch, event_type FROM timeline_events
               WHERE session_id = $session ORDER BY lease_epoch, session_seq) t",
    ),
    (
        "each checkpoint has its two events, once, one checkpoint a number",
        "SELECT bool_and(n = 2) AND count(*) = (SELECT sum(checkpoint) FROM agent_executions WHERE session_id = $session)
         FROM (SELECT count(*) AS n FROM timeline_events WHERE session_id = $session AND metadata ? 'checkpoint'
               GROUP BY metadata ->> 'checkpoint') t",
    ),
    (
        "each result has the number of its event",
        "SELECT count(*) = (SELECT sum(checkpoint) FROM agent_executions WHERE session_id = $session)
         FROM entries n JOIN timeline_events t ON t.session_id = n.session_id AND t.session_seq = n.event_seq
              AND t.execution_id = n.execution_id AND t.event_type = 'tool_result'
              AND t.metadata ->> 'call_id' = n.tool_call_id
         WHERE n.session_id = $session",
    ),
    (
        "each checkpoint has its model call and its tool call",
        "SELECT (SELECT count(*) FROM llm_interactions WHERE session_id = $session) = sum(checkpoint)
            AND (SELECT count(*) FROM tool_interactions WHERE session_id = $session) = sum(checkpoint)
         FROM agent_executions WHERE session_id = $session",
    ),
    (
        "the id of the last checkpoint of each execution is in its rows",
        "SELECT bool_and(EXISTS (SELECT FROM entries n WHERE n.session_id = e.session_id
            AND n.execution_id = e.execution_id AND n.content = e.checkpoint_id::text AND n.checkpoint = e.checkpoint))
         FROM agent_executions e WHERE e.session_id = $session",
    ),
    (
        "the end is the last event and nothing still runs",
        "SELECT (SELECT event_type FROM timeline_events WHERE session_id = $session ORDER BY session_seq DESC LIMIT 1)
            = 'session_completed'
            AND NOT EXISTS (SELECT FROM agent_executions WHERE session_id = $session AND status = 'running')",
    ),
];
