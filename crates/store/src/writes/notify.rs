//! The outbox of notifications: takes due rows, records the results of attempts, and closes rows without a route.

use chrono::{DateTime, Utc};
use diesel::prelude::Queryable;
use diesel::sql_types::{
    BigInt, Bool, Double, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
};
use serde_json::Value;
use uuid::Uuid;

use tarsy_core::execution::entry::Mark;
use tarsy_core::ids::SessionId;
use tarsy_core::notification::route::Planned;
use tarsy_core::notification::summary::{Outcome, Seen, Summary};
use tarsy_core::notification::{Moment, NotificationKey, ParsedWord};
use tarsy_engine::ports::{
    Arrival, DueNotification, NotificationClaim, NotificationResult, RunStatus,
};
use tarsy_reports::stored::{Stored, StoredOption};

use crate::rows::{nul, number};
use crate::statement::statement;

/// The notifications that a statement writes, as two columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedRows {
    pub routes: Vec<String>,
    pub moments: Vec<String>,
}

impl From<Vec<Planned>> for PlannedRows {
    fn from(planned: Vec<Planned>) -> Self {
        let moments = planned
            .iter()
            .map(|each| each.moment.as_str().to_owned())
            .collect();
        Self {
            routes: planned
                .into_iter()
                .map(|each| nul::replace(each.route))
                .collect(),
            moments,
        }
    }
}

pub(crate) struct ClaimNotifications {
    route: String,
    limit: i64,
    token: Uuid,
    lease: f64,
}

statement!(ClaimNotifications, "notify_claim.sql" -> (
    SqlUuid, Text, Integer, Bool, Double, Nullable<Text>, Nullable<Text>, Nullable<Text>, Nullable<Text>,
    Nullable<Text>, Bool, Nullable<Text>, Nullable<Text>, Nullable<Jsonb>, Nullable<Text>, Nullable<Timestamptz>,
    Nullable<Timestamptz>, Nullable<Jsonb>, Nullable<Jsonb>, Nullable<Jsonb>, SqlUuid,
    Nullable<Jsonb>, Nullable<Text>
), [route, limit, token, lease]);

#[derive(Queryable)]
pub(crate) struct DueRow {
    #[diesel(deserialize_as = Stored<SessionId>)]
    session: SessionId,
    moment: String,
    attempts: i32,
    in_doubt: bool,
    waited: f64,
    thread: Option<String>,
    title: Option<String>,
    severity: Option<String>,
    chain: Option<String>,
    #[diesel(deserialize_as = StoredOption<RunStatus>)]
    status: Option<RunStatus>,
    is_dead_letter: bool,
    analysis: Option<String>,
    #[diesel(deserialize_as = StoredOption<Mark>)]
    mark: Option<Mark>,
    review: Option<Value>,
    error: Option<String>,
    began_at: Option<DateTime<Utc>>,
    ended_at: Option<DateTime<Utc>>,
    refs: Option<Value>,
    past: Option<Value>,
    past_days: Option<Value>,
    #[diesel(deserialize_as = Stored<SessionId>)]
    about: SessionId,
    request: Option<Value>,
    asked_in: Option<String>,
}

impl ClaimNotifications {
    pub(crate) fn new(claim: NotificationClaim) -> Self {
        Self {
            route: claim.route,
            limit: i64::from(claim.limit),
            token: Uuid::new_v4(),
            lease: claim.lease.as_secs_f64(),
        }
    }

    /// The notification of a row; `None` for one that a newer version has written, and that it has to send.
    pub(crate) fn due(&self, row: DueRow) -> Option<DueNotification> {
        let Some(ParsedWord { moment, request }) = NotificationKey::parse_word(&row.moment) else {
            tracing::warn!(session_id = %row.session, route = self.route, moment = row.moment,
                "notification left to workers of a newer version");
            return None;
        };
        let mut summary = Summary {
            title: row.title.unwrap_or_default(),
            // An alert that nothing has read may have another word in its subject.
            severity: row.severity.and_then(|word| word.parse().ok()),
            chain: row.chain,
            outcome: if row.is_dead_letter {
                Some(Outcome::DeadLetter)
            } else {
                row.status.and_then(Outcome::from_status)
            },
            analysis: row.analysis,
            mark: row.mark,
            review: row
                .review
                .and_then(|review| serde_json::from_value(review).ok()),
            error: row.error,
            began_at: row.began_at,
            ended_at: row.ended_at,
            seen_before: seen_before(row.past, row.past_days),
            request: None,
            // Only this program writes them, as texts; anything else is left out.
            refs: row
                .refs
                .and_then(|refs| serde_json::from_value(refs).ok())
                .unwrap_or_default(),
        };
        summary.request = row
            .request
            .and_then(|request| serde_json::from_value(request).ok());
        if matches!(moment, Moment::Started | Moment::Approval | Moment::Decided) {
            // The session may have ended since, and this notification is still about its beginning.
            summary = Summary {
                outcome: None,
                analysis: None,
                mark: None,
                review: None,
                error: None,
                ended_at: None,
                ..summary
            };
        }
        Some(DueNotification {
            key: NotificationKey {
                session: row.session,
                route: self.route.clone(),
                moment,
                request,
            },
            lease: self.token,
            attempts: number::from_int(row.attempts),
            in_doubt: row.in_doubt,
            waited: number::from_seconds(row.waited),
            thread: row.thread,
            asked_in: row.asked_in,
            about: row.about,
            summary,
        })
    }
}

/// The earlier investigations, as the first event of the session counts them.
fn seen_before(past: Option<Value>, days: Option<Value>) -> Option<Seen> {
    let number = |value: Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    Some(Seen {
        times: number(past?)?,
        days: number(days?)?,
    })
}

pub(crate) struct RecordNotification {
    outcome: Option<&'static str>,
    reason: Option<String>,
    receipt: Option<String>,
    in_doubt: bool,
    retry_after: f64,
    session: Uuid,
    route: String,
    moment: String,
    lease: Uuid,
}

statement!(RecordNotification, "notify_record.sql" -> (), [
    outcome, reason, receipt, in_doubt, retry_after, session, route, moment, lease,
]);

impl RecordNotification {
    pub(crate) fn new(key: NotificationKey, lease: Uuid, result: NotificationResult) -> Self {
        let open = Self {
            outcome: None,
            reason: None,
            receipt: None,
            in_doubt: false,
            retry_after: 0.0,
            session: key.session.0,
            moment: key.word(),
            route: key.route,
            lease,
        };
        match result {
            NotificationResult::Sent { receipt } => Self {
                outcome: Some("sent"),
                receipt: receipt.map(nul::replace),
                ..open
            },
            NotificationResult::Filtered => Self {
                outcome: Some("filtered"),
                ..open
            },
            NotificationResult::GivenUp { reason } => Self {
                outcome: Some("given_up"),
                reason: Some(nul::replace(reason)),
                ..open
            },
            NotificationResult::Failed {
                reason,
                retry_after,
                arrival,
            } => Self {
                reason: Some(nul::replace(reason)),
                in_doubt: arrival == Arrival::Unknown,
                retry_after: retry_after.as_secs_f64(),
                ..open
            },
        }
    }
}

pub(crate) struct CloseUnrouted {
    pub routes: Vec<String>,
    pub max_age: f64,
}

statement!(CloseUnrouted, "notify_close.sql" -> (BigInt, Nullable<Double>), [routes, max_age]);
