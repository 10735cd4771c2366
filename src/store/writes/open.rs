//! An alert opens a session, joins the open one of its fingerprint, is answered by the last one, or ends: decided in one
//! statement.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Bool, Double, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid};
use serde_json::Value;
use uuid::Uuid;

use crate::engine::ports::{Claimed, JoinRequest, Lease, OpenRequest, Opened, StoreError};
use crate::investigation::alert::AlertStatus;
use crate::investigation::ids::SessionId;

use crate::store::rows::{clean, number};
use crate::store::statement::statement;

/// Each rival can be in the way once; two tries were enough for 64 of them.
const TRIES: usize = 10;

pub(crate) struct Open {
    alert_id: Uuid,
    fingerprint: Option<String>,
    firing: bool,
    cooldown: f64,
    members: Vec<Uuid>,
    severity: &'static str,
    /// `None`: nothing is opened, it is only asked who takes the alert along.
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
}

statement!(Open, "open.sql", (Text, SqlUuid, Nullable<Double>), [
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

pub(crate) struct ReadPlace {
    token: Uuid,
    alert_id: Uuid,
}

statement!(ReadPlace, "placed.sql", (Text, Nullable<SqlUuid>, Nullable<Bool>, Nullable<Double>), [
    SqlUuid: token,
    SqlUuid: alert_id,
]);

type PlaceRow = (String, Option<Uuid>, Option<bool>, Option<f64>);

impl Open {
    pub(crate) fn new(request: OpenRequest) -> Result<Self, StoreError> {
        let OpenRequest { alert_id, alert, plan, started, cooldown, force, parent, .. } = request;
        let stored = serde_json::to_value(&plan).map_err(|error| StoreError::Conflict(format!("plan: {error}")))?;
        let asking = Self::asking(JoinRequest { alert_id, alert, cooldown, force });
        Ok(Self {
            fingerprint: asking.fingerprint.filter(|_| parent.is_none()),
            timeout: Some(request.session_timeout.as_secs_f64()),
            lease: request.lease.as_secs_f64(),
            token: request.token,
            worker: request.worker.0,
            worker_name: clean::text(request.worker_name),
            chain: clean::text(plan.chain),
            retry_of: request.retry_of.map(|session| session.0),
            parent: parent.map(|session| session.0),
            format_version: number::int(plan.version),
            plan: clean::json(stored),
            event_type: started.event_type.into(),
            event_status: started.status.into(),
            event_content: clean::text(started.content),
            event_metadata: clean::nullable(started.metadata),
            ..asking
        })
    }

    /// Opens nothing: joins or ends the alert if there is a reason to.
    pub(crate) fn asking(request: JoinRequest) -> Self {
        let JoinRequest { alert_id, alert, cooldown, force } = request;
        Self {
            alert_id: alert_id.0,
            fingerprint: Some(clean::text(alert.fingerprint)),
            firing: match alert.status {
                AlertStatus::Firing => true,
                AlertStatus::Resolved => false,
            },
            cooldown: if force { 0.0 } else { cooldown.as_secs_f64() },
            members: alert.members,
            severity: alert.severity.as_str(),
            timeout: None,
            lease: 0.0,
            token: Uuid::new_v4(),
            worker: Uuid::nil(),
            worker_name: String::new(),
            chain: String::new(),
            retry_of: None,
            parent: None,
            format_version: 0,
            plan: Value::Null,
            alert_type: clean::text(alert.alert_type),
            title: clean::text(alert.title),
            source: clean::text(alert.source),
            body: clean::text(alert.text),
            event_type: String::new(),
            event_status: String::new(),
            event_content: String::new(),
            event_metadata: None,
        }
    }

    /// Who takes the alert along or answers for it; `None` when it is still undecided.
    pub(crate) fn join(&self, connection: &mut PgConnection) -> QueryResult<Option<Opened>> {
        let decided: Option<(String, Uuid, Option<f64>)> = self.get_result(connection).optional()?;
        if let Some((place, target, remaining)) = decided {
            return Ok(Some(self.opened(&place, Some(target), remaining)));
        }
        let read = ReadPlace { token: self.token, alert_id: self.alert_id };
        let placed: Option<PlaceRow> = (&read).get_result(connection).optional()?;
        Ok(match placed {
            Some((place, ..)) if place == "undecided" => None,
            // By this very statement, whose reply was lost, or by a rival: it is the same.
            Some((place, joined, ..)) if place != "opened" => Some(self.opened(&place, joined, None)),
            Some(_) | None => Some(Opened::Raced),
        })
    }

    /// Decides where the alert goes. Sent again after a lost reply it finds what it did.
    pub(crate) fn decide(&self, connection: &mut PgConnection) -> QueryResult<Opened> {
        for _ in 0..TRIES {
            let decided: Option<(String, Uuid, Option<f64>)> = self.get_result(connection).optional()?;
            if let Some((place, target, remaining)) = decided {
                return Ok(self.opened(&place, Some(target), remaining));
            }
            let read = ReadPlace { token: self.token, alert_id: self.alert_id };
            let placed: Option<PlaceRow> = (&read).get_result(connection).optional()?;
            match placed {
                Some((place, ..)) if place == "undecided" => {}
                Some((place, _, mine, _)) if place == "opened" && mine != Some(true) => return Ok(Opened::Raced),
                Some((place, joined, _, remaining)) => return Ok(self.opened(&place, joined, remaining)),
                None => return Ok(Opened::Raced),
            }
        }
        Ok(Opened::Raced)
    }

    fn opened(&self, place: &str, target: Option<Uuid>, remaining: Option<f64>) -> Opened {
        match (place, target) {
            ("opened", _) => Opened::Session(Claimed {
                lease: Lease { session_id: SessionId(self.alert_id), epoch: 1, token: self.token },
                remaining: number::from_seconds(remaining.unwrap_or_default()),
                attempts: 0,
                cancel_requested: false,
            }),
            ("joined", Some(session)) => Opened::Joined(SessionId(session)),
            ("cooling", Some(session)) => Opened::CoveredByCooldown(SessionId(session)),
            ("closing", Some(session)) => Opened::TargetCancelling(SessionId(session)),
            ("ended", _) => Opened::NotInvestigated,
            _ => Opened::Raced,
        }
    }
}
