//! The words by which sessions are found: written with a session, and given to those of earlier versions.

use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Journal, SessionEnd, Sessions, Worded};
use tarsy_reports::SessionFilter;
use tarsy_store::Store;

use crate::adapters::store::fixture::{completed, investigated, new_id, open_session, settled};
use crate::support::postgres::TestDatabase;

/// The sessions that a search finds, the newest first.
async fn found(store: &Store, search: &str) -> Vec<SessionId> {
    let filter = SessionFilter {
        limit: 500,
        search: Some(search.to_owned()),
        ..SessionFilter::default()
    };
    store
        .list_sessions(filter)
        .await
        .unwrap()
        .into_iter()
        .map(|line| line.session_id)
        .collect()
}

fn analysis(text: &str) -> SessionEnd {
    SessionEnd {
        final_analysis: Some(text.to_owned()),
        ..completed()
    }
}

#[tokio::test]
async fn a_session_is_found_by_its_alert_at_once_and_by_its_analysis_when_it_ends() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let running = open_session(&store, new_id(), "fp-1").await.lease;
    let other = investigated(
        &store,
        "fp-2",
        Severity::High,
        analysis("It was `logrotate`, not the disk of DB-7."),
    )
    .await;
    let id = running.session_id;
    for (search, expected) in [
        ("full", vec![other, id]),
        ("DISK", vec![other, id]),
        ("logrotate", vec![other]),
        ("disk -logrotate", vec![id]),
        ("db-7 or nothing", vec![other]),
        ("\"full disk\" logrotate", vec![other]),
        ("db-1", vec![other, id]),
        ("db-9", vec![]),
        ("!", vec![]),
        ("'", vec![]),
    ] {
        assert_eq!(found(&store, search).await, expected, "{search}");
    }
    store
        .finish(running, analysis("logrotate, too"))
        .await
        .unwrap();
    assert_eq!(found(&store, "logrotate").await, [other, id]);
    assert!(database.holds("(SELECT bool_and(has_end) FROM session_words)"));
}

#[tokio::test]
async fn sessions_of_earlier_versions_get_their_words_the_newest_first() {
    let database = TestDatabase::create().await;
    let store = database.store();
    database.execute(
        "INSERT INTO alerts (alert_id, settled_at, last_delivery, stream_sequence, place, body_sha256, subject, headers, \
                             title, alert_type, body) \
         SELECT gen_random_uuid(), now() - n * interval '1 s', gen_random_uuid(), n, 'opened', sha256(''), 's', '{}', \
                'Disk', 'kube', 'old' || n FROM generate_series(1, 450) n; \
         INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, finished_at, settled_at, lease_period, \
                                     lease_token, worker_name, status, fingerprint, chain, final_analysis) \
         SELECT alert_id, now(), now(), now(), settled_at, '30 s', alert_id, 'w', 'completed', stream_sequence, 'c', \
                'cause' || stream_sequence FROM alerts",
    );
    let counts = async |words: [&str; 3]| {
        let [a, b, c] = words;
        [
            found(&store, a).await.len(),
            found(&store, b).await.len(),
            found(&store, c).await.len(),
        ]
    };
    assert_eq!(
        store.complete_words().await,
        Ok(Worded {
            sessions: 200,
            is_all: false
        })
    );
    assert_eq!(
        counts(["disk kube", "old1 cause1", "old201"]).await,
        [200, 1, 0]
    );
    // A worker of an earlier version continues beside this one.
    let late = investigated(&store, "late", Severity::High, analysis("the newest")).await;
    settled(&store, late).await.unwrap();
    database.execute(&format!(
        "DELETE FROM session_words WHERE session_id = '{late}'"
    ));
    assert_eq!(
        store.complete_words().await,
        Ok(Worded {
            sessions: 201,
            is_all: false
        })
    );
    assert_eq!(found(&store, "newest").await, [late]);
    assert_eq!(
        store.complete_words().await,
        Ok(Worded {
            sessions: 50,
            is_all: true
        })
    );
    assert_eq!(
        counts(["disk kube", "old400 cause400", "old201"]).await,
        [450, 1, 1]
    );
    assert_eq!(
        store.complete_words().await,
        Ok(Worded {
            sessions: 0,
            is_all: true
        })
    );
}

#[tokio::test]
async fn a_session_that_workers_of_two_versions_share_gets_all_its_words() {
    let database = TestDatabase::create().await;
    let store = database.store();
    // The older worker opens it and this one ends it; or this one opens it and the older one ends it.
    let opened_by_older = open_session(&store, new_id(), "fp-1").await.lease;
    database.execute(&format!(
        "DELETE FROM session_words WHERE session_id = '{}'",
        opened_by_older.session_id
    ));
    store
        .finish(opened_by_older, analysis("the first cause"))
        .await
        .unwrap();
    let ended_by_older = open_session(&store, new_id(), "fp-2")
        .await
        .lease
        .session_id;
    database.execute(&format!(
        "UPDATE alert_sessions SET status = 'completed', finished_at = now(), final_analysis = 'the second cause' \
         WHERE session_id = '{ended_by_older}'"
    ));
    assert_eq!(found(&store, "cause").await, []);
    let ids = [ended_by_older, opened_by_older.session_id];
    for id in ids {
        settled(&store, id).await.unwrap();
    }
    assert_eq!(
        store.complete_words().await,
        Ok(Worded {
            sessions: 2,
            is_all: true
        })
    );
    assert_eq!(found(&store, "cause disk").await, ids);
}
