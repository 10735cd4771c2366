//! `tarsy models`: the configured providers, whether the LLM service can call them, and what a probe gets.
//!
//! Keys are in the environment of the LLM service, so only that service knows whether a provider can be called. A probe
//! goes the way of every model call.

mod usage;
mod advice;
mod probe;
mod strategy;

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use serde::Serialize;

use tarsy_config::{Backend, Config, Connection, LlmProvider, Price};
use tarsy_core::plan::{NativeTool, Strategy, Thinking};
use tarsy_engine::plan::provider_plan::{backend, provider_plan};
use tarsy_llm::client::{CheckError, Client};
use tarsy_llm::proto::ProviderCheck;

pub use self::probe::ProbeAnswer;
pub use self::strategy::{Interpretation, Outcome, StrategyReport};
pub use self::usage::uses;

/// Models that are asked for a tool call at the same time.
const MAX_ASKED: usize = 4;

/// A configured provider and what is known about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelReport {
    /// The name in `llm_providers`.
    pub name: String,
    pub provider: String,
    pub backend: &'static str,
    pub model: String,
    /// The places in the configuration that use it, such as `default` or `agent sre`; empty if it is unused.
    pub used: Vec<String>,
    pub context_window: Option<u64>,
    pub max_output_tokens: Option<u32>,
    /// The tools that the provider's own layer switches on.
    pub native_tools: Vec<NativeTool>,
    pub thinking: Option<Thinking>,
    pub price: Option<Price>,
    pub state: State,
    /// The variable of the LLM service with the key; empty for none.
    pub key_env: String,
    pub key: KeyState,
    /// The address of calls, as scheme, host and port; empty if it is not known or there is none.
    pub address: String,
    /// The credentials that the LLM service uses instead of a key, in words; empty for a key.
    pub credentials: String,
    pub problem: Option<Problem>,
    /// The answer of a probe.
    pub answer: Option<ProbeAnswer>,
    /// The result of the probe of a tool call.
    pub probe: Option<StrategyReport>,
}

/// Whether a provider can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The LLM service would send a call; after a probe: the model has answered.
    Ready,
    /// A call would fail, or the probe has failed.
    Unusable,
    Unknown,
}

/// The key of a provider, as the LLM service sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    Set,
    NotSet,
    /// Requests may not use the variable.
    NotPermitted,
    /// The variable names a file that cannot be read.
    Unreadable,
    NotNeeded,
    Unknown,
}

/// The reason why a provider cannot be called, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The code of the error that a call gets.
    pub code: String,
    /// The provider's own words, such as `429 RESOURCE_EXHAUSTED`; empty if it has not answered.
    pub provider_status: String,
    pub message: String,
    /// The setting or command that mends it.
    pub fix: Option<String>,
}

/// Whether models are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// No model is asked, only the LLM service what it would do.
    Nothing,
    /// Each model that can be called is asked for a word, and answers within this time.
    OneWord(Duration),
    /// Each model is asked for one call of a tool, within this time or that of its provider.
    ToolCall(Option<Duration>),
}

/// Reports the providers of these names.
pub async fn report(
    config: &Config,
    names: &[&str],
    client: &Client,
    ask: Ask,
) -> Vec<ModelReport> {
    let chosen: Vec<_> = names
        .iter()
        .filter_map(|name| config.llm_providers.get_key_value(*name))
        .collect();
    let plans: Vec<_> = chosen
        .iter()
        .map(|(name, llm)| provider_plan(name, llm, llm.backend(), Vec::new()))
        .collect();
    let checks = client.check_providers(&plans).await;
    let mut reports = Vec::with_capacity(chosen.len());
    for (number, (name, llm)) in chosen.into_iter().enumerate() {
        let report = configured(config, name, llm);
        reports.push(match &checks {
            Ok(checks) => checked(report, llm, checks.get(number)),
            Err(error) => unchecked(report, error),
        });
    }
    match ask {
        Ask::Nothing => reports,
        Ask::OneWord(timeout) => {
            let planned = reports.into_iter().zip(plans);
            let probes = planned.map(async |(report, plan)| match report.state {
                State::Unusable => report,
                State::Ready | State::Unknown => probe::probe(report, plan, client, timeout).await,
            });
            join_all(probes).await
        }
        Ask::ToolCall(timeout) => {
            let probes = reports
                .into_iter()
                .enumerate()
                .map(async |(number, report)| {
                    (number, of_tool_call(config, report, client, timeout).await)
                });
            // The answers are taken as they come, so that one slow model does not hold up the others.
            let mut probed: Vec<_> = stream::iter(probes)
                .buffer_unordered(MAX_ASKED)
                .collect()
                .await;
            probed.sort_unstable_by_key(|(number, _)| *number);
            probed.into_iter().map(|(_, report)| report).collect()
        }
    }
}

async fn of_tool_call(
    config: &Config,
    report: ModelReport,
    client: &Client,
    timeout: Option<Duration>,
) -> ModelReport {
    let Some(llm) = config.llm_providers.get(&report.name) else {
        return report;
    };
    match report.state {
        State::Unusable => report,
        State::Ready | State::Unknown if llm.backend() == Backend::Scripted => {
            strategy::of_recording(report)
        }
        State::Ready | State::Unknown => {
            let plan =
                |strategy| provider_plan(&report.name, llm, backend(llm, strategy), Vec::new());
            let plans = strategy::Plans {
                native: plan(Strategy::NativeThinking),
                react: plan(Strategy::React),
                timeout: timeout.unwrap_or_else(|| own_timeout(&llm.connection)),
            };
            Box::pin(strategy::probe(report, plans, client)).await
        }
    }
}

/// The longest time that an answer may take at most, by the times of its provider.
fn own_timeout(connection: &Connection) -> Duration {
    let first = connection
        .first_chunk_timeout
        .unwrap_or(Connection::FIRST_CHUNK_TIMEOUT);
    let stall = connection
        .stall_timeout
        .unwrap_or(Connection::STALL_TIMEOUT);
    connection.answer_timeout.unwrap_or(first + stall)
}

/// The report about a provider, as far as the configuration gives it.
fn configured(config: &Config, name: &str, llm: &LlmProvider) -> ModelReport {
    ModelReport {
        name: name.to_owned(),
        provider: llm.provider.clone(),
        backend: llm.backend().as_str(),
        model: llm.model.clone(),
        used: uses(config, name),
        context_window: Some(llm.context_window).filter(|tokens| *tokens > 0),
        max_output_tokens: llm.generation.max_output_tokens,
        native_tools: llm.generation.native_tools.enabled(),
        thinking: llm.generation.thinking,
        price: llm.price,
        state: State::Unknown,
        key_env: llm.api_key_env.clone(),
        key: KeyState::Unknown,
        address: String::new(),
        credentials: String::new(),
        problem: None,
        answer: None,
        probe: None,
    }
}

/// The report with the answer of the LLM service.
fn checked(report: ModelReport, llm: &LlmProvider, check: Option<&ProviderCheck>) -> ModelReport {
    let Some(check) = check else {
        return unchecked(report, &CheckError::Unsupported);
    };
    let problem = check.error.as_ref().map(|error| Problem {
        code: error.code.clone(),
        provider_status: String::new(),
        message: error.message.clone(),
        fix: advice::of_check(check, &report.name, llm),
    });
    ModelReport {
        state: if problem.is_some() {
            State::Unusable
        } else {
            State::Ready
        },
        key_env: check.key_env.clone(),
        key: KeyState::parse(&check.key_status),
        address: check.address.clone(),
        credentials: check.credentials.clone(),
        problem,
        ..report
    }
}

/// The report when the LLM service has not answered.
fn unchecked(report: ModelReport, error: &CheckError) -> ModelReport {
    let (state, code) = match error {
        CheckError::Unsupported => (State::Unknown, "unknown"),
        CheckError::Unavailable(_) => (State::Unusable, "llm_service_unavailable"),
        CheckError::Refused(_) => (State::Unusable, "llm_service_refused"),
    };
    ModelReport {
        state,
        problem: Some(Problem {
            code: code.to_owned(),
            provider_status: String::new(),
            message: error.to_string(),
            fix: advice::of_service(error),
        }),
        ..report
    }
}

impl KeyState {
    fn parse(word: &str) -> Self {
        match word {
            "set" => Self::Set,
            "not_set" => Self::NotSet,
            "not_permitted" => Self::NotPermitted,
            "unreadable" => Self::Unreadable,
            "not_needed" => Self::NotNeeded,
            // A newer service may know further words.
            _ => Self::Unknown,
        }
    }
}
