//! Decides in one statement where an alert goes: it opens a session, joins the open one of its fingerprint, is covered
//! by the cooldown of the last one, or ends.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Bool, Double, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::engine::ports::{Claimed, JoinRequest, Lease, OpenRequest, Opened, StoreError};
use crate::investigation::alert::AlertStatus;
use crate::investigation::ids::SessionId;
use crate::investigation::trace_context::TraceContext;

use crate::store::rows::words::sql_word;
use crate::store::rows::{nul, number};
use crate::store::statement::statement;

/// Each rival can make one try fail; with 64 rivals, two tries were enough.
const MAX_TRIES: usize = 10;

#[derive(Default)]
pub(crate) struct Open {
    alert_id: Uuid,
    fingerprint: Option<String>,
    firing: bool,
    cooldown: f64,
    members: Vec<Uuid>,
    severity: &'static str,
    /// Seconds until the session's deadline; `None` where no session may be opened.
    timeout: Option<f64>,
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
    traceparent: Option<String>,
}

statement!(Open, "open.sql", (Text, SqlUuid, Nullable<Double>, Nullable<Text>), [
    SqlUuid: alert_id,
    Nullable<Text>: fingerprint,
    Bool: firing,
    Double: cooldown,
    Array<SqlUuid>: members,
    Text: severity,
    Nullable<Double>: timeout,
    Double: lease,
    SqlUuid: token,
    SqlUuid: worker,
    Text: worker_name,
    Text: chain,
    Nullable<SqlUuid>: retry_of,
    Nullable<SqlUuid>: parent,
    Nullable<Text>: traceparent,
    Integer: format_version,
    Jsonb: plan,
    Text: alert_type,
    Text: title,
    Text: source,
    Text: body,
    Text: event_type,
    Text: event_status,
    Text: event_content,
    Nullable<Jsonb>: event_metadata,
]);

/// Reads where an alert went.
pub(crate) struct ReadDisposition {
    token: Uuid,
    alert_id: Uuid,
}

statement!(ReadDisposition, "disposition.sql", (Text, Nullable<SqlUuid>, Nullable<Bool>, Nullable<Double>), [
    SqlUuid: token,
    SqlUuid: alert_id,
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OpenOutcome {
    Undecided,
    Opened,
    Joined,
    CoveredByCooldown,
    TargetCancelling,
    Ended,
    Dead,
}

sql_word!(OpenOutcome);

/// What this statement has decided.
#[derive(Queryable)]
struct DecidedRow {
    outcome: OpenOutcome,
    session: SessionId,
    remaining: Option<f64>,
    previous: Option<String>,
}

/// What was decided before, by an earlier try of this statement or by a rival.
#[derive(Queryable)]
struct DispositionRow {
    outcome: OpenOutcome,
    session: Option<SessionId>,
    is_mine: Option<bool>,
    remaining: Option<f64>,
}

impl Open {
    pub(crate) fn new(request: OpenRequest) -> Result<Self, StoreError> {
        let OpenRequest { alert_id, alert, plan, started, cooldown, force, parent, .. } = request;
        let stored = serde_json::to_value(&plan).map_err(|error| StoreError::Conflict(format!("plan: {error}")))?;
        let join = Self::join_only(JoinRequest { alert_id, alert, cooldown, force });
        Ok(Self {
            fingerprint: join.fingerprint.filter(|_| parent.is_none()),
            timeout: Some(request.session_timeout.as_secs_f64()),
            lease: request.lease.as_secs_f64(),
            token: request.token,
            worker: request.worker.0,
            worker_name: nul::replace(request.worker_name),
            chain: nul::replace(plan.chain),
            retry_of: request.retry_of.map(|session| session.0),
            parent: parent.map(|session| session.0),
            format_version: number::int(plan.version),
            plan: nul::replace_json(stored),
            event_type: started.event_type.into(),
            event_status: started.status.into(),
            event_content: nul::replace(started.content),
            event_metadata: nul::json_or_null(started.metadata),
            traceparent: request.trace.map(|span| span.to_string()),
            ..join
        })
    }

    /// Opens nothing: the alert joins a session, is covered by one, ends, or stays undecided.
    pub(crate) fn join_only(request: JoinRequest) -> Self {
        let JoinRequest { alert_id, alert, cooldown, force } = request;
        Self {
            alert_id: alert_id.0,
            fingerprint: Some(nul::replace(alert.fingerprint)),
            firing: alert.status == AlertStatus::Firing,
            cooldown: if force { 0.0 } else { cooldown.as_secs_f64() },
            members: alert.members,
            severity: alert.severity.as_str(),
            token: Uuid::new_v4(),
            alert_type: nul::replace(alert.alert_type),
            title: nul::replace(alert.title),
            source: nul::replace(alert.source),
            body: nul::replace(alert.text),
            ..Self::default()
        }
    }

    /// Where the alert goes without a session of its own; `None` when it is still undecided.
    pub(crate) fn join(&self, connection: &mut PgConnection) -> QueryResult<Option<Opened>> {
        if let Some(opened) = self.write(connection)? {
            return Ok(Some(opened));
        }
        Ok(match self.read_disposition(connection)? {
            Some(DispositionRow { outcome: OpenOutcome::Undecided, .. }) => None,
            Some(DispositionRow { outcome: OpenOutcome::Opened, .. }) | None => Some(Opened::Raced),
            // Decided by this statement, whose reply was lost, or by a rival: both mean the same.
            Some(row) => Some(self.opened(row.outcome, row.session, None)),
        })
    }

    /// Decides where the alert goes. Sent again after a lost reply, it finds what it has decided.
    pub(crate) fn decide(&self, connection: &mut PgConnection) -> QueryResult<Opened> {
        for _ in 0..MAX_TRIES {
            if let Some(opened) = self.write(connection)? {
                return Ok(opened);
            }
            let Some(row) = self.read_disposition(connection)? else { return Ok(Opened::Raced) };
            if row.outcome == OpenOutcome::Opened && row.is_mine != Some(true) {
                return Ok(Opened::Raced);
            }
            if row.outcome != OpenOutcome::Undecided {
                return Ok(self.opened(row.outcome, row.session, row.remaining));
            }
        }
        Ok(Opened::Raced)
    }

    /// `None` when the statement decided nothing.
    fn write(&self, connection: &mut PgConnection) -> QueryResult<Option<Opened>> {
        let row: Option<DecidedRow> = self.get_result(connection).optional()?;
        Ok(row.map(|row| {
            let mut opened = self.opened(row.outcome, Some(row.session), row.remaining);
            if let Opened::Session(claimed) = &mut opened {
                claimed.previous = row.previous.as_deref().and_then(TraceContext::parse);
            }
            opened
        }))
    }

    fn read_disposition(&self, connection: &mut PgConnection) -> QueryResult<Option<DispositionRow>> {
        let read = ReadDisposition { token: self.token, alert_id: self.alert_id };
        (&read).get_result(connection).optional()
    }

    fn opened(&self, outcome: OpenOutcome, session: Option<SessionId>, remaining: Option<f64>) -> Opened {
        match (outcome, session) {
            (OpenOutcome::Opened, _) => Opened::Session(Claimed {
                lease: Lease { session_id: SessionId(self.alert_id), epoch: 1, token: self.token },
                remaining: number::from_seconds(remaining.unwrap_or_default()),
                attempts: 0,
                cancel_requested: false,
                previous: None,
            }),
            (OpenOutcome::Joined, Some(session)) => Opened::Joined(session),
            (OpenOutcome::CoveredByCooldown, Some(session)) => Opened::CoveredByCooldown(session),
            (OpenOutcome::TargetCancelling, Some(session)) => Opened::TargetCancelling(session),
            (OpenOutcome::Ended, _) => Opened::NotInvestigated,
            (OpenOutcome::Undecided | OpenOutcome::Dead, _)
            | (OpenOutcome::Joined | OpenOutcome::CoveredByCooldown | OpenOutcome::TargetCancelling, None) => {
                Opened::Raced
            }
        }
    }
}
