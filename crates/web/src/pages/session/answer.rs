//! The answer of an investigation: cause, evidence and next steps, or the reason why there is no analysis.

use maud::{Markup, html};

use super::{Session, last_event, without_session};
use crate::markdown::{self, Cites};
use crate::pages::submit;
use crate::shell::words::{command, plain, sentence, sources, whole};
use tarsy_core::chain::RunStatus;
use tarsy_core::summary::{self, Command, Fields, below, fields};
use tarsy_core::timeline::rows::footnotes;
use tarsy_reports::{AlertReport, SessionReport};

pub(super) fn section(page: &Session<'_>) -> Markup {
    let report = page.report;
    html! {
        section.answer #answer aria-label="Answer" {
            @match &report.session {
                Some(session) if session.final_analysis.is_some() => (found(session, report)),
                Some(session) if session.status == RunStatus::Running => (not_yet(session)),
                Some(session) => (nothing(page, session)),
                None => (without_session::answer(report)),
            }
        }
        (tools(page))
    }
}

/// The fields of an analysis, then the rest of it; one without fields is shown whole.
fn found(session: &SessionReport, report: &AlertReport) -> Markup {
    let last = last_event(Some(session));
    let cites = report
        .parent_id
        .map_or_else(|| Cites::of_page(last), Cites::of_investigation);
    let analysis = session.final_analysis.as_deref().unwrap_or_default();
    // An answer to a question is shown whole.
    let fields = match &session.executive_summary {
        Some(summary) if report.parent_id.is_none() => Some(fields(summary)),
        Some(_) | None => None,
    };
    let notes = footnotes(analysis, Some(&session.citations));
    let rest = if fields.is_some() {
        below(&notes.text)
    } else {
        notes.text.as_str()
    };
    let words = rest.split_whitespace().count();
    html! {
        @if let Some(mark) = session.mark { p.late role="note" { (mark.sentence()) } }
        @let review = session.review.as_ref().and_then(|review| review.beside(session.mark));
        @if let Some(review) = review { p role="note" { (review) } }
        @if let Some(fields) = &fields { (card(fields, last)) }
        @let has_sources = notes.sources().next().is_some();
        @if words > 0 || has_sources {
            details.more open[fields.is_none()] {
                summary { (if fields.is_some() { "More of the analysis " } else { "Whole analysis " }) span { (words) " words" } }
                div.md { (markdown::cited_html(rest, cites)) @if has_sources { h3 { "Sources" } (sources(&notes)) } }
            }
        }
        @if session.late_updates() > 0 {
            p.late { (session.late_updates()) " changes of the alert came too late for this analysis." }
        }
    }
}

/// The fields that decide what a person does, in the order of the form.
fn card(fields: &Fields, last: u32) -> Markup {
    let sure = fields.sureness();
    html! {
        @if let Some(cause) = &fields.cause {
            div.part.cause { h2 { "Cause" } p { (markdown::line(&sentence(cause), last)) } }
        }
        @for (label, text) in [("Sure", &sure), ("Now", &fields.now)] {
            @if let Some(text) = text { div.part.ev { h2 { (label) } p { (markdown::line(text, last)) } } }
        }
        @match fields.evidence.as_slice() {
            [] => {},
            [only] => div.part.ev { h2 { "Evidence" } p { (markdown::line(only, last)) } },
            several => div.part.ev {
                h2 { "Evidence" }
                ul { @for fact in several { li { (markdown::line(fact, last)) } } }
            },
        }
        @if let Some(next_step) = &fields.next { div.part.next { h2 { "Do next" } div { (next(next_step, last)) } } }
        @if let Some(text) = &fields.not_seen { div.part.ev { h2 { "Not seen" } p { (markdown::line(text, last)) } } }
    }
}

/// The next step, which may begin with a command.
fn next(text: &str, last: u32) -> Markup {
    let Some(Command { text, rest }) = summary::command(text) else {
        return html! { p { (markdown::line(text, last)) } };
    };
    let shown = whole(text);
    html! {
        (command(&shown))
        @if !shown.is_ascii() { p.warn { "This command has characters that are not ASCII: check it before you run it." } }
        @if !rest.is_empty() { p { (markdown::line(&sentence(rest), last)) } }
    }
}

fn not_yet(session: &SessionReport) -> Markup {
    let calls: Vec<_> = session
        .tool_calls
        .iter()
        .filter_map(|call| Some((call.event?, call.tool.as_str())))
        .collect();
    let newest = calls.iter().rev().take(6).rev();
    html! {
        div.wait {
            p { "No answer yet."
                @if !calls.is_empty() {
                    " Looked at so far: "
                    @for (index, (event, tool)) in newest.enumerate() {
                        @if index > 0 { ", " } a href={ "#" (event) } { (whole(tool)) }
                    }
                    "."
                }
            }
        }
    }
}

/// A session that has ended without an analysis: the reason, then what to do.
fn nothing(page: &Session<'_>, session: &SessionReport) -> Markup {
    let id = page.report.alert_id.short();
    let advice = match session.status {
        RunStatus::Cancelled => "It was cancelled. To investigate it again:",
        RunStatus::Limited => {
            "Investigate an alert of the list, or raise max_per_hour of its route. To investigate this one:"
        }
        RunStatus::TimedOut => "It took longer than its deadline allows. To investigate it again:",
        RunStatus::Unknown(_) | RunStatus::Running | RunStatus::Completed | RunStatus::Failed => {
            "Fix the cause, then investigate it again:"
        }
    };
    let is_bad = !matches!(session.status, RunStatus::Cancelled | RunStatus::Limited);
    html! {
        div class={ "part why" @if is_bad { " bad" } } {
            h2 { (why_there_is_none(session.status)) }
            div {
                @match &session.error {
                    Some(error) => p { (sentence(&whole(error))) },
                    None => p { (session.stop_reason.map_or_else(|| plain(session.status.as_str()), |reason| plain(reason.as_str()))) },
                }
            }
        }
        div.part.next {
            h2 { "Do next" }
            div {
                p { (advice) }
                @if page.offers_rerun() { p { (submit::link(page.report.alert_id, "Investigate it again")) } }
                (command(&format!("tarsy sessions rerun {id}")))
            }
        }
    }
}

fn why_there_is_none(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Cancelled => "Cancelled",
        RunStatus::Limited => "Not investigated",
        RunStatus::Unknown(_)
        | RunStatus::Running
        | RunStatus::Completed
        | RunStatus::Failed
        | RunStatus::TimedOut => "No analysis",
    }
}

/// The same content in other forms.
fn tools(page: &Session<'_>) -> Markup {
    let id = page.report.alert_id;
    html! {
        p.tools {
            a href={ "/sessions/" (id) "/report.md" } { "Report (Markdown)" }
            button.act type="button" data-print="" { "Print" }
            a href={ "/api/v1/sessions/" (id) } download={ "tarsy-" (id.short()) ".json" } { "JSON" }
            span.cli { code { "tarsy watch " (id.short()) } }
        }
    }
}
