//! The parking of a session that waits for people: its lease is given up until the first request expires.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;

use tarsy_engine::ports::{Lease, Parking, StoreError};

use crate::fence::{Fence, Progress, judge};
use crate::rows::number;
use crate::statement::statement;

pub(crate) struct Park {
    lease: Lease,
    epoch: i32,
    seen: i32,
}

statement!(Park, "park.sql" -> Integer, [lease.session_id.0, lease.token, epoch, seen]);

impl Park {
    pub(crate) fn new(lease: Lease, seen: u32) -> Self {
        Self {
            lease,
            epoch: number::int(lease.epoch),
            seen: number::int(seen),
        }
    }

    pub(crate) fn write(
        &self,
        connection: &mut PgConnection,
    ) -> QueryResult<Result<Parking, StoreError>> {
        let event: Option<i32> = self.get_result(connection).optional()?;
        if event.is_some() {
            return Ok(Ok(Parking::Parked));
        }
        let fence = Fence::read(connection, self.lease.session_id, None)?;
        // An earlier try has parked it. It may have been woken since, and still has no owner.
        let parked = fence.as_ref().is_some_and(|fence| {
            fence.is_running()
                && fence.ownerless
                && fence.token == self.lease.token
                && fence.epoch() == self.lease.epoch.saturating_add(1)
        });
        if parked {
            return Ok(Ok(Parking::Parked));
        }
        Ok(judge(fence, &self.lease, |_| Progress::Done).map(|()| Parking::Changed))
    }
}
