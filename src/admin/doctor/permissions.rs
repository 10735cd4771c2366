//! `tarsy doctor --permissions`: which roles of tarsy the given credentials fit. Asks both servers and changes nothing.

use std::future::ready;
use std::sync::Arc;

use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, Stream, StreamExt as _};

use super::{Check, Checked, Verdict, bounded, broker, database, tidy};
use crate::process::connect::Addresses;
use tarsy_bus::permissions::{Ability, Fit, Granted, NatsRole};
use tarsy_store::{DatabaseFit, database_fit};

/// Examines the credentials for the broker and those for the database.
pub fn run(addresses: &Addresses) -> impl Stream<Item = Check> + use<> {
    let addresses = Arc::new(addresses.clone());
    let mut checks = FuturesOrdered::new();
    checks.push_back(bounded("nats", of_nats(Arc::clone(&addresses))));
    checks.push_back(match &addresses.database_url {
        Some(_) => bounded("postgres", of_database(Arc::clone(&addresses))),
        None => ready(Vec::new()).boxed(),
    });
    checks.flat_map(move |group| {
        let addresses = Arc::clone(&addresses);
        futures_util::stream::iter(group.into_iter().map(move |check| tidy(check, &addresses)))
    })
}

async fn of_nats(addresses: Arc<Addresses>) -> Checked {
    let nats = broker::connect(Arc::clone(&addresses)).await?;
    let granted = nats.granted().await.map_err(|error| {
        Check::new("nats", Verdict::Fail, error.to_string())
            .fix("permit publish on $SYS.REQ.USER.INFO and subscribe to _INBOX_doctor.>")
    })?;
    let about = format!("{} at {}", named(&granted), addresses.redacted_nats());
    if granted.is_unlimited() {
        let detail = format!(
            "{about}: it has no permissions of its own, so it may do everything in its account"
        );
        let check = Check::new("nats", Verdict::Warn, detail);
        return Ok(vec![
            check.fix("give each role its own user (deploy/nats/nats.conf)"),
        ]);
    }
    Ok(std::iter::once(Check::new("nats", Verdict::Ok, about))
        .chain(of_roles(&granted))
        .collect())
}

fn named(granted: &Granted) -> String {
    let user = if granted.user.is_empty() {
        "no user".to_owned()
    } else {
        format!("user {}", granted.user)
    };
    format!("{user} of account {}", granted.account)
}

/// One check for each role. The credentials are meant for the fitting role that leaves the least over.
fn of_roles(granted: &Granted) -> Vec<Check> {
    let fits: Vec<Fit> = NatsRole::ALL
        .into_iter()
        .map(|role| role.fit(granted))
        .collect();
    let fitting = fits.iter().filter(|fit| fit.missing.is_empty());
    let best = fitting
        .min_by_key(|fit| fit.extra.len())
        .map(|fit| fit.extra.len());
    fits.iter()
        .map(|fit| {
            let name = format!("nats {}", fit.role.as_str());
            let more = fit
                .extra
                .iter()
                .copied()
                .map(Ability::describe)
                .collect::<Vec<_>>()
                .join(", ");
            if !fit.missing.is_empty() {
                let verdict = if best.is_none() {
                    Verdict::Fail
                } else {
                    Verdict::Info
                };
                return Check::new(
                    name,
                    verdict,
                    format!("does not fit: lacks {}", listed(&fit.missing)),
                );
            }
            if more.is_empty() {
                return Check::new(
                    name,
                    Verdict::Ok,
                    "fits, and permits no more than the role needs",
                );
            }
            let verdict = if best == Some(fit.extra.len()) {
                Verdict::Warn
            } else {
                Verdict::Info
            };
            Check::new(name, verdict, format!("fits, and may also: {more}"))
        })
        .collect()
}

/// Lists at most three subjects.
fn listed(subjects: &[String]) -> String {
    let shown = subjects
        .iter()
        .take(3)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match subjects.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

async fn of_database(addresses: Arc<Addresses>) -> Checked {
    let failed = |detail: String| Check::new("postgres", Verdict::Fail, detail);
    let options = addresses
        .database_for_command("doctor")
        .map_err(|error| failed(error.to_string()))?;
    let fit = database_fit(&options)
        .await
        .map_err(|error| database::failed(&error))?;
    let about = Check::new(
        "postgres",
        Verdict::Ok,
        format!("role {} at {}", fit.role, addresses.redacted_database()),
    );
    Ok(std::iter::once(about)
        .chain(of_database_roles(&fit))
        .collect())
}

fn of_database_roles(fit: &DatabaseFit) -> Vec<Check> {
    let fits = [
        fit.owner_lacks.is_none(),
        fit.worker_lacks.is_none(),
        fit.reader_lacks.is_none(),
    ];
    let none = if fits.contains(&true) {
        Verdict::Info
    } else {
        Verdict::Fail
    };
    let check = |name: &str, lacks: &Option<String>, extra: &[&str]| {
        let name = format!("postgres {name}");
        match lacks {
            Some(lacks) => Check::new(name, none, format!("does not fit: lacks {lacks}")),
            None if extra.is_empty() => Check::new(
                name,
                Verdict::Ok,
                "fits, and permits no more than the role needs",
            ),
            None => Check::new(
                name,
                Verdict::Info,
                format!("fits, and may also: {}", extra.join(", ")),
            ),
        }
    };
    let extra = |found: &[(bool, &'static str)]| -> Vec<&'static str> {
        found
            .iter()
            .filter(|(is_held, _)| *is_held)
            .map(|(_, words)| *words)
            .collect()
    };
    let superuser = (fit.is_superuser, "do everything, as a superuser");
    let owner = (
        fit.owner_lacks.is_none(),
        "change and drop the tables, as their owner",
    );
    let writer = (fit.may_write, "write");
    let mut checks = vec![
        check("owner", &fit.owner_lacks, &extra(&[superuser])),
        check("worker", &fit.worker_lacks, &extra(&[superuser, owner])),
        check(
            "reader",
            &fit.reader_lacks,
            &extra(&[superuser, owner, writer]),
        ),
    ];
    if fit.is_superuser {
        checks.push(
            Check::new("postgres", Verdict::Warn, "this role is a superuser")
                .fix("give each role its own (deploy/postgres/roles.sql)"),
        );
    }
    checks
}
