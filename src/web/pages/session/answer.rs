//! The answer: cause, evidence and next steps, or the reason why the investigation has no analysis.

use maud::{Markup, html};

use super::{Session, elsewhere, last_event};
use crate::investigation::chain::RunStatus;
use crate::investigation::timeline::rows::footnotes;
use crate::reports::{AlertReport, SessionReport};
use crate::web::markdown::{self, Cites};
use crate::web::pages::words::{address, brief, plain, sentence, whole};

pub(super) fn section(page: &Session<'_>) -> Markup {
    let report = page.report;
    html! {
        section.answer #answer aria-label="Answer" {
            @match &report.session {
                Some(session) if session.final_analysis.is_some() => (found(session, report)),
                Some(session) if session.status == RunStatus::Running => (not_yet(session)),
                Some(session) => (nothing(page, session)),
                None => (elsewhere::answer(report)),
            }
        }
        (tools(page))
    }
}

/// The parts of a summary, or the beginning of an analysis that has none.
fn found(session: &SessionReport, report: &AlertReport) -> Markup {
    let last = last_event(Some(session));
    let cites = report.parent_id.map_or_else(|| Cites::of_page(last), Cites::of_investigation);
    let analysis = session.final_analysis.as_deref().unwrap_or_default();
    let summary = session.executive_summary.as_deref().unwrap_or_default();
    let parts: Vec<_> = summary.lines().filter_map(|line| line.split_once(": ")).collect();
    let words = analysis.split_whitespace().count();
    html! {
        @if let Some(mark) = session.mark { p.late role="note" { (mark.sentence()) } }
        @for (label, text) in &parts {
            @match *label {
                "Cause" => { div.part.cause { h2 { "Cause" } p { (markdown::line(&sentence(text), last)) } } }
                "Do next" => { div.part.next { h2 { "Do next" } div { (next(text, last)) } } }
                _ => { div.part.ev { h2 { (brief(label, 60)) } p { (markdown::line(text, last)) } } }
            }
        }
        details.more open[parts.is_empty()] {
            summary { "Whole analysis " span { (words) " words" } }
            div.md { (with_sources(analysis, session, cites)) }
        }
        @if session.late_updates() > 0 {
            p.late { (session.late_updates()) " changes of the alert came too late for this analysis." }
        }
    }
}

/// An analysis with the pages that it cites below it.
fn with_sources(analysis: &str, session: &SessionReport, cites: Cites) -> Markup {
    let notes = footnotes(analysis, Some(&session.citations));
    let sources: Vec<_> = notes.sources().collect();
    html! {
        (markdown::cited_html(&notes.text, cites))
        @if !sources.is_empty() {
            h3 { "Sources" }
            ul.sources {
                @for (mark, source) in &sources {
                    li { (mark) " " (address(&source.uri, if source.title.is_empty() { &source.uri } else { &source.title })) }
                }
            }
        }
    }
}

/// A longer text in back quotes is no command.
const MAX_COMMAND: usize = 2_000;

/// What to do next: a command stands alone, so that it can be copied.
fn next(text: &str, last: u32) -> Markup {
    let Some(command) = command(text) else { return html! { p { (markdown::line(text, last)) } } };
    let shown = whole(command.text);
    let rest = command.rest.trim_start_matches(['.', ',', ';', ':', ' ']);
    html! {
        div.cmd {
            code { (shown) }
            button.copy type="button" data-copy-before="" aria-label="Copy the command" { "Copy" }
        }
        @if !shown.is_ascii() { p.warn { "This command has characters that are not ASCII: check it before you run it." } }
        @if !rest.is_empty() { p { (markdown::line(&sentence(rest), last)) } }
    }
}

/// A command at the beginning of a text, in back quotes.
struct Command<'a> {
    text: &'a str,
    rest: &'a str,
}

fn command(text: &str) -> Option<Command<'_>> {
    let inside = text.trim_start().strip_prefix('`')?;
    let (text, rest) = inside.split_once('`')?;
    (text.len() <= MAX_COMMAND && text.trim().contains(' ')).then_some(Command { text: text.trim(), rest })
}

fn not_yet(session: &SessionReport) -> Markup {
    let calls = session.tool_calls.iter().filter_map(|call| Some((call.event?, call.tool.as_str())));
    let calls: Vec<_> = calls.collect();
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
        RunStatus::TimedOut => "It took longer than its deadline allows. To investigate it again:",
        RunStatus::Unknown(_) | RunStatus::Running | RunStatus::Completed | RunStatus::Failed => {
            "Remove the reason, then investigate it again:"
        }
    };
    html! {
        div class={ "part why" @if session.status != RunStatus::Cancelled { " bad" } } {
            h2 { (if session.status == RunStatus::Cancelled { "Cancelled" } else { "No answer" }) }
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
                div.cmd { code { "tarsy sessions rerun " (id) } button.copy type="button" data-copy-before="" aria-label="Copy the command" { "Copy" } }
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_stands_at_the_beginning_and_has_arguments() {
        let of = |text| command(text).map(|Command { text, rest }| (text, rest));
        assert_eq!(of("`kubectl get pods`. Then wait"), Some(("kubectl get pods", ". Then wait")));
        for text in ["raise the limit", "set `limit` to 2", "`limit` to 2", "`never closed x"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
