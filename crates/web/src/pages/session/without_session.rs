//! The page of an alert without a session: joined, queued, a dead letter, or not investigated.

use maud::{Markup, html};

use crate::shell::words::{command, other_status, plain, queued, status as status_of, whole};
use tarsy_core::chain::RunStatus;
use tarsy_core::ids::SessionId;
use tarsy_reports::{AlertReport, DispositionKind};

/// Whether a session may still begin.
pub(super) fn is_waiting(report: &AlertReport) -> bool {
    report.session.is_none() && report.disposition == DispositionKind::Undecided
}

pub(super) fn status(report: &AlertReport) -> Markup {
    match report.disposition {
        DispositionKind::Joined if report.limited_by.is_some() => status_of(RunStatus::Limited),
        DispositionKind::Joined => other_status("joined"),
        DispositionKind::Dead => {
            html! { span.st.failed { i aria-hidden="true" { "✕" } "dead letter" } }
        }
        DispositionKind::Ended => other_status("not investigated"),
        DispositionKind::Undecided | DispositionKind::Opened => queued(),
    }
}

/// The outcome of the alert, shown instead of an answer.
pub(super) fn answer(report: &AlertReport) -> Markup {
    let detail = report.dead_detail.as_deref().map(whole);
    if let (Some(route), Some(list)) = (&report.limited_by, report.joined_session_id) {
        return limited(report, route, list);
    }
    match report.disposition {
        DispositionKind::Joined => html! {
            div.part {
                h2 { "Joined" }
                div {
                    p { "An alert with the same fingerprint was investigated already, or is investigated now." }
                    @if let Some(session) = report.joined_session_id {
                        p { a href={ "/sessions/" (session) } { "Session " (session.short()) } " covers this alert." }
                    }
                }
            }
        },
        DispositionKind::Dead => html! {
            div.part.why.bad {
                h2 { "Dead letter" }
                div {
                    p { (report.dead_reason.map_or_else(|| "unknown".to_owned(), |reason| plain(reason.as_str())))
                        @if let Some(detail) = &detail { ": " (detail) } }
                }
            }
            div.part.next {
                h2 { "Do next" }
                div {
                    p { "Fix the cause, then publish the alert again:" }
                    (command(&format!("tarsy dead-letters retry {}", report.alert_id.short())))
                }
            }
        },
        DispositionKind::Ended => html! {
            div.part {
                h2 { "Not investigated" }
                div { p { (detail.as_deref().unwrap_or("It was resolved before an investigation began.")) } }
            }
        },
        DispositionKind::Undecided | DispositionKind::Opened => html! {
            div.wait { p { "In the queue: a worker has seen this alert, and no step has been committed yet. This page updates by itself." } }
        },
    }
}

/// Above the limit of its route.
fn limited(report: &AlertReport, route: &str, list: SessionId) -> Markup {
    html! {
        div.part.why {
            h2 { "Not investigated" }
            div {
                p { "Route " (whole(route)) " had opened as many investigations in an hour as it may. "
                    a href={ "/sessions/" (list) } { "Session " (list.short()) } " lists this alert with the others." }
            }
        }
        div.part.next {
            h2 { "Do next" }
            div {
                p { "Raise max_per_hour of the route, or investigate this alert alone:" }
                (command(&format!("tarsy sessions rerun {}", report.alert_id.short())))
            }
        }
    }
}
