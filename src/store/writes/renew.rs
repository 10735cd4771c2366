//! Leases that live on, and leases that are released.

use std::collections::HashMap;
use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Bool, Double, Integer, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::engine::ports::{Lease, Renewal, StoreError};

use crate::store::fence::{Fence, Progress, verdict};
use crate::store::rows::number;
use crate::store::statement::statement;

pub(crate) struct Renew {
    session_id: Vec<Uuid>,
    epoch: Vec<i32>,
    token: Vec<Uuid>,
    period: f64,
}

statement!(Renew, "renew.sql", (SqlUuid, Text, Integer, Bool), [
    Array<SqlUuid>: session_id,
    Array<Integer>: epoch,
    Array<SqlUuid>: token,
    Double: period,
]);

impl Renew {
    pub(crate) fn new(leases: &[Lease], period: Duration) -> Self {
        Self {
            session_id: leases.iter().map(|lease| lease.session_id.0).collect(),
            epoch: leases.iter().map(|lease| number::int(lease.epoch)).collect(),
            token: leases.iter().map(|lease| lease.token).collect(),
            period: period.as_secs_f64(),
        }
    }

    /// One answer a lease, in the order of the leases.
    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Vec<Renewal>> {
        let rows: Vec<(Uuid, String, i32, bool)> = self.get_results(connection)?;
        let answers: HashMap<Uuid, Renewal> = rows
            .into_iter()
            .map(|(session, outcome, last_seq, cancel_requested)| {
                let renewal = match outcome.as_str() {
                    "renewed" => Renewal::Renewed { last_seq: number::from_int(last_seq), cancel_requested },
                    "locked" => Renewal::Locked,
                    "ended" => Renewal::Ended,
                    _ => Renewal::Lost,
                };
                (session, renewal)
            })
            .collect();
        Ok(self.session_id.iter().map(|session| answers.get(session).copied().unwrap_or(Renewal::Lost)).collect())
    }
}

pub(crate) struct RenewOne {
    period: f64,
    session_id: Uuid,
    epoch: i32,
    token: Uuid,
}

statement!(RenewOne, "renew_one.sql", (Integer, Bool), [
    Double: period,
    SqlUuid: session_id,
    Integer: epoch,
    SqlUuid: token,
]);

impl RenewOne {
    pub(crate) fn new(lease: Lease, period: Duration) -> Self {
        let (session_id, epoch, token) = (lease.session_id.0, number::int(lease.epoch), lease.token);
        Self { period: period.as_secs_f64(), session_id, epoch, token }
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Renewal> {
        let row: Option<(i32, bool)> = self.get_result(connection).optional()?;
        Ok(row.map_or(Renewal::Locked, |(last_seq, cancel_requested)| Renewal::Renewed {
            last_seq: number::from_int(last_seq),
            cancel_requested,
        }))
    }
}

pub(crate) struct Release {
    /// Attempts that are taken off: the claim has counted one.
    forgiven: i32,
    lease: Lease,
    session_id: Uuid,
    epoch: i32,
    token: Uuid,
}

statement!(Release, "release.sql", Integer, [
    Integer: forgiven,
    SqlUuid: session_id,
    Integer: epoch,
    SqlUuid: token,
]);

impl Release {
    pub(crate) fn new(lease: Lease, forgiven: i32) -> Self {
        Self { forgiven, lease, session_id: lease.session_id.0, epoch: number::int(lease.epoch), token: lease.token }
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Result<(), StoreError>> {
        let next_epoch: Option<i32> = self.get_result(connection).optional()?;
        if next_epoch.is_some() {
            return Ok(Ok(()));
        }
        let fence = Fence::read(connection, self.session_id, None)?;
        let released = fence.as_ref().is_some_and(|fence| {
            fence.ownerless && fence.token == self.token && fence.epoch == self.lease.epoch.saturating_add(1)
        });
        Ok(if released { Ok(()) } else { verdict(fence, &self.lease, |_| Progress::Refused) })
    }
}
