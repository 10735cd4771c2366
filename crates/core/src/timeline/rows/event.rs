//! The row of each event.

use serde_json::Value;

use crate::native::Retrieval;
use crate::summary::Mark as ProofMark;
use crate::timeline::{EventStatus, EventType, TimelineEvent};

use super::footnotes::{Footnotes, footnotes};
use super::meta::{self, Meta};
use super::row::{Body, Kind, Mark, Row, Tone};
use super::{code, session};
use crate::readable::text::Charset;
use crate::readable::{format, results, text};

/// Lines of an error that are shown where there is little room.
const MAX_ERROR_LINES: usize = 10;
/// Lines of a change of the alert that are shown where there is little room.
const MAX_UPDATE_LINES: usize = 12;
/// Lines of a task that are shown where there is little room.
const MAX_TASK_LINES: usize = 10;
/// Lines of a question that are shown where there is little room.
const MAX_QUESTION_LINES: usize = 10;

/// The row of an event; `tool` is the name of the call that the event belongs to.
pub(super) fn row(event: &TimelineEvent, tool: Option<String>, charset: Charset) -> Row {
    let meta = Meta::new(&event.metadata, charset);
    let content = text::clean(&event.content, charset);
    let mut row = match &event.event_type {
        EventType::LlmThinking => thinking(event, &meta),
        EventType::LlmResponse => Row::new(Kind::Thinking, "response", Body::Folded(cited(event))),
        EventType::LlmToolCall | EventType::McpToolCall => call(event, tool, charset),
        EventType::ToolResult | EventType::McpToolSummary => result(event, &meta, tool),
        EventType::Error => error(event, &meta, content),
        EventType::UserQuestion => question(&meta, content),
        EventType::ExecutiveSummary => {
            Row::line(Kind::Analysis, "summary", &content).toned(Tone::Good)
        }
        EventType::FinalAnalysis => final_analysis(event, &meta),
        EventType::AgentDispatched => {
            let agent = meta.text("agent").unwrap_or_default();
            let name = format!("dispatched {agent}");
            Row::new(Kind::Call, name.trim_end(), whole(content, MAX_TASK_LINES))
        }
        EventType::CodeExecution => code::row(event, &meta, &content),
        EventType::GoogleSearchResult => search("Google Search", &meta, &content),
        EventType::UrlContextResult => search("URL Context", &meta, &content),
        EventType::ProviderFallback => {
            Row::line(Kind::Fallback, "fallback", &content).toned(Tone::Caution)
        }
        EventType::ApprovalRequested => Row::line(Kind::Wait, "waits for a person", &content),
        EventType::ApprovalEnded => Row::line(Kind::Wait, "wait ended", &content),
        EventType::ApprovalDecided => Row::line(Kind::Wait, "decision", &content),
        EventType::SessionWaiting => Row::line(Kind::Wait, "waiting", &content),
        EventType::SessionStarted => session::started(&meta, &content),
        EventType::SessionResumed => session::resumed(&meta, &content),
        EventType::StageStarted => session::stage(event, &meta, Kind::Start, "started"),
        EventType::StageCompleted => session::stage(event, &meta, Kind::End, "completed"),
        EventType::AlertJoined => session::alert_joined(&meta, &content),
        EventType::AlertUpdated => Row::new(
            Kind::Joined,
            "alert changed",
            whole(content, MAX_UPDATE_LINES),
        ),
        EventType::AlertResolved => Row::line(Kind::Joined, "resolved", &content),
        EventType::AlertAcknowledged => Row::line(Kind::Joined, "acknowledged", &content),
        EventType::SessionCompleted => session::completed(&meta),
        EventType::SessionFailed if meta.text("stop_reason").as_deref() == Some("limited") => {
            session::end(&meta, content, "limited", Tone::Caution)
        }
        EventType::SessionFailed => session::end(&meta, content, "failed", Tone::Bad),
        EventType::SessionCancelled => session::end(&meta, content, "cancelled", Tone::Bad),
        EventType::SessionTimedOut => session::end(&meta, content, "timed out", Tone::Bad),
        EventType::Joined => Row::line(Kind::Joined, "joined", &content),
        EventType::Unknown(word) => {
            Row::line(Kind::Unknown, &text::one_line(word, charset), &content).toned(Tone::Caution)
        }
    };
    row.took_ms = meta.number("took_ms").or(row.took_ms);
    if event.truncated {
        row.marks.push(Mark::new("cut", Tone::Caution));
    }
    // The event of an end counts the tokens of all its iterations, and their rows show them.
    if !event.event_type.is_end() {
        row.tokens = tokens(&meta);
    }
    row
}

fn thinking(event: &TimelineEvent, meta: &Meta<'_>) -> Row {
    let body = Body::Folded(Footnotes::none(&event.content));
    let mut row = Row::new(Kind::Thinking, "thinking", body).toned(Tone::Quiet);
    if meta.is_set("signed") {
        row.marks.push(Mark::new("signed", Tone::Quiet));
    }
    row
}

fn question(meta: &Meta<'_>, content: String) -> Row {
    let mut row = Row::new(Kind::Start, "question", whole(content, MAX_QUESTION_LINES));
    row.name_tone = Tone::Strong;
    if let Some(by) = meta.text("asked_by") {
        row.marks.push(Mark::new(format!("by {by}"), Tone::Quiet));
    }
    row
}

fn final_analysis(event: &TimelineEvent, meta: &Meta<'_>) -> Row {
    let body = Body::Prose {
        text: cited(event),
        limit: None,
    };
    let mut row = Row::new(Kind::Analysis, "final analysis", body);
    row.name_tone = Tone::Good;
    if let Some(verdict) = meta.review() {
        row.name_tone = Tone::Quiet;
        row.marks.push(Mark::new(
            format!("second look: {}", verdict.word()),
            Tone::Quiet,
        ));
    }
    if let Some(code) = meta.text("mark") {
        row.name_tone = Tone::Caution;
        let word = ProofMark::parse(&code).word();
        row.marks.push(Mark::new(word, Tone::Bad));
    }
    row
}

fn whole(text: String, limit: usize) -> Body {
    Body::Whole {
        text,
        limit: Some(limit),
    }
}

/// The text of an event, with the pages that it cites.
fn cited(event: &TimelineEvent) -> Footnotes {
    footnotes(&event.content, event.metadata.get("citations"))
}

fn call(event: &TimelineEvent, tool: Option<String>, charset: Charset) -> Row {
    let name = tool.unwrap_or_else(|| "tool call".to_owned());
    let body = Body::Line(meta::arguments(&event.content, charset));
    let mut row = Row::new(Kind::Call, name, body);
    row.name_tone = Tone::Strong;
    row
}

fn result(event: &TimelineEvent, meta: &Meta<'_>, tool: Option<String>) -> Row {
    let name = tool.unwrap_or_else(|| "tool result".to_owned());
    let line = results::line(&event.content);
    let line = text::one_line(line.as_deref().unwrap_or(&event.content), meta.charset);
    let body = Body::Result {
        line,
        whole: event.content.clone(),
    };
    let mut row = Row::new(Kind::Result, name, body);
    row.name_tone = Tone::Strong;
    if meta.is_set("is_error") || event.status == EventStatus::Failed {
        row = row.toned(Tone::Bad);
    }
    if event.event_type == EventType::McpToolSummary {
        row.marks.push(Mark::new("summary", Tone::Quiet));
    }
    if meta.is_set("lost") {
        row.marks.push(Mark::new("outcome unknown", Tone::Caution));
    }
    row.marks.extend(meta.number("bytes").map(Mark::bytes));
    row.marks
        .extend(meta.number("cut_to_tokens").map(|tokens| Mark {
            long: format!("cut to {} tokens", format::tokens(tokens)),
            short: "cut".to_owned(),
            tone: Tone::Caution,
        }));
    row
}

fn error(event: &TimelineEvent, meta: &Meta<'_>, content: String) -> Row {
    let kind = meta
        .text("kind")
        .map(|kind| format!("{kind} "))
        .unwrap_or_default();
    let name = if meta.is_set("timeout") {
        "timeout"
    } else {
        "error"
    };
    let tool = meta
        .text("tool_name")
        .filter(|tool| !event.content.contains(tool.as_str()));
    let content = tool
        .map(|tool| format!("{tool}: {content}"))
        .unwrap_or(content);
    let body = whole(content, MAX_ERROR_LINES);
    let mut row = Row::new(Kind::Error, format!("{kind}{name}"), body).toned(Tone::Bad);
    row.marks
        .extend(meta.text("code").map(|code| Mark::new(code, Tone::Quiet)));
    row
}

fn search(name: &str, meta: &Meta<'_>, content: &str) -> Row {
    let sources = meta.list("sources");
    if sources.is_empty() {
        let prefixes = [name, ":", " ", "→", "->"];
        let content = prefixes
            .iter()
            .fold(content, |text, prefix| text.trim_start_matches(prefix));
        return Row::line(Kind::Search, name, content);
    }
    let queries: Vec<_> = meta
        .list("queries")
        .iter()
        .filter_map(Value::as_str)
        .map(|q| format!("'{q}' "))
        .collect();
    let charset = meta.charset;
    let arrow = charset.arrow();
    let found = format::count(sources.len(), "source");
    let queries = text::one_line(&queries.join(", "), charset);
    let mut row = Row::line(Kind::Search, name, &format!("{queries} {arrow} {found}"));
    row.sources = sources
        .iter()
        .map(|source| self::source(source, charset))
        .collect();
    row.unread = meta
        .list("retrievals")
        .iter()
        .filter_map(|page| not_read(page, charset))
        .collect();
    row
}

fn source(source: &Value, charset: Charset) -> String {
    let meta = Meta::new(source, charset);
    let uri = meta.text("uri").or_else(|| meta.text("url"));
    text::join([meta.text("title"), uri], "  ")
}

/// A page that the provider could not read, with the reason.
fn not_read(page: &Value, charset: Charset) -> Option<String> {
    let failure = serde_json::from_value::<Retrieval>(page.clone())
        .ok()?
        .failure()?;
    let failure = text::one_line(&format!("not read: {failure}"), charset);
    Some(text::join(
        [Meta::new(page, charset).text("url"), Some(failure)],
        "  ",
    ))
}

/// A model call's tokens.
fn tokens(meta: &Meta<'_>) -> Option<String> {
    let usage = Some(session::usage(meta)).filter(|usage| !usage.is_empty());
    usage.or_else(|| Some(format!("{} tokens", format::tokens(meta.number("tokens")?))))
}
