//! A row of the list of sessions: state, severity, title, cause, measures.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::List;
use super::alike::Group;
use crate::shell::words::{
    NO_TITLE, brief, plain, question_status, sentence, severity, status, time, title,
    waiting_for_approval,
};
use tarsy_core::chain::RunStatus;
use tarsy_core::readable::format;
use tarsy_core::readable::text::{first_sentence, short_id};
use tarsy_core::timeline::EventType;
use tarsy_reports::SessionEntry;

/// Characters of a cause or an error.
const LINE: usize = 320;
/// Names of alike sessions that are listed.
const NAMED: usize = 6;

/// The row of a session or of alike ones.
pub(super) fn row(group: &Group<'_>, list: &List<'_>) -> Markup {
    match group.entries.as_slice() {
        [] => html! {},
        [entry] => single(entry, list),
        [entry, ..] if list.query.alike.is_open(group) => html! {
            (unfolded(group, entry, list))
            @for entry in &group.entries { (single(entry, list)) }
        },
        [entry, ..] => alike(group, entry, list),
    }
}

fn single(entry: &SessionEntry, list: &List<'_>) -> Markup {
    let asked: Vec<&SessionEntry> = list
        .asked
        .iter()
        .filter(|asked| asked.line.parent_id == Some(entry.line.session_id))
        .collect();
    html! {
        li.sr id={ "s-" (entry.line.session_id.short()) } {
            a href={ "/sessions/" (entry.line.session_id) } {
                @if entry.line.parent_id.is_some() { (question_status(entry.line.status)) }
                @else if entry.waits_for_approval { (waiting_for_approval()) (severity(entry.line.severity)) }
                @else { (status(entry.line.status)) (severity(entry.line.severity)) }
                span.ti { (heading(entry)) }
                (line(entry))
                span.mk {
                    (measures(entry))
                    @if asked.is_empty() && entry.questions > 0 { span.m { (format::count(entry.questions, "question")) } }
                }
                span.tk { (took(entry, list)) }
                (clock(entry))
            }
            @if !asked.is_empty() { (questions(&asked, entry)) }
        }
    }
}

/// The questions about an investigation, in the order in which they were asked.
fn questions(asked: &[&SessionEntry], entry: &SessionEntry) -> Markup {
    html! {
        details.qs {
            summary { (format::count(entry.questions, "question")) }
            ol {
                @for question in asked.iter().rev() {
                    @let text = question.line.title.as_deref().unwrap_or(NO_TITLE);
                    li { a href={ "/sessions/" (question.line.session_id) } {
                        (question_status(question.line.status)) " " span { (brief(text, 200)) } } }
                }
            }
        }
    }
}

fn heading(entry: &SessionEntry) -> Markup {
    let line = &entry.line;
    let shown = line
        .title
        .as_deref()
        .or(line.alert_type.as_deref())
        .unwrap_or(NO_TITLE);
    match line.parent_id {
        Some(parent) => {
            html! { b { "question" } " " span { "about " (parent.short()) ": " (brief(shown, 200)) } }
        }
        None => title(shown),
    }
}

/// The cause, the error, or what a running session did last.
fn line(entry: &SessionEntry) -> Markup {
    match (&entry.cause, &entry.error, entry.line.status) {
        (_, _, RunStatus::Running) => html! { span.li { span.now { (now(entry)) } } },
        (Some(cause), _, _) => html! {
            span.li {
                @if let Some(mark) = entry.line.mark { b.warn { (sentence(mark.word())) ": " } }
                (sentence(&brief(&without_citations(cause), LINE)))
            }
        },
        (None, Some(error), RunStatus::Failed | RunStatus::TimedOut)
            if entry.line.parent_id.is_none() =>
        {
            html! { span.li { span.err { (sentence(&brief(error, LINE))) } } }
        }
        (None, Some(error), _) => html! { span.li.none { (sentence(&brief(error, LINE))) } },
        (None, None, RunStatus::Completed) if entry.line.parent_id.is_some() => {
            html! { span.li.none { "Answered." } }
        }
        (None, None, _) => match entry.line.stop_reason {
            Some(reason) => html! { span.li.none { "No cause: " (plain(reason.as_str())) } },
            None => html! { span.li.none { "No cause." } },
        },
    }
}

/// The numbers in brackets lead nowhere in a list.
fn without_citations(cause: &str) -> String {
    let mut out = String::with_capacity(cause.len());
    let mut done = 0;
    for citation in tarsy_core::execution::event_refs::citations(cause) {
        out.push_str(
            cause
                .get(done..citation.range.start)
                .unwrap_or_default()
                .trim_end(),
        );
        done = citation.range.end;
    }
    out.push_str(cause.get(done..).unwrap_or_default());
    out
}

fn now(entry: &SessionEntry) -> String {
    let calls = format::count(entry.tool_calls, "call");
    let Some(last) = &entry.last_event else {
        return format!("has begun, {calls}");
    };
    let is = |types: [EventType; 2]| types.contains(&last.event_type);
    let doing = if is([EventType::LlmToolCall, EventType::McpToolCall]) {
        "waits for a tool".to_owned()
    } else if is([EventType::LlmThinking, EventType::LlmResponse]) {
        brief(&first_sentence(&last.content), 140)
    } else {
        plain(last.event_type.as_str())
    };
    format!("{doing}, {calls} so far")
}

fn measures(entry: &SessionEntry) -> Markup {
    let tokens = entry.tokens.input + entry.tokens.output;
    html! {
        @if entry.owners > 1 { span.m.re title="taken over by another worker" { "↻ " (entry.owners - 1) } }
        @if entry.tool_calls > 0 { span.m { (format::count(entry.tool_calls, "call")) } }
        @if tokens > 0 { span.m { (format::tokens(tokens)) " tok" } }
        @if entry.joined > 0 {
            @let word = if entry.line.status == RunStatus::Limited { " above the limit, too" } else { " joined" };
            span.m { "+" (entry.joined) (word) }
        }
    }
}

fn took(entry: &SessionEntry, list: &List<'_>) -> String {
    if entry.line.status == RunStatus::Limited {
        return String::new();
    }
    format::took(format::millis(
        entry.line.created_at,
        entry.line.finished_at.unwrap_or(list.now),
    ))
}

fn clock(entry: &SessionEntry) -> Markup {
    time(
        entry.line.created_at,
        &entry.line.created_at.format("%H:%M").to_string(),
    )
}

/// The row of several alike sessions: the newest one, how many there are, and how many went wrong.
fn alike(group: &Group<'_>, entry: &SessionEntry, list: &List<'_>) -> Markup {
    let failed = group.count(RunStatus::Failed) + group.count(RunStatus::TimedOut);
    let worst = group
        .entries
        .iter()
        .find(|entry| entry.line.status == RunStatus::Failed)
        .unwrap_or(&entry);
    let names: BTreeSet<String> = group
        .entries
        .iter()
        .take(NAMED)
        .map(|entry| about(entry))
        .collect();
    let names = Vec::from_iter(names).join(", ");
    let more = group.entries.len().saturating_sub(NAMED);
    html! {
        li.sr.grp id={ "g-" (short_id(&group.name())) } data-open={ "/sessions/" (entry.line.session_id) } {
            a href=(list.query.toggle(group)) {
                @if failed > 0 { span.st.failed { i aria-hidden="true" { "✕" } (failed) " failed" } }
                @else { (status(entry.line.status)) }
                (severity(entry.line.severity))
                span.ti { b { (name(entry)) } " " span { (brief(&names, 200)) @if more > 0 { " and " (more) " more" } } }
                (line(worst))
                span.mk { span.m.alike { (group.entries.len()) " alike, show each" } }
                span.tk { (took(entry, list)) }
                (clock(entry))
            }
        }
    }
}

/// The head of alike sessions whose rows follow it.
fn unfolded(group: &Group<'_>, entry: &SessionEntry, list: &List<'_>) -> Markup {
    html! {
        li.sr.grp.open id={ "g-" (short_id(&group.name())) } data-open={ "/sessions/" (entry.line.session_id) } {
            a href=(list.query.toggle(group)) {
                span.ti { b { (name(entry)) } }
                span.mk { span.m.alike { (group.entries.len()) " alike, show as one row" } }
            }
        }
    }
}

/// The name of an alert: the first word of its title.
fn name(entry: &SessionEntry) -> String {
    let name = entry
        .line
        .title
        .as_deref()
        .unwrap_or_default()
        .split_whitespace()
        .next()
        .unwrap_or(NO_TITLE);
    brief(name, 120)
}

/// The subject of the alert, without its name.
fn about(entry: &SessionEntry) -> String {
    let title = entry.line.title.as_deref().unwrap_or_default();
    title
        .split_once(' ')
        .map_or_else(String::new, |(_, about)| brief(about, 80))
}
