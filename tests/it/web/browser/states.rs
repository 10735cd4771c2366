//! A system with a page for every state: investigations that a worker made, and copies of one that end otherwise.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::{NoContext, Timestamp, Uuid};

use crate::interfaces::commands::run_with;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const TEAM: &str = "
agents: {sre: {}, runtime: {}, changes: {}}
agent_chains:
  alone: {default: true, stages: [{name: investigate, agents: [{name: sre}]}]}
  team: {stages: [{name: look, agents: [{name: runtime}, {name: changes}]}]}
";

/// The answers of the agents of the chain `team`.
const ANSWERS: [&str; 3] = [
    "name: team
match: KubePodOOMKilled
agent: runtime
answers:
  - chunks:
      - thinking: The memory of the pod comes first.
      - call: {tool: drill.query_range, arguments: {query: container_memory_working_set_bytes, hours: 6}}
      - call: {tool: drill.pod_logs, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p, previous: true}}
  - chunks:
      - text: 'Cause: a client leaks direct buffers [[drill.pod_logs]]'
",
    "name: team
match: KubePodOOMKilled
agent: changes
answers:
  - chunks:
      - call: {tool: drill.deployment_history, arguments: {namespace: checkout, deployment: checkout}}
  - chunks:
      - thinking: Revision 43 changed the heap and the client at once.
      - text: 'Cause: revision 43 raised the heap to 480Mi [[drill.deployment_history]]'
",
    "name: team
match: KubePodOOMKilled
agent: synthesis
answers:
  - chunks: [text: \"Cause: revision 43 raised the heap, and its client leaks\\nDo next: `kubectl -n checkout rollout undo deployment/checkout`\"]
",
];

/// Copies an investigation up to one of its events. The copy begins so many seconds ago.
pub(super) const COPY: &str = "
CREATE FUNCTION copy_session(one uuid, other uuid, upto int, ago int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t text; shift interval;
BEGIN
  SELECT now() - make_interval(secs => ago) - created_at INTO shift FROM alert_sessions WHERE session_id = one;
  INSERT INTO alerts SELECT (jsonb_populate_record(a, jsonb_build_object('alert_id', other))).* FROM alerts a
    WHERE alert_id = one;
  UPDATE alerts SET fingerprint = other, received_at = now() - make_interval(secs => ago) WHERE alert_id = other;
  FOREACH t IN ARRAY ARRAY['alert_sessions', 'stages', 'agent_executions', 'timeline_events', 'tool_interactions',
                           'llm_interactions'] LOOP
    EXECUTE format('INSERT INTO %1$I SELECT (jsonb_populate_record(r, jsonb_build_object(''session_id'', $2))).*
      FROM %1$I r WHERE session_id = $1', t) USING one, other;
  END LOOP;
  DELETE FROM timeline_events WHERE session_id = other AND session_seq > upto;
  UPDATE timeline_events SET created_at = created_at + shift WHERE session_id = other;
  UPDATE stages SET started_at = started_at + shift, finished_at = finished_at + shift WHERE session_id = other;
  UPDATE agent_executions SET started_at = started_at + shift, finished_at = finished_at + shift
    WHERE session_id = other;
  UPDATE alert_sessions SET created_at = created_at + shift, finished_at = finished_at + shift, fingerprint = other,
    event_seq = (SELECT max(session_seq) FROM timeline_events WHERE session_id = other),
    deadline_at = now() + interval '40 min', lease_expires_at = now() + interval '1 hour' WHERE session_id = other;
END $$;
";

/// A system whose pages have every state.
pub(super) struct States {
    pub(super) system: TestSystem,
    _workers: Vec<Tarsy>,
    /// The investigation that a second worker took over.
    pub(super) session: SessionId,
    /// Each state with the path of its page.
    pub(super) pages: Vec<(&'static str, String)>,
}

impl States {
    /// Investigates, copies, and returns all of it.
    pub(super) async fn make() -> Self {
        let (hour, minutes) = (Duration::from_secs(3_600), Duration::from_secs(600));
        let setup = Setup {
            watched: &["tool-query_range-end"],
            sections: TEAM,
            transcripts: &ANSWERS,
            cooldown: hour,
            sweep: minutes,
            ..Setup::default()
        };
        let mut system = TestSystem::start_with(setup).await;
        let (mut first, _) = system.worker("w1").await;
        let session = system.publish().await;
        let mut timeline = system.follow(session).await;
        let arrived = system.gates.next().await;
        // Reads the calls from the stream, so that their results are not on it yet.
        timeline.until(EventType::LlmResponse).await;
        first.kill().await;
        system.gates.open_all();
        drop(arrived);
        let (second, _) = system.worker("w2").await;
        timeline.finish().await;
        let mut made = Self {
            system,
            _workers: vec![second],
            session,
            pages: Vec::new(),
        };
        made.page("completed", session);
        made.ask().await;
        made.others().await;
        made.system.database.execute(COPY);
        made.copies();
        made
    }

    fn page(&mut self, name: &'static str, session: SessionId) {
        self.pages.push((name, format!("/sessions/{session}")));
    }

    async fn ask(&self) {
        let env = self.system.env(self.system.database.url());
        let question = [
            "ask",
            &self.session.to_string(),
            "Would a limit of 768Mi be enough?",
        ];
        run_with(&env.each(), &question, b"").await.exits(0);
    }

    /// An alert that joins, one for an unknown chain, and one for several agents.
    async fn others(&mut self) {
        let joined = self.system.publish().await;
        let team = self.publish("checkout-7d9f8b6c5-k4m2q", "team").await;
        let dead = self
            .publish("checkout-7d9f8b6c5-z9z9z", "no-such-chain")
            .await;
        self.system.follow(team).await.finish().await;
        for (id, place) in [(joined, "joined"), (dead, "dead")] {
            let decided = format!(
                "SELECT EXISTS (SELECT FROM alerts WHERE alert_id = '{id}' AND place = '{place}')"
            );
            eventually(place, async || self.system.database.holds(&decided)).await;
        }
        self.page("several agents", team);
        self.page("joined", joined);
        self.page("dead letter", dead);
    }

    /// Publishes the drill's alert about another pod, for a chain.
    async fn publish(&self, pod: &str, chain: &str) -> SessionId {
        let id = SessionId(Uuid::now_v7());
        let body = tarsy_drill::builtin("oom-killed")
            .unwrap()
            .alert
            .replace("checkout-7d9f8b6c5-x2x9p", pod);
        let headers = json!({SESSION_ID: id.to_string(), "Tarsy-Chain": chain});
        let alert = NewAlert {
            priority: Priority::Normal,
            suffix: None,
            body: body.into_bytes(),
            headers,
        };
        self.system
            .connect()
            .await
            .publish_alert(alert)
            .await
            .unwrap();
        id
    }

    fn copies(&mut self) {
        let mut sql = String::new();
        let mut copy = |upto: u32, ago: u32, title: &str, severity: &str| {
            let began = chrono::Utc::now().timestamp() - i64::from(ago);
            let id = SessionId(Uuid::new_v7(Timestamp::from_unix(
                NoContext,
                began.unsigned_abs(),
                0,
            )));
            writeln!(
                sql,
                "SELECT copy_session('{}', '{id}', {upto}, {ago});",
                self.session
            )
            .unwrap();
            writeln!(sql, "UPDATE alerts SET title = '{title}', severity = '{severity}' WHERE alert_id = '{id}';")
                .unwrap();
            id
        };
        let queued = copy(1, 3, "DiskAlmostFull db-2.example.com", "normal");
        let failed = copy(3, 900, "ServiceErrorRatioHigh shop/catalog", "high");
        let cancelled = copy(8, 1_200, "TargetDown shop/checkout", "low");
        let timed_out = copy(
            11,
            2_400,
            "PostgresTransactionIdsRunningOut pg-ledger-1:9187",
            "critical",
        );
        let alike: Vec<_> = (1..=6)
            .map(|n| copy(3, 300, &format!("KubeJobFailed batch/report-{n}"), "normal"))
            .collect();
        let running = copy(11, 6, "LedgerDriftDetected payments/ledger", "critical");
        let only = |table: &str, id: SessionId| {
            format!("DELETE FROM {table} WHERE session_id = '{id}';\n")
        };
        for table in [
            "timeline_events",
            "stages",
            "agent_executions",
            "tool_interactions",
            "llm_interactions",
            "alert_sessions",
        ] {
            sql += &only(table, queued);
        }
        writeln!(
            sql,
            "UPDATE alerts SET place = 'undecided', settled_at = NULL, received_at = now() WHERE alert_id = '{queued}';"
        )
        .unwrap();
        sql += &ends(
            failed,
            "failed",
            "error",
            "no provider is registered for the backend google-native",
        );
        sql += &ends(
            cancelled,
            "cancelled",
            "cancelled",
            "asked for by lea@example.com",
        );
        sql += &ends(
            timed_out,
            "timed_out",
            "deadline",
            "the investigation is past its deadline of 40 min",
        );
        for id in &alike[..2] {
            sql += &ends(
                *id,
                "failed",
                "error",
                "no provider is registered for the backend google-native",
            );
        }
        writeln!(
            sql,
            "UPDATE alert_sessions SET status = 'running', finished_at = NULL, settled_at = NULL, stop_reason = NULL,
             executive_summary = NULL, final_analysis = NULL WHERE session_id = '{running}';
             UPDATE stages SET status = 'running', finished_at = NULL WHERE session_id = '{running}';
             UPDATE agent_executions SET status = 'running', finished_at = NULL WHERE session_id = '{running}';"
        )
        .unwrap();
        self.system.database.execute(&sql);
        let each = [
            ("queued", queued),
            ("failed", failed),
            ("cancelled", cancelled),
            ("timed out", timed_out),
        ];
        each.into_iter()
            .chain([("running", running)])
            .for_each(|(name, id)| self.page(name, id));
    }
}

/// Ends a copy in another way.
fn ends(id: SessionId, status: &str, reason: &str, error: &str) -> String {
    format!(
        "INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content)
           SELECT '{id}', max(created_at) + interval '1 s', max(session_seq) + 1, 1, 'session_{status}', 'completed', '{error}'
           FROM timeline_events WHERE session_id = '{id}';
         UPDATE alert_sessions SET status = '{status}', stop_reason = '{reason}', error = '{error}', executive_summary = NULL,
           final_analysis = NULL, event_seq = event_seq + 1,
           finished_at = (SELECT max(created_at) FROM timeline_events WHERE session_id = '{id}') WHERE session_id = '{id}';
         UPDATE stages SET status = '{status}' WHERE session_id = '{id}';
         UPDATE agent_executions SET status = '{status}' WHERE session_id = '{id}';\n"
    )
}
