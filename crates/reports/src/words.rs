//! Words about alerts and sessions that lists, reports and pages share.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{AlertReport, DispositionKind, ModelReport, Tokens};
use tarsy_core::intake::headers::RETRY_OF;
use tarsy_core::readable::format::{self, millis};
use tarsy_core::readable::text::{self, Charset};
use tarsy_engine::ports::DeadReason;
use tarsy_engine::worker::probes::PROVIDERS;

/// The state of the alert in words: `completed (final answer) after 6.1 s`.
pub fn state(report: &AlertReport, now: DateTime<Utc>) -> String {
    if let Some(session) = &report.session {
        let took = millis(session.created_at, session.finished_at.unwrap_or(now));
        let took = format::span(Duration::from_millis(took));
        let status = status_word(session.status.as_str());
        let reason = session.stop_reason;
        let reason = reason.map(|reason| status_word(reason.as_str()));
        let reason = reason.filter(|reason| *reason != status);
        let reason = reason.map(|reason| format!(" ({reason})"));
        let cancelling = match (session.finished_at, session.cancel_requested_at) {
            (None, Some(_)) => "; cancelling",
            (Some(_), _) | (_, None) => "",
        };
        let is_over = session.finished_at.is_some();
        let when = if is_over { "after" } else { "for" };
        let mark = session
            .mark
            .map(|mark| format!("{}, ", mark.word()))
            .unwrap_or_default();
        return format!(
            "{mark}{status}{} {when} {took}{cancelling}",
            reason.unwrap_or_default()
        );
    }
    if let (Some(route), Some(list)) = (&report.limited_by, report.joined_session_id) {
        return format!(
            "not investigated: limit of route {route}; see session {}",
            list.short()
        );
    }
    match (report.disposition, report.joined_session_id) {
        (DispositionKind::Joined, Some(session)) => {
            format!("joined session {}: same fingerprint", session.short())
        }
        (DispositionKind::Ended, _) if report.dead_detail.is_some() => {
            report.dead_detail.clone().unwrap_or_default()
        }
        (DispositionKind::Ended, _) => {
            "ended without an investigation: it was resolved before one began".to_owned()
        }
        (DispositionKind::Dead, _) => {
            let reason = report.dead_reason.map_or("unknown", DeadReason::as_str);
            let detail = report.dead_detail.as_deref().unwrap_or_default();
            format!("undeliverable: {reason}: {detail}")
        }
        (DispositionKind::Undecided, _) => {
            "in the queue: a worker has seen it, and nothing has begun".to_owned()
        }
        (disposition @ (DispositionKind::Opened | DispositionKind::Joined), _) => {
            disposition.to_string()
        }
    }
}

/// The session or dead letter that this session repeats.
pub fn retry_of(report: &AlertReport) -> Option<&str> {
    report.headers.get(RETRY_OF)?.as_str()
}

/// A model with its calls and tokens.
pub fn model(model: &ModelReport) -> String {
    let calls = format::count(model.calls, "call");
    let failed = if model.failed > 0 {
        format!(" ({} failed)", model.failed)
    } else {
        String::new()
    };
    let name = if model.backend == "scripted" {
        format!("{} (a recording)", model.provider)
    } else {
        format!("{} {}", model.provider, model.model)
    };
    format!("{name}: {calls}{failed}, {}", tokens(model.usage))
}

/// `4.1 k in (1.9 k cached) 0.6 k out 0.3 k thinking`
pub fn tokens(usage: Tokens) -> String {
    let input = format::tokens(usage.input);
    let output = format::tokens(usage.output);

    let some = |tokens: i64| {
        Some(tokens)
            .filter(|tokens| *tokens > 0)
            .map(format::tokens)
    };
    let cached = some(usage.cached)
        .map(|tokens| format!(" ({tokens} cached)"))
        .unwrap_or_default();
    let thinking = some(usage.thinking)
        .map(|tokens| format!(" {tokens} thinking"))
        .unwrap_or_default();
    format!("{input} in{cached} {output} out{thinking}")
}

/// `2026-11-21 21:04:11Z`
pub fn moment(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// `timed out` for `timed_out`.
pub fn status_word(status: &str) -> String {
    status.replace('_', " ")
}

/// The reason why workers claim nothing, by the services that they name: `the LLM service does not answer`. It ends
/// with the command that says more, where there is one.
pub fn unavailable(services: &[&str]) -> String {
    let short = unavailable_in_short(services);
    if lacks_provider(services) {
        format!("{short} ({WHY_NO_PROVIDER})")
    } else {
        short
    }
}

/// The command that says why no provider of models can be called.
pub const WHY_NO_PROVIDER: &str = "tarsy models --probe says why";

/// Whether workers wait for a provider of models.
pub fn lacks_provider(services: &[&str]) -> bool {
    services.contains(&PROVIDERS)
}

/// The sentence of [`unavailable`] without the command.
pub fn unavailable_in_short(services: &[&str]) -> String {
    let names: Vec<String> = services
        .iter()
        .filter(|service| **service != PROVIDERS)
        .map(|service: &&str| match *service {
            "llm-service" => "the LLM service".to_owned(),
            "database" => "the database".to_owned(),
            "nats" => "NATS".to_owned(),
            other => text::one_line(other, Charset::Unicode),
        })
        .collect();
    let silent = match names.as_slice() {
        [] => None,
        [one] => Some(format!("{one} does not answer")),
        [rest @ .., last] => Some(format!("{} and {last} do not answer", rest.join(", "))),
    };
    let models = lacks_provider(services).then(|| "no provider of models can be called".to_owned());
    let causes: Vec<String> = silent.into_iter().chain(models).collect();
    // A worker that has just started has not asked any service.
    if causes.is_empty() {
        "the workers check their services".to_owned()
    } else {
        causes.join("; ")
    }
}

/// The reason why no investigation of the alert began; `None` if one did, or may.
pub fn why_ended(report: &AlertReport) -> Option<&str> {
    let ended = report.disposition == DispositionKind::Ended && report.session.is_none();
    let detail = report.dead_detail.as_deref();
    ended.then(|| detail.unwrap_or("it was resolved before one began"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_pause_has_a_sentence_for_services_and_one_for_providers() {
        assert_eq!(unavailable(&[]), "the workers check their services");
        assert_eq!(
            unavailable(&["llm-service"]),
            "the LLM service does not answer"
        );
        assert_eq!(
            unavailable(&["database", "nats"]),
            "the database and NATS do not answer"
        );
        let why = "no provider of models can be called (tarsy models --probe says why)";
        assert_eq!(unavailable(&["providers"]), why);
        assert_eq!(
            unavailable(&["nats", "providers"]),
            format!("NATS does not answer; {why}")
        );
        assert_eq!(
            unavailable_in_short(&["providers"]),
            "no provider of models can be called"
        );
    }
}
