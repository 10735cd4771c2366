//! The database.

use std::sync::Arc;

use super::{Check, Verdict};
use crate::roles::connect::Addresses;
use crate::store::{Error, examine};

/// Clocks that differ by more make times hard to compare. Leases go by the database's clock alone.
const SKEW_MS: u64 = 2_000;

pub(super) async fn check(addresses: Arc<Addresses>) -> Vec<Check> {
    let options = match addresses.database_for_command("doctor") {
        Ok(options) => options,
        Err(error) => return vec![Check::new("postgres", Verdict::Fail, error.to_string())],
    };
    let found = match examine(&options).await {
        Ok(found) => found,
        Err(error) => {
            let is_unreadable = matches!(error, Error::BadUrl(_));
            let fix =
                if is_unreadable { "postgres://user@host:5432/database" } else { "start it, or set DATABASE_URL" };
            return vec![Check::new("postgres", Verdict::Fail, error.to_string()).fix(fix)];
        }
    };
    let (skew, rtt) = (found.clock_ahead_ms.unsigned_abs(), found.round_trip.as_secs_f64() * 1000.0);
    let schema = match (&found.schema, &found.schema_fault) {
        (None, _) => "no schema".to_owned(),
        (Some(version), None) => format!("schema {version} (current)"),
        (Some(version), Some(Error::SchemaTooNew(_))) => format!("schema {version} (newer than this tarsy)"),
        (Some(version), Some(_)) => format!("schema {version} (behind)"),
    };
    let detail = format!("{}, {schema}, clock skew {skew} ms, rtt {rtt:.1} ms", found.version);
    vec![match &found.schema_fault {
        Some(Error::SchemaTooNew(_)) => Check::new("postgres", Verdict::Fail, detail).fix("run a newer tarsy"),
        Some(_) => Check::new("postgres", Verdict::Fail, detail).fix("tarsy migrate"),
        None if found.synchronous_commit == "off" => {
            let detail =
                format!("{detail}; synchronous_commit is off: a crash of the server may lose what was committed");
            Check::new("postgres", Verdict::Warn, detail).fix("ALTER SYSTEM SET synchronous_commit = on")
        }
        None if skew > SKEW_MS => {
            Check::new("postgres", Verdict::Warn, detail).fix("set the clocks of both machines by the same source")
        }
        None => Check::new("postgres", Verdict::Ok, detail),
    }]
}
