//! Checks the database: its schema, its rights, its clock and its round trip.

use std::sync::Arc;

use super::{Check, Checked, Verdict};
use crate::process::connect::Addresses;
use tarsy_store::{ConnectOptions, DatabaseReport, Error, Schema, diagnose};

/// A larger difference of the clocks makes times hard to compare. Leases use the database's clock only.
const MAX_SKEW_MS: u64 = 2_000;

pub(super) async fn check(addresses: Arc<Addresses>) -> Checked {
    let found = diagnose(&options(&addresses)?).await;
    Ok(vec![described(&found.map_err(|error| failed(&error))?)])
}

/// Like [`check`], for a process that only reads: a standby serves it, and it needs no right of a worker.
pub(super) async fn check_of_reader(addresses: Arc<Addresses>) -> Checked {
    let options = ConnectOptions {
        only_reads: true,
        ..options(&addresses)?
    };
    let found = diagnose(&options).await.map_err(|error| failed(&error))?;
    Ok(vec![described(&DatabaseReport {
        lacks: None,
        is_read_only: false,
        ..found
    })])
}

fn options(addresses: &Addresses) -> Result<ConnectOptions, Check> {
    addresses
        .database_for_command("doctor")
        .map_err(|error: anyhow::Error| Check::new("postgres", Verdict::Fail, error.to_string()))
}

fn described(found: &DatabaseReport) -> Check {
    let skew = found.clock_ahead_ms.unsigned_abs();
    let rtt = found.round_trip.as_secs_f64() * 1000.0;

    let schema = match (&found.schema, &found.fit) {
        (None, _) => "no schema".to_owned(),
        (Some(version), Ok(Schema::Current)) => format!("schema {version} (current)"),
        (Some(version), Ok(Schema::Newer(_))) => {
            format!("schema {version} (newer, and may be used with this tarsy)")
        }
        (Some(version), Err(Error::SchemaTooNew(_))) => {
            format!("schema {version} (newer than this tarsy)")
        }
        (Some(version), Err(_)) => format!("schema {version} (behind)"),
    };
    let detail = format!(
        "{}, {schema}, clock skew {skew} ms, rtt {rtt:.1} ms",
        found.version
    );
    verdict(found, detail, skew)
}

fn verdict(found: &DatabaseReport, detail: String, skew: u64) -> Check {
    let check = |verdict, detail| Check::new("postgres", verdict, detail);
    match (&found.fit, &found.lacks) {
        (Err(Error::SchemaTooNew(_)), _) => check(Verdict::Fail, detail).fix("run a newer tarsy"),
        (Err(_), _) => check(Verdict::Fail, detail).fix("tarsy migrate"),
        (Ok(_), _) if found.is_read_only => {
            check(Verdict::Fail, format!("{detail}; it takes no writes"))
                .fix("set DATABASE_URL to the primary server")
        }
        (Ok(_), Some(lacking)) => {
            // No failure: a role that may only read suffices for commands of people, whose machine this may be.
            let lacks = lacks_in_short(lacking);
            let reads_only =
                format!("{detail}; it suffices to read, but no worker starts with it: {lacks}");
            Check {
                fix: lacking.fix(),
                ..check(Verdict::Warn, reads_only)
            }
        }
        (Ok(_), None) if found.loses_commits_at_failover => {
            let risk = "commits do not wait for the standby: a failover may lose the last ones";
            check(Verdict::Warn, format!("{detail}; {risk}"))
                .fix("set synchronous_standby_names on the server")
        }
        (Ok(_), None) if skew > MAX_SKEW_MS => {
            check(Verdict::Warn, detail).fix("synchronise the clocks of both machines")
        }
        (Ok(_), None) => check(Verdict::Ok, detail),
    }
}

/// The error with three rights at most: a role that may only read lacks dozens, and one statement grants all of them.
fn lacks_in_short(error: &Error) -> String {
    let Error::NotAllowed { role, rights } = error else {
        return error.to_string();
    };
    let all: Vec<&str> = rights.split(", ").collect();
    match all.as_slice() {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            let more = rest.len();
            format!("database role {role} lacks {first}, {second}, {third} and {more} more rights")
        }
        _ => error.to_string(),
    }
}

/// A failed check with the adapter's own fix.
pub(super) fn failed(error: &Error) -> Check {
    Check {
        fix: error.fix(),
        ..Check::new("postgres", Verdict::Fail, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_the_rights_that_a_role_lacks_are_named() {
        let lacks = |rights: &str| {
            lacks_in_short(&Error::NotAllowed {
                role: "sre".to_owned(),
                rights: rights.to_owned(),
            })
        };
        assert_eq!(
            lacks("INSERT on a, UPDATE on a, INSERT on b"),
            "database role sre lacks INSERT on a, UPDATE on a, INSERT on b"
        );
        assert_eq!(
            lacks("INSERT on a, UPDATE on a, INSERT on b, UPDATE on b, INSERT on c"),
            "database role sre lacks INSERT on a, UPDATE on a, INSERT on b and 2 more rights"
        );
    }
}
