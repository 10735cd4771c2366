//! `ProviderCheck`: a worker claims no alert before the providers of its configuration were found usable once.
//!
//! Otherwise every alert would fail with the same error of the first model call. The check happens at the start only:
//! a provider that breaks later fails the sessions that need it, and no others.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::admin::models::{Ask, ModelReport, State, report};
use tarsy_config::Config;
use tarsy_core::vocabulary::ErrorCode;
use tarsy_engine::plan::{provider_choices, route};
use tarsy_llm::client::Client;
use tarsy_reports::system::{ProviderReport, ProviderState};

/// The longest time that a model may take for a word. A slower one counts as usable.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two questions to models that have refused one.
const ASK_INTERVAL: Duration = Duration::from_secs(20);
/// Replays recordings: no model can refuse.
const SCRIPTED: &str = "scripted";

/// Checks the providers of a worker until they can be called.
pub(super) struct ProviderCheck {
    config: Config,
    client: Client,
    /// The reason why the worker claims nothing; `None` once it may.
    why: watch::Sender<Option<String>>,
    asked: Mutex<Option<Instant>>,
    results: Mutex<BTreeMap<String, CheckResult>>,
}

/// The last result of the check of a provider.
#[derive(Clone, Debug)]
struct CheckResult {
    at: Instant,
    state: ProviderState,
    error: Option<String>,
}

impl ProviderCheck {
    pub(super) fn new(config: Config, client: Client) -> Self {
        let unchecked = "providers of models are not checked yet".to_owned();
        Self {
            config,
            client,
            why: watch::Sender::new(Some(unchecked)),
            asked: Mutex::default(),
            results: Mutex::default(),
        }
    }

    /// The last result of each configured provider, by name, without a request. Errors are not masked.
    pub(super) fn reports(&self) -> Vec<ProviderReport> {
        let results = self.results.lock();
        let names = self.config.llm_providers.keys();
        names
            .map(|name| {
                let result = results.get(name);
                ProviderReport {
                    name: name.clone(),
                    state: result.map_or(ProviderState::NotChecked, |result| result.state),
                    error: result.and_then(|result| result.error.clone()),
                    checked_ms: result.map(|result| {
                        u64::try_from(result.at.elapsed().as_millis()).unwrap_or(u64::MAX)
                    }),
                }
            })
            .collect()
    }

    fn keep(&self, reports: &[ModelReport]) {
        let mut results = self.results.lock();
        for report in reports {
            let result = CheckResult {
                at: Instant::now(),
                state: match report.state {
                    State::Ready => ProviderState::Usable,
                    State::Unusable => ProviderState::Unusable,
                    State::Unknown => ProviderState::NotKnown,
                },
                error: report
                    .problem
                    .as_ref()
                    .map(|problem| problem.message.clone()),
            };
            results.insert(report.name.clone(), result);
        }
    }

    /// The reason why the worker claims nothing; `None` once it may.
    pub(super) fn why(&self) -> watch::Receiver<Option<String>> {
        self.why.subscribe()
    }

    /// Whether the worker may claim alerts. After the first success the LLM service is not asked again.
    pub(super) async fn passes(&self) -> bool {
        if self.why.borrow().is_none() {
            return true;
        }
        let Some(why) = self.check().await else {
            return false;
        };
        let passes = why.is_none();
        if let Some(why) = &why
            && self.why.borrow().as_ref() != Some(why)
        {
            tracing::error!("no alert is claimed: {why}");
        }
        self.why.send_replace(why);
        passes
    }

    /// The reason why the providers cannot be used. `None`: not known yet.
    async fn check(&self) -> Option<Option<String>> {
        if !self.config.worker.probe_models {
            return Some(None);
        }
        let choices = choices(&self.config);
        let mut names: Vec<&str> = choices.iter().flatten().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let reports = report(&self.config, &names, &self.client, Ask::Nothing).await;
        self.keep(&reports);
        if reports
            .iter()
            .any(|report| code(report) == "llm_service_unavailable")
        {
            return None;
        }
        if let Some(why) = blocked(&choices, &reports) {
            return Some(Some(why));
        }
        let real: Vec<&str> = reports
            .iter()
            .filter(|report| report.backend != SCRIPTED)
            .map(|report| report.name.as_str())
            .collect();
        if real.is_empty() {
            return Some(None);
        }
        {
            let mut asked = self.asked.lock();
            if asked.is_some_and(|at| at.elapsed() < ASK_INTERVAL) {
                return None;
            }
            *asked = Some(Instant::now());
        }
        let answers = report(&self.config, &real, &self.client, Ask::OneWord(ASK_TIMEOUT)).await;
        self.keep(&answers);
        for answer in &answers {
            if let Some(problem) = &answer.problem {
                tracing::warn!(
                    provider = answer.name,
                    code = problem.code,
                    fix = problem.fix.as_deref(),
                    "model does not answer: {}",
                    problem.message
                );
            }
        }
        Some(blocked(&choices, &answers))
    }
}

/// The providers of each agent of each chain.
fn choices(config: &Config) -> Vec<Vec<String>> {
    let routes = config
        .agent_chains
        .keys()
        .filter_map(|chain| route::choose(config, "", Some(chain)).ok());
    routes
        .flat_map(|route| provider_choices::provider_choices(config, &route))
        .collect()
}

/// The reason why an agent has no provider that can be called.
fn blocked(choices: &[Vec<String>], reports: &[ModelReport]) -> Option<String> {
    let report_of = |name: &String| reports.iter().find(|report| report.name == *name);
    let dead = choices.iter().find(|names| {
        names
            .iter()
            .all(|name| report_of(name).is_some_and(is_dead))
    })?;
    let reasons: Vec<String> = dead.iter().filter_map(report_of).map(reason).collect();
    Some(reasons.join("; "))
}

/// Whether calls of the provider fail, and will fail until a person changes something.
fn is_dead(report: &ModelReport) -> bool {
    report.state == State::Unusable && ErrorCode::parse(code(report)).is_permanent()
}

fn reason(report: &ModelReport) -> String {
    let used = report.used.join("; ");
    let (message, fix) = match &report.problem {
        Some(problem) => (problem.message.as_str(), problem.fix.as_deref()),
        None => ("", None),
    };
    let fix = fix.map(|fix| format!(". Fix: {fix}")).unwrap_or_default();
    format!(
        "provider {} ({used}) cannot be used: {}{fix}",
        report.name,
        message.trim_end_matches('.')
    )
}

fn code(report: &ModelReport) -> &str {
    report
        .problem
        .as_ref()
        .map(|problem| problem.code.as_str())
        .unwrap_or_default()
}
