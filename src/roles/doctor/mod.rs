//! `tarsy doctor`: looks at everything that tarsy needs, changes nothing, and says what to do about what is wrong.
//!
//! Every check is bounded and none waits for another, but for those that ask the same broker.

mod broker;
mod database;
mod model;
mod tools;

use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use serde::Serialize;

use super::connect::{Addresses, topology};
use crate::config::{Config, Faults, describe, process_env};

/// The longest that a check may take.
const LONGEST: Duration = Duration::from_secs(9);

/// What was looked at, and how it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `nats`, `mcp k8s`
    pub check: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was found, in one line.
    pub detail: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and somebody should know.
    Warn,
    /// It does not work.
    Fail,
}

impl Check {
    fn new(check: impl Into<String>, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self { check: check.into(), verdict, detail: detail.into(), fix: None }
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

/// The checks, each as soon as it and those before it are done.
pub fn run(addresses: &Addresses, file: Option<PathBuf>) -> impl Stream<Item = Check> + use<> {
    let (first, config) = config(file);
    let addresses = Arc::new(addresses.clone());
    // What does not depend on the file is looked at although the file is wrong.
    let config = Arc::new(config);
    let mut checks = FuturesOrdered::new();
    checks.push_back(ready(vec![first]).boxed());
    let nats = broker::connect(Arc::clone(&addresses));
    checks.push_back(bounded("nats", broker::server(nats.clone(), Arc::clone(&addresses))));
    checks.push_back(bounded("streams", broker::streams(nats.clone(), Option::as_ref(&config).map(topology))));
    checks.push_back(bounded("postgres", database::check(Arc::clone(&addresses))));
    checks.push_back(bounded("llm-service", model::check(addresses.llm_addr.clone(), Arc::clone(&config))));
    if let Some(found) = config.as_ref() {
        for name in found.mcp_servers.keys() {
            let name = name.clone();
            checks.push_back(bounded(&format!("mcp {name}"), tools::check(name, Arc::clone(&config))));
        }
    }
    checks.push_back(bounded("workers", broker::workers(nats)));
    checks.flat_map(move |group| {
        let addresses = Arc::clone(&addresses);
        futures_util::stream::iter(group.into_iter().map(move |check| tidy(check, &addresses)))
    })
}

/// One line, and no password of an address in it.
fn tidy(check: Check, addresses: &Addresses) -> Check {
    let tidied = |text: &str| addresses.hide(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    Check { detail: tidied(&check.detail), fix: check.fix.as_deref().map(tidied), ..check }
}

fn config(file: Option<PathBuf>) -> (Check, Option<Config>) {
    let name = file.as_ref().map_or_else(|| "built-in".to_owned(), |file| file.display().to_string());
    match Config::load(file.as_deref(), &process_env) {
        Ok(config) => (Check::new("config", Verdict::Ok, format!("{name}: {}", describe(&config))), Some(config)),
        Err(Faults { faults, .. }) => {
            let count = faults.len();
            let first = faults.first().map(|fault| format!("{} {}", fault.key, fault.problem)).unwrap_or_default();
            let detail = format!("{name}: {count} fault{}: {first}", if count == 1 { "" } else { "s" });
            (Check::new("config", Verdict::Fail, detail).fix("tarsy config check tells all of them"), None)
        }
    }
}

fn bounded(
    name: &str,
    check: impl Future<Output = Vec<Check>> + Send + 'static,
) -> futures_util::future::BoxFuture<'static, Vec<Check>> {
    let name = name.to_owned();
    async move {
        tokio::time::timeout(LONGEST, check).await.unwrap_or_else(|_| {
            vec![Check::new(name, Verdict::Fail, format!("no answer within {} s", LONGEST.as_secs()))]
        })
    }
    .boxed()
}
