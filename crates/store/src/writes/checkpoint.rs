//! The checkpoint: one statement writes everything that one turn of an execution has produced.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Nullable, Text};
use uuid::Uuid;

use tarsy_core::execution::entry::Entry;
use tarsy_core::execution::event_refs::event_of_each_entry;
use tarsy_engine::ports::{Appended, Checkpoint, Lease, StoreError};

use crate::fence::{Progress, verdict};
use crate::rows::columns::{Entries, Events, ModelCalls, SubAgents, ToolCalls};
use crate::rows::{nul, number, stored};
use crate::schema::{alert_sessions, entries};
use crate::statement::statement;
use crate::tails::{Committed, Verdict};
use tarsy_core::ids::ExecutionId;
use tarsy_core::timeline::TimelineEvent;

pub(crate) struct Append {
    pub(crate) lease: Lease,
    pub(crate) execution_id: Uuid,
    pub(crate) number: i32,
    pub(crate) epoch: i32,
    pub(crate) id: Uuid,
    pub(crate) iteration: i32,
    pub(crate) status: &'static str,
    pub(crate) error: Option<String>,
    pub(crate) analysis: Option<String>,
    pub(crate) at: DateTime<Utc>,
    pub(crate) attempt: i32,
    pub(crate) events: Events,
    pub(crate) entries: Entries,
    pub(crate) models: ModelCalls,
    pub(crate) tools: ToolCalls,
    pub(crate) sub_agents: SubAgents,
}

/// The numbers that the statement has assigned, and the names that the rows of its events refer to.
#[derive(Queryable)]
pub(crate) struct AppendedRow {
    first_session_seq: i32,
    first_event: i32,
    agent: String,
    stage: Option<String>,
    updates: i32,
}

statement!(Append, "checkpoint.sql" -> (Integer, Integer, Text, Nullable<Text>, Integer), [
    lease.session_id.0, execution_id, number, events.event_type, epoch, lease.token, id, iteration, status,
    error, analysis, at, entries.kind, attempt, events.status, events.content, events.metadata, entries.role,
    entries.content, entries.tool_call_id, entries.tool_name, entries.body, entries.provider_data,
    entries.event_no, models.entries_upto, models.duration_ms, models.input, models.cached, models.output,
    models.thinking, models.purpose, models.provider, models.backend, models.model, models.error,
    models.response, tools.duration_ms, tools.read_only, tools.state, tools.call_id, tools.tool,
    tools.arguments, tools.result, tools.error, sub_agents.execution_id, sub_agents.call_id, sub_agents.agent,
    sub_agents.strategy, sub_agents.backend, sub_agents.model,
]);

impl Append {
    pub(crate) fn new(lease: Lease, checkpoint: Checkpoint) -> Result<Self, StoreError> {
        let event_no = event_of_each_entry(&checkpoint.entries, &checkpoint.events);
        Ok(Self {
            lease,
            execution_id: checkpoint.execution_id.0,
            number: number::int(checkpoint.number),
            epoch: number::int(lease.epoch),
            id: checkpoint.id,
            iteration: number::int(checkpoint.iteration),
            status: checkpoint.status.as_str(),
            error: checkpoint.error.map(nul::replace),
            analysis: analysis(&checkpoint.entries).map(nul::replace),
            at: checkpoint.at,
            attempt: number::int(checkpoint.attempt),
            events: Events::new(checkpoint.events),
            entries: Entries::new(checkpoint.entries, &event_no)?,
            models: ModelCalls::new(checkpoint.model_calls),
            tools: ToolCalls::new(checkpoint.tool_calls),
            sub_agents: SubAgents::new(checkpoint.sub_agents),
        })
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> Verdict<Appended> {
        let appended: Option<AppendedRow> = self.get_result(connection).optional()?;
        self.verdict(connection, appended, Progress::Refused)
    }

    /// The outcome of the statement. `refused` says why it wrote nothing although its number is the next one.
    pub(crate) fn verdict(
        &self,
        connection: &mut PgConnection,
        appended: Option<AppendedRow>,
        refused: Progress,
    ) -> Verdict<Appended> {
        if let Some(row) = appended {
            let number = |event: &Option<i32>| {
                event.map(|event| number::from_int(row.first_session_seq + event - 1))
            };
            let events = self.entries.event_no.iter().map(number).collect();
            let outcome = Appended {
                events,
                updates: number::from_int(row.updates),
            };
            return Ok(Ok(Committed {
                outcome,
                events: Some(self.committed_events(row)),
            }));
        }
        let written = verdict(connection, &self.lease, Some(self.execution_id), |fence| {
            if fence.checkpoint == Some(self.number) && fence.checkpoint_id == Some(self.id) {
                Progress::Done
            } else if fence.checkpoint == Some(self.number - 1) {
                refused
            } else {
                Progress::new(self.number, fence.checkpoint.unwrap_or(-1))
            }
        })?;
        match written {
            Ok(()) => self.read_back(connection).map(|outcome| {
                Ok(Committed {
                    outcome,
                    events: None,
                })
            }),
            Err(refused) => Ok(Err(refused)),
        }
    }

    /// The events of this checkpoint, as a read of the table would return them.
    fn committed_events(&self, row: AppendedRow) -> Vec<TimelineEvent> {
        let positive = |number: i32| (number > 0).then(|| number::from_int(number));
        self.events.committed(&TimelineEvent {
            execution_id: Some(ExecutionId(self.execution_id)),
            sequence_number: Some(number::from_int(row.first_event)),
            stage: row.stage,
            agent: Some(row.agent),
            iteration: positive(self.iteration),
            attempt: positive(self.attempt),
            ..stored::session_event(self.lease.session_id, row.first_session_seq, self.at)
        })
    }

    /// Reads the event numbers that an earlier try has drawn, whose reply was lost.
    fn read_back(&self, connection: &mut PgConnection) -> QueryResult<Appended> {
        let of_this = entries::session_id
            .eq(self.lease.session_id.0)
            .and(entries::execution_id.eq(self.execution_id));
        let numbers: Vec<Option<i32>> = entries::table
            .filter(of_this.and(entries::checkpoint.eq(self.number)))
            .order(entries::entry_no)
            .select(entries::event_seq)
            .load(connection)?;
        let updates: i32 = alert_sessions::table
            .find(self.lease.session_id.0)
            .select(alert_sessions::updates)
            .first(connection)?;
        let events = numbers
            .into_iter()
            .map(|number| number.map(number::from_int))
            .collect();
        Ok(Appended {
            events,
            updates: number::from_int(updates),
        })
    }
}

/// The analysis of the execution, if this checkpoint completes it.
fn analysis(entries: &[Entry]) -> Option<String> {
    entries
        .iter()
        .rev()
        .find_map(Entry::analysis)
        .map(str::to_owned)
}
