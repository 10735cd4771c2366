//! The input of the checker, read after the run: tables, streams, counters of the scripted services, and the events
//! that watchers saw. These are plain values, so that a test can write a history that breaks a guarantee.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use diesel::prelude::*;
use diesel::sql_types::{
    BigInt, Bytea, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
};
use serde_json::Value;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::Outbox as _;
use uuid::Uuid;

use super::faults::InjectedFault;
use super::load::Ledger;
use super::odd::{OddFacts, SERVER};
use super::people::{GUARDED, People};
use super::script::CHANGING;
use super::system::System;

/// A row of `alerts`.
#[derive(Clone, Debug, PartialEq, QueryableByName)]
pub(super) struct Alert {
    #[diesel(sql_type = SqlUuid)]
    pub(super) alert_id: Uuid,
    #[diesel(sql_type = Text)]
    pub(super) place: String,
    #[diesel(sql_type = Timestamptz)]
    pub(super) received_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(super) settled_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    pub(super) joined_session_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) dead_reason: Option<String>,
}

/// A row of `alert_sessions`.
#[derive(Clone, Debug, PartialEq, QueryableByName)]
pub(super) struct Session {
    #[diesel(sql_type = SqlUuid)]
    pub(super) session_id: Uuid,
    #[diesel(sql_type = Timestamptz)]
    pub(super) created_at: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    pub(super) deadline_at: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(super) finished_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Text)]
    pub(super) status: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) stop_reason: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) dead_letter: Option<String>,
    #[diesel(sql_type = Integer)]
    pub(super) lease_epoch: i32,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) final_analysis: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) mark: Option<String>,
}

/// A row of `entries`.
#[derive(Clone, Debug, PartialEq, QueryableByName)]
pub(super) struct Entry {
    #[diesel(sql_type = SqlUuid)]
    pub(super) session_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    pub(super) execution_id: Uuid,
    #[diesel(sql_type = Timestamptz)]
    pub(super) created_at: DateTime<Utc>,
    #[diesel(sql_type = Integer)]
    pub(super) entry_no: i32,
    #[diesel(sql_type = Integer)]
    pub(super) iteration: i32,
    #[diesel(sql_type = Text)]
    pub(super) kind: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub(super) tool_call_id: Option<String>,
    #[diesel(sql_type = Jsonb)]
    pub(super) body: Value,
    #[diesel(sql_type = Nullable<Bytea>)]
    pub(super) provider_data: Option<Vec<u8>>,
}

/// An event of the table with the epoch that its row has beside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) epoch: i32,
    pub(super) event: TimelineEvent,
}

/// A message on the stream of timelines, in the order of the stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) at: DateTime<Utc>,
    pub(super) event: TimelineEvent,
}

/// The events of one session that a watcher saw.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Watched {
    pub(super) by: &'static str,
    pub(super) session: SessionId,
    /// The number after which the watcher started.
    pub(super) after: u32,
    pub(super) seen: Vec<TimelineEvent>,
}

/// A call that a scripted service counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ToolSent {
    pub(super) execution: Uuid,
    pub(super) tool: String,
    pub(super) step: i64,
}

/// The limits of the configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) attempts: u32,
    pub(super) iterations: u32,
    pub(super) session_timeout: Duration,
    /// The allowed delay after the deadline: no worker can end a session while the database is unavailable.
    pub(super) grace: Duration,
}

/// The facts of a run.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) limits: Limits,
    pub(super) ledger: Ledger,
    pub(super) alerts: BTreeMap<SessionId, Alert>,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    /// Journals by execution, in order.
    pub(super) entries: BTreeMap<Uuid, Vec<Entry>>,
    pub(super) events: BTreeMap<SessionId, Vec<Event>>,
    /// Every event that was ever on the stream, as far as the permanent reader received it.
    pub(super) shown: BTreeMap<SessionId, Vec<Shown>>,
    /// The events on the stream at the end.
    pub(super) on_stream: BTreeMap<SessionId, Vec<TimelineEvent>>,
    /// The time when the stream of timelines was emptied or lost.
    pub(super) emptied: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    pub(super) watched: Vec<Watched>,
    /// Reason and alert of each dead letter on the stream.
    pub(super) letters: BTreeSet<(String, SessionId)>,
    /// The number of requests of each execution for each iteration.
    pub(super) model_calls: BTreeMap<(Uuid, i32), u32>,
    pub(super) tool_calls: BTreeMap<ToolSent, u32>,
    pub(super) faults: Vec<InjectedFault>,
    /// Times at which workers died without an injected fault: of poison, or at the deadly gate.
    pub(super) deaths: Vec<DateTime<Utc>>,
    /// Failures of the processes themselves.
    pub(super) wrong: Vec<String>,
    pub(super) odd: OddFacts,
    pub(super) people: People,
}

impl Facts {
    /// The events of a session; empty for a session without events.
    pub(super) fn events_of(&self, session: SessionId) -> &[Event] {
        self.events.get(&session).map_or(&[], Vec::as_slice)
    }

    /// Whether a model that misbehaves investigates the session.
    pub(super) fn is_odd(&self, session: SessionId) -> bool {
        let agents = self
            .events_of(session)
            .iter()
            .filter_map(|event| event.event.agent.as_deref());
        agents.into_iter().any(|agent| agent.starts_with(SERVER))
    }

    /// The journals of a session.
    pub(super) fn journals_of(
        &self,
        session: SessionId,
    ) -> impl Iterator<Item = (&Uuid, &Vec<Entry>)> {
        self.entries
            .iter()
            .filter(move |(_, entries)| entries.first().is_some_and(|e| e.session_id == session.0))
    }
}

impl Alert {
    pub(super) fn id(&self) -> SessionId {
        SessionId(self.alert_id)
    }
}

/// Reads the tables.
pub(super) struct Tables {
    pub(super) alerts: BTreeMap<SessionId, Alert>,
    pub(super) sessions: BTreeMap<SessionId, Session>,
    pub(super) entries: BTreeMap<Uuid, Vec<Entry>>,
    pub(super) events: BTreeMap<SessionId, Vec<Event>>,
}

#[derive(QueryableByName)]
struct Epoch {
    #[diesel(sql_type = SqlUuid)]
    pub(super) session_id: Uuid,
    #[diesel(sql_type = BigInt)]
    session_seq: i64,
    #[diesel(sql_type = Integer)]
    lease_epoch: i32,
}

impl Tables {
    pub(super) async fn read(system: &System) -> Self {
        let mut connection = system.database.connection();
        let mut rows = |sql: &str| {
            diesel::sql_query(sql.to_owned())
                .load::<Alert>(&mut connection)
                .unwrap()
        };
        let alerts = rows("SELECT * FROM alerts")
            .into_iter()
            .map(|alert| (alert.id(), alert))
            .collect();
        let sessions: Vec<Session> = diesel::sql_query("SELECT * FROM alert_sessions")
            .load(&mut connection)
            .unwrap();
        let journal = "SELECT * FROM entries ORDER BY session_id, execution_id, entry_no";
        let mut entries: BTreeMap<Uuid, Vec<Entry>> = BTreeMap::new();
        for entry in diesel::sql_query(journal)
            .load::<Entry>(&mut connection)
            .unwrap()
        {
            entries.entry(entry.execution_id).or_default().push(entry);
        }
        let epochs = "SELECT session_id, session_seq::bigint, lease_epoch FROM timeline_events";
        let epochs: BTreeMap<(Uuid, i64), i32> = diesel::sql_query(epochs)
            .load::<Epoch>(&mut connection)
            .unwrap()
            .into_iter()
            .map(|row| ((row.session_id, row.session_seq), row.lease_epoch))
            .collect();
        let mut events: BTreeMap<SessionId, Vec<Event>> = BTreeMap::new();
        let store = system.database.store();
        let ids: BTreeSet<Uuid> = epochs.keys().map(|(session, _)| *session).collect();
        for session in ids.into_iter().map(SessionId) {
            let rows = store.events(session, 0, 100_000).await.unwrap();
            let of = |event: TimelineEvent| {
                let epoch = epochs
                    .get(&(session.0, i64::from(event.session_seq)))
                    .copied()
                    .unwrap_or_default();
                Event { epoch, event }
            };
            events.insert(session, rows.into_iter().map(of).collect());
        }
        let sessions = sessions
            .into_iter()
            .map(|session| (SessionId(session.session_id), session))
            .collect();
        Self {
            alerts,
            sessions,
            entries,
            events,
        }
    }
}

/// Reads the requests of the LLM service.
pub(super) fn model_calls(system: &System) -> BTreeMap<(Uuid, i32), u32> {
    let mut calls = BTreeMap::new();
    for line in lines(system, "model_calls") {
        let request = line["request_id"].as_str().unwrap_or_default();
        let (execution, iteration) = request.split_once(':').expect("execution:iteration");
        let key = (
            Uuid::parse_str(execution).expect("an id"),
            iteration.parse().expect("a number"),
        );
        *calls.entry(key).or_default() += 1;
    }
    calls
}

/// Reads the calls of the tool servers.
pub(super) fn tool_calls(system: &System) -> BTreeMap<ToolSent, u32> {
    let mut calls = BTreeMap::new();
    for line in lines(system, "tool_calls") {
        let (by, step) = (
            line["arguments"]["by"].as_str(),
            line["arguments"]["step"].as_i64(),
        );
        let execution = by.and_then(|by| Uuid::parse_str(by).ok());
        let (Some(execution), Some(step)) = (execution, step) else {
            panic!("a call without a name: {line}")
        };
        let tool = line["tool"].as_str().unwrap_or_default().to_owned();
        *calls
            .entry(ToolSent {
                execution,
                tool,
                step,
            })
            .or_default() += 1;
    }
    calls
}

fn lines(system: &System, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(system.file(file)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{file}: {line}")))
        .collect()
}

impl ToolSent {
    pub(super) fn changes_something(&self) -> bool {
        self.tool == CHANGING || self.is_guarded()
    }

    /// Whether each of its calls needs a person.
    pub(super) fn is_guarded(&self) -> bool {
        GUARDED.contains(&self.tool.as_str())
    }
}
