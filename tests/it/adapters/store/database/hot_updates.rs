//! Frequent updates are heap-only tuples (HOT): they stay within their page and write no index.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use tarsy_engine::ports::Sessions;

use crate::adapters::store::fixture::{new_id, numbered, open_session, received};
use crate::support::postgres::TestDatabase;

#[derive(QueryableByName, Debug, PartialEq)]
struct Updates {
    #[diesel(sql_type = BigInt)]
    all: i64,
    #[diesel(sql_type = BigInt)]
    in_place: i64,
}

fn prepare(head: &str, sql: &str) -> String {
    head.to_owned() + &numbered(sql)
}

/// The rows that the transaction of this connection has updated, and how many of these updates were HOT.
fn updates(connection: &mut PgConnection, table: &str) -> (i64, i64) {
    let row: Updates = diesel::sql_query(format!(
        "SELECT n_tup_upd AS all, n_tup_hot_upd AS in_place FROM pg_stat_xact_user_tables WHERE relname = '{table}'"
    ))
    .get_result(connection)
    .unwrap();
    (row.all, row.in_place)
}

#[tokio::test]
async fn a_delivery_a_sweep_and_a_claim_do_not_write_the_text_index() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (undecided, opened) = (new_id(), new_id());
    store.receive(received(undecided, b"one")).await.unwrap();
    open_session(&store, opened, "fp").await;
    database.execute("UPDATE alerts SET body = repeat('many words of a long body ', 6000) WHERE place = 'opened'");
    let mut connection = database.connection();
    connection
        .batch_execute(&prepare(
            "PREPARE receive (uuid, uuid, bigint, bytea, text, jsonb, bytea) AS ",
            include_str!("../../../../../crates/store/src/sql/receive.sql"),
        ))
        .unwrap();
    connection
        .batch_execute(&prepare(
            "PREPARE sweep (float8, bigint, float8) AS ",
            include_str!("../../../../../crates/store/src/sql/sweep.sql"),
        ))
        .unwrap();
    connection.batch_execute("BEGIN").unwrap();
    for (id, body) in [(undecided, "one".to_owned()), (opened, opened.to_string())] {
        for _ in 0..3 {
            let delivery = new_id();
            let receive = format!(
                "EXECUTE receive ('{id}', '{delivery}', 9, sha256('{body}'), 's', '{{}}', '{body}')"
            );
            connection.batch_execute(&receive).unwrap();
        }
    }
    assert_eq!(updates(&mut connection, "alerts"), (6, 6));
    connection
        .batch_execute("EXECUTE sweep (0, 100, 0)")
        .unwrap();
    assert_eq!(
        updates(&mut connection, "alerts"),
        (7, 7),
        "the sweep marks the undecided alert"
    );
    let claimed = format!("UPDATE alerts SET stream_sequence = 10 WHERE alert_id = '{opened}'");
    connection.batch_execute(&claimed).unwrap();
    assert_eq!(updates(&mut connection, "alerts"), (8, 8));
    connection.batch_execute("ROLLBACK").unwrap();
}

#[tokio::test]
async fn a_probe_writes_in_place_and_leaves_one_row() {
    let database = TestDatabase::create().await;
    let mut connection = database.connection();
    connection
        .batch_execute(&prepare(
            "PREPARE probe (smallint) AS ",
            include_str!("../../../../../crates/store/src/sql/probe.sql"),
        ))
        .unwrap();
    connection.batch_execute("BEGIN").unwrap();
    for _ in 0..10 {
        connection.batch_execute("EXECUTE probe (7)").unwrap();
    }
    assert_eq!(updates(&mut connection, "store_probes"), (9, 9));
    connection.batch_execute("COMMIT").unwrap();
    assert_eq!(database.number("SELECT count(*) FROM store_probes"), 1);
}
