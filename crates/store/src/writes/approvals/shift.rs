//! Requests for approval whose events get other numbers, because lost events were restored before them.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Uuid as SqlUuid};
use uuid::Uuid;

use crate::schema::{approval_votes, approvals};

/// Moves the requests for approval that were made after `kept` with their events, and the votes about them. A vote
/// under the old number finds no row, or that of another call, whose hash it does not have.
pub(crate) fn shift_requests(
    connection: &mut PgConnection,
    session: Uuid,
    kept: i32,
    shift: i32,
) -> QueryResult<()> {
    let later = approvals::table.filter(
        approvals::session_id
            .eq(session)
            .and(approvals::event_seq.gt(kept)),
    );
    diesel::update(later)
        .set(approvals::event_seq.eq((approvals::event_seq + shift) * -1))
        .execute(connection)?;
    // The results that their answers cite have moved as well.
    diesel::sql_query(
        "UPDATE approvals SET evidence = ARRAY(SELECT e + CASE WHEN e > $2 THEN $3 ELSE 0 END \
                                               FROM unnest(evidence) WITH ORDINALITY u(e, n) ORDER BY n) \
         WHERE session_id = $1 AND event_seq < 0",
    )
    .bind::<SqlUuid, _>(session)
    .bind::<Integer, _>(kept)
    .bind::<Integer, _>(shift)
    .execute(connection)?;
    let moved = approvals::table.filter(
        approvals::session_id
            .eq(session)
            .and(approvals::event_seq.lt(0)),
    );
    let of_request = diesel::update(moved)
        .set(approvals::event_seq.eq(approvals::event_seq * -1))
        .execute(connection)?;
    if of_request == 0 {
        return Ok(());
    }
    let votes = approval_votes::table.filter(
        approval_votes::session_id
            .eq(session)
            .and(approval_votes::event_seq.gt(kept)),
    );
    diesel::update(votes)
        .set(approval_votes::event_seq.eq((approval_votes::event_seq + shift) * -1))
        .execute(connection)?;
    let moved = approval_votes::table.filter(
        approval_votes::session_id
            .eq(session)
            .and(approval_votes::event_seq.lt(0)),
    );
    diesel::update(moved)
        .set(approval_votes::event_seq.eq(approval_votes::event_seq * -1))
        .execute(connection)?;
    Ok(())
}
