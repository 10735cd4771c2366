//! Renewal and release of leases.

use std::collections::HashMap;
use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Text, Uuid as SqlUuid};
use serde::Deserialize;
use uuid::Uuid;

use tarsy_engine::ports::{Lease, Renewal, StoreError};

use crate::fence::{Fence, Progress, judge};
use crate::rows::number;
use crate::rows::words::sql_word;
use crate::statement::statement;

pub(crate) struct Renew {
    session_id: Vec<Uuid>,
    epoch: Vec<i32>,
    token: Vec<Uuid>,
    period: f64,
}

statement!(Renew, "renew.sql" -> (SqlUuid, Text, Integer, Integer, Bool), [session_id, epoch, token, period]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RenewOutcome {
    Renewed,
    Locked,
    Ended,
    Lost,
}

sql_word!(RenewOutcome);

#[derive(Queryable)]
struct RenewRow {
    session: Uuid,
    outcome: RenewOutcome,
    last_seq: i32,
    updates: i32,
    cancel_requested: bool,
}

impl RenewRow {
    fn renewal(&self) -> Renewal {
        match self.outcome {
            RenewOutcome::Renewed => Renewal::Renewed {
                last_seq: number::from_int(self.last_seq),
                updates: number::from_int(self.updates),
                cancel_requested: self.cancel_requested,
            },
            RenewOutcome::Locked => Renewal::Locked,
            RenewOutcome::Ended => Renewal::Ended,
            RenewOutcome::Lost => Renewal::Lost,
        }
    }
}

impl Renew {
    pub(crate) fn new(leases: &[Lease], period: Duration) -> Self {
        Self {
            session_id: leases.iter().map(|lease| lease.session_id.0).collect(),
            epoch: leases
                .iter()
                .map(|lease| number::int(lease.epoch))
                .collect(),
            token: leases.iter().map(|lease| lease.token).collect(),
            period: period.as_secs_f64(),
        }
    }

    /// Returns one renewal for each lease, in the order of the leases.
    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Vec<Renewal>> {
        let rows: Vec<RenewRow> = self.get_results(connection)?;
        let renewals: HashMap<Uuid, Renewal> = rows
            .iter()
            .map(|row| (row.session, row.renewal()))
            .collect();
        Ok(self
            .session_id
            .iter()
            .map(|session| renewals.get(session).copied().unwrap_or(Renewal::Lost))
            .collect())
    }
}

pub(crate) struct RenewOne {
    period: f64,
    lease: Lease,
    epoch: i32,
}

statement!(RenewOne, "renew_one.sql" -> (Integer, Integer, Bool), [period, lease.session_id.0, epoch, lease.token]);

impl RenewOne {
    pub(crate) fn new(lease: Lease, period: Duration) -> Self {
        Self {
            period: period.as_secs_f64(),
            lease,
            epoch: number::int(lease.epoch),
        }
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Renewal> {
        let row: Option<(i32, i32, bool)> = self.get_result(connection).optional()?;
        Ok(match row {
            Some((last_seq, updates, cancel_requested)) => Renewal::Renewed {
                last_seq: number::from_int(last_seq),
                updates: number::from_int(updates),
                cancel_requested,
            },
            None => Renewal::Locked,
        })
    }
}

pub(crate) struct Release {
    /// Attempts that are taken off the count, because the claim has counted one.
    refunded: i32,
    lease: Lease,
    epoch: i32,
    reason: &'static str,
}

statement!(Release, "release.sql" -> Integer, [refunded, reason, lease.session_id.0, epoch, lease.token]);

impl Release {
    /// The attempt that the claim has counted is refunded.
    pub(crate) fn refunding(lease: Lease, reason: &'static str) -> Self {
        Self {
            refunded: 1,
            lease,
            epoch: number::int(lease.epoch),
            reason,
        }
    }

    /// The attempt that the claim has counted stays counted.
    pub(crate) fn counted(lease: Lease, reason: &'static str) -> Self {
        Self {
            refunded: 0,
            ..Self::refunding(lease, reason)
        }
    }

    pub(crate) fn write(
        &self,
        connection: &mut PgConnection,
    ) -> QueryResult<Result<(), StoreError>> {
        let next_epoch: Option<i32> = self.get_result(connection).optional()?;
        if next_epoch.is_some() {
            return Ok(Ok(()));
        }
        let fence = Fence::read(connection, self.lease.session_id, None)?;
        let released = fence.as_ref().is_some_and(|fence| {
            fence.ownerless
                && fence.token == self.lease.token
                && fence.epoch() == self.lease.epoch.saturating_add(1)
        });
        Ok(if released {
            Ok(())
        } else {
            judge(fence, &self.lease, |_| Progress::Refused)
        })
    }
}
