//! Finding a session by a part of its id, and listing sessions, among many alerts.

use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::Text;
use tarsy_core::clock::Moment;
use tarsy_core::ids::SessionId;
use tarsy_store::{IdMatch, SessionFilter, Store};
use uuid::Uuid;

use super::fixture::numbered;
use crate::support::postgres::TestDatabase;
use crate::support::wait::eventually;

const COUNT: i64 = 20_000;

/// Settled investigations, one for each past minute, with ids of their time.
const MANY: &str = "
    INSERT INTO alerts (alert_id, settled_at, received_at, last_delivery, stream_sequence, place, body_sha256, subject,
                        headers, severity, body)
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' ||
            substr(md5(n::text), 4, 15))::uuid,
           at, at, gen_random_uuid(), n, 'opened', sha256(''), 's', '{}', 'high', 'b'
    FROM (SELECT n, now() - make_interval(mins => n) AS at FROM generate_series(1, 20000) n) t;
    INSERT INTO alert_sessions (session_id, created_at, deadline_at, lease_expires_at, finished_at, settled_at,
                                lease_period, lease_token, worker_name, status, fingerprint, chain, final_analysis)
    SELECT alert_id, received_at, now(), now(), received_at, received_at, '30 s', alert_id, 'w', 'completed',
           'fp-' || stream_sequence, 'c', 'a'
    FROM alerts;
    ANALYZE alerts, alert_sessions";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    text: String,
}

#[tokio::test]
async fn a_session_is_found_by_either_end_of_its_id_without_a_full_scan() {
    let database = TestDatabase::create().await;
    database.execute(MANY);
    let store = database.store();
    let id = database.text("SELECT alert_id::text FROM alerts WHERE stream_sequence = 777");
    let wanted = SessionId::parse(&id).unwrap();
    let digits = id.replace('-', "");
    let end = |length: usize| digits[digits.len() - length..].to_owned();
    for part in [
        end(6),
        end(8),
        end(12),
        end(13),
        end(20),
        digits[..20].to_owned(),
        digits.to_uppercase(),
        id.clone(),
    ] {
        assert_eq!(
            store.resolve(&part).await.unwrap(),
            IdMatch::One(wanted),
            "{part}"
        );
    }
    assert_eq!(
        store.resolve(&format!("0{digits}")).await.unwrap(),
        IdMatch::None
    );
    assert_eq!(store.resolve("ffffffffffff").await.unwrap(), IdMatch::None);
    assert_eq!(store.resolve(&digits[..5]).await.unwrap(), IdMatch::Invalid);
    let IdMatch::Many(many) = store.resolve(&digits[..6]).await.unwrap() else {
        panic!("several ids begin with these digits")
    };
    assert!(
        many.len() == 10 && many.is_sorted_by(|a, b| a > b),
        "{many:?}"
    );

    for mode in ["force_generic_plan", "force_custom_plan"] {
        let mut connection = database.connection();
        let mut run = |sql: String| diesel::sql_query(sql).execute(&mut connection).unwrap();
        run(format!("SET plan_cache_mode = {mode}"));
        let sql = numbered(include_str!("../../../../crates/store/src/sql/resolve.sql"));
        run(format!("PREPARE s (text, text, text, uuid, uuid) AS {sql}"));
        let (first, last) = (Uuid::nil(), Uuid::nil());
        let lines: Vec<Line> = diesel::sql_query(format!(
            "EXPLAIN EXECUTE s ('abcdef', 'abcdefg', '%fedcba', '{first}', '{last}')"
        ))
        .load(&mut connection)
        .unwrap();
        let plan = lines
            .into_iter()
            .map(|line| line.text)
            .collect::<Vec<_>>()
            .join("\n");
        assert!(!plan.contains("Seq Scan"), "{plan}");
        assert!(
            plan.contains("alerts_id_end") && plan.contains("alerts_pkey"),
            "{plan}"
        );
    }
}

#[tokio::test]
async fn a_list_since_a_time_reads_only_sessions_opened_since() {
    let database = TestDatabase::create().await;
    database.execute(MANY);
    let reader: Store = database.store();
    let filter = SessionFilter {
        limit: 100,
        since: Some(Moment::Ago(Duration::from_secs(630))),
        ..SessionFilter::default()
    };
    let listed = reader.list_sessions(filter).await.unwrap();
    assert_eq!(listed.len(), 10);
    assert!(listed.is_sorted_by(|a, b| a.session_id > b.session_id));
    // A server process reports its statistics when it ends.
    drop(reader);
    let read = |what: &str| {
        format!(
            "SELECT coalesce(sum({what}), 0)::bigint FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid) \
             WHERE t.relname = 'alert_sessions' AND i.indexrelname IN ('alert_sessions_created', 'alert_sessions_pkey')"
        )
    };
    eventually("the figures of the list", async || {
        database.number(&read("idx_tup_read")) >= 10
    })
    .await;
    let (by_index, by_scan) = (
        database.number(&read("idx_tup_read")),
        database.number(&read("seq_tup_read")),
    );
    assert!(
        by_index < 100 && by_scan == 0,
        "{by_index} and {by_scan} of {COUNT}"
    );
}
