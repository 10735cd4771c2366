//! Renders one step of the timeline as an HTML element.

use maud::{Markup, html};

use super::fold::Range;
use super::opened;
use super::{Agents, Bodies, Context, Step, View};
use crate::pages::words::{brief, time};
use tarsy_core::readable::text::{Charset, clean, first_sentence};
use tarsy_core::readable::{format, results};
use tarsy_core::timeline::EventType;
use tarsy_core::timeline::rows::{Body, Kind, Mark, Row, Tone};

/// Characters of one line of a row.
const LINE: usize = 240;

/// A step. Its element has the number of its first event, so that a result replaces its call; the number of the event
/// itself is inside of a closed element, which a browser opens for a link to it.
pub(crate) fn step(step: &Step<'_>, context: &Context) -> Markup {
    let number = step.event.session_seq;
    html! {
        li class={ "r " (class(step)) @if step.is_cited { " cited" } } id={ "r" (step.first()) } data-n=(number) {
            a.n href={ "#" (number) } {
                @if let Some(call) = &step.call { small { (call.event.session_seq) "›" } }
                (number)
            }
            @if opened::has_more(step) {
                details {
                    summary { (line(step, context)) }
                    div.b {
                        @match context.bodies {
                            Bodies::InPage => (opened::body(step, context)),
                            Bodies::Linked => (opened::linked(step, context)),
                        }
                    }
                }
            } @else {
                div.s id=(number) { (line(step, context)) }
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
        (_, Kind::Start | Kind::Thinking | Kind::Joined | Kind::End | Kind::Unknown) => "sys",
    }
}

fn line(step: &Step<'_>, context: &Context) -> Markup {
    let at = step
        .call
        .as_ref()
        .map_or(step.event, |call| call.event)
        .created_at;
    // The sign of a call that has its result is that of the call.
    let kind = step
        .call
        .as_ref()
        .map_or(step.row.kind, |call| call.row.kind);
    let took = step.row.took_ms.map(format::took).unwrap_or_default();
    html! {
        (time(at, &format::since_start(format::millis(context.started_at.unwrap_or(at), at))))
        i.ic aria-hidden="true" { (sign(step, kind)) }
        @if context.agents == Agents::Several { span.ag { (brief(step.event.agent.as_deref().unwrap_or_default(), 40)) } }
        b.w { (brief(name(step), 120)) }
        span.d { (detail(step)) }
        span.mk { @if step.is_cited { span.by { "cited" } } @for mark in marks(step) { (self::mark(&mark)) } }
        span.tk { (took) }
        @if step.call.is_some() { (preview(&step.row, &step.event.content)) }
    }
}

fn sign(step: &Step<'_>, kind: Kind) -> &'static str {
    match step.event.event_type.as_str() {
        "stage_started" | "stage_completed" => "▸",
        _ => kind.glyph(Charset::Unicode),
    }
}

fn name<'s>(step: &'s Step<'_>) -> &'s str {
    // Together with its call, a result needs no other name.
    step.call
        .as_ref()
        .map_or(&step.row.name, |call| &call.row.name)
}

/// The words of a row in its column: what a call asks, or what an event says.
fn detail(step: &Step<'_>) -> Markup {
    if let Some(call) = &step.call {
        return html! { (words(&call.row)) };
    }
    html! {
        (words(&step.row))
        @if !step.row.open_calls.is_empty() {
            ". Open calls: "
            @for (index, number) in step.row.open_calls.iter().enumerate() {
                @if index > 0 { ", " } a href={ "#r" (number) } { "#" (number) }
            }
        }
    }
}

/// The text of a row in one line, as a terminal shows it.
fn words(row: &Row) -> String {
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

fn marks(step: &Step<'_>) -> Vec<Mark> {
    let tokens = step
        .row
        .tokens
        .iter()
        .map(|tokens| Mark::new(tokens.as_str(), Tone::Quiet));
    let unread = Some(step.row.unread.len()).filter(|pages| *pages > 0);
    let unread = unread.map(|pages| Mark::new(format!("{pages} not read"), Tone::Caution));
    tokens
        .chain(unread)
        .chain(step.row.marks.iter().cloned())
        .collect()
}

fn mark(mark: &Mark) -> Markup {
    let class = match mark.tone {
        Tone::Plain | Tone::Quiet | Tone::Strong => "m",
        Tone::Bad => "m bad",
        Tone::Caution => "m warn",
        Tone::Good => "m good",
    };
    html! { span class=(class) { (brief(&mark.long, 60)) } }
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
