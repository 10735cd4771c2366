//! The content of an opened step: the result and the arguments of a call, or the text of a model.

use maud::{Markup, html};

use super::{Bodies, Context, Step, branch, chart};
use crate::markdown;
use crate::shell::words::{brief, sources, whole};
use serde_json::Value;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::text::{Charset, clean};
use tarsy_core::readable::{format, results};
use tarsy_core::timeline::rows::{Body, Footnotes, Row};
use tarsy_core::timeline::{EventType, TimelineEvent};

/// Bytes of one text in the page of its session. Its own page has all of it.
const MAX_BYTES: usize = 64 * 1024;
/// A longer line is shown when it is opened.
const MAX_LINE: usize = 160;

/// The texts below the line of a step, if it has more than its line. Each has the number of its event as its id.
pub(super) fn texts(step: &Step<'_>, context: &Context) -> Option<Markup> {
    if !has_more(step) {
        return None;
    }
    let texts = match context.bodies {
        Bodies::InPage => body(step, context),
        Bodies::Linked => linked(step, context),
    };
    Some(html! { (texts) (branch::list(&step.branch)) })
}

fn has_more(step: &Step<'_>) -> bool {
    step.is_call()
        || step.event.event_type == EventType::AgentDispatched
        || match &step.row.body {
            Body::Line(_) => step.event.content.contains('\n') || !step.row.sources.is_empty(),
            Body::Whole { text, .. } => {
                text.trim().contains('\n') || text.chars().count() > MAX_LINE
            }
            Body::Folded(_) | Body::Prose { .. } | Body::Result { .. } | Body::Code(_) => true,
        }
}

fn body(step: &Step<'_>, context: &Context) -> Markup {
    let length = if step.is_cited {
        Length::Whole
    } else {
        Length::Bounded
    };
    html! {
        (event(step.event, &step.row, context, length))
        @if let Some(call) = &step.call { (event(call.event, &call.row, context, Length::Bounded)) }
        (actions(step, context))
    }
}

/// The replacement of [`body`] where the texts are not in the page.
fn linked(step: &Step<'_>, context: &Context) -> Markup {
    let number = step.event.session_seq;
    html! {
        div.lazy id=(number) data-load={ "/sessions/" (context.session) "/events/" (number) "?part=1" } {
            a href={ "/sessions/" (context.session) "/events/" (number) } { "Show event " (number) }
        }
        @if let Some(call) = &step.call {
            @let number = call.event.session_seq;
            div.lazy id=(number) data-load={ "/sessions/" (context.session) "/events/" (number) "?part=1" } {}
        }
    }
}

/// Whether the answer of the page is the text of this step; of several agents it is that of the synthesis.
fn is_answer(step: &Step<'_>) -> bool {
    step.event.event_type == EventType::FinalAnalysis && step.row.name == "final analysis"
}

/// A link to an event as a file.
pub(crate) fn json(session: SessionId, number: u32) -> Markup {
    let name = format!("tarsy-{}-{number}.json", session.short());
    html! { a href={ "/api/v1/sessions/" (session) "/events/" (number) } download=(name) { "JSON" } }
}

/// The whole content of one event.
pub(crate) fn whole_event(event: &TimelineEvent, row: &Row, context: &Context) -> Markup {
    self::event(event, row, context, Length::Whole)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Bounded,
    Whole,
}

fn event(event: &TimelineEvent, row: &Row, context: &Context, length: Length) -> Markup {
    let number = event.session_seq;
    html! {
        section.io id=(number) {
            @match (&event.event_type, &row.body) {
                (EventType::LlmToolCall | EventType::McpToolCall, _) => {
                    (heading("Asked", event, context, effect(event)))
                    (preformatted(&pretty(&event.content), event, context, length))
                }
                (_, Body::Result { whole, .. }) => {
                    (heading("Answered", event, context, &format::bytes(size(event))))
                    (chart::charts(&results::series(whole).unwrap_or_default()))
                    (preformatted(&results::lines(whole).join("\n"), event, context, length))
                }
                (_, Body::Folded(prose) | Body::Prose { text: prose, .. }) => (self::prose(prose, context)),
                (_, Body::Code(code)) => { div.md { (markdown::html(&code.content, 0)) } }
                (_, Body::Whole { text, .. }) => { p.t { (whole(bounded(text, length))) } }
                (_, Body::Line(_)) => (preformatted(&event.content, event, context, length)),
            }
            @if !row.sources.is_empty() {
                ul.sources { @for source in row.sources.iter().chain(&row.unread) { li { (brief(source, 600)) } } }
            }
        }
    }
}

fn heading(word: &str, event: &TimelineEvent, context: &Context, note: &str) -> Markup {
    html! {
        h3 {
            (word) " " a.n href={ "#" (event.session_seq) } { (event.session_seq) }
            span {
                @if let Some(start) = context.started_at {
                    "at " (format::since_start(format::millis(start, event.created_at)))
                    @if !note.is_empty() { ", " }
                }
                (note)
            }
        }
    }
}

fn effect(call: &TimelineEvent) -> &'static str {
    match call.metadata.get("read_only").and_then(Value::as_bool) {
        Some(true) => "read-only",
        Some(false) => "may change something",
        None => "",
    }
}

fn size(event: &TimelineEvent) -> usize {
    event
        .metadata
        .get("bytes")
        .and_then(Value::as_u64)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(event.content.len())
}

/// JSON with one value a line; any other text as it is.
fn pretty(text: &str) -> String {
    let value: Option<Value> = serde_json::from_str(text).ok();
    value
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| text.to_owned())
}

fn preformatted(text: &str, event: &TimelineEvent, context: &Context, length: Length) -> Markup {
    let shown = bounded(text, length);
    html! {
        pre tabindex="0" { (clean(shown.trim_end(), Charset::Unicode)) }
        @if shown.len() < text.len() || event.truncated {
            p { a href={ "/sessions/" (context.session) "/events/" (event.session_seq) } { "All of event " (event.session_seq) } }
        }
    }
}

fn bounded(text: &str, length: Length) -> &str {
    match length {
        Length::Whole => text,
        Length::Bounded => text
            .get(..text.floor_char_boundary(MAX_BYTES))
            .unwrap_or_default(),
    }
}

fn prose(prose: &Footnotes, context: &Context) -> Markup {
    html! {
        div.md { (markdown::cited_html(&prose.text, context.cites())) }
        @if prose.sources().next().is_some() { (sources(prose)) }
    }
}

fn actions(step: &Step<'_>, context: &Context) -> Markup {
    let number = step.event.session_seq;
    html! {
        p.acts {
            @if step.is_cited { a href="#answer" { "cited in the answer" } }
            @if is_answer(step) { a href="#answer" { "at the top of this page" } }
            a href={ "#" (number) } { "#" (number) }
            button.act type="button" data-copy-link=(number) { "Copy link" }
            button.act type="button" data-copy-text=(number) { "Copy text" }
            (json(context.session, number))
        }
    }
}
