//! The sidebar of a session: the alert, the agents, the delivery.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;

use super::Session;
use super::head::tokens;
use crate::shell::words::{NO_TITLE, address, brief, moment, plain, whole};
use tarsy_core::chain::RunStatus;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers::ASKED_BY;
use tarsy_core::readable::format;
use tarsy_reports::words::retry_of;
use tarsy_reports::{
    AlertReport, ExecutionReport, ModelReport, SeenBefore, SessionReport, StageReport,
};

/// Labels that are shown; all of them are in the body.
const MAX_LABELS: usize = 24;
/// Joined alerts that are listed.
const MAX_JOINED: usize = 20;
/// The number of listed alerts above the limit of a route.
const MAX_LISTED: usize = 200;
/// Bytes of the alert in the page.
const MAX_BODY: usize = 16 * 1024;

pub(super) fn sidebar(page: &Session<'_>) -> Markup {
    let report = page.report;
    html! {
        aside #beside aria-label="Alert and agents" {
            (alert(report))
            @if let Some(seen) = &report.seen_before { (seen_before(seen)) }
            @if let Some(session) = report.session.as_ref().filter(|session| session.status != RunStatus::Limited) {
                (agents(session, page))
            }
            (delivery(report))
        }
    }
}

fn alert(report: &AlertReport) -> Markup {
    let body = report.body.as_deref().unwrap_or_default();
    let fields = Fields::parse(body);
    if body.is_empty() && report.joined.is_empty() {
        return html! {};
    }
    let shown = body
        .get(..body.floor_char_boundary(MAX_BODY))
        .unwrap_or_default();
    html! {
        section {
            h2 { (if report.parent_id.is_some() { "Question" } else { "Alert" }) }
            @if let Some(summary) = fields.summary { p.sum { (brief(summary, 300)) } }
            @if !fields.labels.is_empty() {
                dl { @for (name, value) in &fields.labels { div { dt { (brief(name, 60)) } dd { (brief(value, 200)) } } } }
            }
            @if let Some(runbook) = fields.runbook { p { (address(runbook, "Runbook")) } }
            @if !body.is_empty() {
                details.raw #alert {
                    summary { "Raw alert" }
                    pre tabindex="0" { (whole(shown)) @if shown.len() < body.len() { "\n…" } }
                }
            }
            @if !report.joined.is_empty() {
                (others(report))
            }
        }
    }
}

/// The earlier investigations of the alert. What they found is data: a model wrote it.
fn seen_before(seen: &SeenBefore) -> Markup {
    html! {
        section.seen aria-labelledby="h-seen" {
            h2 #h-seen { "Seen before" }
            p { (seen.in_words()) "." }
            ul { @for earlier in &seen.sessions {
                li {
                    a href={ "/sessions/" (earlier.session_id) } { (earlier.session_id.short()) } " "
                    (moment(earlier.finished_at))
                    @let words = earlier.in_words();
                    @if !words.is_empty() { ", " (words) }
                    p { (brief(earlier.cause.as_deref().unwrap_or("It names no cause."), 300)) }
                }
            } }
        }
    }
}

/// The alerts that joined; those above the limit of a route at once, because the list is all that there is of them.
fn others(report: &AlertReport) -> Markup {
    let is_list = report.limited_by.is_some();
    let (what, shown) = if is_list {
        ("above the limit, too", MAX_LISTED)
    } else {
        ("joined", MAX_JOINED)
    };
    let more = report.joined.len().saturating_sub(shown);
    html! {
        details.raw open[is_list] {
            summary { "+" (report.joined.len()) " " (what) }
            ul {
                @for joined in report.joined.iter().take(shown) {
                    li { a href={ "/sessions/" (joined.alert_id) } { (joined.alert_id.short()) } " "
                        (brief(joined.title.as_deref().unwrap_or(NO_TITLE), 120)) }
                }
                @if is_list && more > 0 { li { "and " (more) " more" } }
            }
        }
    }
}

/// The fields in the text of an alert, as intake writes them line by line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fields<'a> {
    labels: Vec<(&'a str, &'a str)>,
    summary: Option<&'a str>,
    runbook: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn parse(body: &'a str) -> Self {
        let mut fields = Self::default();
        let mut section = "";
        for line in body.lines().take(200) {
            let Some(inner) = line.strip_prefix("  ") else {
                section = line.trim_end();
                continue;
            };
            let Some((name, value)) = inner.split_once(": ") else {
                continue;
            };
            match (section, name) {
                ("labels:", "alertname" | "severity") => {}
                ("labels:", _) if fields.labels.len() < MAX_LABELS => {
                    fields.labels.push((name, value))
                }
                ("annotations:", "summary") => fields.summary = Some(value),
                ("annotations:", "runbook_url") => fields.runbook = Some(value),
                (_, _) => {}
            }
        }
        fields
    }
}

fn agents(session: &SessionReport, page: &Session<'_>) -> Markup {
    let executions: Vec<&ExecutionReport> = session
        .stages
        .iter()
        .flat_map(StageReport::ordered)
        .collect();
    let usage = tokens(session);
    let if_any = |tokens: i64, word: &str| {
        if tokens > 0 {
            format!(", {} {word}", format::tokens(tokens))
        } else {
            String::new()
        }
    };
    html! {
        section {
            h2 { "Agents" }
            div.scroll tabindex="0" { table {
                thead { tr {
                    th scope="col" { "agent" } th scope="col" { "state" } th.num scope="col" { "iter." }
                    th.num scope="col" { "calls" } th.num scope="col" { "took" }
                } }
                tbody { @for execution in executions {
                    tr {
                        td { @if execution.is_sub_agent() { "└ " } (brief(&execution.agent, 60)) } td { (plain(execution.status.as_str())) }
                        td.num { (execution.iteration) } td.num { (execution.tool_calls) }
                        td.num { (took(execution, page)) }
                    }
                } }
            } }
            dl {
                div { dt { "chain" } dd { (brief(&session.chain, 80)) } }
                @for model in &session.models { div { dt { "model" } dd { (model_name(model)) } } }
                @if usage.input > 0 {
                    div { dt { "tokens" } dd {
                        (format::tokens(usage.input)) " in" (if_any(usage.cached, "cached")) ", " (format::tokens(usage.output))
                        " out" (if_any(usage.thinking, "thinking"))
                    } }
                }
            }
            @if page.viewer.access.may_see_prompts && !session.models.is_empty() {
                p { a href={ "/sessions/" (page.report.alert_id) "/calls" } { "What the model saw" } }
            }
        }
    }
}

fn took(execution: &ExecutionReport, page: &Session<'_>) -> String {
    let until = execution.finished_at.unwrap_or(page.now);
    format::span(Duration::from_millis(format::millis(
        execution.started_at,
        until,
    )))
}

fn model_name(model: &ModelReport) -> String {
    let provider = brief(&model.provider, 80);
    if model.backend == "scripted" {
        return format!("{provider} (a recording; no model was asked)");
    }
    let name = brief(&model.model, 120);
    let calls = format::count(model.calls, "call");
    let failed = if model.failed > 0 {
        format!(" ({} failed)", model.failed)
    } else {
        String::new()
    };
    format!("{provider} {name}: {calls}{failed}")
}

fn delivery(report: &AlertReport) -> Markup {
    let times = format::count(report.deliveries, "time");
    let once = if report.session.is_some() && report.deliveries > 1 {
        ", investigated once"
    } else {
        ""
    };
    html! {
        section {
            h2 { "Delivery" }
            dl {
                div { dt { "subject" } dd { (brief(&report.subject, 120)) } }
                @if let Some(by) = report.headers.get(ASKED_BY).and_then(Value::as_str) {
                    div { dt { "sent by" } dd { (brief(by, 100)) } }
                }
                @if let Some(old) = retry_of(report).and_then(SessionId::parse) {
                    div { dt { "rerun of" } dd { a href={ "/sessions/" (old) } { (old.short()) } } }
                }
                div { dt { "delivered" } dd { (times) (once) } }
                @if let Some(session) = &report.session {
                    div { dt { "owners" } dd { (session.previous_workers.len() + 1) } }
                }
                @if let Some(fingerprint) = &report.fingerprint {
                    div { dt { "fingerprint" } dd { (brief(fingerprint, 160)) } }
                }
                div { dt { "id" } dd.wrap { (report.alert_id) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_summary_and_runbook_are_read_from_the_text_of_an_alert() {
        let body = "Title\nlabels:\n  alertname: A\n  pod: x\n  team: y: z\nannotations:\n  summary: it fails\n  \
                    runbook_url: https://runbooks.example.com/a\n\nfiring alert 1 of 1\n  started: now\n";
        let expected = Fields {
            labels: vec![("pod", "x"), ("team", "y: z")],
            summary: Some("it fails"),
            runbook: Some("https://runbooks.example.com/a"),
        };
        assert_eq!(Fields::parse(body), expected);
        assert_eq!(Fields::parse("any text"), Fields::default());
    }
}
