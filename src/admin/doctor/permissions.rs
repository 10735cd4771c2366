//! `tarsy doctor --permissions`: which roles of tarsy the given credentials fit. Asks both servers and changes nothing.

use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::FuturesOrdered;

use super::{Check, Checked, Verdict, all_tidy, bounded, broker, database};
use crate::process::connect::Addresses;
use tarsy_bus::permissions::{Fit, Granted, NatsRole};
use tarsy_store::{DatabaseFit, database_fit};

/// Examines the credentials for the broker and those for the database.
pub fn run(addresses: &Addresses) -> impl Stream<Item = Check> + use<> {
    let addresses = Arc::new(addresses.clone());
    let mut checks = FuturesOrdered::new();
    checks.push_back(bounded("nats", of_nats(Arc::clone(&addresses))));
    if addresses.database_url.is_some() {
        checks.push_back(bounded("postgres", of_database(Arc::clone(&addresses))));
    }
    all_tidy(checks, addresses)
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
    let mut checks = vec![Check::new("nats", Verdict::Ok, about)];
    checks.extend(of_roles(&granted));
    Ok(checks)
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
    let least_extra = fitting.map(|fit| fit.extra.len()).min();
    fits.iter().map(|fit| of_role(fit, least_extra)).collect()
}

fn of_role(fit: &Fit, least_extra: Option<usize>) -> Check {
    let name = format!("nats {}", fit.role.as_str());
    if !fit.missing.is_empty() {
        let verdict = if least_extra.is_none() {
            Verdict::Fail
        } else {
            Verdict::Info
        };
        let detail = format!("does not fit: lacks {}", listed(&fit.missing));
        return Check::new(name, verdict, detail);
    }
    if fit.extra.is_empty() {
        return Check::new(name, Verdict::Ok, FITS_EXACTLY);
    }
    let verdict = if least_extra == Some(fit.extra.len()) {
        Verdict::Warn
    } else {
        Verdict::Info
    };
    let extra: Vec<&str> = fit.extra.iter().map(|ability| ability.describe()).collect();
    Check::new(
        name,
        verdict,
        format!("fits, and may also: {}", extra.join(", ")),
    )
}

const FITS_EXACTLY: &str = "fits, and permits no more than the role needs";

/// Lists at most three subjects.
fn listed(subjects: &[String]) -> String {
    match subjects {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        few => few.join(", "),
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
    let about = format!("role {} at {}", fit.role, addresses.redacted_database());
    let mut checks = vec![Check::new("postgres", Verdict::Ok, about)];
    checks.extend(of_database_roles(&fit));
    Ok(checks)
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
    let check = |name: &str, lacks: &Option<String>, extra: &[(bool, &str)]| {
        let name = format!("postgres {name}");
        if let Some(lacks) = lacks {
            return Check::new(name, none, format!("does not fit: lacks {lacks}"));
        }
        let extra: Vec<&str> = extra
            .iter()
            .filter_map(|(is_held, words)| is_held.then_some(*words))
            .collect();
        if extra.is_empty() {
            return Check::new(name, Verdict::Ok, FITS_EXACTLY);
        }
        let detail = format!("fits, and may also: {}", extra.join(", "));
        Check::new(name, Verdict::Info, detail)
    };
    let superuser = (fit.is_superuser, "do everything, as a superuser");
    let owner = (
        fit.owner_lacks.is_none(),
        "change and drop the tables, as their owner",
    );
    let writer = (fit.may_write, "write");
    let mut checks = vec![
        check("owner", &fit.owner_lacks, &[superuser]),
        check("worker", &fit.worker_lacks, &[superuser, owner]),
        check("reader", &fit.reader_lacks, &[superuser, owner, writer]),
    ];
    if fit.is_superuser {
        checks.push(
            Check::new("postgres", Verdict::Warn, "this role is a superuser")
                .fix("give each role its own (deploy/postgres/roles.sql)"),
        );
    }
    checks
}
