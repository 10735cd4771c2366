//! The filter of the list of sessions, and what it reads.

use chrono::{DateTime, TimeDelta, Utc};
use tarsy_core::alert::Severity;
use tarsy_core::clock::Moment;
use tarsy_engine::ports::Sessions as _;
use tarsy_reports::{Facets, SessionFilter, SessionPage};
use tarsy_store::Store;
use uuid::Uuid;

use crate::support::postgres::TestDatabase;
use crate::support::wait::eventually;

/// Sessions whose ids end with their numbers, each a day older than the one before.
const SESSIONS: &str = "
    INSERT INTO alerts (alert_id, settled_at, last_delivery, stream_sequence, place, body_sha256, subject, headers, severity,
                        source, body)
    SELECT ('00000000-0000-7000-8000-' || lpad((10 - n)::text, 12, '0'))::uuid, now(), gen_random_uuid(), n, 'opened',
           sha256(''), 's', '{}', CASE WHEN n % 2 = 0 THEN 'high' ELSE 'low' END,
           CASE WHEN n < 4 THEN 'alertmanager' ELSE 'datadog' END, BODY
    FROM generate_series(1, 6) n;
    INSERT INTO alert_sessions (session_id, created_at, deadline_at, lease_expires_at, finished_at, settled_at, lease_period,
                                lease_token, worker_name, status, fingerprint, chain)
    SELECT alert_id, timestamptz '2026-11-20T12:00Z' - stream_sequence * interval '1 day', now(), now(), now(), now(),
           '30 s', alert_id, 'w', CASE WHEN stream_sequence = 6 THEN 'failed' ELSE 'completed' END, 'f' || stream_sequence,
           CASE WHEN stream_sequence = 5 THEN 'team' ELSE 'default' END
    FROM alerts";

/// The text of each alert.
const BODIES: &str = "CASE n
    WHEN 1 THEN E'Down  shop/a\nlabels:\n  app.kubernetes.io/name: shop\n  namespace: shop\n  pod: shop-7d9f-x2\n'
    WHEN 2 THEN E'Down\nlabels of all alerts:\n  namespace: shop-eu\n\nfiring alert 1 of 1\n  labels:\n    pod: a.b\n'
    WHEN 3 THEN E'Down\nannotations:\n  summary: the namespace: shop is down\n'
    WHEN 4 THEN E'CPU\ntags:\n  1: namespace:shop\n  2: env:prod\n'
    WHEN 5 THEN E'CPU\ntags:\n  1:\n    tag: namespace\n    value: shop\n  2:\n    tag: pod\n    value: axb\n'
    ELSE E'disk full host=db-3, namespace=\"shop\" {team=ops}' END";

async fn made() -> (TestDatabase, Store) {
    let database = TestDatabase::create().await;
    database.execute(&SESSIONS.replace("BODY", BODIES));
    let store = database.store();
    store.complete_words().await.unwrap();
    (database, store)
}

fn at(text: &str) -> Option<Moment> {
    Some(Moment::At(
        DateTime::parse_from_rfc3339(text).unwrap().to_utc(),
    ))
}

/// The numbers of the sessions that a filter selects, in the list, on the page and by their count.
async fn found(store: &Store, filter: SessionFilter) -> Vec<u128> {
    let filter = SessionFilter {
        limit: 20,
        ..filter
    };
    let number = |id: Uuid| 10 - (id.as_u128() & 0xff);
    let lines = store.list_sessions(filter.clone()).await.unwrap();
    let lines: Vec<u128> = lines
        .into_iter()
        .map(|line| number(line.session_id.0))
        .collect();
    let page = SessionPage {
        filter: filter.clone(),
        before: None,
    };
    let entries = store.session_page(page.clone()).await.unwrap();
    let entries: Vec<u128> = entries
        .into_iter()
        .map(|entry| number(entry.line.session_id.0))
        .collect();
    assert_eq!(entries, lines, "{filter:?}");
    assert_eq!(
        store.count_sessions(filter.clone()).await.unwrap(),
        lines.len() as i64,
        "{filter:?}"
    );
    if filter.statuses.is_empty() {
        let counts = store.status_counts(page).await.unwrap();
        assert_eq!(
            counts.completed + counts.failed,
            lines.len() as i64,
            "{filter:?}"
        );
    }
    lines
}

#[tokio::test]
async fn a_list_is_filtered_by_severity_chain_source_state_and_time() {
    use tarsy_engine::ports::RunStatus::{Completed, Failed, Running};
    let (_database, store) = made().await;
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let all = SessionFilter::default;
    for (filter, expected) in [
        (all(), vec![1, 2, 3, 4, 5, 6]),
        (
            SessionFilter {
                severities: vec![Severity::High],
                ..all()
            },
            vec![2, 4, 6],
        ),
        (
            SessionFilter {
                severities: vec![Severity::High, Severity::Low],
                ..all()
            },
            vec![1, 2, 3, 4, 5, 6],
        ),
        (
            SessionFilter {
                severities: vec![Severity::Critical],
                ..all()
            },
            vec![],
        ),
        (
            SessionFilter {
                chains: words(&["team"]),
                ..all()
            },
            vec![5],
        ),
        (
            SessionFilter {
                chains: words(&["team", "default", "no"]),
                ..all()
            },
            vec![1, 2, 3, 4, 5, 6],
        ),
        (
            SessionFilter {
                sources: words(&["datadog"]),
                severities: vec![Severity::Low],
                ..all()
            },
            vec![5],
        ),
        (
            SessionFilter {
                statuses: vec![Failed],
                ..all()
            },
            vec![6],
        ),
        (
            SessionFilter {
                statuses: vec![Failed, Completed, Running],
                ..all()
            },
            vec![1, 2, 3, 4, 5, 6],
        ),
        (
            SessionFilter {
                since: at("2026-11-17T12:00:00Z"),
                ..all()
            },
            vec![1, 2, 3],
        ),
        (
            SessionFilter {
                until: at("2026-11-17T12:00:00Z"),
                ..all()
            },
            vec![4, 5, 6],
        ),
        (
            SessionFilter {
                since: at("2026-11-16T12:00:00Z"),
                until: at("2026-11-17T12:00:01Z"),
                ..all()
            },
            vec![3, 4],
        ),
        (
            SessionFilter {
                since: Some(Moment::Ago(
                    (Utc::now() - day("2026-11-18")).to_std().unwrap(),
                )),
                ..all()
            },
            vec![1, 2],
        ),
        (
            SessionFilter {
                until: Some(Moment::Ago(
                    (Utc::now() - day("2026-11-18")).to_std().unwrap(),
                )),
                ..all()
            },
            vec![3, 4, 5, 6],
        ),
    ] {
        assert_eq!(found(&store, filter.clone()).await, expected, "{filter:?}");
    }
    let facets = Facets {
        chains: words(&["default", "team"]),
        sources: words(&["alertmanager", "datadog"]),
    };
    assert_eq!(store.facets().await.unwrap(), facets);
}

/// Midnight of a day.
fn day(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(&format!("{text}T00:00:00Z"))
        .unwrap()
        .to_utc()
        + TimeDelta::zero()
}

#[tokio::test]
async fn a_label_is_found_in_each_form_in_which_alerts_have_it() {
    let (_database, store) = made().await;
    for (labels, expected) in [
        (&["namespace=shop"][..], vec![1, 4, 5, 6]),
        (&["namespace=shop-eu"], vec![2]),
        (&["namespace=sho"], vec![]),
        (&["app.kubernetes.io/name=shop"], vec![1]),
        (&["pod=shop-7d9f-x2"], vec![1]),
        (&["pod=a.b"], vec![2]),
        (&["pod=axb"], vec![5]),
        (&["env=prod", "namespace=shop"], vec![4]),
        (&["host=db-3", "team=ops"], vec![6]),
        (&["namespace=.*"], vec![]),
        (&["namespace=shop) | (x"], vec![]),
        (&["namespace=shop'"], vec![]),
    ] {
        let labels = labels.iter().map(|label| label.parse().unwrap()).collect();
        let filter = SessionFilter {
            labels,
            ..SessionFilter::default()
        };
        assert_eq!(
            found(&store, filter.clone()).await,
            expected,
            "{:?}",
            filter.labels
        );
    }
}

#[tokio::test]
async fn a_rare_word_is_read_by_its_index_in_a_long_history() {
    let database = TestDatabase::create().await;
    database.execute(super::plans::HISTORY);
    database.execute(
        "UPDATE alerts SET source = 'alertmanager'; INSERT INTO alerts SELECT (jsonb_populate_record(a, jsonb_build_object(
         'alert_id', gen_random_uuid(), 'source', 'rare', 'severity', 'low'))).* FROM alerts a WHERE place = 'opened' LIMIT 3;
         INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, finished_at, settled_at, lease_period, lease_token,
         worker_name, status, fingerprint, chain) SELECT alert_id, now(), now(), now(), now(), '30 s', alert_id, 'w', 'completed',
         'rare' || alert_id, 'rare' FROM alerts WHERE source = 'rare'; ANALYZE alerts, alert_sessions",
    );
    let store = database.store();
    let all = SessionFilter {
        limit: 50,
        ..SessionFilter::default()
    };
    for filter in [
        SessionFilter {
            severities: vec![Severity::Low],
            ..all.clone()
        },
        SessionFilter {
            sources: vec!["rare".to_owned()],
            ..all.clone()
        },
        SessionFilter {
            chains: vec!["rare".to_owned()],
            ..all.clone()
        },
    ] {
        let page = SessionPage {
            filter,
            before: None,
        };
        assert_eq!(store.session_page(page).await.unwrap().len(), 3);
    }
    store.facets().await.unwrap();
    // A server process reports its statistics when it ends.
    drop(store);
    for (index, scans) in [
        ("alert_sessions_chain", 2),
        ("alerts_severity", 1),
        ("alerts_source", 3),
    ] {
        let used = format!(
            "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes WHERE indexrelname = '{index}'"
        );
        eventually(index, async || database.number(&used) >= scans).await;
    }
}
