//! Retention in large tables: how fast old rows are deleted, and what running investigations notice of it.
//! The suite fills a server with ten thousand events, the proof with twenty thousand.
//! `TARSY_LOAD_EVENTS=10000000` fills a server with ten million events and takes about half an hour and 15 GB.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tarsy_config::Retention;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Journal as _, Pruned, RunStatus, Sessions as _, Sweep};
use tarsy_store::{ConnectOptions, MIGRATION_TIMEOUT, SessionFilter, Store, migrate};
use tokio::task::JoinSet;

use crate::adapters::store::fixture::{
    checkpoint, completed, new_id, open_session, running_session, settled,
};
use crate::support::figures::{Figures, by_depth};
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;

const EVENTS: u64 = 10_000;
const EVENTS_IN_PROOF: u64 = 20_000;
const EVENTS_OF_A_SESSION: u64 = 20;
const DAY: Duration = Duration::from_secs(86_400);
/// Batches of workers and of `tarsy prune`.
const LIMIT: u32 = 500;
const WRITERS: usize = 8;
const PAUSE: Duration = Duration::from_millis(40);
const FILL: &str = include_str!("../../../fixtures/retention/fill.sql");
const PARTITIONS: &str = include_str!("../../../fixtures/retention/partitions.sql");
const SIZES: &str = "SELECT string_agg(relname || ' ' || pg_size_pretty(pg_total_relation_size(oid)), ', ' ORDER BY pg_total_relation_size(oid) DESC) \
    FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_total_relation_size(oid) > 1000000";

struct Scale {
    database: TestDatabase,
    store: Store,
    /// The duration of each part of the measurement.
    part: Duration,
    _server: PostgresServer,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_rows_are_deleted_while_investigations_write() {
    let events = by_depth("TARSY_LOAD_EVENTS", EVENTS, EVENTS_IN_PROOF);
    let scale = filled(events).await;
    scale.lookups().await;
    // The time of measuring.
    let part = tokio::time::sleep(scale.part);
    let quiet = scale.checkpoints_during(part).await;
    println!("checkpoints, nothing is deleted: {}", shown(&quiet));

    let entries = Retention {
        entries: Some(180 * DAY),
        ..Retention::default()
    };
    let sessions = Retention {
        sessions: Some(270 * DAY),
        ..Retention::default()
    };
    for (name, retention) in [
        ("entries of sessions that stay", entries),
        ("sessions", sessions),
    ] {
        let writes = scale.checkpoints_during(scale.prune(name, retention)).await;
        println!("checkpoints meanwhile: {}", shown(&writes));
    }
    let vacuum = Instant::now();
    println!("before vacuum: {}", scale.database.text(SIZES));
    for table in [
        "timeline_events",
        "entries",
        "tool_interactions",
        "llm_interactions",
        "alert_sessions",
        "alerts",
    ] {
        scale.database.execute(&format!("VACUUM (ANALYZE) {table}"));
    }
    println!(
        "vacuum in {:.1?}: {}",
        vacuum.elapsed(),
        scale.database.text(SIZES)
    );
    scale.lookups().await;
    scale.partitions();
    let running = "SELECT count(*) FROM alert_sessions s WHERE status = 'running' AND event_seq <> \
        (SELECT count(*) FROM timeline_events t WHERE t.session_id = s.session_id)";
    assert_eq!(
        scale.database.number(running),
        0,
        "no event of a running session was deleted"
    );
    if events <= EVENTS_IN_PROOF {
        let left =
            "SELECT count(*) FROM alert_sessions WHERE settled_at < now() - interval '270 d'";
        assert_eq!(scale.database.number(left), 0);
        let kept = "SELECT count(*) FROM entries e JOIN alert_sessions s USING (session_id) WHERE s.settled_at < now() - interval '180 d'";
        assert_eq!(scale.database.number(kept), 0);
        let young = "SELECT count(*) FROM alert_sessions WHERE settled_at >= now() - interval '270 d' AND worker_name = 'w'";
        let days = "SELECT count(*) FROM timeline_events WHERE event_type = 'tool_result'";
        assert_eq!(
            scale.database.number(days),
            20 * scale.database.number(young),
            "young sessions are whole"
        );
    }
}

/// A server with the settings of a small production machine, with this many events.
async fn filled(events: u64) -> Scale {
    let server = PostgresServer::start_with(&["shared_buffers=512MB", "max_wal_size=4GB"]).await;
    let database = TestDatabase::empty_on(server.url());
    migrate(&ConnectOptions::new(database.url()), MIGRATION_TIMEOUT)
        .await
        .unwrap();
    let began = Instant::now();
    database.execute(&format!(
        "SET fill.sessions = {}; {FILL}; ANALYZE",
        events / EVENTS_OF_A_SESSION
    ));
    println!(
        "filled with {events} events in {:.1?}: {}",
        began.elapsed(),
        database.text(SIZES)
    );
    let store = database.store();
    let part = Duration::from_secs(if events <= EVENTS_IN_PROOF { 2 } else { 60 });
    Scale {
        database,
        store,
        part,
        _server: server,
    }
}

/// The quantiles of short durations.
fn shown(figures: &Figures) -> String {
    let ms = |part| figures.quantile(part).as_secs_f64() * 1000.0;
    format!(
        "p50 {:.1} ms, p99 {:.1} ms, worst {:.1} ms of {}",
        ms(0.5),
        ms(0.99),
        ms(1.0),
        figures.count()
    )
}

async fn timed<T>(figures: &mut Figures, call: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let value = call.await;
    figures.add(began.elapsed());
    value
}

impl Scale {
    /// Times what people and workers look up.
    async fn lookups(&self) {
        let [mut list, mut failed, mut show, mut open, mut sweep] =
            std::array::from_fn(|_| Figures::default());
        let some = "SELECT session_id FROM alert_sessions WHERE worker_name = 'w' ORDER BY session_id DESC LIMIT 1";
        let whole: SessionId = SessionId(
            self.database
                .text(&format!("({some})::text"))
                .parse()
                .unwrap(),
        );
        let sweeping = Sweep {
            interval: Duration::from_secs(15),
            min_age: Duration::from_secs(60),
            limit: 100,
        };
        for round in 0..20 {
            let filter = SessionFilter {
                limit: 20,
                ..SessionFilter::default()
            };
            timed(&mut list, self.store.list_sessions(filter))
                .await
                .unwrap();
            let filter = SessionFilter {
                limit: 20,
                statuses: vec![RunStatus::Failed],
                ..SessionFilter::default()
            };
            timed(&mut failed, self.store.list_sessions(filter))
                .await
                .unwrap();
            timed(&mut show, self.store.report(whole))
                .await
                .unwrap()
                .unwrap();
            let id = new_id();
            let opened = timed(
                &mut open,
                open_session(&self.store, id, &format!("fp-{round}")),
            )
            .await;
            self.store.finish(opened.lease, completed()).await.unwrap();
            settled(&self.store, id).await.unwrap();
            timed(&mut sweep, self.store.sweep(sweeping)).await.unwrap();
        }
        for (name, figures) in [
            ("list", list),
            ("list --status failed", failed),
            ("show", show),
            ("receive and open", open),
            ("sweep", sweep),
        ] {
            println!("  {name}: {}", shown(&figures));
        }
    }

    /// The times of the checkpoints of running investigations, while `work` runs.
    async fn checkpoints_during(&self, work: impl Future<Output = ()>) -> Figures {
        let done = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for _ in 0..WRITERS {
            let (store, done) = (self.store.clone(), Arc::clone(&done));
            writers.spawn(async move {
                let (lease, executions) = running_session(&store, 1).await;
                let mut figures = Vec::new();
                for number in 1.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let began = Instant::now();
                    store
                        .append(lease, checkpoint(executions[0], number))
                        .await
                        .unwrap();
                    figures.push(began.elapsed());
                    tokio::time::sleep(PAUSE).await; // the pace of the load
                }
                figures
            });
        }
        work.await;
        done.store(true, Ordering::Relaxed);
        writers.join_all().await.into_iter().flatten().collect()
    }

    /// Deletes in batches without a pause, for the time of a part at most, or in the suite until nothing is left.
    async fn prune(&self, name: &str, retention: Retention) {
        let (began, mut all, mut batches) = (Instant::now(), Pruned::default(), Vec::new());
        while batches.is_empty()
            || began.elapsed() < self.part
            || self.part < Duration::from_secs(10)
        {
            let batch = Instant::now();
            let some = self.store.prune_some(retention, LIMIT).await.unwrap();
            if some.rows.is_empty() {
                break;
            }
            batches.push(batch.elapsed());
            all.add(&some);
        }
        let (count, rows) = (batches.len(), all.rows.values().sum::<u64>());
        let tenth = (count / 10).max(1);
        let mean = |some: &[Duration]| {
            some.iter().sum::<Duration>().as_secs_f64() * 1000.0 / some.len() as f64
        };
        println!(
            "{name}: {rows} rows in {:.1?}, {:.0} rows/s, {count} batches; the first tenth of them took {:.1} ms each, the last {:.1} ms; {:?}",
            began.elapsed(),
            rows as f64 / began.elapsed().as_secs_f64(),
            mean(&batches[..tenth]),
            mean(&batches[count - tenth..]),
            all.rows
        );
    }

    /// Measures the alternative: the same events in a table with a partition for each month.
    fn partitions(&self) {
        let began = Instant::now();
        self.database
            .execute(&format!("SET statement_timeout = 0; {PARTITIONS}"));
        println!(
            "the events are copied into partitions in {:.1?}",
            began.elapsed()
        );
        for schema in ["public", "monthly"] {
            let began = Instant::now();
            self.database.execute(&format!(
                "DO $$ DECLARE id uuid; BEGIN FOR n IN 1..2000 LOOP \
                 id := (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text || '{schema}'), 4, 15))::uuid; \
                 INSERT INTO {schema}.timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content) \
                 SELECT id, now(), i, 1, 'llm_thinking', 'completed', 'x' FROM generate_series(1, 3) i; \
                 PERFORM count(*) FROM {schema}.timeline_events WHERE session_id = id; END LOOP; \
                 DELETE FROM {schema}.timeline_events WHERE content = 'x' AND created_at = now(); END $$"
            ));
            println!(
                "  {schema}: an insert of three events and their lookup, 2000 times: {:.1?}",
                began.elapsed()
            );
        }
        let fullest = "SELECT relname FROM pg_class WHERE relname LIKE 'part\\_%' AND relkind = 'r' ORDER BY relpages DESC LIMIT 1";
        let fullest = self.database.text(fullest);
        let rows = self
            .database
            .number(&format!("SELECT count(*) FROM monthly.{fullest}"));
        let began = Instant::now();
        self.database
            .execute(&format!("DROP TABLE monthly.{fullest}"));
        println!(
            "  a partition of {rows} events is dropped in {:.1?}",
            began.elapsed()
        );
    }
}
