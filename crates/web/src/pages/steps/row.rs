//! Renders one step of the timeline as an HTML element.

use maud::{Markup, html};

use super::fold::Range;
use super::opened;
use super::{Agents, Context, Step, View};
use crate::shell::words::{brief, time};
use tarsy_core::chain::RunStatus;
use tarsy_core::readable::text::{Charset, clean, first_sentence};
use tarsy_core::readable::{format, results};
use tarsy_core::timeline::rows::{Body, Kind, Row, Tone};
use tarsy_core::timeline::{EventType, TimelineEvent};

/// Characters of one line of a row.
const LINE: usize = 240;

/// A step: its line, and below it the texts that open. Its element has the number of its first event, so that a result
/// replaces its call; the number of the event itself is inside of a closed element, which a browser opens for a link to
/// it.
pub(crate) fn step(step: &Step<'_>, context: &Context) -> Markup {
    let number = step.event.session_seq;
    let line = line(step, context);
    html! {
        li class={ "r " (class(step)) @if step.is_cited { " cited" } @if step.row.branch.is_some() { " sub" } } id={ "r" (step.first()) } data-n=(number) {
            a.n href={ "#" (number) } {
                @if let Some(call) = &step.call { small { (call.event.session_seq) "›" } }
                (number)
            }
            @if let Some(texts) = opened::texts(step, context) {
                details { summary { (line) } div.b { (texts) } }
            } @else {
                div.s id=(number) { (line) }
            }
        }
    }
}

/// The class of a kind of row.
fn class(step: &Step<'_>) -> &'static str {
    if step.is_error() {
        return "bad";
    }
    match (&step.event.event_type, step.row.kind) {
        (EventType::LlmThinking, _) => "think",
        (EventType::LlmResponse, _) => "resp",
        (EventType::SessionCompleted, _) => "end completed",
        (EventType::SessionFailed, _) if is_limited(step.event) => "end limited",
        (EventType::SessionFailed, _) => "end failed",
        (EventType::SessionCancelled, _) => "end cancelled",
        (EventType::SessionTimedOut, _) => "end timed_out",
        (EventType::UserQuestion, _) => "ask",
        (_, Kind::Call | Kind::Result) => "call",
        (_, Kind::Code) => "call code",
        (_, Kind::Search) => "call search",
        (_, Kind::Analysis) => "final",
        (_, Kind::Error) => "bad",
        (_, Kind::Resumed) => "resume",
        (_, Kind::Fallback) => "resume fallback",
        (
            _,
            Kind::Start | Kind::Thinking | Kind::Joined | Kind::Wait | Kind::End | Kind::Unknown,
        ) => "sys",
    }
}

/// Whether a session ended because its route may open no more of them.
fn is_limited(end: &TimelineEvent) -> bool {
    end.metadata
        .get("stop_reason")
        .is_some_and(|reason| reason == RunStatus::Limited.as_str())
}

/// The columns of a row: the time, the sign, the agent, the name, what a call asks or what an event says, marks, the
/// duration, and the preview of a result.
fn line(step: &Step<'_>, context: &Context) -> Markup {
    // Together with its call, a result has the time, the sign and the words of the call.
    let row = step.first_row();
    let at = step.first_event().created_at;
    let elapsed = format::since_start(format::millis(context.started_at.unwrap_or(at), at));
    let sign = match step.event.event_type.as_str() {
        "stage_started" | "stage_completed" => "▸",
        _ => row.kind.glyph(Charset::Unicode),
    };
    let unread = step.row.unread.len();
    html! {
        (time(at, &elapsed))
        i.ic aria-hidden="true" { (sign) }
        @if context.agents == Agents::Several { span.ag { (brief(step.event.agent.as_deref().unwrap_or_default(), 40)) } }
        b.w { (brief(&row.name, 120)) }
        span.d { (words(row)) @if step.call.is_none() { (open_calls(row)) } }
        span.mk {
            @if step.is_cited { span.by { "cited" } }
            @if let Some(tokens) = &step.row.tokens { (mark(Tone::Quiet, tokens)) }
            @if unread > 0 { (mark(Tone::Caution, &format!("{unread} not read"))) }
            @for each in &step.row.marks { (mark(each.tone, &each.long)) }
        }
        span.tk { (step.row.took_ms.map(format::took).unwrap_or_default()) }
        @if step.call.is_some() { (preview(&step.row, &step.event.content)) }
    }
}

/// The calls without a result when their execution ended.
fn open_calls(row: &Row) -> Markup {
    html! {
        @for (index, number) in row.open_calls.iter().enumerate() {
            (if index == 0 { ". Open calls: " } else { ", " }) a href={ "#r" (number) } { "#" (number) }
        }
    }
}

/// The text of a row in one line, as a terminal shows it.
pub(super) fn words(row: &Row) -> String {
    let text = match &row.body {
        Body::Line(line) if line.is_empty() => row.totals.clone(),
        Body::Line(line) | Body::Result { line, .. } => line.clone(),
        Body::Folded(prose) | Body::Prose { text: prose, .. } => {
            first_sentence(&clean(&prose.text, Charset::Unicode))
        }
        Body::Whole { text, .. } if row.totals.is_empty() => text.clone(),
        Body::Whole { text, .. } => format!("{text} · {}", row.totals),
        Body::Code(code) => code.line(&brief(code.begin(), 60), Charset::Unicode),
    };
    brief(&text, LINE)
}

fn mark(tone: Tone, text: &str) -> Markup {
    let class = match tone {
        Tone::Plain | Tone::Quiet | Tone::Strong => "m",
        Tone::Bad => "m bad",
        Tone::Caution => "m warn",
        Tone::Good => "m good",
    };
    html! { span class=(class) { (brief(text, 60)) } }
}

/// The preview of a result: one line of text, or its series as a spark line.
fn preview(row: &Row, content: &str) -> Markup {
    let series = results::series(content).unwrap_or_default();
    let line = match &row.body {
        Body::Result { line, .. } => brief(line, LINE),
        Body::Line(_)
        | Body::Folded(_)
        | Body::Prose { .. }
        | Body::Whole { .. }
        | Body::Code(_) => String::new(),
    };
    match super::chart::spark(&series) {
        Some(spark) => html! { span.x.sp { (spark) span { (line) } } },
        None => html! { span.x { (line) } },
    }
}

/// A range of steps that is not in the page.
pub(crate) fn folded(range: &Range, context: &Context) -> Markup {
    let Range {
        from,
        to,
        calls,
        steps,
    } = range;
    let view = if context.view == View::Steps {
        String::new()
    } else {
        format!("view={}&", context.view.word())
    };
    html! {
        li.r.run id={ "f" (from) } data-from=(from) data-to=(to) {
            div.s {
                span {} i.ic aria-hidden="true" { "⋮" }
                @if context.agents == Agents::Several { span.ag {} }
                b.w { "#" (from) "–" (to) }
                span.d {
                    (format::count(*steps, "step")) ", " (format::count(*calls, "call")) " "
                    a.open href={ "/sessions/" (context.session) "?" (view) "from=" (from) "&to=" (to) } { "Show them" }
                }
                span.mk {} span.tk {}
            }
        }
    }
}
