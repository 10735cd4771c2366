//! Questions about an investigation with their answers, and how to ask another one.

use maud::{Markup, html};

use super::{Session, last_event};
use crate::markdown::{self, Cites};
use crate::shell::words::{plain, question_status, whole};
use tarsy_core::chain::RunStatus;
use tarsy_reports::QuestionReport;

/// The longest question, in characters, that the form takes.
const MAX_QUESTION: usize = 4_000;

pub(super) fn section(page: &Session<'_>) -> Markup {
    let report = page.report;
    let is_over = report
        .session
        .as_ref()
        .is_some_and(|session| session.status != RunStatus::Running);
    // About a list of alerts there is nothing to ask.
    let may_ask = is_over && report.parent_id.is_none() && report.limited_by.is_none();
    html! {
        section.thread #thread aria-labelledby="h-q" {
            @if !report.questions.is_empty() || may_ask {
                h2 #h-q { "Questions " span.cnt { (report.questions.len()) } }
            }
            @for question in &report.questions { (one(question, last_event(report.session.as_ref()))) }
            @if may_ask { (ask(page)) }
        }
    }
}

/// `last_event` is the last number of the investigation, whose events an answer cites.
fn one(question: &QuestionReport, last_event: u32) -> Markup {
    html! {
        article.qa {
            p.ask {
                a.n href={ "/sessions/" (question.session_id) } { (question.session_id.short()) }
                (question_status(question.status)) " "
                (whole(question.question.as_deref().unwrap_or("(no text)")))
            }
            @match (&question.answer, question.status) {
                (Some(answer), _) => div.md { (markdown::cited_html(answer, Cites::of_answer(last_event))) },
                (None, RunStatus::Running) => p.muted { "An agent works on it." },
                (None, status) => p.muted { "No answer: " (question.error.as_deref().map_or_else(|| plain(status.as_str()), whole)) },
            }
        }
    }
}

fn ask(page: &Session<'_>) -> Markup {
    let id = page.report.alert_id;
    if !page.viewer.access.may_ask {
        return html! { p.cli.ask-cli { "Ask from a terminal " code { "tarsy ask " (id.short()) " 'your question'" } } };
    }
    html! {
        form.ask-form method="post" action={ "/sessions/" (id) "/questions" } {
            label for="question" { "Ask about this investigation" }
            textarea #question name="question" rows="2" maxlength=(MAX_QUESTION) required {}
            button { "Ask" }
        }
    }
}
