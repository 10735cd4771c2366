//! The page `/queue`: waiting alerts, workers and dead letters.

use std::time::Duration;

use maud::{Markup, html};

use crate::ports::{Lane, Unavailable};
use crate::shell::words::{NO_TITLE, brief, moment, plain, whole};
use tarsy_core::readable::format;
use tarsy_engine::ports::WorkerStatus;
use tarsy_reports::{Check, DeadAlert, Verdict};

/// The content of the page `/queue`. A part whose source does not answer shows an error.
#[derive(Debug)]
pub(crate) struct QueuePage {
    pub lanes: Result<Vec<Lane>, Unavailable>,
    pub workers: Vec<WorkerStatus>,
    pub dead: Result<Vec<DeadAlert>, Unavailable>,
    pub checks: Vec<Check>,
}

/// The page below its bar.
pub(crate) fn queue(queue: &QueuePage) -> Markup {
    html! {
        div.head { h1 { "Queue" } }
        section aria-labelledby="h-l" {
            h2 #h-l { "Waiting" }
            @match &queue.lanes {
                Ok(lanes) => (self::lanes(lanes)),
                Err(unavailable) => (no_answer(unavailable)),
            }
        }
        section #workers aria-labelledby="h-w" {
            h2 #h-w { "Workers " span.cnt { (queue.workers.len()) } }
            (workers(&queue.workers))
        }
        section #dead aria-labelledby="h-d" {
            @match &queue.dead {
                Ok(dead) => { h2 #h-d { "Dead letters " span.cnt { (dead.len()) } } (dead_letters(dead)) }
                Err(unavailable) => { h2 #h-d { "Dead letters" } (no_answer(unavailable)) }
            }
        }
        section aria-labelledby="h-c" {
            h2 #h-c { "Checks" }
            (checks(&queue.checks))
            p.cli { "The checks of configuration, models, tools and notifications: " code { "tarsy doctor" } }
        }
    }
}

fn no_answer(unavailable: &Unavailable) -> Markup {
    html! { p.banner role="status" { (whole(&unavailable.to_string())) } }
}

fn lanes(lanes: &[Lane]) -> Markup {
    html! {
        div.scroll tabindex="0" { table.wide {
            thead { tr { th scope="col" { "priority" } th.num scope="col" { "waiting" } th.num scope="col" { "in work" } th.num scope="col" { "oldest" } } }
            tbody { @for lane in lanes {
                tr {
                    td { (lane.priority) } td.num { (lane.waiting) } td.num { (lane.in_work) }
                    td.num { (lane.oldest.map_or_else(|| "–".to_owned(), format::span)) }
                }
            } }
        } }
    }
}

fn workers(workers: &[WorkerStatus]) -> Markup {
    if workers.is_empty() {
        return html! {
            div.empty { p { "No worker has sent its status within the last 15 seconds." } p { "Start one: " code { "tarsy worker" } } }
        };
    }
    html! {
        div.scroll tabindex="0" { table.wide {
            thead { tr {
                th scope="col" { "worker" } th scope="col" { "state" } th.num scope="col" { "since" }
                th.num scope="col" { "busy" } th.num scope="col" { "slots" } th scope="col" { "version" } th scope="col" { "investigates" }
            } }
            tbody { @for worker in workers {
                tr {
                    td { (brief(&worker.name, 80)) }
                    td class=[(worker.state != "claiming").then_some("warn")] {
                        (brief(&worker.state, 40))
                        @if !worker.unavailable.is_empty() { ": " (brief(&worker.unavailable.join(", "), 120)) " unavailable" }
                    }
                    td.num { (format::span(Duration::from_millis(worker.state_ms))) }
                    td.num { (worker.busy.max(u32::try_from(worker.sessions.len()).unwrap_or_default())) } td.num { (worker.slots) }
                    td { (brief(&worker.version, 40)) }
                    td { @for id in worker.sessions.iter().take(8) { a href={ "/sessions/" (id) } { (id.short()) } " " } }
                }
            } }
        } }
    }
}

fn checks(checks: &[Check]) -> Markup {
    let has_fix = checks.iter().any(|check| check.fix.is_some());
    html! {
        div.scroll tabindex="0" { table.wide {
            thead { tr { th scope="col" { "check" } th scope="col" { "verdict" } th scope="col" { "finding" } @if has_fix { th scope="col" { "fix" } } } }
            tbody { @for check in checks {
                tr {
                    td { (brief(&check.check, 40)) }
                    td class=[matches!(check.verdict, Verdict::Warn | Verdict::Fail).then_some("warn")] { (check.verdict.as_str()) }
                    td.text { (brief(&check.detail, 400)) }
                    @if has_fix { td.text { @if let Some(fix) = &check.fix { code { (brief(fix, 200)) } } } }
                }
            } }
        } }
    }
}

fn dead_letters(dead: &[DeadAlert]) -> Markup {
    html! {
        @if dead.is_empty() { p.muted { "No dead letters." } }
        ol.dead { @for letter in dead { li { (dead_letter(letter)) } } }
    }
}

fn dead_letter(letter: &DeadAlert) -> Markup {
    let reason = letter
        .reason
        .map_or_else(|| "unknown".to_owned(), |reason| plain(reason.as_str()));
    html! {
        p.ti { a href={ "/sessions/" (letter.alert_id) } { (brief(letter.title.as_deref().unwrap_or(NO_TITLE), 200)) } " "
            span.muted { (moment(letter.received_at)) " on " (brief(&letter.subject, 120)) } }
        p.err { (reason) @if let Some(detail) = &letter.detail { ": " (brief(detail, 400)) } }
        p.cli { code { "tarsy dead-letters retry " (letter.alert_id.short()) } }
        @if let Some(body) = &letter.body {
            details.raw { summary { "Raw alert" } pre tabindex="0" { (whole(body)) } }
        }
    }
}
