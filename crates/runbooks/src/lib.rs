//! Runbooks: fetches the page that an alert names, if operators list its host.
//!
//! A URL comes from outside, so every hop is checked: the host has to be listed, and its name must not lead to a
//! private address unless operators list it among the private ones. A host may get a bearer token, which no other one
//! gets. The text is masked, bounded and cached. A runbook that cannot be fetched is a result like any other; no alert
//! waits for it longer than some seconds.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod location;
mod address;
mod token;
mod client;
mod page;
mod html;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use self::client::NoPage;
use self::token::Tokens;
use tarsy_core::runbook::{FetchedRunbook, RunbookHost};
use tarsy_mask::Mask;

/// The time limit for a page with its redirects.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for which a page is used again.
const PAGE_MAX_AGE: Duration = Duration::from_secs(300);
/// The time for which a failure is used again.
const FAILURE_MAX_AGE: Duration = Duration::from_secs(30);
/// Pages and failures that are kept.
const MAX_CACHED: usize = 64;

/// The listed hosts, the HTTP client and the pages of the last minutes.
#[derive(Debug)]
pub struct Runbooks {
    hosts: Hosts,
    /// The client, or the reason why it could not be built.
    client: Result<Client, String>,
    timeout: Duration,
    mask: Mask,
    cache: Mutex<HashMap<String, Arc<Cached>>>,
}

/// The hosts that operators list.
#[derive(Clone, Debug, Default)]
struct Hosts {
    /// All of them.
    listed: Vec<RunbookHost>,
    /// The hosts whose names may lead to a private address.
    private: Vec<RunbookHost>,
    tokens: Tokens,
}

/// A page or a failure. One caller fetches it while the others wait.
#[derive(Debug)]
struct Cached {
    created: Instant,
    runbook: OnceCell<FetchedRunbook>,
}

impl Cached {
    fn is_fresh(&self) -> bool {
        let max_age = match self.runbook.get() {
            Some(FetchedRunbook::Failed(_) | FetchedRunbook::Refused(_)) => FAILURE_MAX_AGE,
            Some(FetchedRunbook::Page(_)) | None => PAGE_MAX_AGE,
        };
        self.created.elapsed() < max_age
    }
}

impl Runbooks {
    /// Prepares the client. Nothing is fetched before an alert needs it. `timeout` is the longest time for a page with
    /// its redirects; [`FETCH_TIMEOUT`] outside tests.
    pub fn new(config: &tarsy_config::Runbooks, timeout: Duration, mask: Mask) -> Self {
        let private = config
            .private_hosts
            .iter()
            .map(|source| source.host.clone())
            .collect();
        let tokens = Tokens::new(config.sources(), mask.clone());
        let hosts = Hosts {
            listed: config.listed(),
            private,
            tokens,
        };
        let client = client::build(&hosts, config.ca_file.as_deref().map(Path::new));
        Self {
            client,
            hosts,
            timeout,
            mask,
            cache: Mutex::default(),
        }
    }

    /// The text of a runbook, masked, or why it cannot be fetched; `None` when its host is not listed. Takes the
    /// time-out at most.
    pub async fn fetch(&self, url: &str) -> Option<FetchedRunbook> {
        let start = location::start(&self.hosts.listed, url)?;
        let cached = self.cached(url);
        let fetching = cached.runbook.get_or_init(|| async {
            let fetched = tokio::time::timeout(self.timeout, self.page(start)).await;
            let outcome = match &fetched {
                Ok(Ok(_)) => "fetched",
                Ok(Err(_)) => "failed",
                Err(_elapsed) => "timed_out",
            };
            metrics::counter!("tarsy_runbook_fetches_total", "outcome" => outcome).increment(1);
            let fetched = fetched.unwrap_or_else(|_| {
                let seconds = self.timeout.as_secs_f64();
                Err(NoPage::Failed(format!("no answer within {seconds} s")))
            });
            match fetched {
                Ok(text) => FetchedRunbook::Page(self.mask.apply(&text).into_owned()),
                Err(NoPage::Failed(why)) => {
                    FetchedRunbook::Failed(self.mask.apply(&why).into_owned())
                }
                Err(NoPage::Refused(why)) => {
                    FetchedRunbook::Refused(self.mask.apply(&why).into_owned())
                }
            }
        });
        Some(fetching.await.clone())
    }

    async fn page(&self, start: reqwest::Url) -> Result<String, NoPage> {
        let client = self
            .client
            .as_ref()
            .map_err(|why| NoPage::Failed(why.clone()))?;
        let answer = client::get(client, &self.hosts, start).await?;
        page::read(answer).await.map_err(NoPage::Failed)
    }

    fn cached(&self, url: &str) -> Arc<Cached> {
        let mut cache = self.cache.lock();
        if let Some(cached) = cache.get(url).filter(|cached| cached.is_fresh()) {
            return Arc::clone(cached);
        }
        cache.retain(|_, cached| cached.is_fresh());
        if cache.len() >= MAX_CACHED {
            let oldest = cache
                .iter()
                .min_by_key(|(_, cached)| cached.created)
                .map(|(url, _)| url.clone());
            oldest.map(|url| cache.remove(&url));
        }
        let cached = Arc::new(Cached {
            created: Instant::now(),
            runbook: OnceCell::new(),
        });
        cache.insert(url.to_owned(), Arc::clone(&cached));
        cached
    }
}
