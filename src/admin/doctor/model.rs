//! Checks the LLM service, and whether it can call the providers of the configuration.

use std::sync::Arc;

use super::{Check, Checked, Verdict};
use crate::admin::models::{Ask, ModelReport, State, report, uses};
use crate::process::connect::Addresses;
use tarsy_config::{Backend, Config, LlmProvider};
use tarsy_llm::client::{Client, HEALTH_CHECK, Health, ServiceFault};

/// Checks the LLM service; then each provider, if there is a configuration.
pub(super) async fn check(
    addresses: Arc<Addresses>,
    config: Option<Arc<Config>>,
    ask: Ask,
) -> Checked {
    let address = &addresses.llm_addr;
    let failed = |detail: String| Check::new("llm-service", Verdict::Fail, detail);
    let client = addresses.llm().map_err(|error| failed(error.to_string()))?;
    let detail = match client.check().await {
        Ok(Health::Serving) => format!("serving at {address}"),
        Ok(Health::NoHealthCheck) => {
            format!(
                "answers at {address} without a health check ({HEALTH_CHECK}): only a call shows whether it works"
            )
        }
        Err(fault) => {
            let detail = if let ServiceFault::Unavailable(reason) = &fault {
                format!("no answer from {address}: {reason}")
            } else {
                format!("{address}: {fault}")
            };
            return Err(failed(detail).fix(fault.fix()));
        }
    };
    let mut checks = vec![Check::new("llm-service", Verdict::Ok, detail)];
    if let Some(config) = config {
        checks.extend(providers(&config, &client, ask).await);
    }
    Ok(checks)
}

async fn providers(config: &Config, client: &Client, ask: Ask) -> Vec<Check> {
    // The answer of a recording, or of a model that is not used, proves nothing.
    let (asked, rest): (Vec<_>, Vec<_>) =
        config
            .llm_providers
            .iter()
            .partition(|(name, llm): &(&String, &LlmProvider)| {
                !uses(config, name).is_empty() && llm.backend() != Backend::Scripted
            });
    let mut reports = report(config, &names(&asked), client, ask).await;
    reports.extend(report(config, &names(&rest), client, Ask::Nothing).await);
    reports.iter().map(checked).collect()
}

fn names<'a>(providers: &[(&'a String, &LlmProvider)]) -> Vec<&'a str> {
    providers.iter().map(|(name, _)| name.as_str()).collect()
}

fn checked(report: &ModelReport) -> Check {
    let about = format!(
        "{} ({}, backend {})",
        report.model, report.provider, report.backend
    );
    let check = |verdict, detail| Check::new(format!("model {}", report.name), verdict, detail);
    let Some(problem) = &report.problem else {
        let replays = if report.backend == "scripted" {
            "; replays recordings, no model is asked"
        } else {
            ""
        };
        let answered = match &report.answer {
            Some(answer) => format!("; answered in {} ms", answer.took_ms),
            None if report.used.is_empty() || !replays.is_empty() => String::new(),
            None => "; not asked, so a wrong key would not show".to_owned(),
        };
        let credentials = match report.credentials.as_str() {
            "" => String::new(),
            used => format!("; uses {used}"),
        };
        let detail = format!("{about}{answered}{credentials}{replays}");
        return check(Verdict::Ok, detail);
    };
    let verdict = match report.state {
        State::Unusable if !report.used.is_empty() => Verdict::Fail,
        State::Unusable | State::Unknown | State::Ready => Verdict::Warn,
    };
    let unused = if report.used.is_empty() {
        "; the configuration does not use it"
    } else {
        ""
    };
    Check {
        fix: problem.fix.clone(),
        ..check(verdict, format!("{about}: {}{unused}", problem.message))
    }
}
