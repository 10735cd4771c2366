//! The time of the reads of earlier investigations among many: 120,000 in `./dev prove`, 6,000 in the suite.

use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel::sql_types::Text;

use crate::adapters::store::fixture::numbered;
use crate::support::figures::{Figures, by_depth};
use crate::support::postgres::TestDatabase;

const SAME: &str = include_str!("../../../../../crates/store/src/sql/past_same.sql");
const WORDS: &str = include_str!("../../../../../crates/store/src/sql/past_words.sql");
/// The longest time of a statement at the server, by median.
const MAX_SAME: Duration = Duration::from_millis(2);
const MAX_THREE_WORDS: Duration = Duration::from_millis(60);
const ROUNDS: usize = 11;

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    text: String,
}

/// Sessions of the last sixty days, some sixty for each fingerprint, with 214 words each.
fn fill(database: &TestDatabase, sessions: u32) {
    database.execute("DROP INDEX session_words_words");
    database.execute(&format!(
        "INSERT INTO alerts (alert_id, settled_at, last_delivery, stream_sequence, place, body_sha256, subject, headers,
                             title, alert_type, severity, body)
         SELECT gen_random_uuid(), now(), gen_random_uuid(), n, 'opened', sha256(''), 's', '{{}}', 'Disk full', 'disk',
                'high', 'the disk is full'
         FROM generate_series(1, {sessions}) n;
         INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, finished_at, settled_at, lease_period,
                                     lease_token, worker_name, status, fingerprint, chain, final_analysis,
                                     executive_summary)
         SELECT alert_id, now(), now(), now() - stream_sequence * interval '60 days' / {sessions}, now(), '30 s',
                alert_id, 'w', 'completed', 'fp-' || stream_sequence % ({sessions} / 60), 'c' || stream_sequence % 4,
                repeat('a', 2000), 'Cause: ' || repeat('the disk is full ', 10)
         FROM alerts;
         INSERT INTO session_words (session_id, words, has_end)
         SELECT alert_id, array_to_tsvector(array_cat(
                  ARRAY['every', 'rare' || n % ({sessions} / 10), 'service' || n % 40, 'space' || n % 5, 'error' || n % 3],
                  ARRAY(SELECT 'w' || (n * 31 + i * 7919) % 50000 FROM generate_series(1, 209) i))), true
         FROM (SELECT alert_id, stream_sequence AS n FROM alerts) a;
         CREATE INDEX session_words_words ON session_words USING gin (words)"
    ));
    database.execute("VACUUM (ANALYZE) alerts");
    database.execute("VACUUM (ANALYZE) alert_sessions");
    database.execute("VACUUM (ANALYZE) session_words");
}

/// Statements that one connection has prepared, as a worker has.
struct Prepared {
    connection: PgConnection,
}

impl Prepared {
    fn new(database: &TestDatabase) -> Self {
        let mut connection = database.connection();
        for (name, types, sql) in [
            ("same", "text, uuid, timestamptz, integer, bigint", SAME),
            ("words", "uuid, text, integer, boolean, bigint", WORDS),
        ] {
            diesel::sql_query(format!("PREPARE {name} ({types}) AS {}", numbered(sql)))
                .execute(&mut connection)
                .unwrap();
        }
        Self { connection }
    }

    /// The plan, with the time of its execution at the server.
    fn explain(&mut self, call: &str) -> String {
        let lines: Vec<Line> =
            diesel::sql_query(format!("EXPLAIN (ANALYZE, TIMING OFF) EXECUTE {call}"))
                .load(&mut self.connection)
                .unwrap();
        let lines: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        lines.join("\n")
    }

    /// The times of several executions; the plan of each has to use `index` and read no table whole.
    fn measure(&mut self, call: &str, index: &str) -> Figures {
        (0..ROUNDS)
            .map(|_| {
                let plan = self.explain(call);
                assert!(plan.contains(index), "no {index} in\n{plan}");
                assert!(!plan.contains("Seq Scan"), "{plan}");
                let time = plan.split_once("Execution Time: ").unwrap().1;
                let ms: f64 = time.split_once(" ms").unwrap().0.parse().unwrap();
                Duration::from_secs_f64(ms / 1_000.0)
            })
            .collect()
    }
}

#[tokio::test]
async fn past_at_scale_is_read_by_indexes_within_milliseconds() {
    let sessions = by_depth("TARSY_PAST_SESSIONS", 6_000, 120_000);
    let database = TestDatabase::create().await;
    let began = Instant::now();
    fill(&database, sessions);
    println!(
        "{sessions} sessions made in {:.0} s",
        began.elapsed().as_secs_f64()
    );
    let id = database.text(
        "SELECT session_id::text FROM alert_sessions WHERE fingerprint = 'fp-7' ORDER BY finished_at DESC LIMIT 1",
    );
    let mut prepared = Prepared::new(&database);
    let mut figures = |what: &str, call: &str, index: &str| {
        let times = prepared.measure(call, index);
        let median = times.median();
        println!(
            "{what}: median {:.2} ms, worst {:.2} ms of {ROUNDS}",
            median.as_secs_f64() * 1_000.0,
            times.worst().as_secs_f64() * 1_000.0
        );
        median
    };
    let same = figures(
        "the same alert, of a session",
        &format!("same (NULL, '{id}', NULL, 30, 3)"),
        "alert_sessions_completed",
    );
    let admitted = figures(
        "the same alert, at its admission",
        &format!("same ('fp-7', '{id}', NULL, 30, 3)"),
        "alert_sessions_completed",
    );
    let words =
        |text: &str, is_of_all: bool| format!("words ('{id}', '{text}', 365, {is_of_all}, 5)");
    let by_words = "session_words_words";
    figures("a rare word", &words("''rare7''", true), by_words);
    let three = figures(
        "three words",
        &words("''service7'' & ''space2'' & ''error1''", true),
        by_words,
    );
    let of_chain = figures(
        "three words of the chain",
        &words("''service7'' & ''space2'' & ''error1''", false),
        by_words,
    );
    assert!(
        same <= MAX_SAME && admitted <= MAX_SAME,
        "{same:?} {admitted:?}"
    );
    assert!(
        three <= MAX_THREE_WORDS && of_chain <= MAX_THREE_WORDS,
        "{three:?} {of_chain:?}"
    );
}
