//! The statements of an investigation by kind, and its new connections, from the log of the server; and their time, as
//! the server counts it itself.

use crate::line;
use crate::rig::{AT_ONCE, Rig};
use crate::support::postgres_server::statements::{LOGGED, by_kind, connections};

const WARM_UP: usize = 20;
const COUNT: usize = 100;
const SLOTS: u32 = 64;
const MANY: usize = 1_000;
/// The server counts statements with their times.
const COUNTED: [&str; 1] = ["shared_preload_libraries=pg_stat_statements"];

pub(crate) async fn measure() {
    let rig = Rig::start(&AT_ONCE, &LOGGED).await;
    let (worker, _) = rig.worker("w1", 1).await;
    rig.investigate(WARM_UP).await;
    let before = rig.postgres.log().len();
    rig.investigate(COUNT).await;
    let log = rig.postgres.log();
    let kinds = by_kind(&log[before..]);
    let sum: usize = kinds.values().sum();
    line(
        "statements of an investigation",
        format_args!("{:.2}", sum as f64 / COUNT as f64),
    );
    for (kind, count) in &kinds {
        line(
            &format!("  {kind}"),
            format_args!("{:.2}", *count as f64 / COUNT as f64),
        );
    }
    drop(worker);
    let (_worker, _) = rig.worker("w2", SLOTS).await;
    rig.investigate(MANY / 5).await;
    let before = rig.postgres.log().len();
    rig.investigate(MANY).await;
    let log = rig.postgres.log();
    let [opened, _] = connections(&log[before..]);
    line(
        &format!("new connections of an investigation, {SLOTS} slots"),
        format_args!("{:.3}", opened as f64 / MANY as f64),
    );
}

/// The time of the statements alone: without the client, the network, parsing and the commit.
pub(crate) async fn measure_time() {
    let rig = Rig::start(&AT_ONCE, &COUNTED).await;
    let database = &rig.system.database;
    database.execute("CREATE EXTENSION pg_stat_statements");
    let (_worker, _) = rig.worker("w1", SLOTS).await;
    rig.investigate(MANY / 5).await;
    database.execute("SELECT pg_stat_statements_reset()");
    rig.investigate(MANY).await;
    // The statements of a worker begin with a comment; those of the measurement do not.
    let sql = "SELECT sum(total_exec_time)::text FROM pg_stat_statements WHERE query LIKE '--%'";
    let all: f64 = database.text(sql).parse().unwrap();
    line(
        "time of the statements of an investigation alone",
        format_args!("{:.2} ms", all / MANY as f64),
    );
}
