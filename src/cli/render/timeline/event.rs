//! The row of each event.

use serde_json::Value;

use crate::investigation::native::Retrieval;
use crate::investigation::timeline::{EventStatus, EventType, TimelineEvent};

use super::footnotes::footnotes;
use super::meta::{self, Meta};
use super::prose::Prose;
use super::row::{Body, Mark, Row};
use super::{code, session};
use crate::cli::render::style::{Charset, Paint, Style, Symbol};
use crate::cli::render::{format, results, text};

/// Lines of an error that are shown without `-v`.
const MAX_ERROR_LINES: usize = 10;
/// Lines of a change of the alert that are shown without `-v`.
const MAX_UPDATE_LINES: usize = 12;
/// Lines of a question that are shown without `-v`.
const MAX_QUESTION_LINES: usize = 10;

/// The row of an event; `tool` is the name of the call that the event belongs to.
pub(super) fn row(event: &TimelineEvent, tool: Option<String>, style: &Style) -> Row {
    let meta = Meta::new(&event.metadata, style.charset);
    let content = text::clean(&event.content, style.charset);
    let mut row = match &event.event_type {
        EventType::LlmThinking => {
            let body = Body::Folded(Prose::new(&event.content));
            Row::new(Symbol::Thinking, "thinking", body).painted(Paint::Dim)
        }
        EventType::LlmResponse => Row::new(Symbol::Thinking, "response", Body::Folded(cited(event, style))),
        EventType::LlmToolCall | EventType::McpToolCall => call(event, tool, style),
        EventType::ToolResult | EventType::McpToolSummary => result(event, tool, style),
        EventType::Error => error(event, &meta, content, style),
        EventType::UserQuestion => {
            let limit = (!style.verbose).then_some(MAX_QUESTION_LINES);
            Row { name_paint: Paint::Bold, ..Row::new(Symbol::Start, "question", Body::Whole(content, limit)) }
        }
        EventType::ExecutiveSummary => Row::line(Symbol::Analysis, "summary", &content).painted(Paint::Green),
        EventType::FinalAnalysis => {
            let row = Row::new(Symbol::Analysis, "final analysis", Body::Prose(cited(event, style), None));
            Row { name_paint: Paint::Green, ..row }
        }
        EventType::CodeExecution => code::row(event, &meta, &content, style),
        EventType::GoogleSearchResult => search("Google Search", &meta, &content, style),
        EventType::UrlContextResult => search("URL Context", &meta, &content, style),
        EventType::ProviderFallback => Row::line(Symbol::Fallback, "fallback", &content).painted(Paint::Yellow),
        EventType::SessionStarted => session::started(&meta, &content),
        EventType::SessionResumed => session::resumed(&meta, &content),
        EventType::StageStarted => session::stage(event, &meta, Symbol::Start, "started"),
        EventType::StageCompleted => session::stage(event, &meta, Symbol::End, "completed"),
        EventType::AlertJoined => session::alert_joined(&meta, &content),
        EventType::AlertUpdated => {
            Row::new(Symbol::Joined, "alert changed", Body::Whole(content, Some(MAX_UPDATE_LINES)))
        }
        EventType::AlertResolved => Row::line(Symbol::Joined, "resolved", &content),
        EventType::SessionCompleted => session::end(&meta, session::late(&meta), "completed", Paint::Green),
        EventType::SessionFailed => session::end(&meta, content, "failed", Paint::Red),
        EventType::SessionCancelled => session::end(&meta, content, "cancelled", Paint::Red),
        EventType::SessionTimedOut => session::end(&meta, content, "timed out", Paint::Red),
        EventType::Joined => Row::line(Symbol::Joined, "joined", &content),
        EventType::Unknown(word) => {
            Row::line(Symbol::Unknown, &text::one_line(word, style.charset), &content).painted(Paint::Yellow)
        }
    };
    row.took_ms = meta.number("took_ms").or(row.took_ms);
    if event.truncated {
        row.marks.push(Mark::new("cut", Paint::Yellow));
    }
    if style.verbose && !event.event_type.is_end() {
        row.marks.extend(tokens(&meta));
    }
    row
}

/// The text of an event, with the pages that it cites.
fn cited(event: &TimelineEvent, style: &Style) -> Prose {
    Prose::cited(&footnotes(&event.content, event.metadata.get("citations")), style)
}

fn call(event: &TimelineEvent, tool: Option<String>, style: &Style) -> Row {
    let arguments = meta::arguments(&event.content, style.charset);
    let row = Row::new(Symbol::Call, tool.unwrap_or_else(|| "tool call".to_owned()), Body::Line(arguments));
    Row { name_paint: Paint::Bold, ..row }
}

fn result(event: &TimelineEvent, tool: Option<String>, style: &Style) -> Row {
    let meta = Meta::new(&event.metadata, style.charset);
    let body = if style.full {
        Body::Result(event.content.clone())
    } else {
        let line = results::line(&event.content);
        Body::Line(text::one_line(line.as_deref().unwrap_or(&event.content), style.charset))
    };
    let mut row = Row::new(Symbol::Result, tool.unwrap_or_else(|| "tool result".to_owned()), body);
    row.name_paint = Paint::Bold;
    if meta.is_set("is_error") || event.status == EventStatus::Failed {
        row = row.painted(Paint::Red);
    }
    if event.event_type == EventType::McpToolSummary {
        row.marks.push(Mark::new("summary", Paint::Dim));
    }
    if meta.is_set("lost") {
        row.marks.push(Mark::new("outcome unknown", Paint::Yellow));
    }
    row.marks.extend(meta.number("bytes").map(|bytes| Mark::new(format::bytes(bytes), Paint::Dim)));
    row.marks.extend(meta.number("cut_to_tokens").map(|tokens| Mark {
        long: format!("cut to {} tokens", format::tokens(tokens)),
        short: "cut".to_owned(),
        paint: Paint::Yellow,
    }));
    row
}

fn error(event: &TimelineEvent, meta: &Meta<'_>, content: String, style: &Style) -> Row {
    let kind = meta.text("kind").map(|kind| format!("{kind} ")).unwrap_or_default();
    let name = if meta.is_set("timeout") { "timeout" } else { "error" };
    let limit = (!style.verbose).then_some(MAX_ERROR_LINES);
    let tool = meta.text("tool_name").filter(|tool| !event.content.contains(tool.as_str()));
    let content = tool.map(|tool| format!("{tool}: {content}")).unwrap_or(content);
    let mut row = Row::new(Symbol::Error, format!("{kind}{name}"), Body::Whole(content, limit)).painted(Paint::Red);
    row.marks.extend(meta.text("code").map(|code| Mark::new(code, Paint::Dim)));
    row
}

fn search(name: &str, meta: &Meta<'_>, content: &str, style: &Style) -> Row {
    let sources = meta.list("sources");
    if sources.is_empty() {
        let prefixes = [name, ":", " ", "→", "->"];
        let content = prefixes.iter().fold(content, |text, prefix| text.trim_start_matches(prefix));
        return Row::line(Symbol::Search, name, content);
    }
    let failed = meta.list("retrievals").iter().filter_map(|page| not_read(page, style.charset)).collect::<Vec<_>>();
    let queries: Vec<_> = meta.list("queries").iter().filter_map(Value::as_str).map(|q| format!("'{q}' ")).collect();
    let arrow = style.charset.arrow();
    let found = format::count(sources.len(), "source");
    let queries = text::one_line(&queries.join(", "), style.charset);
    let mut row = Row::line(Symbol::Search, name, &format!("{queries} {arrow} {found}"));
    if style.sources {
        row.below = sources.iter().map(|source| self::source(source, style.charset)).chain(failed).collect();
    } else {
        if !failed.is_empty() {
            row.marks.push(Mark::new(format!("{} not read", failed.len()), Paint::Yellow));
        }
        row.marks.push(Mark { long: "(-s lists them)".to_owned(), short: "(-s)".to_owned(), paint: Paint::Dim });
    }
    row
}

fn source(source: &Value, charset: Charset) -> String {
    let meta = Meta::new(source, charset);
    let uri = meta.text("uri").or_else(|| meta.text("url"));
    text::join([meta.text("title"), uri], "  ")
}

/// A page that the provider could not read, with the reason.
fn not_read(page: &Value, charset: Charset) -> Option<String> {
    let failure = serde_json::from_value::<Retrieval>(page.clone()).ok()?.failure()?;
    let failure = text::one_line(&format!("not read: {failure}"), charset);
    Some(text::join([Meta::new(page, charset).text("url"), Some(failure)], "  "))
}

/// A model call's tokens.
fn tokens(meta: &Meta<'_>) -> Option<Mark> {
    let usage = session::usage(meta);
    if !usage.is_empty() {
        return Some(Mark::new(usage, Paint::Dim));
    }
    let tokens = meta.number("tokens")?;
    Some(Mark::new(format!("{} tokens", format::tokens(tokens)), Paint::Dim))
}
