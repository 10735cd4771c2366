//! The header of a session's page: title, measures and actions.

use std::time::Duration;

use maud::{Markup, html};

use super::Session;
use super::without_session;
use crate::pages::submit;
use crate::shell::words::{brief, moment, plain, severity, status, title, waiting_for_approval};
use tarsy_core::chain::RunStatus;
use tarsy_core::execution::entry::StopReason;
use tarsy_core::readable::format;
use tarsy_reports::{SessionReport, Tokens};

pub(super) fn head(page: &Session<'_>) -> Markup {
    let report = page.report;
    let id = report.alert_id;
    html! {
        div.head #head {
            p.crumb {
                a href="/" { "Sessions" } span aria-hidden="true" { "/" }
                @if let Some(parent) = report.parent_id {
                    a href={ "/sessions/" (parent) } { (parent.short()) } span aria-hidden="true" { "/" }
                }
                span.id { (id.short()) }
                button.act type="button" data-copy-link="" { "Copy link" }
            }
            h1 { (title(page.title())) }
            p.meta {
                @match &report.session {
                    Some(session) => {
                        @if session.waits_for_approval { (waiting_for_approval()) } @else { (status(session.status)) }
                        (severity(report.severity)) (measures(session, page)) }
                    None => {
                        (without_session::status(report)) (severity(report.severity))
                        span { "received " (moment(report.received_at)) }
                    }
                }
                @if page.offers_rerun() { (submit::link(id, "Rerun")) }
            }
        }
    }
}

fn measures(session: &SessionReport, page: &Session<'_>) -> Markup {
    // Nothing was investigated: there is nothing to measure.
    if session.status == RunStatus::Limited {
        return html! { span { (moment(session.created_at)) } };
    }
    let ms = format::millis(session.created_at, session.finished_at.unwrap_or(page.now));
    let took = format::span(Duration::from_millis(ms));
    let executions = || session.stages.iter().flat_map(|stage| &stage.executions);
    let iterations: i64 = executions().map(|each| i64::from(each.iteration)).sum();
    let calls: i64 = executions().map(|each| each.tool_calls).sum();
    let is_running = session.status == RunStatus::Running;
    let reason = session
        .stop_reason
        .filter(|reason| adds(*reason, session.status))
        .map(|reason| plain(reason.as_str()));
    html! {
        @if let Some(mark) = session.mark { span.warn { (mark.word()) } }
        @if let Some(reason) = reason { span { (reason) } }
        @if is_running { span data-ms=(ms) { "for " (took) } } @else { span { "in " (took) } }
        span { (moment(session.created_at)) }
        @if is_running { span { "deadline " (moment(session.deadline_at)) } }
        @if is_running && session.cancel_requested_at.is_some() { span.warn { "cancelling" } }
        (workers(session))
        span { (format::count(iterations, "iteration")) ", " (format::count(calls, "call")) }
        @let tokens = tokens(session);
        @if tokens.input > 0 { span { (format::tokens(tokens.input)) " in, " (format::tokens(tokens.output)) " out" } }
        @if is_running && page.viewer.access.may_cancel {
            a.danger href={ "/sessions/" (page.report.alert_id) "/cancel" } { "Cancel" }
        }
    }
}

/// Owners of which the head names as many, the newest.
const MAX_OWNERS: usize = 4;

/// `worker w1 ↻ w2`: each takeover has its sign.
fn workers(session: &SessionReport) -> Markup {
    let before = &session.previous_workers;
    let hidden = before.len().saturating_sub(MAX_OWNERS - 1);
    let taken_over = html! { " " span.re title="taken over by" aria-hidden="true" { "↻" } span.vh { "taken over by" } " " };
    html! {
        span { "worker " @if hidden > 0 { "…" (taken_over) }
            @for worker in before.iter().skip(hidden) { (brief(worker, 80)) (taken_over) }
            (brief(&session.worker, 80)) }
    }
}

/// Whether a reason says more than the state of its session.
fn adds(reason: StopReason, status: RunStatus) -> bool {
    use StopReason as Reason;
    !matches!(
        (reason, status),
        (Reason::FinalAnswer, _)
            | (Reason::Error, RunStatus::Failed)
            | (Reason::Deadline, RunStatus::TimedOut)
            | (Reason::Cancelled, RunStatus::Cancelled)
    )
}

/// The tokens of all models.
pub(super) fn tokens(session: &SessionReport) -> Tokens {
    let mut sum = Tokens::default();
    for Tokens {
        input,
        cached,
        output,
        thinking,
    } in session.models.iter().map(|model| model.usage)
    {
        sum.input += input;
        sum.cached += cached;
        sum.output += output;
        sum.thinking += thinking;
    }
    sum
}
