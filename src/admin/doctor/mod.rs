//! `tarsy doctor`: checks everything that tarsy needs, changes nothing, and suggests a fix for each fault.
//!
//! Each check has a time limit and runs in parallel with the others; the checks of the broker share one connection.

mod broker;
pub mod permissions;
mod database;
mod model;
mod tools;
mod notifications;
mod people;
mod web;
mod routes;
mod skills;

pub use self::web::{Part, checks_of_web};

use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, Stream, StreamExt as _};

use super::models::Ask;
use crate::process::connect::{Addresses, topology};
use tarsy_config::{Config, Faults, describe, process_env};
use tarsy_core::readable::format;
pub use tarsy_reports::{Check, Verdict};

const CHECK_TIMEOUT: Duration = Duration::from_secs(9);
/// The longest time that a model may take for its word.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// The results of a check, or the finding that ends it early.
type Checked = Result<Vec<Check>, Check>;

/// Runs the checks and returns their results in a fixed order. `ask` decides whether the models are asked.
pub fn run(
    addresses: &Addresses,
    file: Option<PathBuf>,
    ask: Ask,
) -> impl Stream<Item = Check> + use<> {
    let (first, config) = config(file);
    let addresses = Arc::new(addresses.clone());
    // The other checks run even if the configuration has faults.
    let config = config.map(Arc::new);
    let mut checks = FuturesOrdered::new();
    checks.push_back(ready(vec![first]).boxed());
    let nats = broker::connect(Arc::clone(&addresses));
    let settings = config.as_deref().map(topology);
    let server = broker::server(nats.clone(), Arc::clone(&addresses));
    let streams = broker::streams(nats.clone(), settings.clone());
    let replicas = broker::replicas(nats.clone(), settings);
    checks.push_back(bounded("nats", server));
    checks.push_back(bounded("streams", streams));
    checks.push_back(bounded("replicas", replicas));
    checks.push_back(bounded("postgres", database::check(Arc::clone(&addresses))));
    let model_timeout = if ask == Ask::Nothing {
        CHECK_TIMEOUT
    } else {
        CHECK_TIMEOUT + PROBE_TIMEOUT
    };
    let models = model::check(Arc::clone(&addresses), config.clone(), ask);
    checks.push_back(bounded_by(model_timeout, "llm-service", models));
    if let Some(config) = &config {
        checks.extend(tools::no_servers(config).map(|check| ready(vec![check]).boxed()));
        for name in config.mcp_servers.keys() {
            let check = tools::check(name.clone(), Arc::clone(config));
            checks.push_back(bounded(&format!("mcp {name}"), check));
        }
        for name in config.notification_routes().into_keys() {
            let title = format!("notify {name}");
            let check = notifications::check(name, Arc::clone(config));
            checks.push_back(bounded(&title, check));
        }
        if config.approvals.is_used() {
            checks.push_back(bounded("approvals", people::check(Arc::clone(config))));
        }
        if !config.skills.directories.is_empty() {
            checks.push_back(bounded("skills", skills::check(Arc::clone(config))));
        }
    }
    checks.push_back(bounded("workers", broker::workers(nats)));
    all_tidy(checks, addresses)
}

/// The checks of all groups, each as [`tidy`] returns it.
fn all_tidy(
    groups: impl Stream<Item = Vec<Check>>,
    addresses: Arc<Addresses>,
) -> impl Stream<Item = Check> {
    groups
        .flat_map(futures_util::stream::iter)
        .map(move |check| tidy(check, &addresses))
}

/// The check with each text on one line and without passwords of the addresses.
fn tidy(check: Check, addresses: &Addresses) -> Check {
    let tidied = |text: &str| addresses.redact(&in_one_line(text));
    Check {
        detail: tidied(&check.detail),
        fix: check.fix.as_deref().map(tidied),
        ..check
    }
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn config(file: Option<PathBuf>) -> (Check, Option<Config>) {
    let name = file
        .as_ref()
        .map_or_else(|| "built-in".to_owned(), |file| file.display().to_string());
    match Config::load(file.as_deref(), &process_env) {
        Ok(config) => {
            let detail = format!("{name}: {}", describe(&config));
            let check = match routes::always_firing(&config) {
                Some(hint) => Check::new("config", Verdict::Ok, format!("{detail}; {hint}"))
                    .fix(routes::EXAMPLE_ROUTE),
                None => Check::new("config", Verdict::Ok, detail),
            };
            (check, Some(config))
        }
        Err(Faults { faults, .. }) => {
            let count = format::count(faults.len(), "fault");
            let first = faults
                .first()
                .map(|fault| format!("{} {}", fault.key, fault.problem))
                .unwrap_or_default();
            let check = Check::new("config", Verdict::Fail, format!("{name}: {count}: {first}"));
            (check.fix("run: tarsy config check"), None)
        }
    }
}

fn bounded(
    name: &str,
    check: impl Future<Output = Checked> + Send + 'static,
) -> BoxFuture<'static, Vec<Check>> {
    bounded_by(CHECK_TIMEOUT, name, check)
}

fn bounded_by(
    limit: Duration,
    name: &str,
    check: impl Future<Output = Checked> + Send + 'static,
) -> BoxFuture<'static, Vec<Check>> {
    let too_late = Check::new(
        name,
        Verdict::Fail,
        format!("no answer within {} s", limit.as_secs()),
    );
    let bounded = tokio::time::timeout(limit, check);
    let checks = async move {
        let checked = bounded.await.unwrap_or(Err(too_late));
        checked.unwrap_or_else(|check| vec![check])
    };
    checks.boxed()
}
