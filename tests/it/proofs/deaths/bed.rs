//! Two workers with investigations in progress, and the times that their rows show.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tarsy_core::ids::SessionId;

use super::Pace;
use crate::proofs::load::{paced, publish_many};
use crate::support::figures::between;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually_within;

pub(super) const SESSIONS: usize = 4;
/// A limit against a hanging system, not for its speed.
const WITHIN: Duration = Duration::from_secs(400);

pub(super) struct Bed {
    pub(super) system: TestSystem,
    pub(super) workers: Vec<Tarsy>,
}

impl Bed {
    /// Two workers, whose sessions have each passed two checkpoints.
    pub(super) async fn start(pace: Pace, setup: Setup<'_>) -> Self {
        let mut bed = Self::idle(pace, setup).await;
        bed.add_worker("w1").await;
        bed.add_worker("w2").await;
        bed.publish(SESSIONS).await;
        bed.progressed().await;
        bed
    }

    /// A system without workers and alerts.
    pub(super) async fn idle(pace: Pace, setup: Setup<'_>) -> Self {
        let transcript = setup
            .transcript
            .clone()
            .or_else(|| Some(paced(pace.answers, pace.call)));
        let (lease, tool_wait) = (pace.lease, pace.tool_wait);
        let slots = u32::try_from(2 * SESSIONS).unwrap();
        let system = TestSystem::start_with(Setup {
            lease,
            tool_wait,
            slots,
            transcript,
            ..setup
        })
        .await;
        Self {
            system,
            workers: Vec::new(),
        }
    }

    pub(super) async fn add_worker(&mut self, name: &str) {
        self.workers.push(self.system.worker(name).await.0);
    }

    /// Publishes alerts that each get a session of their own.
    pub(super) async fn publish(&self, count: usize) -> Vec<SessionId> {
        publish_many(&self.system, count)
            .await
            .into_keys()
            .collect()
    }

    /// Returns when every session has written two more checkpoints.
    pub(super) async fn progressed(&self) {
        let of =
            "SELECT coalesce(min(checkpoint), 0)::bigint FROM agent_executions HAVING count(*) >= ";
        let sql = format!("SELECT coalesce(({of}{SESSIONS}), 0)");
        self.until("every session makes progress", &format!("({sql}) >= 2"))
            .await;
    }

    /// Returns when the condition of SQL holds.
    pub(super) async fn until(&self, what: &str, condition: &str) {
        let query = format!("SELECT {condition}");
        eventually_within(WITHIN, what, async || self.system.database.holds(&query)).await;
    }

    /// The worker that owns most sessions.
    pub(super) fn busiest(&self) -> usize {
        let owned =
            "SELECT worker_name FROM alert_sessions GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1";
        usize::from(self.system.database.text(owned) == "w2")
    }

    /// From `at` to the resumption of each session that was taken over after it.
    pub(super) fn resumed_after(&self, at: DateTime<Utc>) -> Vec<Duration> {
        self.first_after(at, "event_type = 'session_resumed'")
    }

    /// From `at` to the next event of each session that was open at that time.
    pub(super) fn steps_after(&self, at: DateTime<Utc>) -> Vec<Duration> {
        self.first_after(at, "true")
    }

    fn first_after(&self, at: DateTime<Utc>, condition: &str) -> Vec<Duration> {
        self.milliseconds(&format!(
            "SELECT extract(epoch FROM min(e.created_at) - '{at}') * 1000 AS ms \
             FROM timeline_events e JOIN alert_sessions s USING (session_id) \
             WHERE e.created_at > '{at}' AND s.created_at < '{at}' AND {condition} GROUP BY session_id"
        ))
    }

    /// From `at` to the settlement of each session that ended before it.
    pub(super) fn settled_after(&self, at: DateTime<Utc>) -> Vec<Duration> {
        self.milliseconds(&format!(
            "SELECT extract(epoch FROM settled_at - '{at}') * 1000 AS ms FROM alert_sessions \
             WHERE finished_at < '{at}' AND settled_at > '{at}'"
        ))
    }

    /// From `at` to the opening of these sessions.
    pub(super) fn opened_after(&self, at: DateTime<Utc>, sessions: &[SessionId]) -> Vec<Duration> {
        let ids: Vec<String> = sessions
            .iter()
            .map(|session| format!("'{}'", session.0))
            .collect();
        self.milliseconds(&format!(
            "SELECT extract(epoch FROM created_at - '{at}') * 1000 AS ms FROM alert_sessions \
             WHERE session_id IN ({})",
            ids.join(", ")
        ))
    }

    /// From `at` to the line with `text` in the log of each worker.
    pub(super) async fn logged_after(&self, at: DateTime<Utc>, text: &str) -> Vec<Duration> {
        let mut times = Vec::new();
        for worker in &self.workers {
            times.push(logged_after(worker, at, text).await);
        }
        times
    }

    /// The durations that a query returns in its column `ms`.
    pub(super) fn milliseconds(&self, query: &str) -> Vec<Duration> {
        let text = self.system.database.text(&format!(
            "SELECT coalesce(string_agg(greatest(ms, 0)::bigint::text, ' '), '') FROM ({query}) AS measured"
        ));
        text.split_whitespace()
            .map(|ms| Duration::from_millis(ms.parse().unwrap()))
            .collect()
    }

    /// Waits for the end of every session. Asserts that nothing was lost, repeated or split, and that no session
    /// counted more than `attempts`.
    pub(super) async fn end(&self, attempts: i64) {
        self.until(
            "every session has ended",
            "NOT EXISTS (SELECT FROM alert_sessions WHERE status = 'running' OR settled_at IS NULL) \
             AND NOT EXISTS (SELECT FROM alerts WHERE settled_at IS NULL)",
        )
        .await;
        self.system.queue_is_empty().await;
        self.system.assert_all_invariants().await;
        let number = |sql: &str| self.system.database.number(sql);
        assert_eq!(
            number("SELECT count(*) FROM alert_sessions WHERE status <> 'completed'"),
            0,
            "sessions failed"
        );
        let counted = number("SELECT max(attempts)::bigint FROM alert_sessions");
        assert!(counted <= attempts, "{counted} attempts were counted");
    }
}

/// From `at` to the line with `text` in the log of a worker.
pub(super) async fn logged_after(worker: &Tarsy, at: DateTime<Utc>, text: &str) -> Duration {
    let line = worker.logged(text).await;
    let time = line
        .split_whitespace()
        .next()
        .and_then(|time| time.parse::<DateTime<Utc>>().ok());
    between(
        at,
        time.unwrap_or_else(|| panic!("a line without a time: {line}")),
    )
}
