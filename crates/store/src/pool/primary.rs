//! Finds the primary among several servers. After a failover the old primary may still accept writes while workers
//! have its address. A promoted standby has a higher timeline of Postgres, so the server with the highest timeline is
//! the primary.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Nullable};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::address;
use crate::error::Error;

/// The time between two looks at the servers of the address by a worker that has its connections.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// The time that a look waits for a server.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// A server that takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Primary {
    /// Its cluster: a standby has the identifier of its primary.
    system: i64,
    /// The timeline of its write-ahead log, which grows by one when a standby is promoted.
    timeline: i32,
}

#[derive(QueryableByName)]
struct PrimaryRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    system: Option<i64>,
    #[diesel(sql_type = Nullable<Integer>)]
    timeline: Option<i32>,
}

/// The conditions keep the functions from being called on a standby, where they fail. A session that is read-only only
/// because its client asked for it says nothing about the server.
const LOOK: &str = "SELECT s.system_identifier AS system, CASE WHEN takes_writes THEN \
                      ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END AS timeline \
                    FROM (SELECT NOT (pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AND NOT \
                                      EXISTS (SELECT FROM pg_settings WHERE name = 'default_transaction_read_only' \
                                              AND source = 'client')) \
                                 AS takes_writes) t, pg_control_system() s";

impl Primary {
    /// Asks the server of a connection. `None`: it takes no writes, or it is a service without these functions.
    pub(super) fn ask(connection: &mut PgConnection) -> Option<Self> {
        let row: PrimaryRow = diesel::sql_query(LOOK).get_result(connection).ok()?;
        Some(Self {
            system: row.system?,
            timeline: row.timeline?,
        })
    }

    fn is_after(self, other: Self) -> bool {
        self.system == other.system && self.timeline > other.timeline
    }
}

/// The newest primary that this process has seen. All pools of a store share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Newest(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    primary: Option<Primary>,
    looked_at: Option<Instant>,
}

impl Newest {
    /// Refuses a server that another one has superseded. Another cluster is accepted: the operator has moved the
    /// database.
    pub(super) fn admit(&self, primary: Option<Primary>) -> Result<(), Error> {
        let Some(new) = primary else { return Ok(()) };
        let mut seen = self.0.lock();
        let known = seen.primary;
        if let Some(known) = known.filter(|known| known.is_after(new)) {
            return Err(Error::OldPrimary {
                timeline: new.timeline,
                newest: known.timeline,
            });
        }
        seen.primary = primary;
        drop(seen);
        if let Some(known) = known.filter(|known| new.is_after(*known)) {
            tracing::warn!(
                timeline = new.timeline,
                before = known.timeline,
                "database failed over: a standby was promoted, an old primary gets no write"
            );
        }
        Ok(())
    }

    /// Whether a connection to this server may be used again.
    pub(super) fn is_current(&self, primary: Option<Primary>) -> bool {
        let seen = self.0.lock();
        primary.is_none() || seen.primary.is_none() || primary == seen.primary
    }

    /// Whether it is time to look at the servers again.
    fn is_due(&self) -> bool {
        let mut seen = self.0.lock();
        let due = seen
            .looked_at
            .is_none_or(|at| at.elapsed() >= LOOK_INTERVAL);
        if due {
            seen.looked_at = Some(Instant::now());
        }
        due
    }

    /// Looks from time to time whether another server of the address has superseded the present one. Connections to
    /// the old one are then not used again.
    pub(super) async fn look(&self, address: &str) {
        if !address::chooses_among_servers(address) || !self.is_due() {
            return;
        }
        let known = self.0.lock().primary;
        if let (Some(known), Some((found, _))) = (known, newest_of(address).await)
            && found.is_after(known)
        {
            // It has just been found to be newer, so it is not refused.
            self.admit(Some(found)).ok();
        }
    }
}

/// The address to connect to: that of the newest primary if the address has several servers of which at least one takes
/// writes, else the address itself.
pub(crate) async fn choose(address: String) -> String {
    if !address::chooses_among_servers(&address) {
        return address;
    }
    newest_of(&address)
        .await
        .map_or(address, |(_, chosen)| chosen)
}

/// Asks all servers at once, so that a silent one delays the answer by [`LOOK_TIMEOUT`] at most.
async fn newest_of(address: &str) -> Option<(Primary, String)> {
    let mut looks = JoinSet::new();
    for server in address::each_server(address) {
        looks.spawn_blocking(move || {
            let limit = [("connect_timeout", LOOK_TIMEOUT.as_secs().to_string())];
            let mut connection =
                PgConnection::establish(&address::with(&server, &limit, "")).ok()?;
            Primary::ask(&mut connection).map(|primary| (primary, server))
        });
    }
    let mut newest: Option<(Primary, String)> = None;
    let until = Instant::now() + LOOK_TIMEOUT + LOOK_TIMEOUT / 2;
    while let Ok(Some(looked)) = timeout(
        until.saturating_duration_since(Instant::now()),
        looks.join_next(),
    )
    .await
    {
        let Ok(Some((primary, server))) = looked else {
            continue;
        };
        if newest
            .as_ref()
            .is_none_or(|(known, _)| primary.is_after(*known))
        {
            newest = Some((primary, server));
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_timeline_of_the_same_cluster_is_refused_and_another_cluster_is_not() {
        let newest = Newest::default();
        let primary = |system, timeline| Some(Primary { system, timeline });
        assert!(newest.admit(primary(7, 1)).is_ok());
        assert!(newest.admit(primary(7, 2)).is_ok());
        let refused = newest.admit(primary(7, 1)).unwrap_err();
        assert!(
            matches!(
                refused,
                Error::OldPrimary {
                    timeline: 1,
                    newest: 2
                }
            ),
            "{refused}"
        );
        assert!(
            refused.may_succeed_later(),
            "a worker waits for another server"
        );
        assert_eq!(
            [primary(7, 1), primary(7, 2), None].map(|of| newest.is_current(of)),
            [false, true, true]
        );
        assert!(newest.admit(primary(8, 1)).is_ok());
        assert_eq!(
            [primary(7, 2), primary(8, 1)].map(|of| newest.is_current(of)),
            [false, true]
        );
        assert!(newest.admit(None).is_ok());
    }
}
