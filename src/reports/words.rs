//! Words about alerts and sessions that lists, reports and pages share.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{AlertReport, DispositionKind, ModelReport, Tokens};
use crate::engine::ports::DeadReason;
use crate::investigation::intake::headers::RETRY_OF;
use crate::investigation::readable::format::{self, millis};

/// The state of the alert in words: `completed (final answer) after 6.1 s`.
pub fn state(report: &AlertReport, now: DateTime<Utc>) -> String {
    if let Some(session) = &report.session {
        let took = millis(session.created_at, session.finished_at.unwrap_or(now));
        let took = format::span(Duration::from_millis(took));
        let status = status_word(session.status.as_str());
        let reason = session.stop_reason.map(|reason| status_word(reason.as_str())).filter(|reason| *reason != status);
        let reason = reason.map(|reason| format!(" ({reason})"));
        let cancelling = match (session.finished_at, session.cancel_requested_at) {
            (None, Some(_)) => "; cancelling",
            (Some(_), _) | (_, None) => "",
        };
        let when = if session.finished_at.is_some() { "after" } else { "for" };
        return format!("{status}{} {when} {took}{cancelling}", reason.unwrap_or_default());
    }
    match (report.disposition, report.joined_session_id) {
        (DispositionKind::Joined, Some(session)) => format!("joined session {}: same fingerprint", session.short()),
        (DispositionKind::Ended, _) if report.dead_detail.is_some() => report.dead_detail.clone().unwrap_or_default(),
        (DispositionKind::Ended, _) => "ended without an investigation: it was resolved before one began".to_owned(),
        (DispositionKind::Dead, _) => {
            let reason = report.dead_reason.map_or("unknown", DeadReason::as_str);
            let detail = report.dead_detail.as_deref().unwrap_or_default();
            format!("undeliverable: {reason}: {detail}")
        }
        (DispositionKind::Undecided, _) => "in the queue: a worker has seen it, and nothing has begun".to_owned(),
        (disposition @ (DispositionKind::Opened | DispositionKind::Joined), _) => disposition.to_string(),
    }
}

/// The session or dead letter that this session repeats.
pub fn retry_of(report: &AlertReport) -> Option<&str> {
    report.headers.get(RETRY_OF).and_then(serde_json::Value::as_str)
}

/// A model with its calls and tokens.
pub fn model(model: &ModelReport) -> String {
    let calls = format::count(model.calls, "call");
    let failed = if model.failed > 0 { format!(" ({} failed)", model.failed) } else { String::new() };
    let name = if model.backend == "scripted" {
        format!("{} (a recording)", model.provider)
    } else {
        format!("{} {}", model.provider, model.model)
    };
    format!("{name}: {calls}{failed}, {}", tokens(model.usage))
}

/// `4.1 k in (1.9 k cached) 0.6 k out 0.3 k thinking`
pub fn tokens(usage: Tokens) -> String {
    let (input, output) = (format::tokens(usage.input), format::tokens(usage.output));
    let some = |tokens: i64| Some(tokens).filter(|tokens| *tokens > 0).map(format::tokens);
    let cached = some(usage.cached).map(|tokens| format!(" ({tokens} cached)")).unwrap_or_default();
    let thinking = some(usage.thinking).map(|tokens| format!(" {tokens} thinking")).unwrap_or_default();
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
