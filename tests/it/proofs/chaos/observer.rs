//! Polls the owners and the progress of the sessions, from which the recoveries are measured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Integer, Text, Uuid as SqlUuid};
use tokio::sync::watch;
use uuid::Uuid;

const BETWEEN_LOOKS: Duration = Duration::from_millis(150);
const QUERY: &str = "
  SELECT s.session_id, s.worker_name, s.lease_epoch, s.event_seq, s.lease_owner IS NOT NULL AS owned,
         s.status = 'running' AS running, s.status = 'completed' AND s.parent_id IS NULL AS may_be_asked,
         coalesce((SELECT sum(e.iteration) FROM agent_executions e WHERE e.session_id = s.session_id), 0)::bigint AS answers
  FROM alert_sessions s WHERE s.status = 'running' OR s.finished_at > clock_timestamp() - interval '20 s'";

/// One session at one moment.
#[derive(Clone, Debug, PartialEq, Eq, QueryableByName)]
pub(super) struct SessionProgress {
    #[diesel(sql_type = SqlUuid)]
    session_id: Uuid,
    #[diesel(sql_type = Text)]
    pub(super) worker_name: String,
    #[diesel(sql_type = Integer)]
    pub(super) lease_epoch: i32,
    #[diesel(sql_type = Integer)]
    pub(super) event_seq: i32,
    #[diesel(sql_type = Bool)]
    pub(super) owned: bool,
    #[diesel(sql_type = Bool)]
    pub(super) running: bool,
    #[diesel(sql_type = Bool)]
    pub(super) may_be_asked: bool,
    #[diesel(sql_type = BigInt)]
    pub(super) answers: i64,
}

/// All sessions that are running or have just ended.
pub(super) type Snapshot = Arc<BTreeMap<Uuid, SessionProgress>>;

/// Polls until the value is dropped.
#[derive(Debug)]
pub(super) struct Observer {
    latest: watch::Receiver<Snapshot>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    pub(super) fn start(database_url: &str) -> Self {
        let url = format!("{database_url}?connect_timeout=2");
        let (sender, latest) = watch::channel(Snapshot::default());
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut connection = None;
            while !end.load(Ordering::SeqCst) {
                connection = connection.or_else(|| PgConnection::establish(&url).ok());
                match connection
                    .as_mut()
                    .map(|connection| diesel::sql_query(QUERY).load::<SessionProgress>(connection))
                {
                    Some(Ok(rows)) => {
                        sender.send_replace(Arc::new(
                            rows.into_iter().map(|row| (row.session_id, row)).collect(),
                        ));
                    }
                    // The database is unavailable: poll again with a new connection.
                    Some(Err(_)) | None => connection = None,
                }
                #[allow(
                    clippy::disallowed_methods,
                    reason = "a thread of its own: pacing of looks"
                )]
                std::thread::sleep(BETWEEN_LOOKS); // pacing of looks
            }
        });
        Self {
            latest,
            ended,
            thread: Some(thread),
        }
    }

    pub(super) fn latest(&self) -> Snapshot {
        self.latest.borrow().clone()
    }

    /// Returns when a snapshot taken from now on satisfies the condition.
    pub(super) async fn until(&self, holds: impl Fn(&BTreeMap<Uuid, SessionProgress>) -> bool) {
        let mut held = false;
        while !held {
            self.look(|now| held = holds(now)).await;
        }
    }

    /// Returns a snapshot that is taken from now on.
    pub(super) async fn look(&self, shown: impl FnOnce(&BTreeMap<Uuid, SessionProgress>)) {
        let mut latest = self.latest.clone();
        latest.mark_unchanged();
        // The current snapshot may have begun before.
        for _ in 0..2 {
            latest.changed().await.expect("the observer is running");
        }
        shown(&latest.borrow());
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
