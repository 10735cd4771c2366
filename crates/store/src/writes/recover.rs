//! Recovery of lost commits: events that the database has lost and the stream still has are inserted again. A recovery
//! is rare, so it is a transaction of plain statements; the lock on the session's row excludes every other writer.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use tarsy_core::execution::entry::{Mark, StopReason};
use tarsy_core::execution::recovery::{LostCall, sent};
use tarsy_core::ids::SessionId;
use tarsy_core::plan::Plan;
use tarsy_core::review::{Looked, Review, joined};
use tarsy_core::summary::executive_summary;
use tarsy_core::timeline::{EventType, LOST_COMMITS, TimelineEvent};
use tarsy_engine::ports::{DeadReason, Recover, Recovered, RunStatus, StoreError};
use tarsy_reports::stored::Stored;

use crate::reads::history::all_events;
use crate::rows::number;
use crate::schema::{
    agent_executions, alert_sessions, entries, session_plans, session_recoveries, stages,
    timeline_events,
};
use crate::writes::approvals::shift::shift_requests;

#[derive(Insertable)]
#[diesel(table_name = timeline_events)]
struct EventRow {
    session_id: Uuid,
    execution_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    session_seq: i32,
    sequence_number: Option<i32>,
    lease_epoch: i32,
    stage_no: Option<i32>,
    iteration: Option<i32>,
    attempt: Option<i32>,
    event_type: String,
    status: String,
    content: String,
    metadata: Option<Value>,
}

/// The state of a session whose row is locked.
#[derive(Queryable)]
struct Head {
    #[diesel(deserialize_as = Stored<RunStatus>)]
    status: RunStatus,
    epoch: i32,
    token: Uuid,
    event_seq: i32,
}

/// Inserts the lost events. Sent again with the same id, it changes nothing. A refusal precedes every write.
pub(crate) fn recover(
    connection: &mut PgConnection,
    recover: &Recover,
) -> QueryResult<Result<Recovered, StoreError>> {
    connection.transaction(|connection| insert_lost(connection, recover))
}

fn insert_lost(
    connection: &mut PgConnection,
    recover: &Recover,
) -> QueryResult<Result<Recovered, StoreError>> {
    let session = recover.session_id;
    let Some(head) = lock(connection, session)? else {
        // An alert without a session has one event, which the stream still has.
        let gone = StoreError::Behind(format!("no session {session}"));
        return Ok(recover.lease.map_or(Ok(Recovered::Ended), |_| Err(gone)));
    };
    let running = head.status == RunStatus::Running;
    if let Some(lease) = &recover.lease
        && (number::from_int(head.epoch) != lease.epoch || head.token != lease.token)
    {
        return Ok(Err(StoreError::LeaseLost {
            held: lease.epoch,
            current: number::from_int(head.epoch),
        }));
    }
    let end = End::find(&recover.divergence.events);
    let done: i64 = session_recoveries::table
        .filter(session_recoveries::recovery_id.eq(recover.id))
        .count()
        .get_result(connection)?;
    if done > 0 {
        return Ok(Ok(if running {
            Recovered::GoesOn
        } else {
            Recovered::Ended
        }));
    }
    if recover.lease.is_some() != running {
        return Ok(Err(if running {
            StoreError::Conflict(format!("session {session} has not ended"))
        } else {
            StoreError::Ended
        }));
    }
    let kept = decided_events(connection, recover.session_id)?;
    let restored = restore(connection, recover, &head, end.as_ref())?;
    let calls = sent(&recover.divergence.events, &kept);
    let loss = Loss {
        id: recover.id,
        kept: Some(recover.divergence.kept),
        restored,
        calls: &calls,
    };
    remember(connection, session, &loss)?;
    match end {
        Some(end) if running => {
            end_session(connection, session, &end, &recover.divergence.events)?;
            Ok(Ok(Recovered::Ended))
        }
        None if running => {
            report_loss(connection, recover, &head, restored, &calls)?;
            Ok(Ok(Recovered::GoesOn))
        }
        Some(_) | None => Ok(Ok(Recovered::Ended)),
    }
}

/// The events that the store has of a session in which people were asked about calls; none of any other.
fn decided_events(
    connection: &mut PgConnection,
    session: SessionId,
) -> QueryResult<Vec<TimelineEvent>> {
    use timeline_events as e;
    let asked = e::table.filter(
        e::session_id
            .eq(session.0)
            .and(e::event_type.eq(EventType::ApprovalRequested.as_str())),
    );
    if diesel::select(diesel::dsl::exists(asked)).get_result(connection)? {
        all_events(connection, session)
    } else {
        Ok(Vec::new())
    }
}

fn lock(connection: &mut PgConnection, session: SessionId) -> QueryResult<Option<Head>> {
    use alert_sessions::{event_seq, lease_epoch, lease_token, status};
    alert_sessions::table
        .find(session.0)
        .select((status, lease_epoch, lease_token, event_seq))
        .for_no_key_update()
        .first(connection)
        .optional()
}

/// The events that end a session, with the status that it then has.
const ENDS: [(EventType, RunStatus); 4] = [
    (EventType::SessionCompleted, RunStatus::Completed),
    (EventType::SessionFailed, RunStatus::Failed),
    (EventType::SessionCancelled, RunStatus::Cancelled),
    (EventType::SessionTimedOut, RunStatus::TimedOut),
];

/// The end of a session among its lost events.
struct End<'a> {
    event: &'a TimelineEvent,
    status: RunStatus,
}

impl<'a> End<'a> {
    fn find(events: &'a [TimelineEvent]) -> Option<Self> {
        let event = events.last()?;
        let (_, status) = ENDS
            .into_iter()
            .find(|(event_type, _)| *event_type == event.event_type)?;
        Some(Self { event, status })
    }
}

/// Inserts the events under their numbers and returns how many they are. Events that the store has written since move
/// after them; when the lost events hold the session's end, later events are deleted, because none may follow an end.
fn restore(
    connection: &mut PgConnection,
    recover: &Recover,
    head: &Head,
    end: Option<&End<'_>>,
) -> QueryResult<i32> {
    use timeline_events::{session_id, session_seq};
    let session = recover.session_id.0;
    let kept = number::int(recover.divergence.kept);
    let events = &recover.divergence.events;
    let shift = i32::try_from(events.len()).unwrap_or(i32::MAX);
    let of_executions = counts(events);
    let last = if end.is_some() {
        let later = timeline_events::table.filter(session_id.eq(session).and(session_seq.gt(kept)));
        diesel::delete(later).execute(connection)?;
        kept + shift
    } else {
        shift_later_events(connection, session, kept, shift, &of_executions)?;
        head.event_seq + shift
    };
    let names = stage_numbers(connection, session)?;
    let epoch: Option<i32> = timeline_events::table
        .find((session, kept))
        .select(timeline_events::lease_epoch)
        .first(connection)
        .optional()?;
    let rows: Vec<EventRow> = events
        .iter()
        .map(|event| row(event, epoch.unwrap_or(1), &names))
        .collect();
    diesel::insert_into(timeline_events::table)
        .values(&rows)
        .execute(connection)?;
    for (execution, count) in of_executions {
        use agent_executions::event_count;
        diesel::update(agent_executions::table.find((session, execution)))
            .set(event_count.eq(event_count + count))
            .execute(connection)?;
    }
    diesel::update(alert_sessions::table.find(session))
        .set(alert_sessions::event_seq.eq(last))
        .execute(connection)?;
    Ok(shift)
}

/// Moves the events after `kept` by as many numbers as events were lost, in all and of each execution.
fn shift_later_events(
    connection: &mut PgConnection,
    session: Uuid,
    kept: i32,
    shift: i32,
    of_executions: &BTreeMap<Uuid, i32>,
) -> QueryResult<()> {
    use timeline_events::{execution_id, sequence_number, session_id, session_seq};
    let later = timeline_events::table.filter(session_id.eq(session).and(session_seq.gt(kept)));
    // Negative numbers are free, so no two rows ever have the same number.
    diesel::update(later)
        .set(session_seq.eq((session_seq + shift) * -1))
        .execute(connection)?;
    let moved = timeline_events::table.filter(session_id.eq(session).and(session_seq.lt(0)));
    for (execution, count) in of_executions {
        let of_execution = moved.filter(execution_id.eq(*execution));
        diesel::update(of_execution)
            .set(sequence_number.eq(sequence_number + *count))
            .execute(connection)?;
    }
    diesel::update(moved)
        .set(session_seq.eq(session_seq * -1))
        .execute(connection)?;
    let referring = entries::table.filter(
        entries::session_id
            .eq(session)
            .and(entries::event_seq.gt(kept)),
    );
    diesel::update(referring)
        .set(entries::event_seq.eq(entries::event_seq + shift))
        .execute(connection)?;
    shift_requests(connection, session, kept, shift)
}

/// The number of events of each execution.
fn counts(events: &[TimelineEvent]) -> BTreeMap<Uuid, i32> {
    let mut counts = BTreeMap::new();
    for execution in events.iter().filter_map(|event| event.execution_id) {
        *counts.entry(execution.0).or_default() += 1;
    }
    counts
}

/// The stage numbers of the plan by name: the rows of the stages may be lost, too.
fn stage_numbers(
    connection: &mut PgConnection,
    session: Uuid,
) -> QueryResult<BTreeMap<String, i32>> {
    let plan: Option<Value> = session_plans::table
        .find(session)
        .select(session_plans::plan)
        .first(connection)
        .optional()?;
    let plan = plan.and_then(|plan| serde_json::from_value::<Plan>(plan).ok());
    let stages = plan.map(|plan| plan.stages).unwrap_or_default();
    Ok(stages
        .into_iter()
        .zip(1..)
        .map(|(stage, stage_no)| (stage.name, stage_no))
        .collect())
}

fn row(event: &TimelineEvent, lease_epoch: i32, stages: &BTreeMap<String, i32>) -> EventRow {
    EventRow {
        session_id: event.session_id.0,
        execution_id: event.execution_id.map(|id| id.0),
        created_at: event.created_at,
        session_seq: number::int(event.session_seq),
        sequence_number: event.sequence_number.map(number::int),
        lease_epoch,
        stage_no: event
            .stage
            .as_ref()
            .and_then(|stage| stages.get(stage).copied()),
        iteration: event.iteration.map(number::int),
        attempt: event.attempt.map(number::int),
        event_type: event.event_type.as_str().to_owned(),
        status: event.status.as_str().to_owned(),
        content: event.content.clone(),
        metadata: Some(event.metadata.clone()).filter(|metadata| !metadata.is_null()),
    }
}

/// Adds the event that says from which event on the investigation is done again.
fn report_loss(
    connection: &mut PgConnection,
    recover: &Recover,
    head: &Head,
    restored: i32,
    calls: &[LostCall],
) -> QueryResult<()> {
    let session = recover.session_id.0;
    let kept = recover.divergence.kept;
    let last = kept + number::from_int(restored);
    let tools: Vec<&str> = calls.iter().map(|lost| lost.call.tool.as_str()).collect();
    let content = format!(
        "The database has lost what was committed after event {kept}: the investigation goes on from there. Events {} to \
         {last} tell of steps that are taken again",
        kept + 1
    );
    let row = EventRow {
        session_id: session,
        execution_id: None,
        created_at: Utc::now(),
        session_seq: head.event_seq + restored + 1,
        sequence_number: None,
        lease_epoch: head.epoch,
        stage_no: None,
        iteration: None,
        attempt: None,
        event_type: EventType::Error.as_str().to_owned(),
        status: "failed".to_owned(),
        content,
        metadata: Some(
            json!({"kind": LOST_COMMITS, "kept": kept, "restored": last, "calls_not_sent_again": tools}),
        ),
    };
    diesel::insert_into(timeline_events::table)
        .values(&row)
        .execute(connection)?;
    diesel::update(alert_sessions::table.find(session))
        .set(alert_sessions::event_seq.eq(head.event_seq + restored + 1))
        .execute(connection)?;
    Ok(())
}

/// Ends the session as its restored last event says.
fn end_session(
    connection: &mut PgConnection,
    session: SessionId,
    end: &End<'_>,
    events: &[TimelineEvent],
) -> QueryResult<()> {
    let End { event, status } = *end;
    let reason = event.metadata.get("stop_reason").and_then(Value::as_str);
    let mark = event.metadata.get("mark").and_then(Value::as_str);
    let review = event.metadata.get("review");
    let (analysis, error) = if status == RunStatus::Completed {
        (analysis_of(events), None)
    } else {
        (None, Some(event.content.clone()))
    };
    let dead = (reason == Some(StopReason::AttemptsExhausted.as_str()))
        .then(|| DeadReason::AttemptsExhausted.as_str());
    let now = diesel::dsl::now;
    {
        use agent_executions::{execution_id, finished_at, session_id, status as of_execution};
        // Other writes lock executions before the session. Here the session is locked first, which is safe: a statement
        // that holds a lock on an execution and waits for this row writes under a lease that is superseded.
        let open = agent_executions::table
            .filter(session_id.eq(session.0).and(of_execution.eq("running")));
        let ids: Vec<Uuid> = open.select(execution_id).load(connection)?;
        diesel::update(
            agent_executions::table.filter(session_id.eq(session.0).and(execution_id.eq_any(ids))),
        )
        .set((of_execution.eq(status.as_str()), finished_at.eq(now)))
        .execute(connection)?;
    }
    diesel::update(
        stages::table.filter(
            stages::session_id
                .eq(session.0)
                .and(stages::status.eq("running")),
        ),
    )
    .set((
        stages::status.eq(status.as_str()),
        stages::finished_at.eq(now),
    ))
    .execute(connection)?;
    use alert_sessions as s;
    diesel::update(s::table.find(session.0))
        .set((
            s::status.eq(status.as_str()),
            s::stop_reason.eq(reason),
            s::executive_summary.eq(analysis.as_deref().and_then(executive_summary)),
            s::final_analysis.eq(analysis),
            s::error.eq(error),
            s::mark.eq(mark),
            s::review.eq(review),
            s::dead_letter.eq(dead),
            s::lease_owner.eq(None::<Uuid>),
            s::finished_at.eq(event.created_at),
        ))
        .execute(connection)?;
    Ok(())
}

/// The analysis of a completed session, joined with the answer of its review, as the events have both.
fn analysis_of(events: &[TimelineEvent]) -> Option<String> {
    let analyses = || {
        let events = events.iter().rev();
        events.filter(|event| event.event_type == EventType::FinalAnalysis)
    };
    let original = analyses().find(|event| review_of(event).is_none())?;
    let Some(looked) = analyses().find(|event| review_of(event).is_some()) else {
        return Some(original.content.clone());
    };
    let review = review_of(looked)?;
    let mark = looked.metadata.get("mark").and_then(Value::as_str);
    let looked = Looked {
        review: &review,
        text: &looked.content,
        mark: mark.map(Mark::parse),
    };
    Some(joined(&original.content, &looked).analysis)
}

fn review_of(event: &TimelineEvent) -> Option<Review> {
    serde_json::from_value(event.metadata.get("review")?.clone()).ok()
}

/// A loss of commits, as it is stored.
pub(crate) struct Loss<'a> {
    pub id: Uuid,
    pub kept: Option<u32>,
    pub restored: i32,
    pub calls: &'a [LostCall],
}

/// Stores a loss under the session's next recovery number.
pub(crate) fn remember(
    connection: &mut PgConnection,
    session: SessionId,
    loss: &Loss<'_>,
) -> QueryResult<()> {
    use session_recoveries as r;
    let last: Option<i32> = r::table
        .filter(r::session_id.eq(session.0))
        .select(diesel::dsl::max(r::recovery_no))
        .first(connection)?;
    let calls = serde_json::to_value(loss.calls)
        .map_err(|error| diesel::result::Error::SerializationError(Box::new(error)))?;
    diesel::insert_into(r::table)
        .values((
            r::session_id.eq(session.0),
            r::recovery_id.eq(loss.id),
            r::created_at.eq(diesel::dsl::now),
            r::recovery_no.eq(last.unwrap_or(0) + 1),
            r::kept_upto.eq(loss.kept.map(number::int)),
            r::restored.eq(loss.restored),
            r::calls.eq(calls),
        ))
        .on_conflict_do_nothing()
        .execute(connection)?;
    Ok(())
}
