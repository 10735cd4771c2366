//! Decides in one statement about an alert: it opens a session with its first stage, joins the open one of its
//! fingerprint, is covered by the cooldown of the last one, is listed as above the limit of its route, or ends. An
//! alert that changes the session that it joins needs the statement twice: the core decides in between about the
//! change.

mod judgement;
mod limit;

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::Error::DeserializationError;
use diesel::sql_types::{Bool, Double, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use tarsy_core::alert::{AlertStatus, MemberReport, Severity};
use tarsy_core::alert_update::{KnownAlert, ReportedAlert, resolved_members};
use tarsy_core::ids::SessionId;
use tarsy_core::notification::route::Planned;
use tarsy_core::search::alert_words;
use tarsy_core::trace_context::TraceContext;
use tarsy_engine::ports::{
    Claimed, JoinRequest, Lease, OpenRequest, Opened, StageBegun, StageChange, StoreError,
};

use self::judgement::Judgement;
use self::limit::LimitColumns;
use crate::rows::columns::{self, Changes, Events};
use crate::rows::words::sql_word;
use crate::rows::{nul, number};
use crate::statement::statement;
use crate::writes::notify::PlannedRows;
use tarsy_reports::stored::{Stored, StoredOption};

/// Each rival can make one try fail; with 64 rivals, two tries were enough.
const MAX_TRIES: usize = 10;

#[derive(Clone, Default)]
pub(crate) struct Open {
    alert_id: Uuid,
    fingerprint: Option<String>,
    status: AlertStatus,
    status_word: &'static str,
    /// The time when the status changed, by the clock of the sender.
    at: Option<DateTime<Utc>>,
    /// Whether it needs a session if none is open.
    opens: bool,
    /// The reason why it ends if none is open and it needs none.
    ended_because: String,
    refs: Option<Value>,
    cooldown: f64,
    members: Vec<Uuid>,
    /// Members that it reports as resolved.
    resolved: Vec<Uuid>,
    reports: Vec<MemberReport>,
    severity: Severity,
    severity_word: &'static str,
    /// Seconds until the session's deadline; `None` where no session may be opened.
    timeout: Option<f64>,
    limit: LimitColumns,
    lease: f64,
    token: Uuid,
    worker: Uuid,
    worker_name: String,
    chain: String,
    retry_of: Option<Uuid>,
    parent: Option<Uuid>,
    format_version: i32,
    plan: Value,
    alert_type: String,
    title: String,
    source: String,
    body: String,
    event_type: String,
    event_status: String,
    event_content: String,
    event_metadata: Option<Value>,
    first_stage: Changes,
    stage_events: Events,
    traceparent: Option<String>,
    judgement: Judgement,
    notifications: PlannedRows,
    /// The search words of a new session.
    words: Vec<String>,
}

statement!(Open, "open.sql" -> (Text, SqlUuid, Nullable<Double>, Nullable<Text>, Nullable<Jsonb>), [
    alert_id, fingerprint, status_word, at, members, judgement.max_updates, resolved, severity_word,
    judgement.max_known, judgement.compared_with, judgement.report, judgement.firing, judgement.resolved,
    judgement.severity, opens, cooldown, limit.max_per_hour, limit.route, timeout, token, worker_name, chain,
    limit.why, lease, worker, retry_of, parent, stage_events.event_type, first_stage.stages.stage_no,
    traceparent, format_version, plan, alert_type, title, source, body, ended_because, refs, event_type,
    event_status, event_content, event_metadata, limit.metadata, first_stage.stages.name,
    first_stage.stages.policy, first_stage.executions.execution_id, first_stage.executions.stage_no,
    first_stage.executions.agent_no, first_stage.executions.agent, first_stage.executions.strategy,
    first_stage.executions.backend, first_stage.executions.model, stage_events.status, stage_events.content,
    stage_events.metadata, notifications.routes, notifications.moments, words,
]);

/// Reads where an alert went.
pub(crate) struct ReadDisposition {
    token: Uuid,
    alert_id: Uuid,
}

statement!(ReadDisposition, "disposition.sql" -> (Text, Nullable<SqlUuid>, Nullable<Bool>, Nullable<Double>), [
    token, alert_id,
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OpenOutcome {
    Undecided,
    Opened,
    Joined,
    CoveredByCooldown,
    Limited,
    TargetCancelling,
    /// The alert has something new: nothing is written.
    Compared,
    Ended,
    Dead,
}

sql_word!(OpenOutcome);

/// The decision of this statement.
#[derive(Queryable)]
struct DecidedRow {
    outcome: OpenOutcome,
    #[diesel(deserialize_as = Stored<SessionId>)]
    session: SessionId,
    remaining: Option<f64>,
    previous: Option<String>,
    /// Whether the update of a joined alert was written, or the knowledge of the session that an alert is compared
    /// with.
    detail: Option<Value>,
}

/// The result of one attempt of the statement.
enum Written {
    Decided(Opened),
    /// The alert has to be compared with this; `None` if that is not readable yet.
    Compare(Option<KnownAlert>),
    /// The alert needs a new session, which this statement may not open.
    Undecided,
    Nothing,
}

/// The result of the statement, with all comparisons that it needed.
enum Opening {
    Decided(Opened),
    /// The alert needs a new session.
    Undecided,
}

/// An earlier decision, by a previous attempt of this statement or by a competing worker.
#[derive(Queryable)]
struct DispositionRow {
    outcome: OpenOutcome,
    #[diesel(deserialize_as = StoredOption<SessionId>)]
    session: Option<SessionId>,
    is_mine: Option<bool>,
    remaining: Option<f64>,
}

impl Open {
    /// `planned` are the notifications that the session may need.
    pub(crate) fn new(request: OpenRequest, planned: Vec<Planned>) -> Result<Self, StoreError> {
        let OpenRequest {
            alert_id,
            alert,
            plan,
            started,
            cooldown,
            force,
            limit,
            on_acknowledged,
            parent,
            ..
        } = request;
        let stored = serde_json::to_value(&plan)
            .map_err(|error| StoreError::Conflict(format!("plan: {error}")))?;
        let worker_name = request.worker_name;
        let join = JoinRequest {
            alert_id,
            alert,
            cooldown,
            force,
            limit,
            worker_name,
            on_acknowledged,
        };
        let join = Self::join_only(join, planned);
        let (first_stage, stage_events) = match request.first_stage {
            Some(StageBegun { begin, event }) => (
                Changes::new(StageChange::Begin(begin)),
                Events::new(vec![event]),
            ),
            None => (Changes::default(), Events::default()),
        };
        let words = alert_words(&[&join.title, &join.alert_type], &join.body);
        Ok(Self {
            // A question joins no session, and no session covers it.
            fingerprint: if parent.is_none() {
                join.fingerprint
            } else {
                None
            },
            timeout: Some(request.session_timeout.as_secs_f64()),
            lease: request.lease.as_secs_f64(),
            token: request.token,
            worker: request.worker.0,
            chain: nul::replace(plan.chain),
            retry_of: request.retry_of.map(|session| session.0),
            parent: parent.map(|session| session.0),
            format_version: number::int(plan.version),
            plan: nul::replace_json(stored),
            event_type: started.event_type.into(),
            event_status: started.status.into(),
            event_content: nul::replace(started.content),
            event_metadata: nul::json_or_null(started.metadata),
            first_stage,
            stage_events,
            traceparent: request.trace.map(|span| span.to_string()),
            words,
            ..join
        })
    }

    /// Opens no investigation: the alert joins a session, is covered by one, exceeds the limit of its route, ends, or
    /// stays undecided. `planned` are the notifications that the session may need.
    pub(crate) fn join_only(request: JoinRequest, planned: Vec<Planned>) -> Self {
        let JoinRequest {
            alert_id,
            alert,
            cooldown,
            force,
            limit,
            worker_name,
            on_acknowledged,
        } = request;
        let resolved = resolved_members(&alert.members, &alert.reports);
        let chain = limit
            .as_ref()
            .map(|limit| nul::replace(limit.chain.clone()))
            .unwrap_or_default();
        let limit = LimitColumns::new(limit, &alert);
        let opens = alert.is_investigated(on_acknowledged);
        let ended_because = alert.not_investigated_because();
        Self {
            alert_id: alert_id.0,
            fingerprint: Some(nul::replace(alert.fingerprint)),
            status: alert.status,
            status_word: alert.status.as_str(),
            at: alert.at,
            opens,
            ended_because: nul::replace(ended_because),
            refs: columns::refs(&alert.refs),
            cooldown: if force { 0.0 } else { cooldown.as_secs_f64() },
            chain,
            limit,
            worker_name: nul::replace(worker_name),
            notifications: planned.into(),
            judgement: Judgement::before(&alert.members),
            members: alert.members,
            resolved,
            reports: alert.reports,
            severity: alert.severity,
            severity_word: alert.severity.as_str(),
            token: Uuid::new_v4(),
            alert_type: nul::replace(alert.alert_type),
            title: nul::replace(alert.title),
            source: nul::replace(alert.source),
            body: nul::replace(alert.text),
            ..Self::default()
        }
    }

    /// The disposition of the alert without a new session; `None` when it is still undecided.
    pub(crate) fn join(&self, connection: &mut PgConnection) -> QueryResult<Option<Opened>> {
        match self.write(connection)? {
            Some(Opening::Decided(opened)) => return Ok(Some(opened)),
            Some(Opening::Undecided) => return Ok(None),
            None => {}
        }
        Ok(match self.read_disposition(connection)? {
            Some(row) if row.outcome == OpenOutcome::Undecided => None,
            // Decided by this statement, whose reply was lost, or by a rival: both mean the same.
            Some(row) if row.outcome != OpenOutcome::Opened => {
                Some(self.opened(row.outcome, row.session, None))
            }
            Some(_) | None => Some(Opened::Raced),
        })
    }

    /// Decides where the alert goes. Sent again after a lost reply, it finds what it has decided.
    pub(crate) fn decide(&self, connection: &mut PgConnection) -> QueryResult<Opened> {
        for _ in 0..self.limit.tries().unwrap_or(MAX_TRIES) {
            if let Some(Opening::Decided(opened)) = self.write(connection)? {
                return Ok(opened);
            }
            let Some(row) = self.read_disposition(connection)? else {
                return Ok(Opened::Raced);
            };
            if row.outcome == OpenOutcome::Opened && row.is_mine != Some(true) {
                return Ok(Opened::Raced);
            }
            if row.outcome != OpenOutcome::Undecided {
                return Ok(self.opened(row.outcome, row.session, row.remaining));
            }
        }
        Ok(Opened::Raced)
    }

    /// `None` when nothing was decided. Each comparison may be outdated when it is written, by another alert that joins
    /// with something new.
    fn write(&self, connection: &mut PgConnection) -> QueryResult<Option<Opening>> {
        let mut known = match self.try_write(connection)? {
            Written::Decided(opened) => return Ok(Some(Opening::Decided(opened))),
            Written::Undecided => return Ok(Some(Opening::Undecided)),
            Written::Nothing => return Ok(None),
            Written::Compare(known) => known,
        };
        let mut compared = self.clone();
        for _ in 0..MAX_TRIES {
            if let Some(known) = &known {
                compared.judgement = Judgement::new(known, &self.reported());
            }
            known = match compared.try_write(connection)? {
                Written::Decided(opened) => return Ok(Some(Opening::Decided(opened))),
                Written::Undecided => return Ok(Some(Opening::Undecided)),
                Written::Nothing => return Ok(None),
                Written::Compare(known) => known,
            };
        }
        Ok(Some(Opening::Decided(Opened::Raced)))
    }

    fn reported(&self) -> ReportedAlert<'_> {
        ReportedAlert {
            status: self.status,
            at: self.at,
            severity: self.severity,
            members: &self.members,
            resolved: &self.resolved,
            reports: &self.reports,
        }
    }

    fn try_write(&self, connection: &mut PgConnection) -> QueryResult<Written> {
        let row: Option<DecidedRow> = self.get_result(connection).optional()?;
        let Some(row) = row else {
            return Ok(Written::Nothing);
        };
        if row.outcome == OpenOutcome::Undecided {
            return Ok(Written::Undecided);
        }
        if row.outcome == OpenOutcome::Compared {
            let known = row.detail.map(serde_json::from_value).transpose();
            return Ok(Written::Compare(
                known.map_err(|error| DeserializationError(error.into()))?,
            ));
        }
        if row.outcome == OpenOutcome::Joined && row.detail == Some(Value::Bool(true)) {
            return Ok(Written::Decided(Opened::Updated {
                session: row.session,
                changes: self.judgement.changes.clone(),
            }));
        }
        let mut opened = self.opened(row.outcome, Some(row.session), row.remaining);
        if let Opened::Session(claimed) = &mut opened {
            claimed.previous = row.previous.as_deref().and_then(TraceContext::parse);
        }
        Ok(Written::Decided(opened))
    }

    fn read_disposition(
        &self,
        connection: &mut PgConnection,
    ) -> QueryResult<Option<DispositionRow>> {
        let read = ReadDisposition {
            token: self.token,
            alert_id: self.alert_id,
        };
        (&read).get_result(connection).optional()
    }

    fn opened(
        &self,
        outcome: OpenOutcome,
        session: Option<SessionId>,
        remaining: Option<f64>,
    ) -> Opened {
        match (outcome, session) {
            (OpenOutcome::Opened, _) => Opened::Session(Claimed {
                lease: Lease {
                    session_id: SessionId(self.alert_id),
                    epoch: 1,
                    token: self.token,
                },
                remaining: number::from_seconds(remaining.unwrap_or_default()),
                attempts: 0,
                cancel_requested: false,
                previous: None,
            }),
            (OpenOutcome::Joined, Some(session)) => Opened::Joined(session),
            (OpenOutcome::CoveredByCooldown, Some(session)) => Opened::CoveredByCooldown(session),
            // Without another session the alert has opened the list.
            (OpenOutcome::Limited, list) => Opened::Limited {
                list: list.unwrap_or(SessionId(self.alert_id)),
                route: self.limit.route.clone().unwrap_or_default(),
            },
            (OpenOutcome::TargetCancelling, Some(session)) => Opened::TargetCancelling(session),
            (OpenOutcome::Ended, _) => Opened::NotInvestigated,
            (OpenOutcome::Undecided | OpenOutcome::Compared | OpenOutcome::Dead, _)
            | (
                OpenOutcome::Joined
                | OpenOutcome::CoveredByCooldown
                | OpenOutcome::TargetCancelling,
                None,
            ) => Opened::Raced,
        }
    }
}
